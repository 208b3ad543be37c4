//! Where it is written which cluster is meant.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

/// The token of the account of a pod, in the pod.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Where it is written which cluster is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In these files, of which the first one that says something counts.
    Files(Vec<PathBuf>),
    /// This program runs in a pod, whose cluster it is.
    Inside,
    /// Nowhere.
    Nowhere,
}

impl Place {
    /// By the variables of this process.
    pub(crate) fn of(environment: &BTreeMap<String, String>) -> Self {
        Self::seen(environment, Path::exists)
    }

    fn seen(environment: &BTreeMap<String, String>, exists: impl Fn(&Path) -> bool) -> Self {
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if let Some(files) = variable("KUBECONFIG") {
            // As for kubectl, files that are missing are passed over where several are named.
            let all: Vec<PathBuf> = env::split_paths(files).filter(|file| !file.as_os_str().is_empty()).collect();
            let there: Vec<PathBuf> = all.iter().filter(|file| exists(file)).cloned().collect();
            return Self::Files(if there.is_empty() { all } else { there });
        }
        if variable("KUBERNETES_SERVICE_HOST").is_some() && exists(Path::new(TOKEN)) {
            return Self::Inside;
        }
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        match home.map(|home| Path::new(home).join(".kube").join("config")).filter(|file| exists(file)) {
            Some(file) => Self::Files(vec![file]),
            None => Self::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_found_as_kubectl_finds_it_and_by_the_account_of_a_pod() {
        let seen = |variables: &[(&str, &str)], files: &[&str]| {
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Place::seen(&environment, |file| files.iter().any(|other| file == Path::new(other)))
        };
        let files = |paths: &[&str]| Place::Files(paths.iter().map(PathBuf::from).collect());
        let (home, service) = (("HOME", "/h"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1"));
        assert_eq!(seen(&[home], &[]), Place::Nowhere);
        assert_eq!(seen(&[home], &["/h/.kube/config"]), files(&["/h/.kube/config"]));
        assert_eq!(seen(&[home, ("KUBECONFIG", "/a:/b")], &["/b"]), files(&["/b"]));
        assert_eq!(seen(&[("KUBECONFIG", "/a")], &[]), files(&["/a"]));
        assert_eq!(seen(&[home, ("KUBECONFIG", ""), service], &[TOKEN, "/h/.kube/config"]), Place::Inside);
        assert_eq!(seen(&[service], &[]), Place::Nowhere);
    }
}

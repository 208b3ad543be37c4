//! What an image says about the programs in it (`application/vnd.oci.image.config.v1+json`).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{digest::Digest, error::ImageError, platform::Platform, words::shown};

/// What an image says about the programs in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Variables of its programs, in its order.
    pub environment: Vec<(String, String)>,
    /// Where its programs start, a path in it.
    pub working_directory: Option<PathBuf>,
    /// Whom they run as: `user`, `uid`, `user:group`, `uid:gid`, and mixtures of these. Names are those of the image.
    pub user: Option<String>,
    /// The program that is started, with its first arguments.
    pub entrypoint: Vec<String>,
    /// Further arguments, or the program itself if there is no entrypoint.
    pub command: Vec<String>,
    /// The architecture that it is for, such as `amd64`; empty if it says nothing.
    pub architecture: String,
}

#[derive(Deserialize)]
struct Document {
    #[serde(flatten)]
    platform: Platform,
    #[serde(default)]
    config: Option<Programs>,
    rootfs: Option<Layers>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Programs {
    #[serde(rename = "Env")]
    environment: Option<Vec<String>>,
    #[serde(rename = "WorkingDir")]
    working_directory: Option<PathBuf>,
    #[serde(rename = "User")]
    user: Option<String>,
    #[serde(rename = "Entrypoint")]
    entrypoint: Option<Vec<String>>,
    #[serde(rename = "Cmd")]
    command: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Layers {
    #[serde(default)]
    diff_ids: Vec<Digest>,
}

/// Reads a configuration; returns the digests of the unpacked layers, too.
///
/// # Errors
///
/// It is none, or it is for other machines.
pub(crate) fn parse(bytes: &[u8], own: &Platform, image: &str) -> Result<(Config, Vec<Digest>), ImageError> {
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| ImageError::invalid(image, format!("its configuration is none: {error}")))?;
    let platform = document.platform;
    let says_nothing = platform.os.is_empty() && platform.architecture.is_empty();
    if !says_nothing && own.fit(&platform).is_none() {
        let (wanted, offered) = (own.to_string(), platform.to_string());
        return Err(ImageError::Platform { image: image.to_owned(), wanted, offered });
    }
    let layers = document.rootfs.ok_or_else(|| ImageError::invalid(image, "its configuration names no layers"))?;
    let programs = document.config.unwrap_or_default();
    let mut environment = Vec::new();
    for variable in programs.environment.unwrap_or_default() {
        let (name, value) = variable.split_once('=').unwrap_or((&variable, ""));
        if name.is_empty() || variable.contains('\0') {
            let reason = format!("`{}` cannot be a variable of the environment", shown(name, 100));
            return Err(ImageError::invalid(image, reason));
        }
        environment.push((name.to_owned(), value.to_owned()));
    }
    let (entrypoint, command) = (programs.entrypoint.unwrap_or_default(), programs.command.unwrap_or_default());
    let directory = programs.working_directory.filter(|path| !path.as_os_str().is_empty());
    let user = programs.user.filter(|user| !user.is_empty());
    let texts = entrypoint.iter().chain(&command).chain(&user).map(String::as_str);
    let mut texts = texts.chain(directory.iter().filter_map(|path| path.to_str()));
    if texts.any(|text| text.contains('\0')) {
        return Err(ImageError::invalid(image, "a text of its configuration has a NUL"));
    }
    let config = Config {
        environment,
        working_directory: directory,
        user,
        entrypoint,
        command,
        architecture: platform.architecture,
    };
    Ok((config, layers.diff_ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Config, Vec<Digest>), ImageError> {
        let own = Platform { os: "linux".into(), architecture: "amd64".into(), variant: None };
        parse(text.as_bytes(), &own, "x")
    }

    #[test]
    fn a_configuration_is_read_whole() {
        let digest = Digest::of(b"");
        let text = format!(
            r#"{{"os": "linux", "architecture": "amd64", "config": {{"Env": ["A=1=2", "B"], "WorkingDir": "/w", "User": "u:g",
            "Entrypoint": ["/e"], "Cmd": null}}, "rootfs": {{"type": "layers", "diff_ids": ["{digest}"]}}}}"#
        );
        let expected = Config {
            environment: vec![("A".into(), "1=2".into()), ("B".into(), String::new())],
            working_directory: Some("/w".into()),
            user: Some("u:g".into()),
            entrypoint: vec!["/e".into()],
            command: Vec::new(),
            architecture: "amd64".into(),
        };
        assert_eq!(read(&text).unwrap(), (expected, vec![digest]));
    }

    #[test]
    fn what_is_no_configuration_or_for_others_is_refused() {
        for (text, part) in [
            ("{", "its configuration is none"),
            ("{}", "names no layers"),
            (r#"{"os": "windows", "architecture": "amd64", "rootfs": {}}"#, "only for windows/amd64"),
            (r#"{"os": "linux", "architecture": "s390x", "rootfs": {}}"#, "nothing for linux/amd64"),
            (r#"{"config": {"Env": ["=x"]}, "rootfs": {}}"#, "cannot be a variable"),
            (r#"{"config": {"Env": ["a=\u0000"]}, "rootfs": {}}"#, "cannot be a variable"),
            (r#"{"config": {"Cmd": ["a\u0000"]}, "rootfs": {}}"#, "has a NUL"),
            (r#"{"rootfs": {"diff_ids": ["md5:0"]}}"#, "no SHA-256 digest"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

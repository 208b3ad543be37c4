//! Images that root directories of sandboxes are made from, without an engine.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_oci_image::{Image, ImageError, Progress, Pull, Store};
use gloveport_provider::{Phase, ProviderError, SandboxSpec, Teller};

use crate::{
    confine::TEMPORARY_INSIDE,
    fault::{blocking, engine},
    state::State,
};

/// Where it works in an image, if nothing else is asked for.
pub(crate) const WORK_INSIDE: &str = "/workspace";
const PATH: &str = "PATH";
const HOME: &str = "HOME";
/// Where programs are and whose home it is, where an image does not say.
const USUAL: [(&str, &str); 2] =
    [(PATH, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), (HOME, "/root")];

/// An image that is unpacked, and stays as long as this is held.
#[derive(Debug)]
pub(crate) struct Prepared {
    image: Image,
    /// The file of its lease.
    lease: PathBuf,
    environment: BTreeMap<String, String>,
}

/// Gets the image that a sandbox is to be made from, if it is.
pub(crate) async fn prepare(
    spec: &SandboxSpec,
    state: &State,
    progress: &Teller,
) -> Result<Option<Arc<Prepared>>, ProviderError> {
    let Some(reference) = &spec.image else { return Ok(None) };
    progress.enter(Phase::PreparingImage, reference);
    let directory = state.images();
    let store = blocking(move || Store::open(&directory).map_err(|error| failed(&error))).await?;
    let told = |step: Progress| progress.enter(Phase::PreparingImage, &step.to_string());
    let image = store.get(reference, Pull::Missing, &told).await.map_err(|error| match error {
        ImageError::Reference { .. } => ProviderError::Spec { field: "image".to_owned(), reason: error.to_string() },
        error => failed(&error),
    })?;
    let prepared = Prepared::new(image).map_err(|error| engine("keep the image", error))?;
    Ok(Some(Arc::new(prepared)))
}

fn failed(error: &ImageError) -> ProviderError {
    engine("prepare the image", error)
}

impl Prepared {
    fn new(image: Image) -> io::Result<Self> {
        let lease = fs::read_link(format!("/proc/self/fd/{}", image.lease.as_fd().as_raw_fd()))?;
        let is_usable =
            |(name, value): &(String, String)| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        let given = image.config.environment.iter().filter(|given| is_usable(given));
        let mut environment: BTreeMap<String, String> = given.cloned().collect();
        for (name, value) in USUAL {
            environment.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        // The place of temporary files in a container.
        environment.insert("TMPDIR".to_owned(), TEMPORARY_INSIDE.to_owned());
        Ok(Self { image, lease, environment })
    }

    /// The directory that many have.
    pub(crate) fn root(&self) -> &Path {
        &self.image.root
    }

    /// The file whose lock keeps it.
    pub(crate) fn lease(&self) -> &Path {
        &self.lease
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.environment.get(HOME).map_or_else(PathBuf::new, PathBuf::from)
    }

    /// Variables of the server, which looks for programs.
    pub(crate) fn of_server(&self) -> impl Iterator<Item = (&String, &String)> {
        self.environment.iter().filter(|(name, _)| [PATH, HOME].contains(&name.as_str()))
    }

    /// Variables of the tools, if nothing else is asked for.
    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }
}

/// The same sandbox, which says in a label what its root directory is made from.
pub(crate) fn labelled(spec: &SandboxSpec) -> SandboxSpec {
    let mut spec = spec.clone();
    spec.labels.extend(spec.image.clone().map(|reference| (SandboxSpec::IMAGE_LABEL.to_owned(), reference)));
    spec
}

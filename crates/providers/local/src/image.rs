//! Images that root directories of sandboxes are made from, without an engine.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_oci_image::{Image, ImageError, Progress, Pull};
use gloveport_provider::{Level, Phase, ProviderError, SandboxSpec, Teller};
use gloveport_sys::owners::Owners;

use crate::{
    confine::{self, TEMPORARY_INSIDE},
    fault::{blocking, engine},
    options::LocalOptions,
    owners::Hands,
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
    /// Whom its files belong to, beside the user.
    owners: Option<Owners>,
}

/// Gets the image that a sandbox is to be made from, if it is.
pub(crate) async fn prepare(
    spec: &SandboxSpec,
    options: &LocalOptions,
    progress: &Teller,
) -> Result<Option<Arc<Prepared>>, ProviderError> {
    let Some(reference) = &spec.image else { return Ok(None) };
    progress.enter(Phase::PreparingImage, reference);
    let own = options.clone();
    // A kernel of its own makes users of its own.
    let is_alone = confine::level(spec) == Level::Gvisor;
    let opened = move || {
        let store = if is_alone { own.images_of_one_owner() } else { own.images() };
        store.map_err(|error| failed(&error))
    };
    let store = blocking(opened).await?;
    let told = |step: Progress| progress.enter(Phase::PreparingImage, &step.to_string());
    let image = store.get(reference, Pull::Missing, &told).await.map_err(|error| match error {
        ImageError::Reference { .. } => ProviderError::Spec { field: "image".to_owned(), reason: error.to_string() },
        error => failed(&error),
    })?;
    let owners = if image.has_owners { Hands::of(options).ok().map(|hands| hands.owners) } else { None };
    let prepared = Prepared::new(image, owners).map_err(|error| engine("keep the image", error))?;
    Ok(Some(Arc::new(prepared)))
}

fn failed(error: &ImageError) -> ProviderError {
    engine("prepare the image", error)
}

impl Prepared {
    fn new(image: Image, owners: Option<Owners>) -> io::Result<Self> {
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
        Ok(Self { image, lease, environment, owners })
    }

    /// The directory that many have.
    pub(crate) fn root(&self) -> &Path {
        &self.image.root
    }

    /// The file whose lock keeps it.
    pub(crate) fn lease(&self) -> &Path {
        &self.lease
    }

    pub(crate) fn owners(&self) -> Option<&Owners> {
        self.owners.as_ref()
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

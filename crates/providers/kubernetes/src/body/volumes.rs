//! What a pod works on: its volumes, its secrets, and how our program gets into it.

use std::{collections::BTreeMap, path::Path};

use gloveport_provider::{
    MountSource, ProviderError, Workspace,
    container::{DIRECTORY, INPUT, Input, STATE},
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{
        Container, EmptyDirVolumeSource, KeyToPath, PersistentVolumeClaim, PersistentVolumeClaimSpec,
        PersistentVolumeClaimVolumeSource, Pod, ResourceRequirements, Secret, SecretVolumeSource, SecurityContext,
        Volume, VolumeMount, VolumeResourceRequirements,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::OwnerReference},
};

use super::{Plan, pod::literally};
use crate::{
    ProgramFrom, Storage,
    fault::{failed, wrong},
    names::{self, BRINGER},
    quantity,
    source::Source,
};

/// Directory of our program in a pod, and the program.
pub(super) const BIN: &str = "/.gloveport/bin";
pub(super) const BROUGHT: &str = "/.gloveport/bin/gloveport";
/// Its path in images that have it: those of `gloveport image`.
pub(super) const IN_IMAGE: &str = "/openhands/bin/gloveport";
/// Names of volumes.
const WORKSPACE_VOLUME: &str = "workspace-volume";
pub(super) const PROGRAM_VOLUME: &str = "program";
const STATE_VOLUME: &str = "state";
/// Keys of the secret.
pub(super) const KEY_ITEM: &str = "key";
const INPUT_ITEM: &str = "input";

impl Plan<'_> {
    /// What is secret: the key, and the variables that others may not see.
    pub(crate) fn secret(&self, owner: &OwnerReference) -> Result<Secret, ProviderError> {
        let mut data: BTreeMap<String, ByteString> = BTreeMap::new();
        data.insert(KEY_ITEM.to_owned(), ByteString(self.key.expose().as_bytes().to_vec()));
        let secrets = self.spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        if self.is_ours() {
            let input = Input { secrets: secrets.collect(), audit: None };
            let text = serde_json::to_vec(&input).map_err(|error| failed("be told the secrets", error))?;
            data.insert(INPUT_ITEM.to_owned(), ByteString(text));
        } else {
            let items = secrets.enumerate().map(|(at, (_, value))| (variable_item(at), ByteString(value.into_bytes())));
            data.extend(items);
        }
        Ok(Secret {
            metadata: self.meta(&names::secret(self.id.as_str()), Some(owner)),
            data: Some(data),
            ..Secret::default()
        })
    }

    /// Its volume, if it gets one of its own.
    pub(crate) fn claim(&self, owner: &OwnerReference) -> Option<PersistentVolumeClaim> {
        if self.spec.workspace != Workspace::Temporary || self.options.storage != Storage::Volume {
            return None;
        }
        Some(PersistentVolumeClaim {
            metadata: self.meta(&names::claim(self.id.as_str()), Some(owner)),
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
                resources: Some(VolumeResourceRequirements {
                    requests: Some([("storage".to_owned(), self.size())].into()),
                    ..VolumeResourceRequirements::default()
                }),
                storage_class_name: self.options.storage_class.clone(),
                data_source: self.source.map(Source::reference),
                ..PersistentVolumeClaimSpec::default()
            }),
            ..PersistentVolumeClaim::default()
        })
    }

    /// The size of its volume: no smaller than what it begins with.
    fn size(&self) -> Quantity {
        let wanted = &self.options.storage_size;
        let least = self.source.and_then(|source| source.size.as_ref());
        least.map_or(wanted, |least| quantity::larger(wanted, least)).clone()
    }

    pub(super) fn volumes(&self) -> Result<(Vec<Volume>, Vec<VolumeMount>), ProviderError> {
        let id = self.id.as_str();
        let of_claim = |name: &str, claim: String, read_only: bool| Volume {
            name: name.to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim,
                read_only: read_only.then_some(true),
            }),
            ..Volume::default()
        };
        let workspace = match &self.spec.workspace {
            Workspace::Volume(name) => of_claim(WORKSPACE_VOLUME, name.clone(), false),
            Workspace::Temporary if self.options.storage == Storage::Volume => {
                of_claim(WORKSPACE_VOLUME, names::claim(id), false)
            }
            Workspace::Temporary | Workspace::Directory(_) => empty(WORKSPACE_VOLUME),
        };
        let mut volumes = vec![workspace];
        let mut mounts = vec![mount(WORKSPACE_VOLUME, &self.options.workspace, false)];
        for (at, wanted) in self.spec.mounts.iter().enumerate() {
            let MountSource::Volume(claim) = &wanted.source else { continue };
            if Path::new(&wanted.target).starts_with(DIRECTORY) {
                return Err(wrong("mounts", format!("{DIRECTORY} belongs to the runtime; mount it elsewhere")));
            }
            let name = format!("mount-{at}");
            volumes.push(of_claim(&name, claim.clone(), wanted.read_only));
            mounts.push(mount(&name, &wanted.target, wanted.read_only));
        }
        if self.is_ours() && self.waits.is_none() {
            let file = Path::new(INPUT).file_name().unwrap_or_default().to_string_lossy().into_owned();
            volumes.push(Volume {
                name: STATE_VOLUME.to_owned(),
                secret: Some(SecretVolumeSource {
                    secret_name: Some(names::secret(id)),
                    items: Some(vec![KeyToPath { key: INPUT_ITEM.to_owned(), path: file, mode: None }]),
                    // Whoever the server works as reads it.
                    default_mode: Some(0o444),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            });
            mounts.push(mount(STATE_VOLUME, STATE, true));
        }
        if self.is_ours() && self.options.program_from != ProgramFrom::InImage {
            mounts.push(mount(PROGRAM_VOLUME, BIN, true));
        }
        Ok((volumes, mounts))
    }

    /// What brings our program into the pod of a sandbox.
    pub(super) fn bringer(&self, volumes: &mut Vec<Volume>) -> Option<Vec<Container>> {
        if self.is_ours() { self.program(volumes, self.security()) } else { None }
    }

    /// What brings our program into a pod, with what it may do.
    pub(super) fn program(&self, volumes: &mut Vec<Volume>, security: SecurityContext) -> Option<Vec<Container>> {
        let (image, command, streamed) = match &self.options.program_from {
            ProgramFrom::InImage => return None,
            ProgramFrom::Image(image) => {
                let words = [IN_IMAGE, "container-install", BROUGHT];
                (image.as_str(), words.map(str::to_owned).to_vec(), false)
            }
            ProgramFrom::Stream { image } => {
                (image.as_deref().unwrap_or(self.image), receiver(self.program_size), true)
            }
        };
        volumes.push(empty(PROGRAM_VOLUME));
        Some(vec![Container {
            name: BRINGER.to_owned(),
            image: Some(image.to_owned()),
            image_pull_policy: self.options.pull_policy.clone(),
            command: Some(command),
            stdin: streamed.then_some(true),
            stdin_once: streamed.then_some(true),
            volume_mounts: Some(vec![mount(PROGRAM_VOLUME, BIN, false)]),
            resources: Some(small()),
            security_context: Some(SecurityContext { privileged: Some(false), ..security }),
            ..Container::default()
        }])
    }
}

/// What our program takes where it is no server.
pub(super) fn small() -> ResourceRequirements {
    let of = |cpu: &str, memory: &str| {
        [("cpu", cpu), ("memory", memory)].map(|(key, value)| (key.to_owned(), Quantity(value.to_owned()))).into()
    };
    ResourceRequirements {
        requests: Some(of("10m", "16Mi")),
        limits: Some(of("1", "128Mi")),
        ..ResourceRequirements::default()
    }
}

/// What takes our program from standard input. Its end cannot be told through every API server, so the length is. A pod
/// whose containers are started again has it already.
pub(super) fn receiver(size: u64) -> Vec<String> {
    let script = format!(
        "umask 022; cd {BIN} && {{ [ -x gloveport ] && exit 0; head -c {size} >new && [ \"$(wc -c <new)\" -eq {size} ] \
         && chmod 755 new && mv new gloveport; }}"
    );
    vec!["sh".to_owned(), "-c".to_owned(), literally(&script)]
}

/// The claim of the volume that a pod works on, if it works on one.
pub(crate) fn claim_of(pod: &Pod) -> Option<&str> {
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let workspace = volumes.find(|volume| volume.name == WORKSPACE_VOLUME)?;
    Some(&workspace.persistent_volume_claim.as_ref()?.claim_name)
}

/// The pod works on another volume than it was made for.
pub(crate) fn on_claim(pod: &mut Pod, claim: &str) {
    let volumes = pod.spec.iter_mut().flat_map(|spec| spec.volumes.iter_mut().flatten());
    for volume in volumes.filter(|volume| volume.name == WORKSPACE_VOLUME) {
        if let Some(source) = &mut volume.persistent_volume_claim {
            claim.clone_into(&mut source.claim_name);
        }
    }
}

/// The key in the secret of a variable of a server that the caller brings.
pub(super) fn variable_item(at: usize) -> String {
    format!("variable-{at}")
}

fn empty(name: &str) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

pub(super) fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

//! Secrets that a sandbox uses and never has.
//!
//! ```text
//! provider ── memory, over the socket ──► keeper ──► gate      values, and the key of an authority
//!     └────── own/trust/ ───────────────► container            placeholders, and the certificate of that authority
//! ```
//!
//! Neither the server nor anything else of the container has the memory open, and the keeper does not read it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Seek as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::PermissionsExt as _, net::UnixStream},
    },
    path::Path,
};

use gloveport_contract::local::directory::{OWN_TRUST, TRUST};
use gloveport_edge::{
    PrepareError, Prepared, Wanted,
    trust::{self, AUTHORITY, BUNDLE_VARIABLE, CERTIFICATES},
};
use gloveport_provider::{ProviderError, SandboxSpec};
use gloveport_sys::frames;
use rustix::fs::{MemfdFlags, memfd_create};
use zeroize::Zeroizing;

use crate::fault::engine;

/// What a sandbox gets for its secrets, and its gate.
#[derive(Debug)]
pub(crate) struct Edge {
    /// What is for the gate alone.
    file: OwnedFd,
    certificate: String,
    certificates: String,
    /// What stands for each secret.
    pub(crate) placeholders: BTreeMap<String, String>,
    /// Whom they are for.
    pub(crate) rules: Vec<String>,
}

impl Edge {
    /// Makes it; `None` where there are no such secrets.
    pub(crate) fn prepare(
        spec: &SandboxSpec,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, ProviderError> {
        if spec.edge_secrets.is_empty() {
            return Ok(None);
        }
        let failed = |error: &dyn std::fmt::Display| engine("prepare the secrets of the sandbox", error);
        let wanted = spec.edge_secrets.iter().map(|(name, secret)| Wanted {
            name,
            value: secret.value.expose(),
            hosts: &secret.hosts,
        });
        let roots = trust::roots_of_machine(environment.get(BUNDLE_VARIABLE).map(String::as_str));
        let prepared = Prepared::new(spec.session_id.as_str(), wanted, roots);
        let Prepared { config, placeholders, rules } = prepared.map_err(|error| match error {
            PrepareError::Hosts { secret, reason } => {
                ProviderError::Spec { field: format!("edge_secrets.{secret}"), reason }
            }
            other => failed(&other),
        })?;
        let certificate = config.authority.certificate_pem().to_owned();
        let certificates = trust::certificates(&config.roots, &certificate);
        let text = Zeroizing::new(serde_json::to_vec(&config).map_err(|error| failed(&error))?);
        let mut file = File::from(memfd_create("edge", MemfdFlags::CLOEXEC).map_err(|error| failed(&error))?);
        file.write_all(&text).and_then(|()| file.rewind()).map_err(|error| failed(&error))?;
        Ok(Some(Self { file: file.into(), certificate, certificates, placeholders, rules }))
    }

    /// Writes what programs trust into the directory of what the sandbox has for itself. Whoever they are in the container,
    /// they read it.
    pub(crate) fn write_trust(&self, place: &Path) -> Result<(), ProviderError> {
        let directory = place.join(OWN_TRUST);
        let open = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let write = || {
            fs::create_dir(&directory)?;
            open(&directory, 0o755)?;
            for (name, text) in [(CERTIFICATES, &self.certificates), (AUTHORITY, &self.certificate)] {
                let path = directory.join(name);
                fs::write(&path, text)?;
                open(&path, 0o644)?;
            }
            Ok(())
        };
        write().map_err(crate::fault::file("write what programs trust into", &directory))
    }

    /// Sends what is for the gate, before anything else.
    pub(crate) fn hand_over(&self, socket: &UnixStream) -> Result<(), ProviderError> {
        let sent = frames::send(socket, &(), &[self.file.as_fd()]);
        sent.map_err(|error| engine("hand the secrets of the sandbox to its gate", error))
    }
}

/// Variables that lead programs to what they trust.
pub(crate) fn trust(environment: &mut BTreeMap<String, String>) {
    environment.extend(trust::variables(TRUST));
}

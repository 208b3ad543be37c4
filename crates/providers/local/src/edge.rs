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

use gloveport_allow_list::Rules;
use gloveport_contract::local::directory::{AUTHORITY, BUNDLES, CERTIFICATES, OWN_TRUST, TRUST};
use gloveport_edge::{Authority, EdgeConfig, EdgeSecret};
use gloveport_provider::{ProviderError, SandboxSpec};
use gloveport_sys::frames;
use rustix::fs::{MemfdFlags, memfd_create};
use zeroize::Zeroizing;

use crate::{fault::engine, state::random_name};

/// The port that a host of a secret is meant at where it names none.
const HTTPS: u16 = 443;
/// The variable that names another file of the same kind as [`BUNDLES`].
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";
/// Variables that name the certificates of all authorities to programs …
const BUNDLE_VARIABLES: [&str; 9] = [
    BUNDLE_VARIABLE,
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "UV_SSL_CERT_FILE",
];
/// … and those that name one more to programs that have their own.
const AUTHORITY_VARIABLES: [&str; 2] = ["DENO_CERT", "NODE_EXTRA_CA_CERTS"];

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
        let authority = Authority::make(&format!("gloveport: {}", spec.session_id)).map_err(|error| failed(&error))?;
        let certificate = authority.certificate_pem().to_owned();
        let roots = roots(environment);
        let mut placeholders = BTreeMap::new();
        let (mut secrets, mut rules) = (Vec::new(), Vec::new());
        for (name, secret) in &spec.edge_secrets {
            let wrong = |reason: String| ProviderError::Spec { field: format!("edge_secrets.{name}"), reason };
            let hosts = Rules::parse(&secret.hosts).map_err(|error| wrong(error.to_string()))?.at_port(HTTPS);
            rules.extend(hosts.texts());
            let placeholder = format!("gloveport-secret-{}", random_name()?);
            placeholders.insert(name.clone(), placeholder.clone());
            let value = Zeroizing::new(secret.value.expose().to_owned());
            secrets.push(EdgeSecret { name: name.clone(), placeholder, value, hosts });
        }
        let certificates = format!("{}\n{certificate}", roots.trim_end());
        let config = EdgeConfig { secrets, authority, roots };
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
    let named = |names: &'static [&'static str], file: &str| {
        let path = format!("{TRUST}/{file}");
        names.iter().map(move |name| ((*name).to_owned(), path.clone()))
    };
    environment.extend(named(&BUNDLE_VARIABLES, CERTIFICATES).chain(named(&AUTHORITY_VARIABLES, AUTHORITY)));
}

/// The certificates of the authorities that programs of this machine trust; empty if there are none.
fn roots(environment: &BTreeMap<String, String>) -> String {
    let named = environment.get(BUNDLE_VARIABLE).map(String::as_str);
    named.into_iter().chain(BUNDLES).find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

//! Secrets that a sandbox uses and never has: its gate puts them into requests on their way out.
//!
//! ```text
//! provider ── standard input, through the engine ──► gate       values, and the key of an authority of this sandbox alone
//!     └────── a volume, and the server's input ────► sandbox    the certificate of that authority, and placeholders
//! ```
//!
//! What is written to the standard input of a container is in no configuration, label or log. The gate has it in memory, so
//! one that is started again does without, and lets nothing through to the hosts of secrets.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read as _},
    pin::Pin,
    time::Duration,
};

use bollard::{
    container::{AttachContainerResults, LogOutput},
    query_parameters::{
        AttachContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
    },
};
use futures_util::{Stream, StreamExt as _};
use gloveport_contract::gate::{EDGE_TAKEN, EDGE_WITHIN, LONGEST_EDGE};
use gloveport_docker_engine::EngineError;
use gloveport_edge::{
    EdgeConfig, PrepareError, Prepared, Wanted,
    trust::{self, AUTHORITY, BUNDLES, CERTIFICATES},
};
use gloveport_provider::{ProviderError, SandboxSpec};
use tokio::{io::AsyncWriteExt as _, time::timeout};
use zeroize::Zeroizing;

use crate::{
    fault::{self, failed, wrong},
    inner::Inner,
    options::Variables,
};

/// The directory of the sandbox with what its programs trust: a volume, which ends with the container and is in no image.
pub(crate) const TRUST: &str = "/.gloveport/trust";
/// Most bytes of a file with certificates of authorities, as the engine packs it.
const LONGEST_BUNDLE: usize = 4 * 1024 * 1024;
/// Links that such a file may be behind.
const LINKS: u32 = 8;
/// Time for a gate to say that it has what it needs; it waits for less itself.
const GIVING: Duration = EDGE_WITHIN.saturating_add(Duration::from_secs(10));
/// Most bytes of what a gate says when it has what it needs.
const LONGEST_ANSWER: usize = 1024;

/// What a sandbox and its gate get for secrets.
#[derive(Debug)]
pub(crate) struct Edge {
    /// What is for the gate alone.
    config: EdgeConfig,
    placeholders: BTreeMap<String, String>,
    /// Whom the secrets are for.
    pub(crate) rules: Vec<String>,
}

impl Edge {
    /// Makes it; `None` where there are no such secrets. `certificates` is the file of those that this machine trusts, if it is
    /// not one of the usual ones.
    pub(crate) fn prepare(spec: &SandboxSpec, certificates: Option<&str>) -> Result<Option<Self>, ProviderError> {
        if spec.edge_secrets.is_empty() {
            return Ok(None);
        }
        let wanted = spec.edge_secrets.iter().map(|(name, secret)| Wanted {
            name,
            value: secret.value.expose(),
            hosts: &secret.hosts,
        });
        let roots = trust::roots_of_machine(certificates);
        let Prepared { config, placeholders, rules } =
            Prepared::new(spec.session_id.as_str(), wanted, roots).map_err(|error| match error {
                PrepareError::Hosts { secret, reason } => wrong(format!("edge_secrets.{secret}"), reason),
                other => failed("be given the secrets of the sandbox", other),
            })?;
        Ok(Some(Self { config, placeholders, rules }))
    }

    /// Variables of the tools: what stands for the secrets, and what leads programs to the authority and through the gate.
    pub(crate) fn variables(&self) -> Variables {
        // Node does not look at those of proxies otherwise.
        let node = ("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
        trust::variables(TRUST).chain([node]).chain(self.placeholders.clone()).collect()
    }

    /// The line for the gate, and the archive for the sandbox. `of_image` is whom programs of the image trust: those that
    /// trust nobody trust whom the machine trusts, and where that is nobody, the gate trusts whom the image trusts.
    fn packed(&self, of_image: &str) -> Result<(Zeroizing<Vec<u8>>, Vec<u8>), ProviderError> {
        let failed = |error: &dyn std::fmt::Display| failed("be given the secrets of the sandbox", error);
        let either = |first: &str, second: &str| if first.is_empty() { second } else { first }.to_owned();
        let config = EdgeConfig { roots: either(&self.config.roots, of_image), ..self.config.clone() };
        let mut line = Zeroizing::new(serde_json::to_vec(&config).map_err(|error| failed(&error))?);
        if u64::try_from(line.len()).unwrap_or(u64::MAX) > LONGEST_EDGE {
            return Err(failed(&format!(
                "with the certificates that this machine trusts they have over {LONGEST_EDGE} bytes"
            )));
        }
        line.push(b'\n');
        let certificate = config.authority.certificate_pem();
        let certificates = trust::certificates(&either(of_image, &self.config.roots), certificate);
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in [(CERTIFICATES, certificates.as_str()), (AUTHORITY, certificate)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, content.as_bytes()).map_err(|error| failed(&error))?;
        }
        Ok((line, tar.into_inner().map_err(|error| failed(&error))?))
    }
}

impl Inner {
    /// Has the programs of a container that does not run yet trust the authority of its sandbox. Gives the line for its gate.
    /// `named` is the file with certificates that the programs would look at, if it is not one of the usual ones.
    pub(crate) async fn trust(
        &self,
        container: &str,
        edge: &Edge,
        named: Option<String>,
    ) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        let mut of_image = String::new();
        for path in named.into_iter().chain(BUNDLES.map(str::to_owned)) {
            if let Some(found) = self.text(container, path).await? {
                of_image = found;
                break;
            }
        }
        let (line, archive) = edge.packed(&of_image)?;
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let options = UploadToContainerOptionsBuilder::default().path(TRUST).build();
        let upload = docker.upload_to_container(container, Some(options), bollard::body_full(archive.into()));
        self.engine.ask("take the certificates that programs trust", upload).await.map_err(fault::of)?;
        Ok(line)
    }

    /// A file of a container, behind however many links; none if there is none, or it is something else.
    async fn text(&self, container: &str, mut path: String) -> Result<Option<String>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        for _ in 0..LINKS {
            let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
            let mut pieces = Box::pin(docker.download_from_container(container, Some(options)));
            let all = async {
                let mut all = Vec::new();
                while let Some(piece) = pieces.next().await {
                    all.extend_from_slice(&piece?);
                    if all.len() > LONGEST_BUNDLE {
                        break;
                    }
                }
                Ok(all)
            };
            let archive = match self.engine.ask(&format!("read `{path}` in the container"), all).await {
                Ok(archive) => archive,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(fault::of(error)),
            };
            if archive.len() > LONGEST_BUNDLE {
                tracing::warn!(path, "it has too many certificates, and is not used");
                return Ok(None);
            }
            match first(&archive) {
                Some(First::Text(text)) => return Ok(Some(text)),
                Some(First::Link(to)) if to.starts_with('/') => path = to,
                Some(First::Link(to)) => {
                    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    path = format!("{directory}/{to}");
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Starts a gate and gives it this line with what it puts into requests.
    pub(crate) async fn start_and_give(&self, gate: &str, name: &str, line: &[u8]) -> Result<(), ProviderError> {
        let attached = self.attached(gate, name).await.map_err(fault::of)?;
        if self.started_with(attached, gate, name, line).await? == EDGE_TAKEN {
            return Ok(());
        }
        let log = self.last_lines(gate).await;
        let reason = format!("its gate `{name}` has not taken the secrets that it is to put in");
        Err(ProviderError::Start { reason, log })
    }

    /// Starts a gate whose secrets are lost.
    pub(crate) async fn start_and_give_nothing(&self, gate: &str, name: &str) -> Result<(), ProviderError> {
        match self.attached(gate, name).await {
            // Whatever it says: nothing reaches the hosts of secrets.
            Ok(attached) => self.started_with(attached, gate, name, b"\n").await.map(drop),
            // Podman attaches to none that was started before. It waits for a while, and goes on without them.
            Err(error) => {
                tracing::debug!(%error, gate = name, "it is started without being told that there are no secrets");
                let docker = self.engine.docker().await.map_err(fault::of)?;
                let started = docker.start_container(gate, None);
                self.engine.ask(&format!("start the gate `{name}`"), started).await.map_err(fault::of_start)
            }
        }
    }

    async fn attached(&self, gate: &str, name: &str) -> Result<AttachContainerResults, EngineError> {
        let options = AttachContainerOptionsBuilder::default().stream(true).stdin(true).stdout(true).build();
        let attached = self.engine.docker().await?.attach_container(gate, Some(options));
        self.engine.ask(&format!("attach to the standard input of the gate `{name}`"), attached).await
    }

    /// What a gate says to a line on its standard input, with which it is started.
    async fn started_with(
        &self,
        AttachContainerResults { output, mut input }: AttachContainerResults,
        gate: &str,
        name: &str,
        line: &[u8],
    ) -> Result<String, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let started = docker.start_container(gate, None);
        self.engine.ask(&format!("start the gate `{name}`"), started).await.map_err(fault::of_start)?;
        let given = async {
            let written = async {
                input.write_all(line).await?;
                input.flush().await
            };
            // One that has ended reads nothing, and its log says why.
            if let Err(error) = written.await {
                tracing::debug!(%error, gate = name, "it does not read");
            }
            first_line(output).await
        };
        let action = format!("give the gate `{name}` what it puts into requests");
        let late = |_| ProviderError::Timeout { action: action.clone(), limit: GIVING };
        timeout(GIVING, given).await.map_err(late)?.map_err(|error| failed(&action, error))
    }
}

/// The first line that a container writes, or what there is of it when it ends.
async fn first_line(
    mut output: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
) -> Result<String, bollard::errors::Error> {
    let mut said = Vec::new();
    while let Some(piece) = output.next().await {
        if let LogOutput::StdOut { message } = piece? {
            said.extend_from_slice(&message);
        }
        if said.contains(&b'\n') || said.len() > LONGEST_ANSWER {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned())
}

/// What an archive has first.
#[derive(Debug, PartialEq, Eq)]
enum First {
    Text(String),
    Link(String),
}

fn first(archive: &[u8]) -> Option<First> {
    let mut archive = tar::Archive::new(Cursor::new(archive));
    let entry = archive.entries().ok()?.next()?.ok()?;
    let kind = entry.header().entry_type();
    if kind.is_symlink() {
        return Some(First::Link(entry.link_name().ok()??.to_str()?.to_owned()));
    }
    if !kind.is_file() {
        return None;
    }
    let mut text = Vec::new();
    entry.take(u64::try_from(LONGEST_BUNDLE).unwrap_or(u64::MAX)).read_to_end(&mut text).ok()?;
    Some(First::Text(String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use gloveport_edge::trust::BUNDLE_VARIABLE;
    use gloveport_protocol::Secret;
    use gloveport_provider::{EdgeSecret, SessionId};

    use super::*;

    fn edge(roots: &str) -> Edge {
        let hosts = ["a.test".to_owned()];
        let wanted = Wanted { name: "TOKEN", value: "the value of it", hosts: &hosts };
        let Prepared { config, placeholders, rules } = Prepared::new("s", [wanted], roots.to_owned()).unwrap();
        Edge { config, placeholders, rules }
    }

    fn read(archive: &[u8]) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(Cursor::new(archive));
        let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
            let mut entry: tar::Entry<'_, Cursor<&[u8]>> = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn the_gate_trusts_whom_the_machine_trusts_and_the_sandbox_whom_its_image_trusts() {
        for (machine, image, of_gate, of_sandbox) in
            [("m", "i", "m", "i"), ("m", "", "m", "m"), ("", "i", "i", "i"), ("", "", "", "")]
        {
            let edge = edge(machine);
            let (line, archive) = edge.packed(image).unwrap();
            let text = line.strip_suffix(b"\n").unwrap();
            let given: EdgeConfig = serde_json::from_slice(text).unwrap();
            assert_eq!((given.roots.as_str(), text.contains(&b'\n')), (of_gate, false));
            let files = read(&archive);
            let authority = edge.config.authority.certificate_pem();
            assert_eq!((files[AUTHORITY].as_str(), files.len()), (authority, 2));
            assert_eq!(files[CERTIFICATES], format!("{of_sandbox}\n{authority}"));
            assert!(
                !archive.windows(11).any(|part| part == b"PRIVATE KEY") && !format!("{edge:?}").contains("the value")
            );
        }
    }

    #[test]
    fn the_tools_get_placeholders_and_are_led_to_the_authority() {
        let edge = edge("");
        let variables = edge.variables();
        assert!(variables["TOKEN"].starts_with("gloveport-secret-"));
        assert_eq!(variables[BUNDLE_VARIABLE], "/.gloveport/trust/certificates.pem");
        assert_eq!(variables["NODE_EXTRA_CA_CERTS"], "/.gloveport/trust/authority.pem");
        assert!(!variables.values().any(|value| value.contains("the value")));
    }

    #[test]
    fn what_the_engine_packs_is_a_text_or_a_link() {
        let packed = |kind, name: &str, content: &str| {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(content.len() as u64);
            if kind == tar::EntryType::Symlink {
                tar.append_link(&mut header, name, "../real.pem").unwrap();
            } else {
                tar.append_data(&mut header, name, content.as_bytes()).unwrap();
            }
            tar.into_inner().unwrap()
        };
        let of = |kind, content| first(&packed(kind, "cert.pem", content));
        assert_eq!(of(tar::EntryType::Regular, "text"), Some(First::Text("text".to_owned())));
        assert_eq!(of(tar::EntryType::Symlink, ""), Some(First::Link("../real.pem".to_owned())));
        assert_eq!((of(tar::EntryType::Directory, ""), first(b"no archive")), (None, None));
    }

    #[test]
    fn hosts_that_cannot_be_understood_are_refused_with_the_name_of_the_secret() {
        let secret = EdgeSecret { value: Secret::new("a long value"), hosts: vec!["a b".to_owned()] };
        let spec = SandboxSpec {
            edge_secrets: [("TOKEN".to_owned(), secret)].into(),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        };
        let error = Edge::prepare(&spec, None).unwrap_err().to_string();
        assert!(error.contains("edge_secrets.TOKEN") && !error.contains("a long value"), "{error}");
    }
}

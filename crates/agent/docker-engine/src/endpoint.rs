//! Which engine is meant (docker-runtime 2).

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// The socket of a Docker engine that root runs.
const SOCKET: &str = "/var/run/docker.sock";
/// The socket of Podman that root runs.
const PODMAN: &str = "/run/podman/podman.sock";
/// The pipe of a Docker engine on Windows.
const PIPE: &str = "//./pipe/docker_engine";
/// What said that it is this one, if nobody did.
const USUAL: &str = "the usual socket";
/// Longest file of the Docker command line that is read.
const LONGEST: u64 = 1024 * 1024;

/// An engine, and what said that it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is.
    pub address: Address,
    /// What named it: "DOCKER_HOST", "the context `x`", "the usual socket".
    pub source: String,
}

/// Where an engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this machine.
    Unix(PathBuf),
    /// A named pipe of this machine, which is on Windows.
    Pipe(PathBuf),
    /// `HOST:PORT`, perhaps with TLS.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// How it is made sure who is who; `None` for a connection that everybody can read and use.
        tls: Option<Tls>,
    },
}

/// Certificates, in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Authorities that the engine's certificate must come from; `None` for those of this machine.
    pub authority: Option<PathBuf>,
    /// Our certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Any certificate of the engine will do (`SkipTLSVerify` of a context).
    pub any_certificate: bool,
}

/// Why it cannot be told which engine is meant.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address cannot be understood.
    #[error("{from} is `{value}`, which is not an address of a Docker engine: {reason}")]
    Address {
        /// What says it.
        from: String,
        /// The value.
        value: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of the Docker command line cannot be read.
    #[error("cannot read {}, which {why}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it is for.
        why: String,
        /// What the system says.
        source: io::Error,
    },
}

#[derive(Deserialize)]
struct CliConfig {
    #[serde(rename = "currentContext", default)]
    current_context: String,
}

#[derive(Deserialize)]
struct ContextMeta {
    #[serde(rename = "Endpoints", default)]
    endpoints: BTreeMap<String, ContextEndpoint>,
}

#[derive(Deserialize)]
struct ContextEndpoint {
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

impl Endpoint {
    /// The engine that these variables name, as the Docker command line finds it: `DOCKER_HOST` (with
    /// `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH`), `DOCKER_CONTEXT`, the current context; and without any of them the
    /// first of the usual sockets that is there, those of rootless engines and of Podman among them.
    pub fn find(variables: &BTreeMap<String, String>) -> Result<Self, EndpointError> {
        let variable = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let home = variable(gloveport_platform::HOME).map(PathBuf::from);
        let configuration =
            variable("DOCKER_CONFIG").map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(".docker")));
        if let Some(host) = variable("DOCKER_HOST") {
            let from = "DOCKER_HOST".to_owned();
            let tls = variable("DOCKER_TLS_VERIFY").map(|_| {
                let files = variable("DOCKER_CERT_PATH").map(PathBuf::from).or(configuration).unwrap_or_default();
                Tls::of_directory(&files, false)
            });
            return Ok(Self { address: Address::parse(host, tls, &from)?, source: from });
        }
        let context = match (variable("DOCKER_CONTEXT"), &configuration) {
            (Some(context), _) => Some(context.to_owned()),
            (None, Some(configuration)) => current_context(configuration)?,
            (None, None) => None,
        };
        match (context.filter(|context| context != "default"), configuration) {
            (Some(context), Some(configuration)) => Self::of_context(&configuration, &context),
            _ => Ok(Self::usual(variables)),
        }
    }

    /// An engine at this address: `unix:///path`, `tcp://host:port`.
    pub fn at(address: &str, from: &str) -> Result<Self, EndpointError> {
        Ok(Self { address: Address::parse(address, None, from)?, source: from.to_owned() })
    }

    /// Whether somebody named it, or its socket is there; else it is only where one would be.
    pub fn is_expected(&self) -> bool {
        self.source != USUAL || !matches!(&self.address, Address::Unix(path) | Address::Pipe(path) if !path.exists())
    }

    fn of_context(configuration: &Path, context: &str) -> Result<Self, EndpointError> {
        let name = gloveport_ids::hex(&Sha256::digest(context.as_bytes()));
        let source = format!("the Docker context `{context}`");
        let path = configuration.join("contexts/meta").join(&name).join("meta.json");
        let meta: ContextMeta = read_json(&path, &format!("describes {source}"))?;
        let engine = meta.endpoints.get("docker").filter(|engine| !engine.host.is_empty());
        let engine = engine.ok_or_else(|| EndpointError::Address {
            from: source.clone(),
            value: String::new(),
            reason: format!("{} names no host of an engine", path.display()),
        })?;
        let files = configuration.join("contexts/tls").join(&name).join("docker");
        let tls = files.is_dir().then(|| Tls::of_directory(&files, engine.skip_tls_verify));
        Ok(Self { address: Address::parse(&engine.host, tls, &source)?, source })
    }

    /// The first of the usual sockets that is there; the very first if none is.
    fn usual(variables: &BTreeMap<String, String>) -> Self {
        if cfg!(windows) {
            return Self { address: Address::Pipe(PIPE.into()), source: USUAL.to_owned() };
        }
        let runtime = variables.get("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty()).map(PathBuf::from);
        let user = gloveport_platform::user_id().unwrap_or_default();
        let runtime = runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
        let home = variables.get(gloveport_platform::HOME).map(PathBuf::from).unwrap_or_default();
        let sockets = [
            PathBuf::from(SOCKET),
            runtime.join("docker.sock"),
            home.join(".docker/run/docker.sock"),
            PathBuf::from(PODMAN),
            runtime.join("podman/podman.sock"),
        ];
        let found = sockets.iter().find(|socket| socket.exists()).cloned();
        Self { address: Address::Unix(found.unwrap_or_else(|| PathBuf::from(SOCKET))), source: USUAL.to_owned() }
    }
}

fn current_context(configuration: &Path) -> Result<Option<String>, EndpointError> {
    let path = configuration.join("config.json");
    if !path.exists() {
        return Ok(None);
    }
    let config: CliConfig = read_json(&path, "names the Docker context in use")?;
    Ok(Some(config.current_context).filter(|context| !context.is_empty()))
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path, why: &str) -> Result<T, EndpointError> {
    let failed = |source| EndpointError::File { path: path.to_owned(), why: why.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > LONGEST {
        return Err(failed(io::Error::other("it has more than 1 MiB")));
    }
    let text = fs::read(path).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| failed(error.into()))
}

impl Tls {
    /// The files `ca.pem`, `cert.pem` and `key.pem` of a directory, as far as they are there.
    fn of_directory(directory: &Path, any_certificate: bool) -> Self {
        let there = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
        Self { authority: there("ca.pem"), client: there("cert.pem").zip(there("key.pem")), any_certificate }
    }
}

impl Address {
    fn parse(text: &str, tls: Option<Tls>, from: &str) -> Result<Self, EndpointError> {
        let wrong = |reason: &str| EndpointError::Address {
            from: from.to_owned(),
            value: text.to_owned(),
            reason: reason.to_owned(),
        };
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("it has no scheme such as unix:// or tcp://"))?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "unix" => Err(wrong("the path of the socket must be absolute")),
            "npipe" if !cfg!(windows) => Err(wrong("named pipes of engines are on Windows only")),
            "npipe" if rest.starts_with("//./pipe/") => Ok(Self::Pipe(rest.into())),
            "npipe" => Err(wrong("the name of the pipe must begin with //./pipe/")),
            "tcp" | "http" | "https" => {
                let tls = tls.or_else(|| {
                    (scheme == "https").then_some(Tls { authority: None, client: None, any_certificate: false })
                });
                let rest = rest.trim_end_matches('/');
                let usual = if tls.is_some() { 2376 } else { 2375 };
                let (host, port) = match rest.rsplit_once(':') {
                    Some((host, port)) if !port.ends_with(']') => {
                        (host, port.parse().map_err(|_| wrong("the port must be a number from 1 to 65535"))?)
                    }
                    _ => (rest, usual),
                };
                let host = host.trim_start_matches('[').trim_end_matches(']');
                if host.is_empty() || host.contains('/') {
                    return Err(wrong("it names no host"));
                }
                Ok(Self::Tcp { host: host.to_owned(), port, tls })
            }
            "ssh" => Err(wrong(
                "engines behind ssh are not reached directly; forward the socket (ssh -NL \
                 /tmp/docker.sock:/var/run/docker.sock HOST) and set DOCKER_HOST=unix:///tmp/docker.sock",
            )),
            _ => Err(wrong("the scheme must be unix or tcp")),
        }
    }

    /// Whether the engine is on this machine as far as the address tells, so that it may share its files.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_) | Self::Pipe(_))
    }

    /// The host under which published ports of the engine are reached.
    pub fn host(&self) -> &str {
        match self {
            Self::Unix(_) | Self::Pipe(_) => "localhost",
            Self::Tcp { host, .. } => host,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Pipe(path) => write!(f, "npipe://{}", path.display()),
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "tcp://{host}:{port}"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn shown(pairs: &[(&str, &str)]) -> String {
        match Endpoint::find(&variables(pairs)) {
            Ok(endpoint) => endpoint.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn docker_host_comes_first() {
        for (host, expected) in [
            ("unix:///x/d.sock", "unix:///x/d.sock (DOCKER_HOST)"),
            ("tcp://a:1", "tcp://a:1 (DOCKER_HOST)"),
            ("tcp://a", "tcp://a:2375 (DOCKER_HOST)"),
            ("tcp://[::1]:7/", "tcp://[::1]:7 (DOCKER_HOST)"),
            ("https://a", "tcp://a:2376 (DOCKER_HOST)"),
        ] {
            assert_eq!(shown(&[("DOCKER_HOST", host), ("DOCKER_CONTEXT", "x")]), expected);
        }
        for (host, reason) in [
            ("d.sock", "no scheme"),
            ("unix://d.sock", "absolute"),
            ("tcp://a:x", "the port must be"),
            ("tcp://:1", "no host"),
            ("ssh://a", "forward the socket"),
            ("npipe:////./pipe/docker_engine", "Windows only"),
            ("ftp://a", "the scheme must be"),
        ] {
            let text = shown(&[("DOCKER_HOST", host)]);
            assert!(text.starts_with(&format!("DOCKER_HOST is `{host}`")) && text.contains(reason), "{text}");
        }
    }

    #[test]
    fn certificates_come_from_the_directory_that_is_named() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let path = directory.path().to_str().unwrap();
        let with = [("DOCKER_HOST", "tcp://a:1"), ("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", path)];
        let Address::Tcp { tls: Some(tls), .. } = Endpoint::find(&variables(&with)).unwrap().address else {
            panic!("no TLS")
        };
        assert_eq!(tls.authority, Some(directory.path().join("ca.pem")));
        assert!(tls.client.is_some() && !tls.any_certificate);
    }

    #[test]
    fn contexts_are_those_of_the_docker_command_line() {
        let home = tempfile::tempdir().unwrap();
        let docker = home.path().join(".docker");
        let name = gloveport_ids::hex(&Sha256::digest(b"far"));
        let meta = docker.join("contexts/meta").join(&name);
        fs::create_dir_all(&meta).unwrap();
        fs::create_dir_all(docker.join("contexts/tls").join(&name).join("docker")).unwrap();
        let text = r#"{"Name":"far","Endpoints":{"docker":{"Host":"tcp://far:9","SkipTLSVerify":true}}}"#;
        fs::write(meta.join("meta.json"), text).unwrap();
        fs::write(docker.join("config.json"), r#"{"auths":{},"currentContext":"far"}"#).unwrap();
        let home = home.path().to_str().unwrap();
        let found = Endpoint::find(&variables(&[("HOME", home)])).unwrap();
        assert_eq!(found.to_string(), "tcp://far:9 (the Docker context `far`)");
        let Address::Tcp { tls: Some(tls), .. } = found.address else { panic!("no TLS") };
        assert!(tls.any_certificate);
        let other = shown(&[("HOME", home), ("DOCKER_CONTEXT", "near")]);
        assert!(other.contains("describes the Docker context `near`"), "{other}");
        assert!(shown(&[("HOME", home), ("DOCKER_CONTEXT", "default")]).contains("the usual socket"));
        fs::write(docker.join("config.json"), "{").unwrap();
        assert!(shown(&[("HOME", home)]).contains("names the Docker context in use"));
    }
}

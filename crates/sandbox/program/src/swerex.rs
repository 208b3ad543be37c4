//! `swerex`: the entry point and the flags of the server of SWE-ReX.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_server::{ServerOptions, SessionKey, Wire};

use crate::{Owner, tools, wire};

/// The version of SWE-ReX whose API this is.
const OF_SWEREX: &str = "1.4.0";
/// Longest file with a token, in bytes.
const LONGEST: u64 = 4096;

#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Address to listen on. By the name `swerex-remote` it is 0.0.0.0 if nothing else is said.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", overrides_with = "host", value_parser = tools::address)]
    host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(short, long, default_value_t = 8000)]
    port: u16,
    /// What clients must show. An empty one lets everybody in who reaches the port.
    #[arg(long, value_name = "TOKEN", required_unless_present_any = ["auth_token_file", "version"])]
    auth_token: Option<String>,
    /// A file with the token, which does not show it in the list of processes.
    #[arg(long, value_name = "FILE", conflicts_with = "auth_token")]
    auth_token_file: Option<PathBuf>,
    /// Listen without a token where others reach the port: whoever does can do all that this user can.
    #[arg(long)]
    insecure: bool,
    /// Directory that sessions and commands start in (default: the current one).
    #[arg(long, value_name = "DIRECTORY")]
    working_dir: Option<PathBuf>,
    /// Print the version of SWE-ReX whose API is served.
    #[arg(short = 'v', long)]
    version: bool,
}

impl ServerArgs {
    pub(crate) fn is_about_version(&self) -> bool {
        self.version
    }

    fn token(&self) -> anyhow::Result<Option<SessionKey>> {
        let token = match (&self.auth_token, &self.auth_token_file) {
            (Some(token), _) => token.clone(),
            (None, Some(file)) => {
                let token = read(file).with_context(|| format!("cannot read the token in {}", file.display()))?;
                anyhow::ensure!(!token.is_empty(), "the file {} has no token", file.display());
                token
            }
            (None, None) => String::new(),
        };
        if token.is_empty() {
            anyhow::ensure!(
                self.insecure || self.host.is_loopback(),
                "without a token everybody who reaches {} could run commands here; give --auth-token, or --host 127.0.0.1, or \
                 --insecure if that is what you want",
                self.host
            );
            return Ok(None);
        }
        Ok(Some(SessionKey::new(token)))
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(file)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// Prints which version this is.
pub(crate) fn version() -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{OF_SWEREX} (gloveport {})", env!("CARGO_PKG_VERSION"))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let session_key = arguments.token()?;
    let directory = match &arguments.working_dir {
        Some(directory) => tools::existing_directory(directory)?,
        None => std::env::current_dir().context("the current directory cannot be used; give --working-dir")?,
    };
    let mut options = tools::executor_options(owner, directory.clone())?;
    tools::without_keys(&mut options);
    let server = ServerOptions { session_key, wire: Wire::SweRex, ..ServerOptions::default() };
    wire::serve(owner, options, SocketAddr::from((arguments.host, arguments.port)), server, "SWE-ReX").await
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::argv;

    fn parsed(line: &str) -> Result<ServerArgs, String> {
        let words = argv::normalize(line.split(' ').map(Into::into).collect());
        let matches = ServerArgs::augment_args(clap::Command::new("x").disable_version_flag(true))
            .try_get_matches_from(words.into_iter().skip(1))
            .map_err(|error| error.to_string())?;
        ServerArgs::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn the_flags_of_swerex_are_understood_and_nobody_is_let_in_by_accident() {
        let plain = parsed("swerex-remote --auth-token t").unwrap();
        assert_eq!((plain.host.to_string().as_str(), plain.port), ("0.0.0.0", 8000));
        assert!(plain.token().unwrap().is_some());
        let told = parsed("/x/swerex-remote --host 127.0.0.1 --port 8880 --auth-token=").unwrap();
        assert!(told.host.is_loopback() && told.port == 8880 && told.token().unwrap().is_none());
        let open = parsed("swerex-remote --auth-token=").unwrap().token().unwrap_err().to_string();
        assert!(open.contains("--insecure"), "{open}");
        assert!(parsed("swerex-remote --auth-token= --insecure").unwrap().token().unwrap().is_none());
        assert!(parsed("swerex-remote").unwrap_err().contains("--auth-token"));
        for version in ["swerex-remote --version", "swerex-remote -v"] {
            assert!(parsed(version).unwrap().is_about_version());
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let from = format!("swerex-remote --auth-token-file {}", file.path().display());
        assert!(parsed(&from).unwrap().token().unwrap_err().to_string().contains("has no token"));
        std::fs::write(file.path(), "secret\n").unwrap();
        assert!(parsed(&from).unwrap().token().unwrap().unwrap().matches(b"secret"));
    }
}

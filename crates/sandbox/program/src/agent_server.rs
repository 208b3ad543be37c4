//! `agent-server`: the entry point, the flags and the variables of the agent-server of OpenHands' SDK 1.x
//! (`agent-server-workspace-api` §10).

use std::{
    io::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_executor::{ExecutorOptions, plugins::Plugin};
use gloveport_server::{AgentServerOptions, EditorPlace, ServerOptions, SessionKey, Wire};
use gloveport_vscode::VsCode;

use crate::{Owner, hosted_agent, tools, wire};

/// The version of the SDK whose API this is.
const OF_SDK: &str = "1.58.2";
/// What the names of variables with keys begin with; a number follows.
const KEYS: &str = "OH_SESSION_API_KEYS_";
/// The same for pages that may ask.
const ORIGINS: &str = "OH_ALLOW_CORS_ORIGINS_";
/// Most variables with a number.
const NUMBERS: usize = 100;
/// Variables beside the keys that no command gets.
const SECRET: [&str; 6] = [
    "SESSION_API_KEY",
    "OH_SECRET_KEY",
    "LMNR_PROJECT_API_KEY",
    "OTEL_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];
/// Where the events of commands are kept if nothing is said, below the current directory.
const EVENTS: &str = "workspace/bash_events";
/// Where VS Code listens if nothing is said.
const VSCODE_PORT: u16 = 8001;
/// What commands are given to if nothing is said.
const SHELL: &str = "/bin/sh";

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub struct ServerArgs {
    /// Address to listen on: an address, or `localhost` (default: 0.0.0.0 with a key, else 127.0.0.1).
    #[arg(long, value_name = "ADDRESS", value_parser = tools::address)]
    host: Option<IpAddr>,
    /// Port to listen on; 0 takes a free one.
    #[arg(short, long, default_value_t = 8000)]
    port: u16,
    /// Listen without a key where others reach the port: whoever does can do all that this user can.
    #[arg(long)]
    insecure: bool,
    /// The shell that commands are given to, as `SHELL -c COMMAND`.
    #[arg(long, value_name = "PROGRAM", default_value = SHELL)]
    shell: PathBuf,
    /// Has no meaning here; OpenHands' server starts anew when its sources change.
    #[arg(long, hide = true)]
    reload: bool,
    /// Has no meaning here; OpenHands' server loads tools from these modules.
    #[arg(long, hide = true, value_name = "MODULES")]
    import_modules: Option<String>,
    /// Has no meaning here; OpenHands' server looks for modules there.
    #[arg(long, hide = true, value_name = "PATH")]
    extra_python_path: Option<String>,
    /// Is refused: it tries the browser of an agent, and there is none.
    #[arg(long, hide = true)]
    check_browser: bool,
    /// Print the version of the SDK whose API is served.
    #[arg(short = 'V', long)]
    version: bool,
}

impl ServerArgs {
    pub(crate) fn is_about_version(&self) -> bool {
        self.version
    }

    /// Where it listens, which is refused where anybody could come.
    fn host(&self, is_open: bool) -> anyhow::Result<IpAddr> {
        let host = self.host.unwrap_or(if is_open { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }.into());
        anyhow::ensure!(
            !is_open || self.insecure || host.is_loopback(),
            "without a key everybody who reaches {host} could run commands here; set OH_SESSION_API_KEYS_0, or give --host \
             127.0.0.1, or --insecure if that is what you want"
        );
        Ok(host)
    }

    /// Flags of the original that are taken and do nothing.
    fn idle_flags(&self) -> Vec<&'static str> {
        let flags = [
            (self.reload, "--reload"),
            (self.import_modules.is_some(), "--import-modules"),
            (self.extra_python_path.is_some(), "--extra-python-path"),
        ];
        flags.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
    }
}

/// VS Code, unless it is switched off, and where people reach it. Its token is the first key: clients build its address
/// themselves.
fn editor(host: IpAddr, key: Option<&SessionKey>) -> anyhow::Result<Option<(Arc<dyn Plugin>, EditorPlace)>> {
    let wanted = variable("OH_ENABLE_VSCODE").unwrap_or_else(|| "true".to_owned());
    match wanted.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "t" | "y" => {}
        "0" | "false" | "no" | "off" | "f" | "n" => return Ok(None),
        _ => anyhow::bail!("OH_ENABLE_VSCODE must be `true` or `false`, and is `{wanted}`"),
    }
    let port = variable("OH_VSCODE_PORT").map_or(Ok(VSCODE_PORT), |text| {
        let port = text.trim().parse().ok().filter(|port| *port != 0);
        port.with_context(|| format!("OH_VSCODE_PORT must be a port from 1 to 65535, and is `{text}`"))
    })?;
    let base_path = variable("OH_VSCODE_BASE_PATH").unwrap_or_default();
    let base_path = base_path.trim().trim_matches('/').to_owned();
    let path = if base_path.is_empty() { String::new() } else { format!("/{base_path}") };
    let plugin = VsCode::at(SocketAddr::from((host, port)), path, key.map(|key| key.secret().to_owned()));
    Ok(Some((Arc::new(plugin), EditorPlace { port, base_path })))
}

/// Prints which version this is.
pub(crate) fn version() -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{OF_SDK} (gloveport {})", env!("CARGO_PKG_VERSION"))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !arguments.check_browser,
        "--check-browser tries the browser of an agent, and this server has no agent"
    );
    let mut keys = keys(|name| std::env::var(name).ok());
    let is_open = keys.is_empty();
    let host = arguments.host(is_open)?;
    for flag in arguments.idle_flags() {
        tracing::warn!(flag, "this flag has no meaning here");
    }
    let directory = std::env::current_dir().context("the current directory cannot be used")?;
    let mut options = tools::executor_options(owner, directory.clone())?;
    without_secrets(&mut options);
    let editor = editor(host, keys.first())?;
    if let Some((plugin, _)) = &editor {
        options.plugins.all.push(Arc::clone(plugin));
    }
    let events = directory.join(variable("OH_BASH_EVENTS_DIR").unwrap_or_else(|| EVENTS.to_owned()));
    let of_wire = AgentServerOptions {
        shell: vec![arguments.shell.into(), "-c".into()],
        agent: hosted_agent::find(keys.first(), &events)?,
        events,
        retention: retention(variable("OH_BASH_EVENTS_RETENTION_SECONDS"))?,
        origins: numbered(ORIGINS, |name| std::env::var(name).ok()),
        editor: editor.map(|(_, place)| place),
    };
    let server = ServerOptions {
        session_key: keys.pop(),
        other_keys: keys,
        wire: Wire::AgentServer(of_wire),
        ..ServerOptions::default()
    };
    wire::serve(owner, options, SocketAddr::from((host, arguments.port)), server, "OpenHands' SDK 1.x").await
}

/// The keys that clients may show: those with a number, or the one of older servers if there is none.
fn keys(variable: impl Fn(&str) -> Option<String>) -> Vec<SessionKey> {
    let mut keys = numbered(KEYS, &variable);
    if keys.is_empty() {
        keys.extend(variable("SESSION_API_KEY").filter(|key| !key.is_empty()));
    }
    keys.into_iter().map(SessionKey::new).collect()
}

/// What variables have that begin like this and go on with 0, 1 and so on.
fn numbered(beginning: &str, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let all = (0..NUMBERS).map_while(|number| variable(&format!("{beginning}{number}")));
    all.filter(|value| !value.is_empty()).collect()
}

/// How long events are kept.
fn retention(text: Option<String>) -> anyhow::Result<Option<Duration>> {
    let Some(text) = text else { return Ok(None) };
    let seconds: u64 = text.trim().parse().with_context(|| {
        format!("OH_BASH_EVENTS_RETENTION_SECONDS must be a whole number of seconds, and is `{text}`")
    })?;
    Ok(Some(Duration::from_secs(seconds)))
}

/// Leaves out of what commands get what is for the server.
fn without_secrets(options: &mut ExecutorOptions) {
    tools::without_keys(options);
    options.environment.retain(|(name, _)| {
        let name = name.to_string_lossy();
        !name.starts_with(KEYS) && !SECRET.contains(&&*name)
    });
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn the_flags_of_an_agent_server_are_understood_and_nobody_is_let_in_by_accident() {
        let plain = parsed("agent-server").unwrap();
        assert_eq!((plain.host(true).unwrap().to_string().as_str(), plain.port), ("127.0.0.1", 8000));
        assert_eq!(plain.host(false).unwrap().to_string(), "0.0.0.0");
        for line in [
            "/usr/local/bin/openhands-agent-server --host 0.0.0.0 --port 8000",
            "/x/python3.12 -m openhands.agent_server --port 8000 --host 0.0.0.0",
        ] {
            let all = parsed(line).unwrap();
            assert!(all.host(false).is_ok());
            let refused = all.host(true).unwrap_err().to_string();
            assert!(refused.contains("OH_SESSION_API_KEYS_0") && refused.contains("--insecure"), "{refused}");
        }
        assert!(parsed("agent-server --host 0.0.0.0 --insecure").unwrap().host(true).is_ok());
        assert!(parsed("agent-server --host localhost").unwrap().host(true).unwrap().is_loopback());
        assert!(parsed("agent-server --host nowhere").unwrap_err().contains("localhost"));
        assert_eq!(parsed("agent-server --reload --import-modules a,b").unwrap().idle_flags().len(), 2);
        assert!(parsed("agent-server --version").unwrap().is_about_version());
    }

    #[test]
    fn keys_have_numbers_and_empty_ones_are_none() {
        let found = |pairs: &[(&str, &str)]| {
            let variables: BTreeMap<&str, &str> = pairs.iter().copied().collect();
            keys(|name| variables.get(name).map(|value| (*value).to_owned()))
        };
        let both = found(&[("OH_SESSION_API_KEYS_0", "a"), ("OH_SESSION_API_KEYS_1", "b"), ("SESSION_API_KEY", "c")]);
        assert!(both.len() == 2 && both[0].matches(b"a") && both[1].matches(b"b"));
        let old = found(&[("OH_SESSION_API_KEYS_0", ""), ("SESSION_API_KEY", "c")]);
        assert!(old.len() == 1 && old[0].matches(b"c"));
        assert!(found(&[("SESSION_API_KEY", "")]).is_empty());
    }

    #[test]
    fn a_retention_that_is_no_number_is_refused() {
        assert_eq!(retention(Some(" 60 ".into())).unwrap(), Some(Duration::from_mins(1)));
        assert!(retention(Some("1h".into())).unwrap_err().to_string().contains("OH_BASH_EVENTS_RETENTION_SECONDS"));
    }
}

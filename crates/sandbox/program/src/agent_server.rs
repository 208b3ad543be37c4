//! `agent-server`: the entry point, the flags and the variables of the agent-server of OpenHands' SDK 1.x
//! (`agent-server-workspace-api` §10).

use std::{
    ffi::OsString,
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
use gloveport_server::{
    AgentServerOptions, Deferred, DeferredSettings, EditorPlace, ServerOptions, SessionKey, SettleError, Settled, Wire,
};
use gloveport_vscode::VsCode;

use crate::{
    Owner,
    hosted_agent::{self, Wishes},
    tools, wire,
};

/// Whose clients are served.
const WHOSE: &str = "OpenHands' SDK 1.x";
/// Says that the settings come later.
const DEFERRED: &str = "OH_DEFERRED_INIT";
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

/// What a variable says that is yes or no.
fn boolean(name: &str, default: bool, text: Option<String>) -> anyhow::Result<bool> {
    let Some(text) = text else { return Ok(default) };
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "t" | "y" => Ok(true),
        "0" | "false" | "no" | "off" | "f" | "n" => Ok(false),
        _ => anyhow::bail!("{name} must be `true` or `false`, and is `{text}`"),
    }
}

/// Where people reach VS Code, unless it is switched off.
fn editor_place() -> anyhow::Result<Option<EditorPlace>> {
    if !boolean("OH_ENABLE_VSCODE", true, variable("OH_ENABLE_VSCODE"))? {
        return Ok(None);
    }
    let port = variable("OH_VSCODE_PORT").map_or(Ok(VSCODE_PORT), |text| {
        let port = text.trim().parse().ok().filter(|port| *port != 0);
        port.with_context(|| format!("OH_VSCODE_PORT must be a port from 1 to 65535, and is `{text}`"))
    })?;
    let base_path = variable("OH_VSCODE_BASE_PATH").unwrap_or_default();
    Ok(Some(EditorPlace { port, base_path: base_path.trim().trim_matches('/').to_owned() }))
}

/// VS Code itself. Its token is the first key: clients build its address themselves.
fn editor(host: IpAddr, place: &EditorPlace, key: Option<&SessionKey>) -> Arc<dyn Plugin> {
    let path = if place.base_path.is_empty() { String::new() } else { format!("/{}", place.base_path) };
    Arc::new(VsCode::at(SocketAddr::from((host, place.port)), path, key.map(|key| key.secret().to_owned())))
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
    let own = |name: &str| std::env::var(name).ok();
    let waits = boolean(DEFERRED, false, variable(DEFERRED))?;
    let key = if waits { init_key(own)? } else { None };
    let keys = keys(own);
    let host = arguments.host(if waits { key.is_none() } else { keys.is_empty() })?;
    for flag in arguments.idle_flags() {
        tracing::warn!(flag, "this flag has no meaning here");
    }
    let directory = std::env::current_dir().context("the current directory cannot be used")?;
    let mut tools = tools::executor_options(owner, directory.clone())?;
    without_secrets(&mut tools);
    let origins = numbered(ORIGINS, own);
    let plan = Plan {
        tools: tools.clone(),
        host,
        may_be_open: arguments.insecure || host.is_loopback(),
        keys,
        events: directory.join(variable("OH_BASH_EVENTS_DIR").unwrap_or_else(|| EVENTS.to_owned())),
        retention: retention(variable("OH_BASH_EVENTS_RETENTION_SECONDS"))?,
        origins: origins.clone(),
        editor: editor_place()?,
        shell: vec![arguments.shell.into(), "-c".into()],
    };
    let address = SocketAddr::from((host, arguments.port));
    if waits {
        let server = ServerOptions { wire: Wire::Deferred(deferred(key, origins, plan)), ..ServerOptions::default() };
        return wire::serve(owner, tools, address, server, WHOSE).await;
    }
    let Made { tools, keys, options } = plan.with(&DeferredSettings::default())?;
    let mut keys = keys.into_iter();
    let server = ServerOptions {
        session_key: keys.next(),
        other_keys: keys.collect(),
        wire: Wire::AgentServer(options),
        ..ServerOptions::default()
    };
    wire::serve(owner, tools, address, server, WHOSE).await
}

/// What a server is, as far as its start says.
#[derive(Clone)]
struct Plan {
    tools: ExecutorOptions,
    host: IpAddr,
    /// It may do without a key.
    may_be_open: bool,
    keys: Vec<SessionKey>,
    events: PathBuf,
    retention: Option<Duration>,
    origins: Vec<String>,
    editor: Option<EditorPlace>,
    shell: Vec<OsString>,
}

/// What it is altogether.
struct Made {
    tools: ExecutorOptions,
    keys: Vec<SessionKey>,
    options: AgentServerOptions,
}

impl Plan {
    /// With what it is told later.
    fn with(self, settings: &DeferredSettings) -> anyhow::Result<Made> {
        let Self { mut tools, host, may_be_open: _, keys, events, retention, origins, editor: place, shell } = self;
        let keys = settings.session_keys.clone().unwrap_or(keys);
        for (name, value) in &settings.environment {
            tools.environment.retain(|(known, _)| known != name.as_str());
            tools.environment.push((name.into(), value.into()));
        }
        without_secrets(&mut tools);
        let events = match &settings.events {
            Some(told) => tools.working_directory.join(told),
            None => events,
        };
        if let Some(place) = &place {
            tools.plugins.all.push(editor(host, place, keys.first()));
        }
        let agent = hosted_agent::find(&Wishes { key: keys.first(), events: &events, settings })?;
        if agent.is_none() && !settings.of_agent.is_empty() {
            let names: Vec<_> = settings.of_agent.iter().map(|(name, _)| *name).collect();
            tracing::warn!(?names, "these settings are for an agent, and there is none");
        }
        let origins = settings.origins.clone().unwrap_or(origins);
        Ok(Made {
            tools,
            keys,
            options: AgentServerOptions { shell, events, retention, origins, agent, editor: place },
        })
    }
}

/// A server that is told later for whom it is.
fn deferred(key: Option<SessionKey>, origins: Vec<String>, plan: Plan) -> Deferred {
    Deferred::new(key, origins, move |settings| {
        let plan = plan.clone();
        Box::pin(async move {
            let may_be_open = plan.may_be_open;
            let made = plan.with(&settings).map_err(|error| SettleError::Failed(format!("{error:#}")))?;
            if made.keys.is_empty() && !may_be_open {
                return Err(SettleError::Refused(
                    "without a key everybody who reaches this server could run commands here; send session_api_keys, or start \
                     it with --host 127.0.0.1, or with --insecure if that is what you want"
                        .to_owned(),
                ));
            }
            let executor = wire::executor(made.tools).await.map_err(|error| SettleError::Failed(error.to_string()))?;
            Ok(Settled { executor, keys: made.keys, options: made.options })
        })
    })
}

/// What whoever brings the settings must show: the secret of the agent's store, or else a key of clients.
fn init_key(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<SessionKey>> {
    let names = ["OH_SECRET_KEY", "SESSION_API_KEY", "OH_SESSION_API_KEYS_0"];
    let found = names.iter().filter_map(|name| variable(name)).find(|key| !key.trim().is_empty());
    anyhow::ensure!(
        found.is_some() || variable("OH_SECRET_KEY").is_none_or(|key| key.is_empty()),
        "OH_SECRET_KEY is blank, so nobody could bring the settings that {DEFERRED} waits for; set it, or unset it"
    );
    Ok(found.map(SessionKey::new))
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
    fn who_brings_the_settings_shows_the_secret_or_a_key() {
        let found = |pairs: &[(&str, &str)]| {
            let variables: BTreeMap<&str, &str> = pairs.iter().copied().collect();
            init_key(|name| variables.get(name).map(|value| (*value).to_owned()))
        };
        let all = [("OH_SESSION_API_KEYS_0", "new"), ("SESSION_API_KEY", "old"), ("OH_SECRET_KEY", "secret")];
        for (count, expected) in [(3, "secret"), (2, "old"), (1, "new")] {
            assert!(found(&all[..count]).unwrap().unwrap().matches(expected.as_bytes()), "{expected}");
        }
        assert!(found(&[]).unwrap().is_none() && found(&[("OH_SECRET_KEY", "")]).unwrap().is_none());
        assert!(found(&[("OH_SECRET_KEY", " "), ("SESSION_API_KEY", "k")]).unwrap().unwrap().matches(b"k"));
        assert!(found(&[("OH_SECRET_KEY", " ")]).unwrap_err().to_string().contains("OH_SECRET_KEY is blank"));
    }

    #[test]
    fn a_retention_that_is_no_number_is_refused() {
        assert_eq!(retention(Some(" 60 ".into())).unwrap(), Some(Duration::from_mins(1)));
        assert!(retention(Some("1h".into())).unwrap_err().to_string().contains("OH_BASH_EVENTS_RETENTION_SECONDS"));
    }
}

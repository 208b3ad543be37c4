//! `action-execution-server`: the entry point, the flags and the environment of OpenHands 0.62
//! (`action-execution-api` §1).

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, builder::BoolishValueParser};
use gloveport_executor::{Executor, account::Account, memory};
use gloveport_server::{
    DrainEnd, ServerOptions, SessionKey, StrangeNames,
    viewer::{URL_FILE, Viewer},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Owner,
    plugins::{self, WantedBrowser},
    tools::{self, bind},
};

/// Words that mean yes (`SU_TO_USER`).
const YES: [&str; 6] = ["1", "true", "t", "yes", "y", "on"];

#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Port to listen on, on all addresses.
    port: u16,
    /// Directory that tools start in; made if it is missing.
    #[arg(long, value_name = "DIRECTORY")]
    working_dir: Option<PathBuf>,
    /// Plugins to load: jupyter, agent_skills, vscode, and those of manifests.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    plugins: Vec<String>,
    /// User that the tools work as.
    #[arg(long, default_value = "openhands")]
    username: String,
    /// User id of a user that has to be made.
    #[arg(long, default_value_t = 1000)]
    user_id: u32,
    /// Start the browser with the sandbox. By default it starts with its first use.
    #[arg(long, overrides_with = "no_enable_browser")]
    enable_browser: bool,
    /// No browser.
    #[arg(long, overrides_with = "enable_browser")]
    no_enable_browser: bool,
    /// Evaluation environment of the browser.
    #[arg(long, value_name = "ID", num_args = 1..)]
    browsergym_eval_env: Vec<String>,
    /// Answer a run action as soon as its program waits for input, and say so. By default the answer comes after the soft
    /// time limit, as in OpenHands. Blocking actions are never answered early.
    #[arg(long, env = "GLOVEPORT_ANSWER_WHEN_WAITING", value_parser = BoolishValueParser::new())]
    answer_when_waiting: bool,
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let browser = match (arguments.no_enable_browser, arguments.enable_browser) {
        (true, _) => WantedBrowser::None,
        (false, true) => WantedBrowser::AtOnce,
        (false, false) => WantedBrowser::WhenNeeded,
    };
    let plugins = plugins::of_openhands(&arguments.plugins, browser)?;
    anyhow::ensure!(
        !arguments.no_enable_browser || arguments.browsergym_eval_env.is_empty(),
        "Browser environment is not enabled in config, but browsergym_eval_env is set"
    );
    anyhow::ensure!(
        arguments.browsergym_eval_env.is_empty(),
        "evaluation environments of the browser ({}) are not supported: their pages and rewards are parts of Python packages; leave \
         --browsergym-eval-env out",
        arguments.browsergym_eval_env.join(", ")
    );
    let session_key = variable("SESSION_API_KEY").map(SessionKey::new);
    let origins = tools::origins(variable(tools::ALLOWED_ORIGINS).as_deref(), session_key.is_some())?;
    let stop = tools::server_stop(owner)?;
    let directory = match &arguments.working_dir {
        Some(directory) => std::path::absolute(directory)
            .with_context(|| format!("cannot use the working directory {}", directory.display()))?,
        None => std::env::current_dir().context("the current directory cannot be used; give --working-dir")?,
    };
    let limit = memory_limit()?;
    let mut options = tools::executor_options(owner, directory.clone())?;
    tools::without_keys(&mut options);
    options.account = Some(account(&arguments));
    options.memory_limit = limit;
    options.when_waiting = tools::when_waiting(arguments.answer_when_waiting);
    options.startup_commands.push(tools::NO_PAGER.to_owned());
    if !rustix::process::geteuid().is_root() {
        options.startup_commands.push(enter(&directory));
    }
    options.plugins = plugins;
    // Before the tools, so that they find its address.
    let viewer = Viewer::announce(arguments.port, Path::new(URL_FILE));
    let executor = Executor::start(options).await?;
    let viewer = viewer.map(|viewer| viewer.serve_as(executor.identity()));
    let monitor = CancellationToken::new();
    if variable("RUNTIME_MEMORY_MONITOR")
        .is_some_and(|value| ["true", "1", "yes"].contains(&value.to_lowercase().as_str()))
    {
        tokio::spawn(memory::monitor(owner.pid, monitor.clone()));
    }

    // Until here connections are refused: a caller takes the first answer as the sign that everything is ready.
    let listener = bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, arguments.port))).await?;
    tracing::info!(port = arguments.port, directory = %directory.display(), "ready");
    // The reference listens on all addresses, with a key or without one, and its callers ask by whatever name leads into
    // the container: `localhost` and a mapped port, `host.docker.internal`, the name of a service in a cluster. So any name
    // is fine for a program. A browser that asks by one that is not this machine's is refused, because pages can have such
    // a name made for them; so are pages in any case.
    let strange_names = StrangeNames::OfPrograms;
    let server_options = ServerOptions { session_key, strange_names, origins, viewer, ..ServerOptions::default() };
    let end = gloveport_server::serve(listener, executor.clone(), server_options, stop, tools::DRAIN).await;
    monitor.cancel();
    executor.close().await;
    if let DrainEnd::CutOff { open } = end? {
        tracing::warn!(open, "requests were cut off");
    }
    owner.check()?;
    Ok(ExitCode::SUCCESS)
}

/// The command that enters a directory, whatever bytes its name has. A shell reads nothing else in it.
fn enter(directory: &Path) -> String {
    let bytes = directory.as_os_str().as_bytes();
    if let Ok(text) = std::str::from_utf8(bytes) {
        return format!("cd '{}'", text.replace('\'', r"'\''"));
    }
    // Made by the shell, because a command is text. What is behind the name keeps a line feed at its end.
    let octal: Vec<String> = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("cd \"$(printf '{}/.')\"", octal.concat())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn account(arguments: &ServerArgs) -> Account {
    let may_switch = variable("SU_TO_USER").is_none_or(|value| YES.contains(&value.to_lowercase().as_str()));
    let group = variable("SANDBOX_GROUP_ID").unwrap_or_else(|| "root".into());
    let (own, extra) = (variable("USER"), variable("RUNTIME_USERNAME"));
    Account::new(&arguments.username, arguments.user_id, own.as_deref(), extra.as_deref(), may_switch, &group)
}

fn memory_limit() -> anyhow::Result<Option<u64>> {
    let Some(text) = variable("RUNTIME_MAX_MEMORY_GB") else { return Ok(None) };
    let gib: u64 = text
        .trim()
        .parse()
        .with_context(|| format!("RUNTIME_MAX_MEMORY_GB must be a whole number of GiB, and is `{text}`"))?;
    Ok((gib > 0).then(|| gib.saturating_mul(1024 * 1024 * 1024)))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs, process::Command};

    use clap::FromArgMatches as _;

    use super::*;
    use crate::argv;

    #[test]
    fn every_directory_can_be_entered_and_none_is_a_command() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            &b"plain"[..],
            b"a b;touch PWN",
            b"$(touch PWN)",
            b"`touch PWN`",
            b"it's \"quoted\" \\ %s",
            b"-P",
            b"~",
            b"two\nlines\n",
            b"\xff\xfe;touch PWN",
            b"\xff %s\\'\n",
        ] {
            let directory = root.path().join(OsStr::from_bytes(name));
            fs::create_dir(&directory).unwrap();
            for shell in ["bash", "sh"] {
                let script = format!("{} && pwd -P && ls -A . ..", enter(&directory));
                let Ok(output) = Command::new(shell).arg("-c").arg(script).current_dir(root.path()).output() else {
                    continue;
                };
                let real = fs::canonicalize(&directory).unwrap();
                assert!(output.stdout.starts_with(real.as_os_str().as_bytes()), "{shell}: {directory:?}: {output:?}");
                assert!(!root.path().join("PWN").exists() && !directory.join("PWN").exists(), "{directory:?}");
            }
        }
    }

    #[test]
    fn the_argument_order_of_openhands_is_understood() {
        let words = "action-execution-server 3000 --working-dir /workspace --plugins agent_skills jupyter \
                     --username openhands --user-id 1000 --browsergym-eval-env a b --no-enable-browser";
        let matches = ServerArgs::augment_args(clap::Command::new(argv::SERVER))
            .try_get_matches_from(words.split_ascii_whitespace())
            .unwrap();
        let arguments = ServerArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(arguments.port, 3000);
        assert_eq!(arguments.plugins, ["agent_skills", "jupyter"]);
        assert_eq!(arguments.browsergym_eval_env, ["a", "b"]);
        assert!(arguments.no_enable_browser);
    }
}

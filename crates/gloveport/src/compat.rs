//! `gloveport action-execution-server`: the entry point, the flags and the environment of OpenHands 0.62
//! (`action-execution-api` §1).

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_executor::{Executor, account::Account, memory};
use gloveport_server::{
    DrainEnd, ServerOptions, SessionKey, StrangeNames,
    viewer::{URL_FILE, Viewer},
};
use tokio_util::sync::CancellationToken;

use crate::{Owner, cli::CompatArgs, local, plugins, serve::bind};

/// Words that mean yes (`SU_TO_USER`).
const YES: [&str; 6] = ["1", "true", "t", "yes", "y", "on"];

pub(crate) async fn serve(arguments: CompatArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let plugins = plugins::asked(&arguments.plugins)?;
    anyhow::ensure!(
        !arguments.no_enable_browser || arguments.browsergym_eval_env.is_empty(),
        "Browser environment is not enabled in config, but browsergym_eval_env is set"
    );
    let stop = local::server_stop(owner)?;
    let directory = match &arguments.working_dir {
        Some(directory) => std::path::absolute(directory)
            .with_context(|| format!("cannot use the working directory {}", directory.display()))?,
        None => std::env::current_dir().context("the current directory cannot be used; give --working-dir")?,
    };
    let limit = memory_limit()?;
    let mut options = local::executor_options(owner, directory.clone())?;
    local::without_keys(&mut options);
    options.account = Some(account(&arguments));
    options.memory_limit = limit;
    options.when_waiting = local::when_waiting(arguments.answer_when_waiting);
    options.startup_commands.push(local::NO_PAGER.to_owned());
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
    local::settle();
    let session_key = variable("SESSION_API_KEY").map(SessionKey::new);
    // The reference listens on all addresses, with a key or without one, and its callers ask by whatever name leads into
    // the container: `localhost` and a mapped port, `host.docker.internal`, the name of a service in a cluster. So any name
    // is fine for a program. A browser that asks by one that is not this machine's is refused, because pages can have such
    // a name made for them; so are pages in any case.
    let strange_names = StrangeNames::OfPrograms;
    let server_options = ServerOptions { session_key, strange_names, viewer, ..ServerOptions::default() };
    let end = gloveport_server::serve(listener, executor.clone(), server_options, stop, local::DRAIN).await;
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

fn account(arguments: &CompatArgs) -> Account {
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

    use super::*;

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
}

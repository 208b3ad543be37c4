//! Which server of an agent there is beside ours (`agent-server-workspace-api` §9.3).

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use gloveport_server::{HostedAgent, SessionKey};
use sha2::{Digest as _, Sha256};

/// Names a program that goes before all others; `none` for no agent.
const CHOSEN: &str = "GLOVEPORT_AGENT_SERVER";
const NONE: &str = "none";
/// Names that OpenHands' own server has in `PATH`, where ours may have them, too.
const NAMES: [&str; 2] = ["agent-server", "openhands-agent-server"];
/// Where images that are built from its sources have it.
const OF_IMAGE: &str = "/agent-server/.venv/bin/agent-server";
/// What encrypts what it keeps.
const SECRET_KEY: &str = "OH_SECRET_KEY";
/// Variables with secrets that are for it and not for commands.
const ITS_SECRETS: [&str; 4] =
    ["LMNR_PROJECT_API_KEY", "OTEL_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// The agent's own server, if there is one. `key` is the first key of clients, `events` where those of commands are kept here.
pub(crate) fn find(key: Option<&SessionKey>, events: &Path) -> anyhow::Result<Option<HostedAgent>> {
    let chosen = env::var_os(CHOSEN).filter(|chosen| !chosen.is_empty());
    if chosen.as_deref() == Some(OsStr::new(NONE)) {
        return Ok(None);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = match &chosen {
        Some(chosen) => Some(named(chosen, &path).with_context(|| {
            format!("{CHOSEN} names {}, which is no program; correct it, or write `{NONE}`", chosen.display())
        })?),
        None => installed(&path),
    };
    let Some(program) = found else { return Ok(None) };
    tracing::info!(program = %program.display(), "an agent-server is there, and starts when somebody needs it");
    Ok(Some(HostedAgent { command: vec![program.into()], environment: environment(key, events) }))
}

fn named(chosen: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if chosen.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(chosen).ok().filter(|program| is_program(program));
    }
    env::split_paths(path).map(|directory| directory.join(chosen)).find(|program| is_program(program))
}

/// The first that is there, and is not this program by another name.
fn installed(path: &OsStr) -> Option<PathBuf> {
    let own = identity(Path::new("/proc/self/exe"));
    let in_path = env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .flat_map(|directory| NAMES.map(|name| directory.join(name)));
    in_path.chain([PathBuf::from(OF_IMAGE)]).find(|program| is_program(program) && identity(program) != own)
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// What it has beside what commands have. What commands do here it need not keep, too, and VS Code is here.
fn environment(key: Option<&SessionKey>, events: &Path) -> Vec<(OsString, OsString)> {
    let own = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let secrets = ITS_SECRETS.iter().filter_map(|name| Some((OsString::from(name), own(name)?)));
    // Programs of the same user can read what it has in its environment, so it gets no key of clients.
    let secret = own(SECRET_KEY).or_else(|| key.map(|key| secret_of(key).into()));
    let fixed = [
        ("OH_BASH_EVENTS_DIR", events.with_file_name("agent_bash_events").into_os_string()),
        ("OH_ENABLE_VSCODE", "0".into()),
        ("OH_PRELOAD_TOOLS", "0".into()),
    ];
    let fixed = fixed.into_iter().map(|(name, value)| (OsString::from(name), value));
    secrets.chain(secret.map(|secret| (SECRET_KEY.into(), secret))).chain(fixed).collect()
}

/// A secret that only a key leads to, and that does not lead back to it.
fn secret_of(key: &SessionKey) -> String {
    let digest = Sha256::new().chain_update(b"what an agent keeps\0").chain_update(key.secret()).finalize();
    gloveport_ids::hex(&digest)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_first_server_that_is_not_this_program_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
        fs::create_dir(&ours).unwrap();
        for name in NAMES {
            symlink(env::current_exe().unwrap(), ours.join(name)).unwrap();
        }
        let path = env::join_paths([&ours, &theirs]).unwrap();
        assert_eq!(installed(&path), None);
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join(NAMES[0]), "no program").unwrap();
        put(&theirs.join(NAMES[1]));
        assert_eq!(installed(&path), Some(theirs.join(NAMES[1])));
        assert_eq!(named(OsStr::new("openhands-agent-server"), theirs.as_os_str()), Some(theirs.join(NAMES[1])));
        assert_eq!(named(theirs.join("none").as_os_str(), &path), None);
        assert_eq!(named(theirs.join(NAMES[1]).as_os_str(), OsStr::new("")), Some(theirs.join(NAMES[1])));
    }

    #[test]
    fn it_keeps_its_own_events_and_has_the_secret_of_its_store() {
        let found = environment(Some(&SessionKey::new("k")), Path::new("/w/bash_events"));
        let value =
            |name: &str| found.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(value("OH_BASH_EVENTS_DIR"), Some("/w/agent_bash_events"));
        assert_eq!(value("OH_ENABLE_VSCODE"), Some("0"));
        let secret = value("OH_SECRET_KEY").unwrap();
        assert_eq!((secret.len(), secret == secret_of(&SessionKey::new("k"))), (64, true));
        assert_ne!(secret, secret_of(&SessionKey::new("l")));
        assert_eq!(environment(None, Path::new("/w/x")).len(), 3);
    }
}

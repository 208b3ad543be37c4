//! Which server of an agent there is beside ours (`agent-server-workspace-api` §9.3).

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use gloveport_server::{DeferredSettings, HostedAgent, SessionKey};
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
/// What did so earlier, as a list in JSON.
const PREVIOUS: &str = "OH_PREVIOUS_SECRET_KEYS";
/// Variables with secrets that are for it and not for commands.
const ITS_SECRETS: [&str; 4] =
    ["LMNR_PROJECT_API_KEY", "OTEL_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// What is said of it beside its own variables.
pub(crate) struct Wishes<'a> {
    /// The first key of clients.
    pub(crate) key: Option<&'a SessionKey>,
    /// Where events of commands are kept here.
    pub(crate) events: &'a Path,
    /// What came later than the start.
    pub(crate) settings: &'a DeferredSettings,
}

/// The agent's own server, if there is one.
pub(crate) fn find(wishes: &Wishes<'_>) -> anyhow::Result<Option<HostedAgent>> {
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
    Ok(Some(HostedAgent { command: vec![program.into()], environment: environment(wishes) }))
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
fn environment(wishes: &Wishes<'_>) -> Vec<(OsString, OsString)> {
    let Wishes { key, events, settings } = wishes;
    let own = |name: &str| {
        let later = settings.environment.iter().find(|(known, _)| known == name);
        let value = later.map(|(_, value)| value.into()).or_else(|| env::var_os(name));
        value.filter(|value| !value.is_empty())
    };
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    let mut add = |name: &str, value: OsString| all.push((name.into(), value));
    for name in ITS_SECRETS {
        if let Some(value) = own(name) {
            add(name, value);
        }
    }
    for (name, value) in &settings.of_agent {
        add(name, value.into());
    }
    // Programs of the same user can read what it has in its environment, so it gets no key of clients.
    let told = settings.secret_key.as_ref().map(|secret| secret.secret().into());
    if let Some(secret) = told.or_else(|| own(SECRET_KEY)).or_else(|| key.map(|key| secret_of(key).into())) {
        add(SECRET_KEY, secret);
    }
    if let Some(previous) = &settings.previous_secret_keys {
        // Each may have been the first key of clients.
        let both = previous.iter().flat_map(|key| [key.secret().to_owned(), secret_of(key)]);
        add(PREVIOUS, serde_json::json!(both.collect::<Vec<_>>()).to_string().into());
    }
    add("OH_BASH_EVENTS_DIR", events.with_file_name("agent_bash_events").into_os_string());
    add("OH_ENABLE_VSCODE", "0".into());
    add("OH_PRELOAD_TOOLS", "0".into());
    add("OH_DEFERRED_INIT", "0".into());
    all
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
        let (key, events) = (SessionKey::new("k"), Path::new("/w/bash_events"));
        let with = |key, settings: &DeferredSettings| {
            let all = environment(&Wishes { key, events, settings });
            move |name: &str| {
                let found = all.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.to_str().unwrap().to_owned())
            }
        };
        let value = with(Some(&key), &DeferredSettings::default());
        assert_eq!(value("OH_BASH_EVENTS_DIR").as_deref(), Some("/w/agent_bash_events"));
        assert_eq!(value("OH_ENABLE_VSCODE").as_deref(), Some("0"));
        assert_eq!(value("OH_DEFERRED_INIT").as_deref(), Some("0"));
        let secret = value("OH_SECRET_KEY").unwrap();
        assert_eq!((secret.len(), secret == secret_of(&key)), (64, true));
        assert_ne!(secret, secret_of(&SessionKey::new("l")));
        assert_eq!(with(None, &DeferredSettings::default())("OH_SECRET_KEY"), None);
    }

    #[test]
    fn it_gets_what_came_later() {
        let settings = DeferredSettings {
            secret_key: Some(SessionKey::new("told")),
            previous_secret_keys: Some(vec![SessionKey::new("old")]),
            environment: vec![("LMNR_PROJECT_API_KEY".to_owned(), "l".to_owned())],
            of_agent: vec![("OH_WEBHOOKS", "[]".to_owned())],
            ..DeferredSettings::default()
        };
        let key = SessionKey::new("k");
        let found = environment(&Wishes { key: Some(&key), events: Path::new("/w/e"), settings: &settings });
        let previous = format!("[\"old\",\"{}\"]", secret_of(&SessionKey::new("old")));
        for (name, value) in [
            ("OH_SECRET_KEY", "told"),
            ("OH_PREVIOUS_SECRET_KEYS", previous.as_str()),
            ("LMNR_PROJECT_API_KEY", "l"),
            ("OH_WEBHOOKS", "[]"),
        ] {
            assert!(found.contains(&(name.into(), value.into())), "{name} in {found:?}");
        }
    }
}

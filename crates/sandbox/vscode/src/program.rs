//! Which server the image has, and its command line (`ipython-and-plugins` 4.2).

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_plugin::{Health, Listens, ServiceSpec};
use gloveport_sys::Surroundings;

/// Where images of OpenHands have the server.
pub(crate) const ROOT: &str = "/openhands/.openvscode-server";
/// Names a server that goes before all others.
const CHOSEN: &str = "GLOVEPORT_VSCODE";
/// Time until the server listens. The first start reads some hundred megabytes.
const START: Duration = Duration::from_mins(1);
/// Time without a window after which it is stopped.
const IDLE: Duration = Duration::from_mins(30);

/// A server that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    path: PathBuf,
    kind: Kind,
}

/// Whose command line it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The server of VS Code: `openvscode-server` and its siblings.
    Server,
    /// `code-server`, which has a server of its own around it.
    CodeServer,
    /// The command line of VS Code (`code serve-web`), which fetches the server.
    Launcher,
}

impl Kind {
    fn of(program: &Path) -> Self {
        let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match name.as_str() {
            "code-server" => Self::CodeServer,
            "code" | "code-insiders" | "codium" => Self::Launcher,
            _ => Self::Server,
        }
    }
}

impl Program {
    /// Looks for a server; otherwise says what was looked for, and what can be done.
    pub(crate) fn find(surroundings: &Surroundings) -> Result<Self, (String, String)> {
        if let Some(chosen) = surroundings.variable(CHOSEN) {
            let word = chosen.to_string_lossy();
            let path = surroundings.find(&word).ok_or_else(|| {
                (format!("{CHOSEN} names {word}, which is no program"), format!("correct or remove {CHOSEN}"))
            })?;
            return Ok(Self { kind: Kind::of(&path), path });
        }
        let named = surroundings.variable("OPENVSCODE_SERVER_ROOT").map(PathBuf::from);
        let roots = [Some(PathBuf::from(ROOT)), named].into_iter().flatten();
        let inside = roots.map(|root| root.join("bin/openvscode-server").to_string_lossy().into_owned());
        let words = inside.chain(["openvscode-server", "code-server", "code"].map(str::to_owned));
        let mut found = words.filter_map(|word| surroundings.find(&word));
        let path = found.next().ok_or_else(|| {
            (
                format!(
                    "there is no openvscode-server, code-server or code in {ROOT}, in OPENVSCODE_SERVER_ROOT or in PATH"
                ),
                format!("install one of them in the image, or name one with {CHOSEN}"),
            )
        })?;
        Ok(Self { kind: Kind::of(&path), path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it takes the path under which it is reached.
    pub(crate) fn knows_base_path(&self) -> bool {
        self.kind != Kind::CodeServer
    }

    /// The service: the program at a socket that only its user can reach, so it asks for no token of its own.
    pub(crate) fn service(&self, base_path: &str) -> ServiceSpec {
        let words: &[&str] = match self.kind {
            Kind::Server => &[
                "--socket-path={socket}",
                "--without-connection-token",
                "--disable-workspace-trust",
                "--telemetry-level=off",
                "--accept-server-license-terms",
                "--default-folder={workspace}",
            ],
            Kind::CodeServer => &[
                "--auth=none",
                "--socket={socket}",
                "--disable-telemetry",
                "--disable-update-check",
                "--disable-workspace-trust",
                "{workspace}",
            ],
            Kind::Launcher => {
                &["serve-web", "--socket-path={socket}", "--without-connection-token", "--accept-server-license-terms"]
            }
        };
        let mut command = vec![self.path.clone().into_os_string()];
        command.extend(words.iter().map(OsString::from));
        if self.knows_base_path() && !base_path.is_empty() {
            command.push(format!("--server-base-path={base_path}").into());
        }
        // Set in a terminal of VS Code, it makes a server open a window in the one of that terminal and end.
        let environment = BTreeMap::from([("VSCODE_IPC_HOOK_CLI".to_owned(), String::new())]);
        ServiceSpec {
            name: "vscode".to_owned(),
            set_up: None,
            set_up_limit: START,
            command,
            environment,
            listens: Listens::Socket,
            health: Health::Accepts,
            start_limit: START,
            idle_stop: Some(IDLE),
            end_grace: ServiceSpec::END_GRACE,
            eager: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn put(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn surroundings(variables: &[(&str, &Path)]) -> Surroundings {
        let mut surroundings = Surroundings::inherited("/".into());
        surroundings.environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        surroundings
    }

    #[test]
    fn the_first_server_that_is_there_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (root, bin) = (directory.path().join("root"), directory.path().join("bin"));
        fs::create_dir_all(&bin).unwrap();
        let variables = [("OPENVSCODE_SERVER_ROOT", root.as_path()), ("PATH", &bin)];
        let find = || Program::find(&surroundings(&variables));
        let (reason, remedy) = find().unwrap_err();
        assert_eq!(
            format!("{reason}; {remedy}"),
            "there is no openvscode-server, code-server or code in /openhands/.openvscode-server, in \
             OPENVSCODE_SERVER_ROOT or in PATH; install one of them in the image, or name one with GLOVEPORT_VSCODE"
        );
        for (path, kind) in [
            (bin.join("code"), Kind::Launcher),
            (bin.join("code-server"), Kind::CodeServer),
            (bin.join("openvscode-server"), Kind::Server),
            (root.join("bin/openvscode-server"), Kind::Server),
        ] {
            put(&path);
            assert_eq!(find().unwrap(), Program { path, kind });
        }
    }

    #[test]
    fn the_variable_names_one_and_no_other_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (bin, own) = (directory.path().join("bin"), directory.path().join("my server"));
        put(&bin.join("openvscode-server"));
        put(&bin.join("code-server"));
        put(&own);
        for (chosen, expected) in [
            (Path::new("code-server"), Ok((bin.join("code-server"), Kind::CodeServer))),
            (&own, Ok((own.clone(), Kind::Server))),
            (Path::new("/no/such"), Err("GLOVEPORT_VSCODE names /no/such, which is no program")),
        ] {
            let found = Program::find(&surroundings(&[(CHOSEN, chosen), ("PATH", &bin)]));
            let found = found.as_ref().map(|it| (it.path.clone(), it.kind)).map_err(|(reason, _)| reason.as_str());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn every_kind_of_server_has_its_own_command_line() {
        for (program, base, expected) in [
            (
                "/a/openvscode-server",
                "",
                "/a/openvscode-server --socket-path={socket} --without-connection-token --disable-workspace-trust \
                 --telemetry-level=off --accept-server-license-terms --default-folder={workspace}",
            ),
            (
                "/a/openvscode-server",
                "/id/vscode",
                "/a/openvscode-server --socket-path={socket} --without-connection-token --disable-workspace-trust \
                 --telemetry-level=off --accept-server-license-terms --default-folder={workspace} \
                 --server-base-path=/id/vscode",
            ),
            (
                "/a/code-server",
                "/id/vscode",
                "/a/code-server --auth=none --socket={socket} --disable-telemetry --disable-update-check \
                 --disable-workspace-trust {workspace}",
            ),
            (
                "/a/code",
                "",
                "/a/code serve-web --socket-path={socket} --without-connection-token --accept-server-license-terms",
            ),
            (
                "/a/code",
                "/b",
                "/a/code serve-web --socket-path={socket} --without-connection-token --accept-server-license-terms \
                 --server-base-path=/b",
            ),
        ] {
            let program = Program { path: program.into(), kind: Kind::of(Path::new(program)) };
            let words: Vec<_> =
                program.service(base).command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            assert_eq!(words.join(" "), expected);
        }
    }
}

//! The variables that commands on this machine get: those of a fresh login, and not what else our caller has.
//!
//! A shell in which somebody works has keys of clouds and of other services in its environment, and whoever runs a
//! command without isolation has not meant to hand them on. `--env NAME` does.

use std::ffi::OsStr;

/// What a login sets, what says how to reach the network from here, and how text is to be written.
const LOGIN: [&str; 27] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "PWD",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "MAIL",
    "NO_COLOR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "VIRTUAL_ENV",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];
/// What the runtime itself is told by variables, and has nothing secret.
const SETTINGS: [&str; 14] = [
    "LOG_LEVEL",
    "LOG_JSON",
    "DEBUG",
    "NO_CHANGE_TIMEOUT_SECONDS",
    "OH_INTERPRETER_PATH",
    "VSCODE_PORT",
    "WORK_PORT_1",
    "WORK_PORT_2",
    "APP_PORT_1",
    "APP_PORT_2",
    "RUNTIME_ID",
    "RUNTIME_URL",
    "RUNTIME_URL_PATTERN",
    "XDG_STATE_HOME",
];
/// Ours, with which whoever has them has the rights of a server.
const KEYS: [&str; 2] = ["GLOVEPORT_KEY", "GLOVEPORT_URL"];

/// Whether a command gets this variable without being asked.
pub(crate) fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let of_ours = name.starts_with("GLOVEPORT_") && !KEYS.contains(&name);
    of_ours || name.starts_with("LC_") || LOGIN.contains(&name) || SETTINGS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_caller_are_left_out_and_what_every_program_needs_is_not() {
        for name in ["HOME", "PATH", "LC_ALL", "TZ", "https_proxy", "GLOVEPORT_SANDBOX", "GLOVEPORT_PYTHON"] {
            assert!(is_kept(name.as_ref()), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "XDG_RUNTIME_DIR",
            "DBUS_SESSION_BUS_ADDRESS",
            "GLOVEPORT_KEY",
            "GLOVEPORT_URL",
            "SESSION_API_KEY",
            "DOCKER_HOST",
            "LD_PRELOAD",
        ] {
            assert!(!is_kept(name.as_ref()), "{name}");
        }
    }
}

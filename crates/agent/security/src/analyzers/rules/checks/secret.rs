//! Files that hold secrets, and the programs that show them.

use crate::analyzers::rules::{
    call::Call,
    machine::Machine,
    place::{UNKNOWN, below},
    table::Rule,
};

/// Programs whose output is what they read, or made of it.
pub(in crate::analyzers::rules) const READERS: [&str; 42] = [
    "cat", "tac", "head", "tail", "less", "more", "bat", "nl", "od", "xxd", "hexdump", "strings", "base64", "base32",
    "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "cut", "sort", "uniq", "tr", "tar", "zip", "gzip", "bzip2",
    "xz", "zstd", "dd", "openssl", "jq", "yq", "diff", "paste", "rev", "column", "fold", "fmt", "7z",
];

/// Files below a home directory.
const HOME_FILES: [&str; 16] = [
    ".aws/credentials",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".vault-token",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".config/hub",
];

/// Directories below a home directory of which every file is secret.
const HOME_DIRECTORIES: [&str; 6] = [".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".password-store"];

/// Files and directories elsewhere.
const SYSTEM_FILES: [&str; 6] =
    ["/etc/shadow", "/etc/gshadow", "/run/secrets", "/var/run/secrets", "/etc/kubernetes/pki", "/etc/krb5.keytab"];

/// Beginnings of the names of private keys, wherever they lie.
const KEYS: [&str; 4] = ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"];

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    if !READERS.contains(&call.program()) {
        return;
    }
    for operand in call.operands() {
        // `dd if=…`
        let name = operand.text.strip_prefix("if=").unwrap_or(&operand.text);
        if is_secret(machine, name) && !is_settings(name) {
            machine.report(Rule::ReadSecret, &call.quote());
        }
    }
}

/// Whether a file holds a secret, as far as its name says.
pub(in crate::analyzers::rules) fn is_secret(machine: &Machine<'_>, name: &str) -> bool {
    if name.is_empty() || name.starts_with(UNKNOWN) || name.contains("://") {
        return false;
    }
    let path = machine.locate(name).path;
    let file = path.rsplit('/').next().unwrap_or_default();
    let public = file.rsplit_once('.').is_some_and(|(_, extension)| extension == "pub");
    if public || file.starts_with("known_hosts") || file == "authorized_keys" {
        return false;
    }
    if let Some(rest) = path.strip_prefix("~/") {
        if matches!(rest, ".ssh/config" | ".aws/config") {
            return false;
        }
        let in_directory = HOME_DIRECTORIES.iter().any(|directory| below(rest, directory).is_some());
        if in_directory || HOME_FILES.contains(&rest) {
            return true;
        }
    }
    let environment = path.starts_with("/proc/") && path.ends_with("/environ");
    let host_key = path.starts_with("/etc/ssh/ssh_host_") && path.ends_with("_key");
    let system = SYSTEM_FILES.iter().any(|one| below(&path, one).is_some());
    environment || host_key || system || KEYS.contains(&file) || is_settings(file)
}

/// A file with the settings of a project. It often has secrets, but looking into it is usual.
pub(in crate::analyzers::rules) fn is_settings(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    let sample = ["example", "sample", "template", "dist"].iter().any(|end| file.ends_with(end));
    file == ".env" || (file.starts_with(".env.") && !sample)
}

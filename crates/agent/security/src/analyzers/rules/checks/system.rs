//! Processes, the machine itself, rights, and what runs later.

use crate::analyzers::rules::{
    call::Call,
    machine::Machine,
    place::{Place, UNKNOWN},
    shell::{Command, Script, Stage},
    table::Rule,
};

/// Commands that delete data of a service: program, words that must follow, in order.
const SERVICES: [(&str, &[&str]); 24] = [
    ("terraform", &["destroy"]),
    ("tofu", &["destroy"]),
    ("pulumi", &["destroy"]),
    ("kubectl", &["delete"]),
    ("helm", &["uninstall"]),
    ("gh", &["repo", "delete"]),
    ("gh", &["release", "delete"]),
    ("aws", &["s3", "rm"]),
    ("aws", &["s3", "rb"]),
    ("aws", &["delete-"]),
    ("aws", &["terminate-instances"]),
    ("gcloud", &["delete"]),
    ("az", &["delete"]),
    ("docker", &["system", "prune"]),
    ("docker", &["volume", "rm"]),
    ("docker", &["volume", "prune"]),
    ("podman", &["system", "prune"]),
    ("podman", &["volume", "rm"]),
    ("dropdb", &[]),
    ("dropuser", &[]),
    ("redis-cli", &["flushall"]),
    ("redis-cli", &["flushdb"]),
    ("npm", &["unpublish"]),
    ("cargo", &["yank"]),
];

/// Programs that change accounts.
const ACCOUNTS: [&str; 14] = [
    "useradd", "adduser", "usermod", "userdel", "deluser", "groupadd", "groupmod", "groupdel", "gpasswd", "passwd",
    "chpasswd", "chsh", "setcap", "newgrp",
];

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    if let Some(rule) = rule_for(machine, call) {
        machine.report(rule, &call.quote());
    }
}

fn rule_for(machine: &Machine<'_>, call: &Call<'_>) -> Option<Rule> {
    let program = call.program();
    let first = call.operands().first().map_or("", |one| one.text.as_str());
    let has = |words: &[&str]| call.texts().any(|text| words.contains(&text));
    match program {
        "kill" | "pkill" | "killall" | "killall5" => ends_all(call),
        "shutdown" if has(&["-c"]) => None,
        "shutdown" | "reboot" | "halt" | "poweroff" => Some(Rule::Shutdown),
        "init" | "telinit" => matches!(first, "0" | "1" | "6" | "s" | "S").then_some(Rule::Shutdown),
        "systemctl" | "loginctl" => service(call),
        "visudo" => Some(Rule::GrantPrivilege),
        "mkswap" | "mke2fs" | "mkfs" | "wipefs" | "newfs" => {
            Some(Rule::MakeFilesystem).filter(|_| !on_file(machine, call))
        }
        name if name.starts_with("mkfs.") => Some(Rule::MakeFilesystem).filter(|_| !on_file(machine, call)),
        "blkdiscard" | "hdparm" | "nvme" if program != "hdparm" || call.long("security-erase") => {
            (program != "nvme" || first == "format").then_some(Rule::OverwriteDevice)
        }
        "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "parted" | "cfdisk" => {
            (!call.short('l') && !call.long("list") && !has(&["print"])).then_some(Rule::OverwriteDevice)
        }
        "crontab" | "at" | "batch" => (!call.short('l') && !call.args().is_empty()).then_some(Rule::Persistence),
        "update-rc.d" | "chkconfig" | "launchctl" => Some(Rule::Persistence),
        "setenforce" => (first == "0" || first.eq_ignore_ascii_case("permissive")).then_some(Rule::DisableProtection),
        "iptables" | "ip6tables" | "nft" => {
            (call.short('F') || call.long("flush") || first == "flush").then_some(Rule::DisableProtection)
        }
        "ufw" => (first == "disable" || first == "reset").then_some(Rule::DisableProtection),
        "docker" | "podman" | "nerdctl" if has(&["run", "create", "exec"]) && is_privileged(call) => {
            Some(Rule::PrivilegedContainer)
        }
        "passwd" if call.short('S') => None,
        name if ACCOUNTS.contains(&name) => Some(Rule::ChangeAccount),
        _ => destroys(call).then_some(Rule::DestroyService),
    }
}

fn destroys(call: &Call<'_>) -> bool {
    SERVICES.iter().filter(|(program, _)| *program == call.program()).any(|(_, words)| {
        let mut texts = call.texts();
        words.iter().all(|word| {
            texts.any(|text| text.eq_ignore_ascii_case(word) || (word.ends_with('-') && text.starts_with(word)))
        })
    })
}

/// Whether a file system is made in a plain file.
fn on_file(machine: &Machine<'_>, call: &Call<'_>) -> bool {
    call.operands().iter().any(|target| {
        let location = machine.locate(&target.text);
        let named = target.text.contains(['/', '.']);
        named && matches!(machine.map.place(&location), Place::Inside | Place::Temporary)
    })
}

/// Signals to every process, or to the first.
fn ends_all(call: &Call<'_>) -> Option<Rule> {
    let texts: Vec<_> = call.texts().collect();
    let all = match call.program() {
        "killall5" => true,
        "kill" => {
            let signal = texts.first().is_some_and(|first| first.starts_with('-') && *first != "--");
            let named = matches!(texts.first(), Some(&("-s" | "-n" | "--signal")));
            let skip = usize::from(signal) + usize::from(named);
            texts.iter().skip(skip).any(|text| matches!(*text, "-1" | "1"))
                && !matches!(texts.first(), Some(&("-l" | "-L" | "-0")))
        }
        _ => call.operands().iter().any(|one| matches!(one.text.as_str(), "." | ".*" | "")),
    };
    all.then_some(Rule::KillAll)
}

fn service(call: &Call<'_>) -> Option<Rule> {
    let verb = call.operands().first().map_or("", |one| one.text.as_str());
    match verb {
        "poweroff" | "reboot" | "halt" | "kexec" | "suspend" | "hibernate" | "rescue" | "emergency" => {
            Some(Rule::Shutdown)
        }
        "enable" | "link" | "edit" => Some(Rule::Persistence),
        "mask" | "disable" | "stop" => {
            let protection = ["firewalld", "ufw", "apparmor", "auditd", "fail2ban", "nftables"];
            let named = call.texts().any(|text| protection.contains(&text.trim_end_matches(".service")));
            named.then_some(Rule::DisableProtection)
        }
        _ => None,
    }
}

/// Whether a container gets the rights or the files of its host.
fn is_privileged(call: &Call<'_>) -> bool {
    let host = call.texts().any(|text| matches!(text, "--pid=host" | "--ipc=host" | "--uts=host" | "--userns=host"));
    let mounts = call.values(&["-v", "--volume"]).into_iter().any(|value| {
        let source = value.text.split(':').next().unwrap_or_default().to_owned();
        matches!(source.as_str(), "/" | "/etc" | "/root" | "/var/run/docker.sock" | "~" | "~/.ssh")
    });
    call.long("privileged") || host || mounts
}

/// A function that starts itself, and in the background.
pub(in crate::analyzers::rules) fn function(machine: &mut Machine<'_>, name: &str, body: &Script) {
    if !name.is_empty() && !name.contains(UNKNOWN) && multiplies(name, body) {
        machine.report(Rule::ForkBomb, &format!("{name}() {{ … {name} & }}"));
    }
}

fn multiplies(name: &str, script: &Script) -> bool {
    script.pipelines.iter().any(|pipeline| {
        let calls = pipeline.stages.iter().filter(|stage| calls(name, stage)).count();
        let inner = pipeline.stages.iter().any(|stage| match &stage.command {
            Command::Group(body) | Command::Subshell(body) | Command::Loop { body, .. } => multiplies(name, body),
            Command::Simple(_) | Command::Function { .. } => false,
        });
        inner || calls > 1 || (calls > 0 && pipeline.background)
    })
}

fn calls(name: &str, stage: &Stage) -> bool {
    match &stage.command {
        Command::Simple(simple) => simple.words.first().and_then(|word| word.as_bare()) == Some(name),
        Command::Group(_) | Command::Subshell(_) | Command::Loop { .. } | Command::Function { .. } => false,
    }
}

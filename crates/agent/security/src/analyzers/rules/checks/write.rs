//! Where files are written.

use crate::analyzers::rules::{
    call::{Call, command_behind},
    machine::Machine,
    place::{Location, Place, below},
    table::Rule,
    value::Value,
};

/// Files and directories on which the system depends.
const SYSTEM_FILES: [&str; 14] = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/group",
    "/etc/gshadow",
    "/etc/ld.so.preload",
    "/etc/fstab",
    "/etc/ssh",
    "/etc/pam.d",
    "/boot",
    "/proc",
    "/sys",
    "/bin",
    "/sbin",
    "/lib",
];

/// Files and directories from which something runs later.
const STARTED_LATER: [&str; 18] = [
    "/etc/profile",
    "/etc/profile.d",
    "/etc/bash.bashrc",
    "/etc/crontab",
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/cron.hourly",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/var/spool/cron",
    "/etc/init.d",
    "/etc/rc.local",
    "/etc/systemd",
    "/lib/systemd",
    "/usr/lib/systemd",
    "/etc/environment",
    "/Library/LaunchDaemons",
    "/etc/zsh",
];

/// The same, below a home directory.
const HOME_STARTED_LATER: [&str; 14] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".ssh/rc",
    "Library/LaunchAgents",
    ".ssh/config",
];

/// A file that is written.
pub(in crate::analyzers::rules) fn target(machine: &mut Machine<'_>, target: &Value, quotation: &str) {
    let location = machine.locate(&target.text);
    if let Some(rule) = rule_for(machine, &location) {
        machine.report(rule, quotation);
    }
}

/// What writing to a place means.
pub(in crate::analyzers::rules) fn rule_for(machine: &Machine<'_>, location: &Location) -> Option<Rule> {
    let path = location.path.as_str();
    let within = |list: &[&str], path: &str| list.iter().any(|base| below(path, base).is_some());
    let home = path.strip_prefix("~/");
    if within(&["/etc/sudoers", "/etc/sudoers.d", "/etc/doas.conf"], path) {
        return Some(Rule::GrantPrivilege);
    }
    if home == Some(".ssh/authorized_keys") {
        return Some(Rule::AuthorizedKeys);
    }
    let place = machine.map.place(location);
    let hook = path.contains("/.git/hooks/") && place != Place::Temporary;
    if hook || within(&STARTED_LATER, path) || home.is_some_and(|rest| within(&HOME_STARTED_LATER, rest)) {
        return Some(Rule::Persistence);
    }
    if path == "/proc/sysrq-trigger" {
        return Some(Rule::Shutdown);
    }
    // What a process may change about itself.
    if path.starts_with("/proc/self/") || path.starts_with("/proc/thread-self/") {
        return None;
    }
    if within(&SYSTEM_FILES, path) {
        return Some(Rule::WriteSystem);
    }
    match place {
        Place::Disk => Some(Rule::OverwriteDevice),
        Place::Root | Place::Home | Place::System | Place::Outside => Some(Rule::WriteOutside),
        Place::Unknown | Place::Workspace | Place::Inside | Place::Temporary | Place::Sink => None,
    }
}

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    let operands = call.operands();
    match call.program() {
        "tee" | "truncate" | "touch" => {
            let content = call.input.clone();
            for operand in operands {
                target(machine, operand, &call.quote());
                if call.program() == "tee" {
                    machine.fill(operand, &content);
                }
            }
        }
        "cp" | "mv" | "install" | "ln" => copied(machine, call, operands),
        "dd" => {
            for arg in call.args() {
                if let Some(name) = arg.text.strip_prefix("of=") {
                    let file = Value { text: name.to_owned(), flow: arg.flow };
                    target(machine, &file, &call.quote());
                }
            }
        }
        "sed" | "perl" | "ruby" if in_place(call) => {
            // The first operand is the script, unless an option gave it.
            let given = !call.values(&["-e", "-f", "--expression"]).is_empty() || call.program() != "sed";
            for operand in operands.into_iter().skip(usize::from(!given)) {
                target(machine, operand, &call.quote());
            }
        }
        "tar" | "unzip" | "bsdtar" => {
            for directory in call.values(&["-C", "--directory", "-d"]) {
                let extracts = call.program() == "unzip"
                    || call.short('x')
                    || call.long("extract")
                    || call.texts().next().is_some_and(|first| first.contains('x') && !first.contains('/'));
                if extracts {
                    target(machine, &directory, &call.quote());
                }
            }
        }
        "rsync" => {
            if let Some(last) = operands.last().filter(|last| operands.len() > 1 && !last.text.contains(':')) {
                target(machine, last, &call.quote());
            }
        }
        "git" => cloned(machine, call),
        _ => {}
    }
}

/// `-i`, also behind other options of one letter or with a suffix, as `sed` and `perl` have it.
fn in_place(call: &Call<'_>) -> bool {
    call.long("in-place")
        || call.texts().any(|text| {
            let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|rest| {
                rest.split('i').next().is_some_and(|before| {
                    rest.contains('i')
                        && before.chars().all(|one| matches!(one, 'n' | 'p' | 'r' | 'E' | 's' | 'l' | 'z' | '0'))
                })
            })
        })
}

fn copied(machine: &mut Machine<'_>, call: &Call<'_>, mut operands: Vec<&Value>) {
    let mut into = call.values(&["-t", "--target-directory"]);
    if into.is_empty() {
        if operands.len() < 2 {
            return;
        }
        into.extend(operands.pop().cloned());
    }
    if call.program() == "install"
        && call.values(&["-m", "--mode"]).iter().any(|mode| super::delete::sets_user(&mode.text))
    {
        machine.report(Rule::GrantPrivilege, &call.quote());
    }
    for place in into {
        target(machine, &place, &call.quote());
        if call.program() == "ln" {
            continue;
        }
        for source in operands.iter().take(64) {
            let content = machine.content(source);
            let name = source.text.rsplit('/').next().unwrap_or_default();
            machine.fill(&place, &content);
            machine.fill(&Value::known(format!("{}/{name}", place.text)), &content);
        }
    }
}

/// `git clone URL DIRECTORY`.
fn cloned(machine: &mut Machine<'_>, call: &Call<'_>) {
    let words = command_behind(call.args(), &["-C", "-c", "--git-dir", "--work-tree"], 0);
    let sub = Call { words, input: call.input };
    if sub.path() != "clone" {
        return;
    }
    let valued = ["-b", "--branch", "--depth", "-o", "--origin", "-j", "--jobs", "-c", "--config", "--reference"];
    if let [_url, directory, ..] = command_behind(sub.args(), &valued, 0) {
        target(machine, &directory.clone(), &call.quote());
    }
}

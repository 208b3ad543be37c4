//! Files that are deleted, and permissions that are thrown open.

use crate::analyzers::rules::{
    call::Call,
    machine::Machine,
    place::{Place, UNKNOWN},
    table::Rule,
    value::Value,
};

/// How much of a directory goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Everything below it.
    Tree,
    /// Single files.
    Files,
}

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    match call.program() {
        "rm" | "unlink" | "rmdir" => remove(machine, call),
        "mv" => moved(machine, call),
        "chmod" => permissions(machine, call),
        "chown" | "chgrp" => owner(machine, call),
        "shred" | "srm" | "wipe" => {
            machine.report(Rule::Shred, &call.quote());
            deleted(machine, call, &call.operands(), Extent::Files);
        }
        "rsync" if call.long("delete") => {
            let last: Vec<_> = call.operands().pop().into_iter().filter(|one| !one.text.contains(':')).collect();
            deleted(machine, call, &last, Extent::Tree);
        }
        _ => {}
    }
}

fn remove(machine: &mut Machine<'_>, call: &Call<'_>) {
    if call.long("no-preserve-root") {
        machine.report(Rule::DeleteRoot, &call.quote());
    }
    let tree = call.short('r') || call.short('R') || call.long("recursive");
    let extent = if tree { Extent::Tree } else { Extent::Files };
    deleted(machine, call, &call.operands(), extent);
}

fn deleted(machine: &mut Machine<'_>, call: &Call<'_>, targets: &[&Value], extent: Extent) {
    for target in targets {
        if let Some(rule) = rule_for(machine, target, extent) {
            machine.report(rule, &call.quote());
        }
    }
}

/// What deleting a target means.
fn rule_for(machine: &Machine<'_>, target: &Value, extent: Extent) -> Option<Rule> {
    let location = machine.locate(&target.text);
    let tree = extent == Extent::Tree || location.contents;
    let place = machine.map.place(&location);
    let repository = location.path.ends_with("/.git")
        || (location.contents && location.path.ends_with("/.git"))
        || target.text == ".git"
        || ["/.git/objects", "/.git/refs"].iter().any(|end| location.path.ends_with(end));
    match place {
        Place::Unknown => is_unset(&target.text).then_some(Rule::DeleteUnset),
        Place::Root if tree => Some(Rule::DeleteRoot),
        Place::Home if tree => Some(Rule::DeleteHome),
        Place::System if tree => Some(Rule::DeleteSystem),
        Place::Temporary | Place::Sink => None,
        _ if repository && tree => Some(Rule::DeleteRepository),
        Place::Workspace if tree => Some(Rule::DeleteWorkspace),
        Place::Inside | Place::Workspace => None,
        Place::Disk => Some(Rule::OverwriteDevice),
        Place::Root | Place::Home | Place::System | Place::Outside => Some(Rule::DeleteOutside),
    }
}

/// Whether a path leads to the root, or to everything in it, when what is unknown is empty.
fn is_unset(text: &str) -> bool {
    let rest: String = text.chars().filter(|one| *one != UNKNOWN).collect();
    text.starts_with(UNKNOWN) && matches!(rest.as_str(), "/" | "/*" | "/.*" | "//*" | "/**")
}

fn moved(machine: &mut Machine<'_>, call: &Call<'_>) {
    let mut operands = call.operands();
    let into = call.values(&["-t", "--target-directory"]);
    let target = if into.is_empty() { operands.pop().map(|one| one.text.clone()) } else { None };
    let extent = if target.as_deref() == Some("/dev/null") { Extent::Tree } else { Extent::Files };
    for source in operands {
        let location = machine.locate(&source.text);
        let rule = match machine.map.place(&location) {
            Place::Root => Some(Rule::DeleteRoot),
            Place::Home => Some(Rule::DeleteHome),
            Place::System if !location.path.is_empty() => Some(Rule::DeleteSystem),
            _ if extent == Extent::Tree => rule_for(machine, source, extent),
            _ => None,
        };
        if let Some(rule) = rule {
            machine.report(rule, &call.quote());
        }
    }
}

/// The directories in which `find` begins.
pub(in crate::analyzers::rules) fn roots(call: &Call<'_>) -> Vec<Value> {
    let roots: Vec<_> = call
        .args()
        .iter()
        .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
        .take_while(|arg| !arg.text.starts_with(['-', '(', '!']))
        .cloned()
        .collect();
    if roots.is_empty() { vec![Value::known(".")] } else { roots }
}

/// Tests of `find` that leave most files out.
const FILTERS: [&str; 21] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-mtime",
    "-mmin",
    "-atime",
    "-ctime",
    "-newer",
    "-size",
    "-empty",
    "-perm",
    "-user",
    "-group",
    "-inum",
    "-links",
    "-cmin",
    "-amin",
];

/// `find` deletes by itself, or runs a command for each file.
pub(in crate::analyzers::rules) fn find(machine: &mut Machine<'_>, call: &Call<'_>) {
    let filtered = call.texts().any(|text| FILTERS.contains(&text));
    if call.texts().any(|text| text == "-delete") {
        for root in roots(call) {
            let extent = if filtered { Extent::Files } else { Extent::Tree };
            if let Some(rule) = rule_for(machine, &root, extent) {
                machine.report(rule, &call.quote());
            }
        }
    }
    let mut args = call.args();
    while let Some(at) = args.iter().position(|arg| {
        matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
    }) {
        let command = args.get(at + 1..).unwrap_or_default();
        let length = command.iter().position(|arg| matches!(arg.text.as_str(), ";" | "+")).unwrap_or(command.len());
        for root in roots(call).into_iter().take(16) {
            let mut path = root.text.trim_end_matches('/').to_owned();
            if filtered {
                path.extend(['/', UNKNOWN]);
            } else if path.is_empty() {
                path.push('/');
            }
            let words: Vec<Value> = command
                .iter()
                .take(length)
                .map(|arg| Value { text: arg.text.replace("{}", &path), flow: arg.flow })
                .collect();
            if !words.is_empty() && machine.repeats() {
                machine.run(&Call { words: &words, input: call.input });
            }
        }
        args = command.get(length..).unwrap_or_default();
    }
}

fn permissions(machine: &mut Machine<'_>, call: &Call<'_>) {
    let operands = call.operands();
    // A mode such as `-w` looks like an option.
    let Some((mode, targets)) = operands.split_first() else { return };
    let mode = mode.text.as_str();
    if sets_user(mode) {
        machine.report(Rule::GrantPrivilege, &call.quote());
    }
    let open = is_open(mode);
    let recursive = call.short('R') || call.long("recursive");
    if !open || !recursive {
        return;
    }
    for target in targets {
        let location = machine.locate(&target.text);
        let rule = match machine.map.place(&location) {
            Place::Root | Place::Home | Place::System => Rule::OpenPermissions,
            Place::Temporary | Place::Unknown => continue,
            _ => Rule::OpenWorkspace,
        };
        machine.report(rule, &call.quote());
    }
}

/// Whether a mode lets others write, or nobody do anything.
fn is_open(mode: &str) -> bool {
    let digits = mode.trim_start_matches('0');
    if !mode.is_empty() && mode.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.is_empty() || digits.ends_with(['2', '3', '6', '7']);
    }
    mode.split(',').any(|part| {
        part.split_once(['+', '='])
            .is_some_and(|(who, what)| what.contains('w') && (who.contains('a') || who.contains('o')))
    })
}

/// Whether a mode makes a program run with the rights of its owner.
pub(super) fn sets_user(mode: &str) -> bool {
    if mode.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = mode.trim_start_matches('0');
        return digits.len() == 4 && digits.starts_with(['4', '5', '6', '7']);
    }
    mode.split(',').any(|part| {
        part.split_once(['+', '='])
            .is_some_and(|(who, what)| what.contains('s') && (who.is_empty() || who.contains('u') || who.contains('a')))
    })
}

fn owner(machine: &mut Machine<'_>, call: &Call<'_>) {
    if !call.short('R') && !call.long("recursive") {
        return;
    }
    for target in call.operands().iter().skip(1) {
        let location = machine.locate(&target.text);
        if matches!(machine.map.place(&location), Place::Root | Place::Home | Place::System) {
            machine.report(Rule::ChangeOwner, &call.quote());
        }
    }
}

//! History that is rewritten, and work that is thrown away.

use crate::analyzers::rules::{
    call::{Call, command_behind},
    machine::{Faults, Machine},
    place::Place,
    table::Rule,
    value::{Flow, Value},
};

/// Options of `git` itself that have a value.
const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    if call.program() != "git" {
        return;
    }
    let words = command_behind(call.args(), VALUED, 0);
    let sub = Call { words, input: call.input };
    let rule = match sub.path() {
        "push" => push(&sub),
        "reset" if sub.long("hard") || sub.long("merge") => Some(Rule::DiscardChanges),
        "clean" if sub.short('f') || sub.long("force") => {
            (!sub.short('n') && !sub.long("dry-run")).then_some(Rule::DiscardChanges)
        }
        "checkout" | "switch" if sub.short('f') || sub.long("force") || sub.long("discard-changes") => {
            Some(Rule::DiscardChanges)
        }
        "checkout" => is_all(machine, &sub).then_some(Rule::DiscardChanges),
        "restore" if !sub.long("staged") || sub.long("worktree") => {
            is_all(machine, &sub).then_some(Rule::DiscardChanges)
        }
        "stash" => sub.texts().next().filter(|text| matches!(*text, "drop" | "clear")).map(|_| Rule::DiscardChanges),
        "branch" if sub.short('D') || ((sub.short('d') || sub.long("delete")) && sub.short('f')) => {
            Some(Rule::DiscardChanges)
        }
        "filter-branch" | "filter-repo" => Some(Rule::DiscardChanges),
        "reflog" => {
            sub.texts().next().filter(|text| matches!(*text, "expire" | "delete")).map(|_| Rule::DiscardChanges)
        }
        "gc" | "prune" if sub.texts().any(|text| text == "--prune=now" || text == "--expire=now") => {
            Some(Rule::DiscardChanges)
        }
        "update-ref" if sub.short('d') => Some(Rule::DiscardChanges),
        "worktree" if sub.texts().next() == Some("remove") && (sub.short('f') || sub.long("force")) => {
            Some(Rule::DiscardChanges)
        }
        _ => None,
    };
    if let Some(rule) = rule {
        machine.report(rule, &call.quote());
    }
    run_others(machine, &sub);
}

fn push(sub: &Call<'_>) -> Option<Rule> {
    let plus = sub.operands().iter().skip(1).any(|one| one.text.starts_with('+'));
    if sub.short('f') || sub.long("force") || sub.long("mirror") || plus {
        return Some(Rule::ForcePush);
    }
    let removes = sub.operands().iter().skip(1).any(|one| one.text.starts_with(':'));
    let careful = sub.long("force-with-lease") || sub.long("force-if-includes");
    (careful || removes || sub.long("delete") || sub.short('d') || sub.long("prune")).then_some(Rule::ReplaceRemote)
}

/// Whether the files that are named are all.
fn is_all(machine: &Machine<'_>, sub: &Call<'_>) -> bool {
    sub.args().iter().any(|arg| {
        if !matches!(arg.text.as_str(), "." | "./" | "*" | ":/" | ":/*") {
            return false;
        }
        let location = machine.locate(&arg.text);
        arg.text.starts_with(':') || machine.map.place(&location) != Place::Temporary
    })
}

/// Commands of `git` that run other commands.
fn run_others(machine: &mut Machine<'_>, sub: &Call<'_>) {
    let nothing = Value::unknown(Flow::default());
    match (sub.path(), sub.args()) {
        ("bisect", [run, words @ ..]) if run.text == "run" => {
            machine.run(&Call { words, input: &nothing });
        }
        ("submodule", [each, words @ ..]) if each.text == "foreach" => {
            let words = command_behind(words, &[], 0);
            let text: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
            machine.text(&text.join(" "), &nothing, Faults::Tolerated);
        }
        ("rebase", _) => {
            for text in sub.values(&["-x", "--exec"]) {
                machine.text(&text.text, &nothing, Faults::Tolerated);
            }
        }
        _ => {}
    }
}

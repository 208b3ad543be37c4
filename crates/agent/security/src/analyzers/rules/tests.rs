//! What the rules find, command by command.

mod commands;
mod other_actions;
mod properties;

use super::*;

fn rules() -> Rules {
    Rules::new(Path::new("/workspace"))
}

/// The names of the rules that apply to a command.
fn names(command: &str) -> Vec<&'static str> {
    found(&Action::Run(RunAction::new(command)))
}

fn found(action: &Action) -> Vec<&'static str> {
    let mut names: Vec<_> = rules().rate(action, None).rules.iter().map(|found| found.rule).collect();
    names.sort_unstable();
    names
}

fn risk(command: &str) -> SecurityRisk {
    rules().rate(&Action::Run(RunAction::new(command)), None).risk
}

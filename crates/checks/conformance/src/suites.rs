//! The checks, by group.

mod auth;
mod commands;
mod editor;
mod edits;
mod errors;
mod files;
mod info;
mod ipython;
mod listing;
mod sdk;
mod swerex;
mod transfer;

use crate::{Check, Wire};

/// All checks of a protocol, in the order in which they are run.
pub fn checks(wire: Wire) -> Vec<Check> {
    match wire {
        Wire::V0 => v0(),
        Wire::Sdk => sdk::checks(),
        Wire::Swerex => swerex::checks(),
    }
}

fn v0() -> Vec<Check> {
    [
        info::checks(),
        auth::checks(),
        errors::checks(),
        listing::checks(),
        transfer::checks(),
        files::checks(),
        editor::checks(),
        edits::checks(),
        commands::checks(),
        ipython::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// So many lines: a text and the number of the line, each with a newline.
fn lines(text: &str, count: u32) -> String {
    let mut lines: Vec<String> = (1..=count).map(|number| format!("{text}{number}")).collect();
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_check_has_an_id_of_its_own_in_a_group() {
        for wire in Wire::ALL {
            let mut seen = HashSet::new();
            for check in checks(wire) {
                assert!(seen.insert(check.id), "{} is there twice", check.id);
                assert!(check.id.split_once('/').is_some_and(|(group, name)| !group.is_empty() && !name.is_empty()));
                assert!(!check.title.is_empty() && !check.spec.is_empty(), "{}", check.id);
                assert!(!check.steps.is_empty(), "{} checks nothing", check.id);
            }
        }
    }
}

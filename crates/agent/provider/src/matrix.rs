//! The capabilities of several providers side by side.

use std::fmt::Write as _;

use crate::Capabilities;

/// A table in Markdown: a row for each capability, a column for each provider.
pub fn matrix(providers: &[(String, Capabilities)]) -> String {
    let mut text = String::from("| |");
    // Writing into a string cannot fail.
    for (name, _) in providers {
        let _ = write!(text, " `{name}` |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(providers.len()));
    text.push_str("\n| isolation |");
    for (_, can) in providers {
        let _ = write!(text, " {} |", can.isolation);
    }
    text.push('\n');
    let columns: Vec<_> = providers.iter().map(|(_, can)| can.rows()).collect();
    for (at, (_, label, _)) in Capabilities::NONE.rows().iter().enumerate() {
        let _ = write!(text, "| {label} |");
        for (_, _, can) in columns.iter().filter_map(|rows| rows.get(at)) {
            text.push_str(if *can { " yes |" } else { " – |" });
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isolation;

    #[test]
    fn each_capability_has_a_row_and_each_provider_a_column() {
        let can = Capabilities { isolation: Isolation::VirtualMachine, images: true, ..Capabilities::NONE };
        let text = matrix(&[("a".to_owned(), can), ("b".to_owned(), Capabilities::NONE)]);
        let lines: Vec<&str> = text.lines().collect();
        let expected =
            ["| | `a` | `b` |", "|---|---|---|", "| isolation | virtual machine | none |", "| images | yes | – |"];
        assert_eq!(lines[..4], expected);
        assert_eq!(lines.len(), 3 + Capabilities::NONE.rows().len());
    }
}

//! The tables of the documentation.

use std::fmt::Write as _;

use super::{
    one_line,
    toml::{default, literal},
};
use crate::{
    effect::EFFECTS,
    key::Key,
    keys::{SECTIONS, SectionKeys},
};

/// One table of keys for each section, as Markdown.
pub fn key_tables() -> String {
    let mut text = String::new();
    for section in &SECTIONS {
        let title = if section.in_file {
            format!("`[{}]`", section.name)
        } else {
            format!("`{}` (variables only)", section.name)
        };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "### {title}\n\n{}\n", one_line(section.about));
        let _ = writeln!(text, "| key | type | default | variable | meaning |\n|---|---|---|---|---|");
        for key in section.keys {
            let _ = writeln!(text, "{}", row(section, key));
        }
        text.push('\n');
    }
    text
}

/// Where which key has an effect, as Markdown. Keys that are not there have none.
pub fn effect_table() -> String {
    let heading = ["setting", "new sandboxes of the runtimes", "commands", "library, `replay`"];
    let mut text = format!("| {} |\n|---|---|---|---|\n", heading.join(" | "));
    for effect in EFFECTS {
        let none = || "–".to_owned();
        let commands: Vec<String> = effect.commands.iter().map(|command| format!("`{command}`")).collect();
        let cells = [
            if effect.key.is_empty() { format!("`[{}]`", effect.section) } else { format!("`{}`", effect.name()) },
            effect.sandboxes.map_or_else(none, |need| need.runtimes().to_owned()),
            if commands.is_empty() { none() } else { commands.join(", ") },
            if effect.library { "yes".to_owned() } else { none() },
        ];
        // Writing into a string cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn row(section: &SectionKeys, key: &Key) -> String {
    let default = match (key.dynamic, literal(&default(section, key.name))) {
        (Some(dynamic), _) => dynamic.to_owned(),
        (None, Some(value)) => format!("`{value}`"),
        (None, None) => "–".to_owned(),
    };
    let variable = section.variable(key).map_or_else(|| "–".to_owned(), |name| format!("`{name}`"));
    let mut meaning = one_line(key.doc);
    if let Some(instead) = key.deprecated {
        meaning = format!("{meaning} *Deprecated: {instead}.*");
    }
    let cells = [format!("`{}`", key.name), key.kind.name(), default, variable, meaning];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

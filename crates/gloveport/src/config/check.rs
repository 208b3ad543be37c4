//! `gloveport config check`.

use std::{fmt::Write as _, process::ExitCode};

use gloveport_config::{Note, NoteKind, Severity};
use serde_json::json;

use super::{
    CheckArgs, options,
    show::{note, style},
};
use crate::{
    output::{print, print_painted},
    paint::{Paint, Style},
    visible,
};

pub(super) fn check(arguments: &CheckArgs) -> anyhow::Result<ExitCode> {
    let notes = gloveport_config::check(&options(arguments.config_file.as_ref())?)?;
    let problems = notes.iter().filter(|note| note.costs_a_setting()).count();
    if arguments.json {
        let notes: Vec<_> = notes.iter().map(note).collect();
        print(&format!("{:#}\n", json!({"ok": problems == 0, "notes": notes})))?;
    } else {
        print_painted(&text(&notes, problems, Paint::for_stdout()))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(notes: &[Note], problems: usize, paint: Paint) -> String {
    let mut text = String::new();
    for note in notes {
        let place = note.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let severity = paint.text(style(note.severity), note.severity.name());
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{}{severity}: {}", paint.text(Style::Heading, &place), visible::lines(&note.message));
        if let Some(suggestion) = &note.suggestion {
            let _ = writeln!(text, "    {}", paint.text(Style::Faint, &format!("-> {suggestion}")));
        }
    }
    let without_file = notes.iter().any(|note| note.kind == NoteKind::MissingFile);
    let fatal = notes.iter().any(|note| note.severity == Severity::Error);
    let (end, end_style) = match problems {
        0 if without_file => ("there is no configuration file, and nothing is wrong".to_owned(), Style::Good),
        0 => ("every setting has an effect".to_owned(), Style::Good),
        _ if fatal => ("the configuration cannot be used".to_owned(), Style::Error),
        1 => ("one problem; the configuration can be used without it".to_owned(), Style::Warning),
        _ => (format!("{problems} problems; the configuration can be used without them"), Style::Warning),
    };
    let _ = writeln!(text, "{}", paint.text(end_style, &end));
    text
}

//! `gloveport config check`.

use std::{fmt::Write as _, process::ExitCode};

use gloveport_config::{Effect, Loaded, Note, NoteKind, Severity, ShownValue, examine};
use serde_json::{Value, json};

use super::{
    CheckArgs, options,
    show::{is_set, name_of, note, style},
};
use crate::{
    output::{print, print_painted},
    paint::{Paint, Style},
    session::table::table,
    visible,
};

pub(super) fn check(arguments: &CheckArgs) -> anyhow::Result<ExitCode> {
    let loaded = examine(&options(arguments.config_file.as_ref())?)?;
    let problems = loaded.notes.iter().filter(|note| note.costs_a_setting()).count();
    let set: Vec<ShownValue> = loaded.values().into_iter().filter(is_set).collect();
    if arguments.json {
        let notes: Vec<_> = loaded.notes.iter().map(note).collect();
        let effects: Vec<_> = set.iter().map(effect).collect();
        print(&format!("{:#}\n", json!({"ok": problems == 0, "notes": notes, "effects": effects})))?;
    } else {
        print_painted(&text(&loaded, &set, problems, Paint::for_stdout()))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a setting has an effect; nowhere if nothing is told.
fn effect(value: &ShownValue) -> Value {
    let effect = Effect::of(&value.section, value.key);
    json!({
        "setting": name_of(value),
        "runtimes": effect.and_then(|effect| effect.sandboxes).map(|need| need.runtimes().replace('`', "")),
        "commands": effect.map(|effect| effect.commands).unwrap_or_default(),
        "library": effect.is_some_and(|effect| effect.library),
    })
}

fn text(loaded: &Loaded, set: &[ShownValue], problems: usize, paint: Paint) -> String {
    let mut text = String::new();
    for note in &loaded.notes {
        let place = note.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let severity = paint.text(style(note.severity), note.severity.name());
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{}{severity}: {}", paint.text(Style::Heading, &place), visible::lines(&note.message));
        if let Some(suggestion) = &note.suggestion {
            let _ = writeln!(text, "    {}", paint.text(Style::Faint, &format!("-> {suggestion}")));
        }
    }
    let fatal = loaded.notes.iter().any(|note| note.severity == Severity::Error);
    if !set.is_empty() && !fatal {
        text.push_str(&table(
            &["SETTING", "FROM", "HAS AN EFFECT ON"],
            &set.iter().map(row).collect::<Vec<_>>(),
            paint,
        ));
    }
    let idle = set.iter().filter(|value| Effect::of(&value.section, value.key).is_none()).count();
    let (end, end_style) = end(&loaded.notes, problems, set.len(), idle);
    let _ = writeln!(text, "{}", paint.text(end_style, &end));
    text
}

fn row(value: &ShownValue) -> Vec<String> {
    let places = Effect::of(&value.section, value.key).map(Effect::places).unwrap_or_default();
    let places = if places.is_empty() { "nothing in gloveport".to_owned() } else { places.join(", ").replace('`', "") };
    vec![name_of(value), value.origin.to_string(), places]
}

fn end(notes: &[Note], problems: usize, set: usize, idle: usize) -> (String, Style) {
    let without_file = notes.iter().any(|note| matches!(note.kind, NoteKind::MissingFile | NoteKind::ForeignFile));
    let fatal = notes.iter().any(|note| note.severity == Severity::Error);
    match problems {
        0 if idle > 0 => {
            (format!("nothing is wrong; {idle} of {set} settings have no effect in gloveport"), Style::Good)
        }
        0 if set > 0 => ("every setting has an effect".to_owned(), Style::Good),
        0 if without_file => ("there is no configuration file, and nothing is wrong".to_owned(), Style::Good),
        0 => ("nothing is wrong".to_owned(), Style::Good),
        _ if fatal => ("the configuration cannot be used".to_owned(), Style::Error),
        1 => ("one problem; the configuration can be used without it".to_owned(), Style::Warning),
        _ => (format!("{problems} problems; the configuration can be used without them"), Style::Warning),
    }
}

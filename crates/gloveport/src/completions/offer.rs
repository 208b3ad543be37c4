//! What is offered for a word.

use std::collections::BTreeSet;

use clap::{Arg, ValueHint, builder::StyledStr};
use gloveport_contract::plugins::BUILT_IN;

use super::position::Position;
use crate::{here, names::CLI, providers, session};

/// Most words that are offered.
const MOST: usize = 1000;

/// What a shell offers.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) words: Vec<Word>,
    pub(super) then: Then,
}

/// One word.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) word: String,
    /// What it means, in a line; may be empty.
    pub(super) meaning: String,
}

/// What the shell does besides.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    #[default]
    Words,
    /// The word goes on.
    Open,
    /// It offers files and directories by itself if there are no words.
    Files,
    /// The same with directories alone.
    Directories,
}

impl Then {
    /// As the scripts know it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Open => "open",
            Self::Files => "files",
            Self::Directories => "directories",
        }
    }
}

impl Word {
    pub(super) fn new(word: &str, meaning: Option<&StyledStr>) -> Self {
        let meaning = meaning.map(ToString::to_string).unwrap_or_default();
        let meaning = meaning.lines().next().unwrap_or_default().split(". ").next().unwrap_or_default().to_owned();
        Self { word: word.to_owned(), meaning }
    }

    fn plain(word: impl Into<String>) -> Self {
        Self { word: word.into(), meaning: String::new() }
    }

    /// Whether every shell takes it as it is: names that others gave may have any character, and the shell of the person
    /// would obey some.
    fn is_harmless(&self) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=+,@".contains(&byte);
        !self.word.is_empty() && self.word.bytes().all(allowed)
    }
}

impl Offer {
    pub(super) fn files() -> Self {
        Self { words: Vec::new(), then: Then::Files }
    }

    fn words(words: impl IntoIterator<Item = Word>) -> Self {
        Self { words: words.into_iter().collect(), then: Then::Words }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && matches!(self.then, Then::Words | Then::Open)
    }

    /// With all that is offered by another one.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.words.extend(other.words);
        Self { words: self.words, then: if other.then == Then::Words { self.then } else { other.then } }
    }

    /// The same words behind something that stands there.
    pub(super) fn behind(mut self, before: &str) -> Self {
        for word in &mut self.words {
            word.word.insert_str(0, before);
        }
        self
    }

    /// What of it goes on from what was typed.
    pub(super) fn beginning_with(mut self, begun: &str) -> Self {
        self.words.retain(|word| word.word.starts_with(begun) && word.is_harmless());
        self.words.truncate(MOST);
        // A name is either all that is meant, or goes on with a path.
        if self.then == Then::Words && self.words.iter().any(|word| word.word.ends_with(':')) {
            self.then = Then::Open;
        }
        self
    }
}

/// What can be the value of an argument.
pub(super) fn values_of(position: &Position<'_>, argument: &Arg, begun: &str) -> Offer {
    let id = argument.get_id().as_str();
    let path = position.path.as_slice();
    let values = argument.get_possible_values();
    match (path, id) {
        _ if !values.is_empty() => {
            let shown = values.iter().filter(|value| !value.is_hide_set());
            Offer::words(shown.map(|value| Word::new(value.get_name(), value.get_help())))
        }
        (["session", name, ..], "id" | "ids") if argument.is_positional() => {
            // Behind the session stands one of its commands, which only its server knows.
            let is_one = matches!(*name, "interrupt" | "kill");
            if is_one && !position.positionals.is_empty() {
                return Offer::default();
            }
            let also_ended = matches!(*name, "events" | "rm" | "show");
            let mut words = sessions(position, also_ended);
            words.retain(|word| !position.positionals.contains(&word.word));
            Offer::words(words)
        }
        (["session", "cp"], "source" | "destination") => {
            // A path in the session is not known here.
            if begun.split_once(':').is_some_and(|(id, _)| !id.contains('/')) {
                return Offer::default();
            }
            let words = sessions(position, false).into_iter().map(|word| Word { word: word.word + ":", ..word });
            let offer = Offer { words: words.collect(), then: Then::Files }.beginning_with(begun);
            let then = if offer.words.is_empty() { Then::Files } else { Then::Open };
            Offer { then, ..offer }
        }
        (_, "runtime") => match begun.strip_prefix("exec:") {
            Some(_) => Offer::files(),
            None => Offer::words(runtimes(path == ["run"])),
        },
        (["provider", ..], "name" | "names") => Offer::words(runtimes(false)),
        (["plugin", "check"], "plugin") => Offer { words: plugins(), then: Then::Files },
        (["plugin", ..], _) => of_kind(path, argument),
        (_, "plugin" | "plugins") => Offer::words(plugins()),
        _ => of_kind(path, argument),
    }
}

/// What the kind of an argument tells.
fn of_kind(path: &[&str], argument: &Arg) -> Offer {
    let names = argument.get_value_names().unwrap_or_default();
    let is_called = |name: &str| names.iter().any(|known| known.as_str() == name);
    let is_path = argument.get_value_hint() == ValueHint::AnyPath || argument.get_value_hint() == ValueHint::FilePath;
    if is_called("DIRECTORY") || is_called("FOLDER") {
        return Offer { words: Vec::new(), then: Then::Directories };
    }
    // The command of `run`, and paths: those of sessions are elsewhere.
    let is_here = path.first() != Some(&"session");
    let is_word = argument.is_positional() && ["command", "path"].contains(&argument.get_id().as_str());
    if is_path || is_called("FILE") || (is_here && is_word) { Offer::files() } else { Offer::default() }
}

/// The sessions of the runtime that was chosen, or of all, as far as files of this user tell.
fn sessions(position: &Position<'_>, also_ended: bool) -> Vec<Word> {
    let Ok(context) = providers::context() else { return Vec::new() };
    let chosen = position.runtime.clone().or_else(|| context.environment.get("GLOVEPORT_RUNTIME").cloned());
    let known = session::known(&context, also_ended);
    let is_meant = |runtime: &str| chosen.as_deref().is_none_or(|chosen| chosen.is_empty() || chosen == runtime);
    let shown = known.into_iter().filter(|(_, runtime)| is_meant(runtime));
    shown.map(|(id, runtime)| Word { word: id, meaning: format!("session of the runtime {runtime}") }).collect()
}

fn runtimes(with_cli: bool) -> Vec<Word> {
    let Ok(context) = providers::context() else { return Vec::new() };
    let mut names: BTreeSet<String> = providers::names(&providers::registry(), &context).into_iter().collect();
    names.insert("exec:".to_owned());
    if with_cli {
        names.insert(CLI.to_owned());
    }
    let begins_well = |name: &String| name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    names.into_iter().filter(begins_well).map(Word::plain).collect()
}

fn plugins() -> Vec<Word> {
    let built_in = BUILT_IN.iter().map(|known| Word { word: known.name.into(), meaning: known.description.into() });
    built_in.chain(here::plugin_names().into_iter().map(Word::plain)).collect()
}

//! Shell text as commands: what would run, with which words and redirections.
//!
//! This is a reader for rules and not a shell. It knows the grammar of bash as far as it decides which words are
//! commands and arguments; of what expressions mean it knows nothing.

mod parser;
mod redirect;
#[cfg(test)]
mod tests;
mod word;

use std::{cell::OnceCell, rc::Rc};

pub(super) use parser::parse;

/// How deep constructs may nest. A level costs less than 8 KiB of stack in an unoptimised build, so that the deepest
/// text fits many times over into a thread of 2 MiB.
pub(super) const MAX_DEPTH: u32 = 80;

/// What was read.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The commands before the fault, or all.
    pub(super) script: Script,
    /// Why reading ended early.
    pub(super) fault: Option<Fault>,
}

/// Why reading stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The text ends too early, or has something where it may not stand.
    Syntax,
    /// The text nests deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Pipelines one after the other; whether one depends on the result of another does not matter here.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
}

/// Commands whose output flows into the next.
#[derive(Debug, PartialEq)]
pub(super) struct Pipeline {
    pub(super) stages: Vec<Stage>,
    pub(super) background: bool,
}

/// A command with its redirections.
#[derive(Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) command: Command,
    pub(super) redirects: Vec<Redirect>,
}

/// A command.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// Assignments, and a program with arguments.
    Simple(Simple),
    /// Several in a group, a condition, a loop or a case; which of them run does not matter here.
    Group(Script),
    /// The same in a shell of their own, which has its own directory.
    Subshell(Script),
    /// A loop over words.
    Loop { name: String, words: Vec<Word>, body: Script },
    /// The definition of a function.
    Function { name: String, body: Script },
}

/// Assignments, and a program with arguments.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) words: Vec<Word>,
}

/// A redirection.
#[derive(Debug, PartialEq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: Target,
    /// Whether it names the descriptor of error messages, so that the output still flows on.
    pub(super) only_errors: bool,
}

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `<>`, and `>&` with a name.
    Write,
    /// `<<` and `<<<`: the target is the text itself.
    Text,
    /// `>&1` and the like.
    Duplicate,
}

/// What a redirection names. The body of a here-document is known only after the line.
#[derive(Debug, PartialEq)]
pub(super) enum Target {
    Word(Word),
    Body(Rc<OnceCell<Word>>),
}

impl Redirect {
    /// The name, or the text.
    pub(super) fn word(&self) -> Option<&Word> {
        match &self.target {
            Target::Word(word) => Some(word),
            Target::Body(body) => body.get(),
        }
    }
}

/// A word as written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// Text without quotes and escapes.
    Text { text: String, quoting: Quoting },
    /// The value of a variable.
    Variable { name: String, change: Change, quoting: Quoting },
    /// The output of commands.
    Substitution { script: Script, quoting: Quoting },
    /// A name from which the output of commands can be read, or to which their input can be written.
    Process(Script),
    /// Something whose value only a shell knows.
    Unknown,
}

/// Whether a piece stands in quotes, where blanks, `~` and patterns mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Quoted,
    Bare,
}

/// What `${name…}` makes of the value.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// Another word takes its place when there is no value.
    Default(Word),
    /// Without a value the command does not run.
    Required(Word),
    /// Something whose result only a shell knows; the word may run commands.
    Other(Word),
}

impl Word {
    /// A word of plain text.
    #[cfg(test)]
    pub(super) fn bare(text: &str) -> Self {
        Self { pieces: vec![Piece::Text { text: text.to_owned(), quoting: Quoting::Bare }] }
    }

    /// The text if it is nothing but text without quotes.
    pub(super) fn as_bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, quoting: Quoting::Bare }] => Some(text),
            _ => None,
        }
    }

    /// Adds text, to the last piece if that is of the same sort.
    pub(super) fn push(&mut self, more: &str, quoting: Quoting) {
        if let Some(Piece::Text { text, quoting: last }) = self.pieces.last_mut()
            && *last == quoting
        {
            text.push_str(more);
        } else {
            self.pieces.push(Piece::Text { text: more.to_owned(), quoting });
        }
    }
}

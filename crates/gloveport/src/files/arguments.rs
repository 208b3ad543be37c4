//! The flags of the file commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where the files are.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Work with the files of this server instead of this machine, for example http://127.0.0.1:8000
    #[arg(long, value_name = "URL", env = "GLOVEPORT_URL", global = true)]
    pub(crate) url: Option<String>,
    /// Key of that server.
    #[arg(long, env = "GLOVEPORT_KEY", hide_env_values = true, global = true)]
    pub(crate) key: Option<String>,
    /// File with the key of that server. Prefer it to --key: everyone on this machine can see arguments.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) what: ViewWhat,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What is to be shown.
#[derive(Debug, Args)]
pub(crate) struct ViewWhat {
    /// File or directory.
    pub(crate) path: String,
    /// Lines to show, counted from 1: `5:10`, `5:` to the end, or `5`.
    #[arg(long, short = 'n', value_name = "FIRST:LAST", value_parser = lines, allow_hyphen_values = true)]
    pub(crate) lines: Option<(i64, i64)>,
    /// Print the text as it is, without line numbers.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print the observation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(crate) what: WriteWhat,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What is to be written.
#[derive(Debug, Args)]
pub(crate) struct WriteWhat {
    /// File; its directory is created if it is missing.
    pub(crate) path: String,
    /// The new content; `@FILE` or `-` (standard input, the default) reads it from there.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Replace only these lines, counted from 1: `5:10`, `5:` to the end, or `5`.
    #[arg(long, short = 'n', value_name = "FIRST:LAST", value_parser = lines, allow_hyphen_values = true)]
    pub(crate) lines: Option<(i64, i64)>,
    /// Print the observation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl WriteWhat {
    /// Whether the content comes from standard input.
    pub(crate) fn takes_input(&self) -> bool {
        self.text.as_deref().is_none_or(|text| text == "-")
    }
}

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) what: EditWhat,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What is to be changed.
#[derive(Debug, Args)]
pub(crate) struct EditWhat {
    #[command(subcommand)]
    pub(crate) command: EditCommand,
    /// Print the observation as JSON instead of the change.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl EditWhat {
    /// Whether one of the texts comes from standard input.
    pub(crate) fn takes_input(&self) -> bool {
        match &self.command {
            EditCommand::Replace { old, new, .. } => old == "-" || new == "-",
            EditCommand::Insert { text, .. } | EditCommand::Create { text, .. } => text == "-",
            EditCommand::Undo { .. } => false,
        }
    }
}

/// Texts are given as they are, as `@FILE` for the content of a file, or as `-` for standard input, from which one that
/// begins with `@` can come.
#[derive(Debug, Subcommand)]
pub(crate) enum EditCommand {
    /// Replace a text that occurs once.
    Replace {
        /// File.
        path: String,
        /// The text to replace; `@FILE` or `-` reads it from there.
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        old: String,
        /// The new text; `@FILE` or `-` reads it from there.
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        new: String,
    },
    /// Insert lines after a line.
    Insert {
        /// File.
        path: String,
        /// The line, counted from 1; 0 is the beginning of the file.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(0..), allow_negative_numbers = true)]
        line: i64,
        /// The lines; `@FILE` or `-` reads them from there.
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
    },
    /// Create a file that does not exist.
    Create {
        /// File.
        path: String,
        /// Its content; `@FILE` or `-` reads it from there.
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        text: String,
    },
    /// Undo the last edit of a file. Only a server remembers edits.
    Undo {
        /// File.
        path: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Directory; by default the current one, or the working directory of the server.
    pub(crate) path: Option<String>,
    /// Also show kind, mode, size and time.
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Also show names that begin with a dot.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// File or directory. A path in the sandbox begins with a colon, `:/workspace`; `-` is standard input.
    pub(crate) source: PathBuf,
    /// Where it goes: into an existing directory, or to this name. `-` is standard output.
    pub(crate) destination: PathBuf,
    /// Do not show progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Has no effect: trees are always copied whole.
    #[arg(long, short, hide_short_help = true)]
    pub(crate) recursive: bool,
    /// Print the destination and the number of files and bytes as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `FIRST:LAST`, `FIRST:` or `LINE`, counted from 1; the last is -1 for the end.
fn lines(text: &str) -> Result<(i64, i64), String> {
    let number = |text: &str| match text.parse::<i64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("lines are counted from 1: FIRST:LAST, FIRST: or LINE".to_owned()),
    };
    match text.split_once(':') {
        None => number(text).map(|line| (line, line)),
        Some((first, "")) => Ok((number(first)?, -1)),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("the first line, {first}, comes after the last, {last}"));
            }
            Ok((first, last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        for (text, expected) in [("5", Some((5, 5))), ("5:10", Some((5, 10))), ("5:", Some((5, -1)))] {
            assert_eq!(lines(text).ok(), expected, "{text}");
        }
        for text in ["", "0", ":5", "5:3", "-1", "a", "1:b", "1:0"] {
            assert!(lines(text).is_err(), "{text}");
        }
    }
}

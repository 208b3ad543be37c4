//! A program with its arguments.

use super::{
    place::UNKNOWN,
    value::{Flow, Value},
};

/// A program with its arguments and what flows into it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) words: &'a [Value],
    pub(super) input: &'a Value,
}

impl<'a> Call<'a> {
    /// The name of the program without its directory.
    pub(super) fn program(&self) -> &'a str {
        let name = self.path();
        name.rsplit('/').next().unwrap_or(name)
    }

    /// The program as it is called.
    pub(super) fn path(&self) -> &'a str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    pub(super) fn args(&self) -> &'a [Value] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The texts of the arguments.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.args().iter().map(|arg| arg.text.as_str())
    }

    /// The arguments that are no options: all behind `--`, and those before that do not begin with `-`.
    pub(super) fn operands(&self) -> Vec<&'a Value> {
        let mut rest = false;
        let is_operand = |arg: &&Value| {
            if rest {
                return true;
            }
            rest = arg.text == "--";
            !rest && (!arg.text.starts_with('-') || arg.text == "-")
        };
        self.args().iter().filter(is_operand).collect()
    }

    /// Whether there is this option of one letter, also among others behind one dash.
    pub(super) fn short(&self, letter: char) -> bool {
        self.options().any(|option| !option.starts_with("--") && option.contains(letter))
    }

    /// Whether there is this option, with or without a value behind `=`.
    pub(super) fn long(&self, name: &str) -> bool {
        self.options().any(|option| option.strip_prefix("--").is_some_and(|one| one.split('=').next() == Some(name)))
    }

    fn options(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.texts().take_while(|text| *text != "--").filter(|text| text.starts_with('-') && text.len() > 1)
    }

    /// The values of these options, whether they stand behind it, behind `=`, or (one letter) at once.
    pub(super) fn values(&self, names: &[&str]) -> Vec<Value> {
        let mut found = Vec::new();
        let mut args = self.args().iter();
        while let Some(arg) = args.next() {
            for name in names {
                let Some(rest) = arg.text.strip_prefix(name) else { continue };
                if rest.is_empty() {
                    found.extend(args.next().cloned());
                } else if let Some(value) = rest.strip_prefix('=').filter(|_| name.starts_with("--")) {
                    found.push(Value { text: value.to_owned(), flow: arg.flow });
                } else if !name.starts_with("--") {
                    found.push(Value { text: rest.to_owned(), flow: arg.flow });
                } else {
                    continue;
                }
                break;
            }
        }
        found
    }

    /// Where all its arguments come from.
    pub(super) fn flow(&self) -> Flow {
        self.args().iter().fold(Flow::default(), |flow, arg| flow.and(arg.flow))
    }

    /// The call for a person.
    pub(super) fn quote(&self) -> String {
        let mut text = String::new();
        for word in self.words {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&word.text);
            // Nobody reads more.
            if text.len() > 1000 {
                break;
            }
        }
        text.replace(UNKNOWN, "…")
    }
}

/// What stands behind the options of a program that runs another one.
///
/// `valued` are the options whose value is the next argument, `skip` how many operands stand before the command.
pub(super) fn command_behind<'a>(args: &'a [Value], valued: &[&str], skip: usize) -> &'a [Value] {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if arg.text == "--" {
            at += 1;
            break;
        }
        if !arg.text.starts_with('-') || arg.text == "-" {
            break;
        }
        at += if valued.contains(&arg.text.as_str()) { 2 } else { 1 };
    }
    args.get(at + skip..).unwrap_or_default()
}

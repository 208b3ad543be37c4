//! Where in the command line the cursor is, as far as the words before it tell.

use clap::{Arg, ArgAction, Command};

use super::offer::{self, Offer, Then, Word};

/// The place of the word at the cursor.
pub(super) struct Position<'a> {
    command: &'a Command,
    /// The names of the commands down to that one.
    pub(super) path: Vec<&'a str>,
    /// Flags of the commands above that hold in it, too.
    inherited: Vec<&'a Arg>,
    /// Flags that were given.
    given: Vec<&'a Arg>,
    /// The runtime that was chosen.
    pub(super) runtime: Option<String>,
    /// The flag whose value the word is or may be, and how many of its values stand before it.
    value_of: Option<(&'a Arg, usize)>,
    /// Words before it that are no flags and no commands.
    pub(super) positionals: Vec<String>,
    /// No flag follows: behind `--`, and behind the first word of a command that is to be run.
    is_plain: bool,
}

impl<'a> Position<'a> {
    pub(super) fn find(root: &'a Command, words: &[String]) -> Self {
        let mut position = Self {
            command: root,
            path: Vec::new(),
            inherited: Vec::new(),
            given: Vec::new(),
            runtime: None,
            value_of: None,
            positionals: Vec::new(),
            is_plain: false,
        };
        for word in words {
            position.pass(word);
        }
        position
    }

    fn pass(&mut self, word: &str) {
        if let Some((flag, count)) = self.value_of.take() {
            let (least, most) = values(flag);
            if count < least || !word.starts_with('-') {
                if flag.get_id() == "runtime" {
                    self.runtime = Some(word.to_owned());
                }
                self.value_of = (count + 1 < most).then_some((flag, count + 1));
                return;
            }
        }
        match word {
            _ if self.is_plain => self.positionals.push(word.to_owned()),
            "--" => self.is_plain = true,
            _ if word.starts_with("--") => self.pass_long(word),
            _ if word.len() > 1 && word.starts_with('-') => self.pass_short(word),
            _ => self.pass_plain(word),
        }
    }

    fn pass_long(&mut self, word: &str) {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let Some(flag) = self.long(name) else { return };
        self.given.push(flag);
        match value {
            Some(value) if flag.get_id() == "runtime" => self.runtime = Some(value.to_owned()),
            Some(_) => {}
            None => self.value_of = takes_value(flag).then_some((flag, 0)),
        }
    }

    fn pass_short(&mut self, word: &str) {
        let mut letters = word.chars().skip(1);
        while let Some(letter) = letters.next() {
            let Some(flag) = self.flags().find(|flag| flag.get_short() == Some(letter)) else { return };
            self.given.push(flag);
            if takes_value(flag) {
                // The rest of the word is the value.
                self.value_of = letters.next().is_none().then_some((flag, 0));
                return;
            }
        }
    }

    fn pass_plain(&mut self, word: &str) {
        if self.awaits_a_command()
            && let Some(command) = self.command.find_subcommand(word)
        {
            self.inherited.extend(self.command.get_arguments().filter(|flag| flag.is_global_set()));
            self.path.push(command.get_name());
            self.command = command;
            self.positionals.clear();
            return;
        }
        self.is_plain = self.positional().is_some_and(Arg::is_trailing_var_arg_set);
        self.positionals.push(word.to_owned());
    }

    /// What can stand there when this is the beginning of it.
    pub(super) fn offer(&self, begun: &str) -> Offer {
        let mut offer = Offer::default();
        if let Some((flag, count)) = self.value_of {
            offer = offer::values_of(self, flag, begun);
            if count < values(flag).0 {
                return offer.beginning_with(begun);
            }
        }
        if let Some((name, value)) = begun.split_once('=').filter(|_| begun.starts_with("--") && !self.is_plain) {
            let Some(flag) = self.long(name).filter(|flag| takes_value(flag)) else { return Offer::default() };
            return offer::values_of(self, flag, value).behind(&format!("{name}=")).beginning_with(begun);
        }
        if begun.starts_with('-') && !self.is_plain {
            return self.flags_to_offer(begun).beginning_with(begun);
        }
        if self.awaits_a_command() && !self.is_plain {
            let commands = self.command.get_subcommands().filter(|command| !command.is_hide_set());
            offer.words.extend(commands.map(|command| Word::new(command.get_name(), command.get_about())));
        }
        if let Some(positional) = self.positional() {
            offer = offer.and(offer::values_of(self, positional, begun));
        }
        if offer.is_empty() && begun.is_empty() && !self.is_plain {
            return self.flags_to_offer(begun);
        }
        offer.beginning_with(begun)
    }

    fn flags_to_offer(&self, begun: &str) -> Offer {
        let repeats = |flag: &Arg| matches!(flag.get_action(), ArgAction::Append | ArgAction::Count);
        let is_given = |flag: &Arg| self.given.iter().any(|given| given.get_id() == flag.get_id());
        let mut words = Vec::new();
        for flag in self.flags().filter(|flag| !flag.is_hide_set() && (repeats(flag) || !is_given(flag))) {
            if let Some(letter) = flag.get_short().filter(|_| begun == "-") {
                words.push(Word::new(&format!("-{letter}"), flag.get_help()));
            }
            words.extend(flag.get_long().map(|name| Word::new(&format!("--{name}"), flag.get_help())));
        }
        let mut own =
            |name: &str, meaning: &str| words.push(Word { word: name.to_owned(), meaning: meaning.to_owned() });
        own("--help", "Print help");
        if self.path.is_empty() {
            own("--version", "Print version");
        }
        Offer { words, then: Then::Words }
    }

    fn flags(&self) -> impl Iterator<Item = &'a Arg> + '_ {
        self.command.get_arguments().chain(self.inherited.iter().copied()).filter(|flag| !flag.is_positional())
    }

    /// Whether one of its commands stands there: behind its own words, such as the session of `session edit ID`.
    fn awaits_a_command(&self) -> bool {
        self.positionals.len() == self.command.get_positionals().count()
    }

    /// The flag of this name, with its hyphens.
    fn long(&self, name: &str) -> Option<&'a Arg> {
        let name = name.strip_prefix("--")?;
        let is_called = |flag: &&Arg| flag.get_long_and_visible_aliases().unwrap_or_default().contains(&name);
        self.flags().find(is_called)
    }

    /// What the word is when it is no flag.
    fn positional(&self) -> Option<&'a Arg> {
        let mut before = self.positionals.len();
        for argument in self.command.get_positionals() {
            let most = values(argument).1;
            if before < most {
                return Some(argument);
            }
            before -= most;
        }
        None
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

/// The least and the most values of an argument.
fn values(argument: &Arg) -> (usize, usize) {
    let many = argument.is_positional() && matches!(argument.get_action(), ArgAction::Append);
    let default = if many { (1, usize::MAX) } else { (1, 1) };
    argument.get_num_args().map_or(default, |range| (range.min_values(), range.max_values()))
}

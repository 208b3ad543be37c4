//! Rules that hold for every command.

use clap::{Arg, Command, error::ErrorKind};

/// Every command that people can give, with its words.
fn leaves() -> Vec<(String, Command)> {
    fn walk(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
        for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
            let words = format!("{words} {}", subcommand.get_name()).trim().to_owned();
            if subcommand.has_subcommands() {
                walk(subcommand, &words, found);
            } else {
                found.push((words, subcommand.clone()));
            }
        }
    }
    let mut root = super::visible();
    root.build();
    let mut found = Vec::new();
    walk(&root, "", &mut found);
    found
}

fn long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let names = |argument: &&Arg| argument.get_long_and_visible_aliases().unwrap_or_default().contains(&name);
    command.get_arguments().find(names)
}

#[test]
fn every_command_that_prints_prints_json() {
    const WITHOUT: [(&str, &str); 8] = [
        ("session attach", "it shows a terminal"),
        ("serve", "it goes on until it is ended, and tells its address and key in lines that a shell reads"),
        ("action-execution-server", "its command line is that of OpenHands"),
        ("swerex", "its command line is that of SWE-ReX"),
        ("agent-server", "its command line is that of OpenHands' SDK"),
        ("provider json", "it prints what it finds in JSON"),
        ("config default", "it prints a file; `config show --all --json` prints the values"),
        ("completions", "it prints a script"),
    ];
    let without: Vec<String> =
        leaves().into_iter().filter(|(_, command)| long(command, "json").is_none()).map(|(words, _)| words).collect();
    assert_eq!(without, WITHOUT.map(|(words, _)| words));
}

#[test]
fn flags_have_the_short_forms_that_fingers_know() {
    const SHORT: [(&str, char); 13] = [
        ("env", 'e'),
        ("cwd", 'w'),
        ("mount", 'v'),
        ("port", 'p'),
        ("interactive", 'i'),
        ("tty", 't'),
        ("detach", 'd'),
        ("follow", 'f'),
        ("force", 'f'),
        ("quiet", 'q'),
        ("all", 'a'),
        ("recursive", 'r'),
        ("lines", 'n'),
    ];
    const WITHOUT: [(&str, &str); 2] = [
        ("session gc --all", "it removes what was to be kept, so nobody types it by mistake"),
        ("image build --force", "-f names a Dockerfile elsewhere"),
    ];
    let mut without = Vec::new();
    for (words, command) in leaves() {
        for (name, letter) in SHORT {
            let flag = long(&command, name);
            if flag.is_some_and(|flag| flag.get_short() != Some(letter)) {
                without.push(format!("{words} --{name}"));
            }
        }
    }
    assert_eq!(without, WITHOUT.map(|(flag, _)| flag));
}

#[test]
fn a_key_can_come_from_a_file_wherever_it_can_be_given() {
    for (words, command) in leaves() {
        for (key, file) in [("key", "key-file"), ("against-key", "against-key-file")] {
            // The key of `serve` and of a gateway is never an argument, which everybody sees.
            let is_serving = ["serve", "gateway env"].contains(&words.as_str());
            let can_be_given = long(&command, key).is_some() || (is_serving && key == "key");
            assert_eq!(long(&command, file).is_some(), can_be_given, "{words} --{key}");
        }
    }
}

#[test]
fn helps_are_written_alike() {
    let mut wrong = Vec::new();
    for (words, command) in leaves() {
        let own = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
        let flags = command.get_arguments().filter(|argument| !argument.is_hide_set()).filter(own);
        let help = |argument: &Arg| argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
        let texts = flags.map(|argument| (argument.get_id().to_string(), help(argument)));
        let about = ("the command".to_owned(), command.get_about().map(ToString::to_string));
        for (what, text) in texts.chain([about]) {
            let text = text.unwrap_or_default();
            let begins_well = text.chars().next().is_some_and(|first| !first.is_lowercase());
            // The period behind the last sentence is left out everywhere.
            let ends_well = !text.ends_with('.') && !text.ends_with(char::is_whitespace);
            if !begins_well || !ends_well || text.contains("  ") || text.contains(" \n") {
                wrong.push(format!("{words}, {what}: {text:?}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn times_and_sizes_are_written_alike() {
    for (words, command) in leaves() {
        for flag in command.get_arguments().filter(|flag| flag.get_action().takes_values() && !flag.is_hide_set()) {
            let name = flag.get_long().unwrap_or_default();
            let value = match name {
                "timeout" | "limit" | "ttl" | "drain" | "idle-stop" | "idle" | "pause" => "TIME",
                "memory" => "SIZE",
                _ => continue,
            };
            assert_eq!(flag.get_value_names().unwrap_or_default(), [value], "{words} --{name}");
            for (text, is_one) in
                [("90s", value == "TIME"), ("1m30s", value == "TIME"), ("512m", true), ("2g", value == "SIZE")]
            {
                let given = [words.as_str(), &format!("--{name}"), text];
                let refused = command.clone().try_get_matches_from(given).err().map(|error| error.kind());
                assert_eq!(refused != Some(ErrorKind::ValueValidation), is_one, "{words} --{name} {text}");
            }
        }
    }
}

//! What the editor says, in the words of the command line: its messages are for agents, and name what agents send.

use crate::explain::errno;

/// The message for a person; as it is if there is nothing to change.
pub(super) fn for_people(message: &str) -> String {
    absent(message)
        .or_else(|| behind_the_end(message))
        .or_else(|| not_inserted(message))
        .or_else(|| not_found(message))
        .or_else(|| known(message))
        .or_else(|| failed(message))
        .unwrap_or_else(|| {
            message.replace("old_str `", "the text `").replace("Multiple occurrences of old_str", "The text")
        })
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(between, _)| between)
}

fn absent(message: &str) -> Option<String> {
    let path = between(message, "Invalid `path` parameter: ", ". The path ")?;
    message.contains(" does not exist").then(|| format!("{path} does not exist"))
}

/// Lines that a file does not have, behind `parameter`.
fn last_line<'a>(message: &'a str, parameter: &str) -> Option<&'a str> {
    message.strip_prefix(parameter)?;
    message.trim_end_matches('.').rsplit_once(", ").map(|(_, last)| last.trim_end_matches(']'))
}

fn behind_the_end(message: &str) -> Option<String> {
    let last = last_line(message, "Invalid `view_range` parameter: ")?;
    let first = between(message, "Its first element `", "` should be within the range of lines")?;
    Some(format!("there is no line {first}: the file ends with line {last}"))
}

fn not_inserted(message: &str) -> Option<String> {
    let last = last_line(message, "Invalid `insert_line` parameter: ")?;
    let line = between(message, "Invalid `insert_line` parameter: ", ". It should be")?;
    Some(format!("there is no line {line}: the file ends with line {last}"))
}

fn not_found(message: &str) -> Option<String> {
    let text = between(message, "No replacement was performed, old_str `", "` did not appear verbatim in ")?;
    let path = message.rsplit_once("` did not appear verbatim in ")?.1.trim_end_matches('.');
    Some(format!("nothing is changed: {path} does not contain the text `{text}`"))
}

/// Messages that have one meaning.
fn known(message: &str) -> Option<String> {
    if message.contains("`new_str` and `old_str` must be different") {
        return Some("nothing is changed: the new text is the old one".to_owned());
    }
    if let Some(path) = between(message, "File already exists at: ", ". Cannot overwrite files using command") {
        return Some(format!("{path} exists already; `write` replaces it"));
    }
    if let Some(path) = message.strip_prefix("File could not be decoded as utf-8: ") {
        return Some(format!("{path} is not UTF-8 text; copy it with `cp`"));
    }
    let lines = between(message, "Multiple occurrences of old_str `` in lines [", "]");
    if lines.is_some() {
        return Some("nothing is changed: the text to replace is empty".to_owned());
    }
    let path = between(message, "Invalid `path` parameter: ", ". The path ")?;
    message.contains(" is a directory and only the `view` command").then(|| format!("{path} is a directory"))
}

/// What the system, or a codec of Python, has against a file.
fn failed(message: &str) -> Option<String> {
    let (reason, what) = message.strip_prefix("Ran into ")?.split_once(" while trying to ")?;
    let reason = match errno(reason) {
        Some((_, reason, _)) => reason,
        None if reason.contains(" codec can't decode") => "it is no text, or in no encoding that is known",
        None => reason,
    };
    Some(format!("cannot {}: {reason}", what.replacen("write to ", "write ", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_are_told_is_said_in_the_words_of_the_command_line() {
        for (message, expected) in [
            (
                "Invalid `view_range` parameter: [10, 20]. Its first element `10` should be within the range of lines of \
                 the file: [1, 5].",
                "there is no line 10: the file ends with line 5",
            ),
            (
                "Invalid `insert_line` parameter: 99. It should be within the range of allowed values: [0, 5]",
                "there is no line 99: the file ends with line 5",
            ),
            (
                "Invalid `path` parameter: /a. b. The path /a. b does not exist. Please provide a valid path.",
                "/a. b does not exist",
            ),
            (
                "No replacement was performed, old_str `zz` did not appear verbatim in /tmp/a.txt.",
                "nothing is changed: /tmp/a.txt does not contain the text `zz`",
            ),
            (
                "Invalid `new_str` parameter: 1. No replacement was performed. `new_str` and `old_str` must be different.",
                "nothing is changed: the new text is the old one",
            ),
            (
                "Invalid `path` parameter: /a. File already exists at: /a. Cannot overwrite files using command `create`.",
                "/a exists already; `write` replaces it",
            ),
            (
                "Invalid `path` parameter: /a. The path /a is a directory and only the `view` command can be used on \
                 directories.",
                "/a is a directory",
            ),
            (
                "No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2]. Please ensure it is \
                 unique.",
                "nothing is changed: the text to replace is empty",
            ),
            (
                "Ran into [Errno 2] No such file or directory: '/a/x' while trying to write to /a/x",
                "cannot write /a/x: No such file or directory",
            ),
            (
                "Ran into 'utf-16' codec can't decode what follows the byte order mark while trying to read /a",
                "cannot read /a: it is no text, or in no encoding that is known",
            ),
            ("File could not be decoded as utf-8: /a", "/a is not UTF-8 text; copy it with `cp`"),
            ("something else", "something else"),
        ] {
            assert_eq!(for_people(message), expected);
        }
    }
}

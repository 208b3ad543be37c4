//! What the editor says, in the words of the command line: its messages are for agents, and name what agents send.

/// The message for a person; as it is if there is nothing to change.
pub(super) fn for_people(message: &str) -> String {
    absent(message)
        .or_else(|| behind_the_end(message))
        .or_else(|| not_inserted(message))
        .or_else(|| not_found(message))
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
            ("something else", "something else"),
        ] {
            assert_eq!(for_people(message), expected);
        }
    }
}

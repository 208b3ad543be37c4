//! Differences that are known and wanted, by name. `docs/compatibility.md` gives the reasons.

use serde_json::Value;

use super::Operation;

/// A known difference.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What differs, and why.
    pub why: &'static str,
    fits: fn(&Case<'_>) -> bool,
}

/// One operation and both answers, without what must differ.
pub(super) struct Case<'a> {
    pub(super) operation: &'a Operation,
    pub(super) mine: &'a Value,
    pub(super) theirs: &'a Value,
}

/// All known differences. The first that fits gives the name.
pub const RULES: &[Rule] = &[
    Rule {
        name: "prompt-race",
        why: "the reference may take the old prompt for the end of a command (bash-session 3.1, REF-BUG)",
        fits: |case| {
            case.operation.is_command() && case.theirs("/body/extras/metadata/prefix").contains("the last 1 lines")
        },
    },
    Rule {
        name: "command-echo",
        why: "the reference leaves echoes in the output that it does not recognise (bash-session 3.3, REF-BUG)",
        fits: |case| {
            case.operation.is_command()
                && case.same_but(&["/body/content"])
                && case.theirs("/body/content").ends_with(case.mine("/body/content"))
                && case.theirs("/body/content").starts_with(case.first_line())
        },
    },
    Rule {
        name: "echo-eaten",
        why: "the reference takes output that looks like the command for its echo (bash-session 3.3)",
        fits: |case| {
            case.operation.is_command()
                && case.same_but(&["/body/content"])
                && case.mine("/body/content").ends_with(case.theirs("/body/content"))
                && case.mine("/body/content").starts_with(case.command())
        },
    },
    Rule {
        name: "replacement-characters",
        why: "bytes that are not UTF-8 disappear in the reference's terminal; here they are shown as U+FFFD",
        fits: |case| {
            case.operation.is_command()
                && case.same_but(&["/body/content"])
                && case.mine("/body/content").replace('\u{fffd}', "") == case.theirs("/body/content")
        },
    },
    Rule {
        name: "zero-width",
        why: "characters without a width disappear in the reference's terminal; here they stay",
        fits: |case| {
            const ZERO_WIDTH: [char; 3] = ['\u{200b}', '\u{200d}', '\u{feff}'];
            case.operation.is_command()
                && case.same_but(&["/body/content"])
                && case.mine("/body/content").replace(ZERO_WIDTH, "") == case.theirs("/body/content")
        },
    },
    Rule {
        name: "escaped-operators",
        why: "the reference doubles backslashes in front of `;`, `&`, `|`, `<` and `>` (bash-session 5.1)",
        fits: |case| ["\\;", "\\&", "\\|", "\\<", "\\>"].iter().any(|text| case.command().contains(text)),
    },
    Rule {
        name: "comment-alone",
        why: "a comment alone is an error of the reference (bash-session 5.1, REF-BUG)",
        fits: |case| case.theirs("/body/content") == "'str' object has no attribute 'kind'",
    },
    Rule {
        name: "carriage-returns-kept",
        why: "an edit may keep the carriage returns of a file (file-editor, preamble)",
        fits: |case| !case.operation.is_command() && case.same_without("\\r"),
    },
    Rule {
        name: "errors-name-the-field",
        why: "a value of the wrong type is refused at once and named; the reference fails later with a text of Python",
        fits: |case| {
            case.theirs_failed() && case.mine["status"] == 500 && case.mine("/body/detail").contains(" must be ")
        },
    },
    Rule {
        name: "undecodable-text",
        why: "text that cannot be decoded is an error of the editor, and not of the server (file-editor 3.5)",
        fits: |case| {
            case.theirs["status"] == 500
                && case.mine["status"] == 200
                && case.mine("/body/content").starts_with("ERROR:\n")
                && (case.theirs("/body/detail").contains("decode") || case.theirs("/body/detail").contains("encod"))
        },
    },
    Rule {
        name: "binary-message",
        why: "the reference compares an absent detection with a number for binary data (file-editor 3.7)",
        fits: |case| case.theirs("/body/content").contains("'NoneType' and 'float'") && case.mine_failed(),
    },
    Rule {
        name: "listing-of-odd-names",
        why: "the reference lists directories through a shell, which trips over blanks and other characters \
              (file-editor 3.5, REF-BUG)",
        fits: |case| {
            case.theirs("/body/content").starts_with("ERROR:\n")
                && case.mine("/body/content").starts_with("Here's the files and directories")
        },
    },
    Rule {
        name: "dangling-links",
        why: "a link that leads nowhere is left out of a download; the reference fails",
        fits: |case| {
            matches!(case.operation, Operation::DownloadFiles(_))
                && case.mine["status"] == 200
                && case.theirs("/body/detail").starts_with("[Errno 2]")
        },
    },
];

impl Rule {
    /// The name of the first rule that fits.
    pub(super) fn of(case: &Case<'_>) -> Option<&'static str> {
        RULES.iter().find(|rule| (rule.fits)(case)).map(|rule| rule.name)
    }
}

impl Case<'_> {
    fn mine(&self, pointer: &str) -> &str {
        self.mine.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn theirs(&self, pointer: &str) -> &str {
        self.theirs.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn command(&self) -> &str {
        match self.operation {
            Operation::Action(action) => action.pointer("/args/command").and_then(Value::as_str).unwrap_or_default(),
            _ => "",
        }
    }

    fn first_line(&self) -> &str {
        self.command().trim().lines().next().unwrap_or_default()
    }

    /// Whether both answers are the same but for the values at these pointers.
    fn same_but(&self, pointers: &[&str]) -> bool {
        let (mut mine, mut theirs) = (self.mine.clone(), self.theirs.clone());
        for pointer in pointers {
            for value in [&mut mine, &mut theirs] {
                if let Some(slot) = value.pointer_mut(pointer) {
                    *slot = Value::Null;
                }
            }
        }
        mine == theirs
    }

    /// Whether both answers are the same without this text in their JSON.
    fn same_without(&self, text: &str) -> bool {
        self.mine.to_string().replace(text, "") == self.theirs.to_string().replace(text, "")
    }

    fn theirs_failed(&self) -> bool {
        failed(self.theirs)
    }

    fn mine_failed(&self) -> bool {
        failed(self.mine)
    }
}

fn failed(answer: &Value) -> bool {
    answer["status"] != 200
        || answer.pointer("/body/observation") == Some(&Value::from("error"))
        || answer.pointer("/body/content").and_then(Value::as_str).is_some_and(|content| content.starts_with("ERROR:"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(operation: &Operation, mine: &Value, theirs: &Value) -> Option<&'static str> {
        Rule::of(&Case { operation, mine, theirs })
    }

    #[test]
    fn a_known_difference_has_its_name_and_another_has_none() {
        let run = Operation::Action(json!({"action": "run", "args": {"command": "echo a;"}}));
        let ran = |content: &str, exit: i64| json!({"status": 200, "body": {"content": content, "exit": exit}});
        assert_eq!(of(&run, &ran("a", 0), &ran("echo a;\na", 0)), Some("command-echo"));
        assert_eq!(of(&run, &ran("a", 0), &ran("echo a;\na", 1)), None);
        assert_eq!(of(&run, &ran("a", 0), &ran("b", 0)), None);
        assert_eq!(of(&run, &ran("\u{fffd}a", 0), &ran("a", 0)), Some("replacement-characters"));
        let edit = Operation::Action(json!({"action": "edit", "args": {"command": "view", "path": "{dir}/f"}}));
        assert_eq!(of(&edit, &ran("a\r\nb", 0), &ran("a\nb", 0)), Some("carriage-returns-kept"));
        assert_eq!(of(&run, &ran("a\r\nb", 0), &ran("a\nb", 0)), None);
        let error =
            json!({"status": 500, "body": {"detail": "Internal server error: 'utf-8' codec can't decode byte"}});
        assert_eq!(of(&edit, &ran("ERROR:\nRan into", 0), &error), Some("undecodable-text"));
        assert_eq!(of(&edit, &error, &ran("a", 0)), None);
    }
}

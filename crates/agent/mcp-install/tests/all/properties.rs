//! Files that nobody thought of.

use gloveport_mcp_install::Program;
use proptest::prelude::*;

use crate::{File, entry, installed, small, try_install, uninstalled};

/// What may stand between any two tokens of JSON with comments.
fn gap() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" "),
        Just("\t"),
        Just("\n"),
        Just("\r\n"),
        Just("/* c */"),
        Just("// l\n"),
        Just("/* a\n b */")
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// An object with these members, with gaps wherever there may be some.
fn object(members: impl Strategy<Value = Vec<(String, String)>>) -> impl Strategy<Value = String> {
    let gaps = prop::collection::vec(gap(), 20);
    (members, gaps, any::<bool>()).prop_map(|(members, gaps, trailing)| {
        let mut gap = gaps.iter().cycle();
        let mut next = || gap.next().cloned().unwrap_or_default();
        let mut text = format!("{{{}", next());
        let count = members.len();
        for (index, (key, value)) in members.into_iter().enumerate() {
            text.extend(["\"", &key, "\"", &next(), ":", &next(), &value, &next()]);
            if index + 1 < count || trailing {
                text.extend([",", &next()]);
            }
        }
        text + "}"
    })
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1".to_owned()),
        Just("\"}, // \\\" {\"".to_owned()),
        Just("[1, {}]".to_owned()),
        Just("{\"a\": 1}".to_owned())
    ]
}

fn servers() -> impl Strategy<Value = String> {
    object(prop::collection::btree_map("[a-f]", values(), 0..4).prop_map(|members| members.into_iter().collect()))
}

fn documents() -> impl Strategy<Value = String> {
    let members = (servers(), values(), 0_usize..3).prop_map(|(servers, other, at)| {
        let mut members = vec![("o".to_owned(), other.clone()), ("p".to_owned(), other)];
        members.insert(at, ("mcpServers".to_owned(), servers));
        members
    });
    (gap(), object(members), gap()).prop_map(|(before, object, after)| format!("{before}{object}{after}"))
}

/// The text as another parser reads it, for which comments and trailing commas are taken out.
fn meaning(text: &str) -> serde_json::Value {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 1 + end_of_text(&rest[1..]),
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' => {
                rest = &rest[rest.find("*/").unwrap() + 2..];
                continue;
            }
            _ => first.len_utf8(),
        };
        if first == '}' && plain.trim_end().ends_with(',') {
            plain.truncate(plain.trim_end().len() - 1);
        }
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The length of the rest of a text in quotes.
fn end_of_text(rest: &str) -> usize {
    let mut is_escaped = false;
    let end = rest.find(|character| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    end.unwrap() + 1
}

/// What is in a text, but white space and commas.
fn marks(text: &str) -> String {
    text.replace([' ', '\t', '\r', '\n', ','], "")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_is_in_what_readers_see_and_gone_again_with_every_comment_in_its_place(before in documents()) {
        let after = installed(Program::Cursor, &before, &entry());
        let mut expected = meaning(&before);
        expected["mcpServers"]["tools"] =
            serde_json::json!({"command": "/usr/bin/tools", "args": ["serve", "--fast"], "env": {"KEY": "secret"}});
        prop_assert_eq!(meaning(&after), expected);

        let back = uninstalled(Program::Cursor, &after);
        prop_assert_eq!(meaning(&back), meaning(&before));
        prop_assert_eq!(marks(&back), marks(&before));
        let section_was_blank = before.split("\"mcpServers\"").nth(1).unwrap().split_once('{').unwrap().1.trim_start().starts_with('}');
        if !section_was_blank {
            prop_assert_eq!(back, before);
        }
    }

    #[test]
    fn any_entry_can_be_replaced_and_taken_out(before in documents(), name in "[a-f]") {
        let entry = gloveport_mcp_install::Entry { name: name.clone(), ..small() };
        if let Ok(change) = try_install(Program::Cursor, &before, &entry) {
            let mut found = meaning(&change.after);
            prop_assert_eq!(&found["mcpServers"][&name]["command"], "t");
            let without = gloveport_mcp_install::uninstall(Program::Cursor, &File::of(&change.after).path, &name).unwrap();
            found["mcpServers"].as_object_mut().unwrap().remove(&name);
            prop_assert_eq!(meaning(&without.after), found);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "([{}\\[\\]\",:/*\n\r =.#'\\\\a]|mcpServers|mcp_servers|tools|\u{e9}){0,40}") {
        for program in [Program::Cursor, Program::Codex] {
            let _ = try_install(program, &text, &small());
            let _ = gloveport_mcp_install::uninstall(program, &File::of(&text).path, "tools");
        }
    }

    #[test]
    fn lines_of_toml_around_an_entry_stay(
        above in prop::collection::vec(line(), 0..6), below in prop::collection::vec(line(), 0..6), crlf in any::<bool>(), end in any::<bool>(),
    ) {
        let number = |lines: &[&str], from: usize| -> String {
            lines.iter().enumerate().map(|(at, line)| line.replace('%', &(from + at).to_string()) + "\n").collect()
        };
        let mut before = number(&above, 0) + "[mcp_servers.z]\nq = 1\n" + &number(&below, 10);
        if crlf {
            before = before.replace('\n', "\r\n");
        }
        if !end {
            before.truncate(before.trim_end_matches(['\r', '\n']).len());
        }
        let after = installed(Program::Codex, &before, &entry());
        prop_assert_eq!(uninstalled(Program::Codex, &after), before);
    }
}

fn line() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(""),
        Just("# c"),
        Just("  k% = 1 # d"),
        Just("[t%]"),
        Just("[[l%]]"),
        Just("a.b% = '''\n[x]\n'''"),
        Just("m% = [\n 1,\n]"),
        Just(" \t")
    ]
}

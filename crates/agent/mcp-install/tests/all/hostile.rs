//! Files and names that somebody made to do harm.

use gloveport_mcp_install::{Entry, InstallError, Program, install, snippet, uninstall};

use crate::{File, entry, installed, problem, small};

fn nested(depth: usize) -> String {
    format!("{{\n\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
}

#[test]
fn deep_files_are_refused_before_they_are_parsed() {
    installed(Program::Cursor, &nested(128), &small());
    assert_eq!(problem(Program::Cursor, &nested(129)), "line 2: values are nested more than 128 deep");
    assert_eq!(problem(Program::Cursor, &"{\"a\":".repeat(1_000_000)), "line 1: values are nested more than 128 deep");
    // Brackets in texts and comments are not values.
    let brackets = "[{".repeat(1_000);
    let text = format!("{{// {brackets}\n/* \"{brackets} */ \"a\": \"\\\"{brackets}\"}}");
    installed(Program::Cursor, &text, &small());

    for text in [
        format!("a = {}", "[".repeat(1_000_000)),
        format!("a{} = 1", ".a".repeat(1_000_000)),
        format!("[a{}]", ".a".repeat(1_000_000)),
        format!("a = {}", "{a=".repeat(1_000_000)),
    ] {
        assert!(problem(Program::Codex, &text).starts_with("line 1, column "), "{}", problem(Program::Codex, &text));
    }
}

#[test]
fn files_that_are_too_large_or_no_text_are_refused() {
    let file = File::of(vec![b' '; 16 * 1024 * 1024 + 1]);
    let error = install(Program::Cursor, &file.path, &small()).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is larger than 16777216 bytes", file.path.display()));

    // What would get too large, too.
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(16 * 1024 * 1024 - 10));
    let file = File::of(large);
    let error = install(Program::Cursor, &file.path, &small()).unwrap_err();
    assert!(matches!(error, InstallError::TooLarge { .. }), "{error}");
    assert!(uninstall(Program::Cursor, &file.path, "tools").unwrap().is_empty());

    for program in Program::ALL {
        let file = File::of(b"{}\n\xff");
        let error = install(program, &file.path, &small()).unwrap_err().to_string();
        assert_eq!(error, format!("{} is not UTF-8 text: byte 3 is wrong", file.path.display()));
        // UTF-16, as some editors of Windows write.
        let file = File::of(b"\xff\xfe{\0}\0");
        assert!(matches!(install(program, &file.path, &small()), Err(InstallError::NotUtf8 { at: 0, .. })));
    }
}

#[test]
fn names_and_values_mean_themselves_whatever_is_in_them() {
    let texts = [
        "a.b",
        "a\"b",
        "a'b",
        "\\",
        "]",
        "a = 1",
        "#",
        "//",
        "/*",
        "\u{e9}\u{1f600}",
        " ",
        "\u{feff}",
        "\u{2028}",
        "{",
        "-",
        "mcp_servers",
    ];
    for program in Program::ALL {
        for text in texts {
            let value = format!("{text}\n\r\t\u{1}\u{7f}'''\"\"\"");
            let entry = Entry {
                name: text.to_owned(),
                command: value.clone(),
                args: vec![value.clone(), String::new()],
                env: [(text.replace('=', "\n"), value)].into(),
            };
            for before in ["{\n  \"a\": 1\n}\n", "{\"a\":1}"] {
                let before = if program == Program::Codex { "a = 1\r\n" } else { before };
                let after = installed(program, before, &entry);
                let file = File::of(&after);
                let without = uninstall(program, &file.path, text).unwrap();
                assert!(!without.is_empty(), "{program} {text:?}");
                if program == Program::Codex {
                    assert_eq!(without.after, before);
                }
            }
            installed(program, &snippet(program, &entry), &entry);
        }
    }
}

#[test]
fn entries_that_no_client_could_use_are_refused() {
    let file = File::missing();
    for (entry, expected) in [
        (Entry { name: String::new(), ..entry() }, "the name of the server must have between 1 and 128 bytes"),
        (Entry { name: "x".repeat(129), ..entry() }, "the name of the server must have between 1 and 128 bytes"),
        (Entry { name: "a\0".into(), ..entry() }, "the name of the server has a control character"),
        (Entry { name: "a\u{1b}[1m".into(), ..entry() }, "the name of the server has a control character"),
        (Entry { command: String::new(), ..entry() }, "the command is empty"),
        (
            Entry { args: vec!["\0".into()], ..entry() },
            "the command has a NUL character, which no program can be given",
        ),
        (
            Entry { env: [("A=B".into(), String::new())].into(), ..entry() },
            "the environment has a variable that no program can be given",
        ),
        (Entry { args: vec!["x".repeat(65_536)], ..entry() }, "the entry is larger than 65536 bytes"),
    ] {
        for program in Program::ALL {
            assert_eq!(install(program, &file.path, &entry).unwrap_err().to_string(), expected);
        }
    }
    // But they are looked for, as somebody may have written them.
    let file = File::of("{\"mcpServers\":{\"\\u0000\":1,\"\":2}}");
    assert_eq!(uninstall(Program::Cursor, &file.path, "\0").unwrap().after, "{\"mcpServers\":{\"\":2}}");
    assert_eq!(uninstall(Program::Cursor, &file.path, "").unwrap().after, "{\"mcpServers\":{\"\\u0000\":1}}");
}

#[test]
fn secrets_are_in_no_debug_output() {
    let file = File::of("{\"other\":\"hidden\"}");
    let change = install(Program::Cursor, &file.path, &entry()).unwrap();
    let shown = format!("{change:?} {:?}", entry());
    assert!(!shown.contains("secret") && !shown.contains("hidden") && shown.contains("KEY"), "{shown}");
}

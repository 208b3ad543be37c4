//! JSON that was written by hand.

use gloveport_mcp_install::{Entry, Program};

use crate::{entry, installed, problem, small, uninstalled};

/// The lines of a small entry, with this indentation and unit.
fn lines(indentation: &str, unit: &str, newline: &str) -> String {
    format!(
        "{indentation}\"tools\": {{{newline}{indentation}{unit}\"command\": \"t\",{newline}{indentation}{unit}\"args\": []{newline}{indentation}}}"
    )
}

#[test]
fn an_entry_is_put_in_as_the_file_is_written_and_nothing_else_changes() {
    let two = lines("    ", "  ", "\n");
    for (before, after) in [
        // Sections that are there.
        ("{\n  \"mcpServers\": {}\n}", format!("{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}")),
        ("{\n  \"mcpServers\": {\n  }\n}\n", format!("{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}\n")),
        (
            "{\n\t\"a\": [1,2 , 3],\n\t\"mcpServers\": {\n\t\t\"x\": {}\n\t}\n}\n",
            format!(
                "{{\n\t\"a\": [1,2 , 3],\n\t\"mcpServers\": {{\n\t\t\"x\": {{}},\n{}\n\t}}\n}}\n",
                lines("\t\t", "\t", "\n")
            ),
        ),
        (
            "{\r\n    \"mcpServers\": {\r\n        \"x\": {},\r\n    },\r\n}\r\n",
            format!(
                "{{\r\n    \"mcpServers\": {{\r\n        \"x\": {{}},\r\n{},\r\n    }},\r\n}}\r\n",
                lines("        ", "    ", "\r\n")
            ),
        ),
        (
            "// top\n{ // open\n  // above\n  \"mcpServers\" /* k */ : /* v */ { // in\n    \"x\": {} /* x */ // tail\n    // end\n  } // shut\n} // last",
            format!(
                "// top\n{{ // open\n  // above\n  \"mcpServers\" /* k */ : /* v */ {{ // in\n    \"x\": {{}}, /* x */ // tail\n{two}\n    // end\n  }} // shut\n}} // last"
            ),
        ),
        (
            "{\n  \"mcpServers\": {\n    // none\n  }\n}",
            format!("{{\n  \"mcpServers\": {{\n    // none\n{two}\n  }}\n}}"),
        ),
        ("{\n  \"mcpServers\": { // none\n  }\n}", format!("{{\n  \"mcpServers\": {{ // none\n{two}\n  }}\n}}")),
        (
            "{\n  \"mcpServers\": {\n    \"x\": {} }\n}",
            format!("{{\n  \"mcpServers\": {{\n    \"x\": {{}},\n{two} }}\n}}"),
        ),
        (
            "{\n  \"mcpServers\": {\"x\": {} // tail\n  }\n}",
            format!("{{\n  \"mcpServers\": {{\"x\": {{}}, // tail\n{two}\n  }}\n}}"),
        ),
        (
            "{\n  \"mcpServers\": {\"x\": {}}\n}",
            "{\n  \"mcpServers\": {\"x\": {}, \"tools\": {\"command\": \"t\", \"args\": []}}\n}".to_owned(),
        ),
        (
            "{\n  \"mcpServers\": { /* none */ }\n}",
            "{\n  \"mcpServers\": { /* none */ \"tools\": {\"command\": \"t\", \"args\": []} }\n}".to_owned(),
        ),
        // Files on one line.
        ("{\"mcpServers\":{}}", "{\"mcpServers\":{\"tools\":{\"command\":\"t\",\"args\":[]}}}".to_owned()),
        (
            "{ \"mcpServers\": { \"x\": {}, } }",
            "{ \"mcpServers\": { \"x\": {}, \"tools\": {\"command\": \"t\", \"args\": []}, } }".to_owned(),
        ),
        (
            "{\"mcpServers\":{\"x\":1/* 1 */}}",
            "{\"mcpServers\":{\"x\":1,/* 1 */\"tools\":{\"command\":\"t\",\"args\":[]}}}".to_owned(),
        ),
        // The key is the same, whatever it is written like.
        ("{\n  \"mcp\\u0053ervers\": {}\n}", format!("{{\n  \"mcp\\u0053ervers\": {{\n{two}\n  }}\n}}")),
        ("\u{feff}{\n  \"mcpServers\": {}\n}", format!("\u{feff}{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}")),
    ] {
        assert_eq!(installed(Program::Cursor, before, &small()), after, "{before:?}");
        let back = before.replace("{\n  }\n", "{}\n");
        assert_eq!(uninstalled(Program::Cursor, &after), back, "{after:?}");
    }
}

#[test]
fn a_section_that_is_missing_is_made_and_stays_when_it_gets_empty() {
    let two = lines("    ", "  ", "\n");
    for (before, after, left) in [
        ("{}", format!("{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}"), "{\n  \"mcpServers\": {}\n}"),
        ("{ }\n", format!("{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}\n"), "{\n  \"mcpServers\": {}\n}\n"),
        (
            "{\"a\":1}",
            "{\"a\":1,\"mcpServers\":{\"tools\":{\"command\":\"t\",\"args\":[]}}}".to_owned(),
            "{\"a\":1,\"mcpServers\":{}}",
        ),
        (
            "{\n  \"a\": 1 // one\n}",
            format!("{{\n  \"a\": 1, // one\n  \"mcpServers\": {{\n{two}\n  }}\n}}"),
            "{\n  \"a\": 1, // one\n  \"mcpServers\": {}\n}",
        ),
        (
            "// nothing yet",
            format!("// nothing yet\n{{\n  \"mcpServers\": {{\n{two}\n  }}\n}}\n"),
            "// nothing yet\n{\n  \"mcpServers\": {}\n}\n",
        ),
    ] {
        assert_eq!(installed(Program::Cursor, before, &small()), after, "{before:?}");
        assert_eq!(uninstalled(Program::Cursor, &after), left, "{after:?}");
    }
}

#[test]
fn an_entry_that_is_there_becomes_the_new_one_in_its_place_and_keeps_what_others_set() {
    let before = r#"{
  "mcpServers": {
    "tools": {
      "url": "http://127.0.0.1", // gone
      "disabled": true, // kept
      "command": "old",
      "type": "sse",
      "autoApprove": [ "a" ],
      "env": {
        "OLD": "1"
      },
    }, // tools
    "x": {},
  },
}
"#;
    let after = r#"{
  "mcpServers": {
    "tools": {
      "disabled": true, // kept
      "command": "/usr/bin/tools",
      "autoApprove": [ "a" ],
      "env": {
        "KEY": "secret"
      },
      "args": ["serve", "--fast"],
    }, // tools
    "x": {},
  },
}
"#;
    assert_eq!(installed(Program::Cursor, before, &entry()), after);
    let typed = installed(Program::Claude, before, &entry());
    assert!(typed.contains("\"type\": \"stdio\",\n"), "{typed}");
    let bare = installed(Program::Cursor, after, &Entry { env: [].into(), ..entry() });
    assert!(!bare.contains("env"), "{bare}");
}

#[test]
fn an_entry_that_says_the_same_in_other_words_is_left_alone() {
    for text in [
        r#"{"mcpServers":{"t\u006fols":{"args":[],"type":"stdio",/* c */"command":"\u0074"}}}"#,
        "{\"mcpServers\": {\"tools\": {\"command\": \"t\",\n\n\"args\": [ // none\n],\"disabled\": true}}}",
    ] {
        assert_eq!(installed(Program::Cursor, text, &small()), text);
    }
}

#[test]
fn variables_that_stand_twice_are_not_taken_for_two() {
    let entry = Entry { env: ["A", "B"].map(|name| (name.to_owned(), "1".to_owned())).into(), ..small() };
    let before = r#"{"mcpServers":{"tools":{"command":"t","args":[],"env":{"A":"1","A":"1"}}}}"#;
    let after = r#"{"mcpServers":{"tools":{"command":"t","args":[],"env":{"A":"1","B":"1"}}}}"#;
    assert_eq!(installed(Program::Cursor, before, &entry), after);
}

#[test]
fn an_entry_is_taken_out_with_its_line_and_what_is_said_about_it_there() {
    for (before, after) in [
        ("{\"mcpServers\": {\"tools\": 1, \"x\": 2}}", "{\"mcpServers\": {\"x\": 2}}"),
        ("{\"mcpServers\": { \"x\": 2, \"tools\": 1 }}", "{\"mcpServers\": { \"x\": 2 }}"),
        (
            "{\"mcpServers\": {\"a\": 1, \"tools\": [1,\n2], /* x */ \"x\": 2}}",
            "{\"mcpServers\": {\"a\": 1, /* x */ \"x\": 2}}",
        ),
        (
            "{\"mcpServers\": {\n \"a\": 1,\n\n \"tools\": 1, // ours\n // x\n \"x\": 2}}",
            "{\"mcpServers\": {\n \"a\": 1,\n\n // x\n \"x\": 2}}",
        ),
        ("{\"mcpServers\": {\n \"tools\": 1, \"x\": 2\n}}", "{\"mcpServers\": {\n \"x\": 2\n}}"),
        ("{\"mcpServers\": { // c\n \"tools\": 1 }}", "{\"mcpServers\": { // c\n  }}"),
        ("{\"mcpServers\": {\"a\": 1, // c\n \"tools\": 1 }}", "{\"mcpServers\": {\"a\": 1 // c\n  }}"),
        ("{\"mcpServers\": { \"tools\": null /* c */ }}", "{\"mcpServers\": { /* c */ }}"),
        ("{\"mcpServers\": {\"x\": 2}}", "{\"mcpServers\": {\"x\": 2}}"),
        ("{\"mcpServers\": {}}", "{\"mcpServers\": {}}"),
        ("{\"x\": {\"tools\": 1}}", "{\"x\": {\"tools\": 1}}"),
        ("// nothing", "// nothing"),
        ("", ""),
    ] {
        assert_eq!(uninstalled(Program::Cursor, before), after, "{before:?}");
    }
}

#[test]
fn halves_of_characters_that_javascript_writes_stay_as_they_are() {
    let history = r#""history": ["\ud83d", "\\ud83d", "\ud83d\ude00", "\ude00\u00e9\uD83D"]"#;
    let before = format!("{{{history},\"mcpServers\":{{}}}}");
    let after = format!("{{{history},\"mcpServers\":{{\"tools\":{{\"command\":\"t\",\"args\":[]}}}}}}");
    let before = before.replace("\"history\": ", "\"history\":");
    let after = after.replace("\"history\": ", "\"history\":");
    assert_eq!(installed(Program::Cursor, &before, &small()), after);
    assert_eq!(uninstalled(Program::Cursor, &after), before);
}

#[test]
fn what_no_entry_can_be_put_into_is_named() {
    for (text, expected) in [
        ("[]", "the top level is a list, not an object"),
        ("\"x\"", "the top level is a text, not an object"),
        ("{\"mcpServers\": []}", "mcpServers is a list, not an object"),
        ("{\"mcpServers\": null}", "mcpServers is null, not an object"),
        ("{\"mcpServers\": {\"tools\": 1}}", "mcpServers.tools is a number, not an object"),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", "mcpServers occurs twice: remove one of them"),
        ("{\"mcpServers\": {}, \"mcpServer\\u0073\": {}}", "mcpServers occurs twice: remove one of them"),
        ("{\"mcpServers\": {\"tools\": {}, \"tools\": {}}}", "mcpServers.tools occurs twice: remove one of them"),
        (
            "{\"mcpServers\": {\"tools\": {\"command\": 1, \"command\": 2}}}",
            "mcpServers.tools.command occurs twice: remove one of them",
        ),
        ("{\n  \"a\": }", "line 2, column 8: unexpected close brace"),
        ("\u{feff}{'a': 1}", "line 1, column 2: single-quoted strings are not allowed"),
        ("{\"a\": 1 \"b\": 2}", "line 1, column 8: expected comma"),
        ("{} {}", "line 1, column 4: text cannot contain more than one JSON value"),
        ("{\"a\": 1 /*", "line 1, column 9: unterminated comment block"),
        ("{", "line 1, column 1: unterminated object"),
    ] {
        assert_eq!(problem(Program::Cursor, text), expected, "{text:?}");
    }
}

//! Names, places and snippets of all programs.

use std::path::{Path, PathBuf};

use gloveport_mcp_install::{Homes, Program, Scope, System, install, snippet};

use crate::{File, entry, small};

fn homes(system: System, variables: &[(&str, &str)]) -> Homes {
    Homes::of(system, |name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into()))
}

#[test]
fn every_program_is_found_by_its_name_and_no_other_name_is_one() {
    for program in Program::ALL {
        assert_eq!(program.name().parse(), Ok(program));
        assert_eq!(program.to_string(), program.name());
    }
    assert_eq!(
        "emacs".parse::<Program>().unwrap_err().to_string(),
        "no MCP client is called \"emacs\": use one of claude, claude-desktop, cursor, vscode, zed, codex"
    );
}

#[test]
fn each_program_has_its_file_on_each_system() {
    let plain = [("HOME", "/h"), ("USERPROFILE", "/u"), ("APPDATA", "/a")];
    let mac = "/h/Library/Application Support";
    for (program, linux, macos, windows) in [
        (Program::Claude, "/h/.claude.json", "/h/.claude.json".to_owned(), "/u/.claude.json"),
        (
            Program::ClaudeDesktop,
            "/h/.config/Claude/claude_desktop_config.json",
            format!("{mac}/Claude/claude_desktop_config.json"),
            "/a/Claude/claude_desktop_config.json",
        ),
        (Program::Cursor, "/h/.cursor/mcp.json", "/h/.cursor/mcp.json".to_owned(), "/u/.cursor/mcp.json"),
        (
            Program::VsCode,
            "/h/.config/Code/User/mcp.json",
            format!("{mac}/Code/User/mcp.json"),
            "/a/Code/User/mcp.json",
        ),
        (
            Program::Zed,
            "/h/.config/zed/settings.json",
            "/h/.config/zed/settings.json".to_owned(),
            "/a/Zed/settings.json",
        ),
        (Program::Codex, "/h/.codex/config.toml", "/h/.codex/config.toml".to_owned(), "/u/.codex/config.toml"),
    ] {
        for (system, file) in [(System::Linux, linux), (System::MacOs, &macos), (System::Windows, windows)] {
            let found = program.file(&Scope::User, &homes(system, &plain)).unwrap();
            assert_eq!(found, Path::new(file), "{program} {system:?}");
        }
    }
}

#[test]
fn variables_move_files_unless_they_are_empty() {
    let moved = [("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/o")];
    for (program, file, usual) in [
        (Program::Claude, "/c/.claude.json", "/h/.claude.json"),
        (
            Program::ClaudeDesktop,
            "/x/Claude/claude_desktop_config.json",
            "/h/.config/Claude/claude_desktop_config.json",
        ),
        (Program::Cursor, "/h/.cursor/mcp.json", "/h/.cursor/mcp.json"),
        (Program::VsCode, "/x/Code/User/mcp.json", "/h/.config/Code/User/mcp.json"),
        (Program::Zed, "/x/zed/settings.json", "/h/.config/zed/settings.json"),
        (Program::Codex, "/o/config.toml", "/h/.codex/config.toml"),
    ] {
        assert_eq!(program.file(&Scope::User, &homes(System::Linux, &moved)).unwrap(), Path::new(file));
        let empty = moved.map(|(name, value)| (name, if name == "HOME" { value } else { "" }));
        assert_eq!(program.file(&Scope::User, &homes(System::Linux, &empty)).unwrap(), Path::new(usual));
    }
    // The XDG directories are absolute, or are to be ignored.
    let relative = homes(System::Linux, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]);
    let zed = Program::Zed.file(&Scope::User, &relative).unwrap();
    assert_eq!(zed, Path::new("/h/.config/zed/settings.json"));
}

#[test]
fn a_place_that_cannot_be_told_is_an_error_that_names_the_variable() {
    for (program, system, variables, variable) in [
        (Program::Cursor, System::Linux, &[][..], "HOME"),
        (Program::Cursor, System::Linux, &[("HOME", "h")], "HOME"),
        (Program::Zed, System::Windows, &[("USERPROFILE", "/u")], "APPDATA"),
        (Program::Claude, System::Windows, &[], "USERPROFILE"),
        (Program::Claude, System::MacOs, &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "c")], "CLAUDE_CONFIG_DIR"),
        (Program::Codex, System::Linux, &[("HOME", "/h"), ("CODEX_HOME", "./c")], "CODEX_HOME"),
    ] {
        let error = program.file(&Scope::User, &homes(system, variables)).unwrap_err().to_string();
        let title = program.title();
        let expected = format!("cannot find the configuration of {title}: {variable} is not set to an absolute path");
        assert_eq!(error, expected);
    }
}

#[test]
fn projects_have_files_of_their_own_where_the_program_reads_some() {
    let homes = homes(System::Linux, &[]);
    let file = |program: Program| program.file(&Scope::Project(PathBuf::from("/p")), &homes);
    for (program, expected) in [
        (Program::Claude, "/p/.mcp.json"),
        (Program::Cursor, "/p/.cursor/mcp.json"),
        (Program::VsCode, "/p/.vscode/mcp.json"),
        (Program::Zed, "/p/.zed/settings.json"),
    ] {
        assert_eq!(file(program).unwrap(), Path::new(expected));
    }
    for program in [Program::ClaudeDesktop, Program::Codex] {
        let expected = format!(
            "{} has no configuration for a single project: install the server for the user instead",
            program.title()
        );
        assert_eq!(file(program).unwrap_err().to_string(), expected);
    }
}

/// An entry in JSON, in a section.
fn json(section: &str, first: &str) -> String {
    format!(
        r#"{{
  "{section}": {{
    "tools": {{{first}
      "command": "/usr/bin/tools",
      "args": ["serve", "--fast"],
      "env": {{
        "KEY": "secret"
      }}
    }}
  }}
}}
"#
    )
}

#[test]
fn snippets_are_whole_files_and_so_is_what_is_made_of_missing_and_empty_ones() {
    let typed = "\n      \"type\": \"stdio\",";
    let codex = r#"[mcp_servers.tools]
command = "/usr/bin/tools"
args = ["serve", "--fast"]

[mcp_servers.tools.env]
KEY = "secret"
"#;
    for (program, expected) in [
        (Program::Claude, json("mcpServers", typed)),
        (Program::ClaudeDesktop, json("mcpServers", "")),
        (Program::Cursor, json("mcpServers", "")),
        (Program::VsCode, json("servers", typed)),
        (Program::Zed, json("context_servers", "")),
        (Program::Codex, codex.to_owned()),
    ] {
        assert_eq!(snippet(program, &entry()), expected, "{program}");
        let missing = install(program, &File::missing().path, &entry()).unwrap();
        assert_eq!((missing.before, missing.after), (None, expected.clone()));
        for empty in ["", " \n\t\r\n"] {
            assert_eq!(install(program, &File::of(empty).path, &entry()).unwrap().after, expected);
        }
        let marked = install(program, &File::of("\u{feff}").path, &entry()).unwrap();
        assert_eq!(marked.after, format!("\u{feff}{expected}"));
    }
}

#[test]
fn an_entry_has_arguments_always_and_an_environment_only_if_there_is_one() {
    assert_eq!(snippet(Program::Codex, &small()), "[mcp_servers.tools]\ncommand = \"t\"\nargs = []\n");
    assert_eq!(
        snippet(Program::Cursor, &small()),
        "{\n  \"mcpServers\": {\n    \"tools\": {\n      \"command\": \"t\",\n      \"args\": []\n    }\n  }\n}\n"
    );
}

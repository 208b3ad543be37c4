//! TOML that was written by hand.

use gloveport_mcp_install::{Entry, Program};

use crate::{entry, installed, problem, small, uninstalled};

const BLOCK: &str = "[mcp_servers.tools]\ncommand = \"/usr/bin/tools\"\nargs = [\"serve\", \"--fast\"]\n\n[mcp_servers.tools.env]\nKEY = \"secret\"\n";

#[test]
fn an_entry_goes_to_the_end_and_nothing_else_changes() {
    for before in [
        "a = 1\n",
        "a = 1",
        "\u{feff}a = 1\n",
        "# only a comment",
        "a.x = 1 # one\nb = 2\na.y = 3\n\n# end\n\n",
        "  [ z ]\n\tq  = [ 1,\n 2 ]   # list\n\n[mcp_servers]\n[mcp_servers.x]\ncommand = 'x'\n# tail\n\n[z2]\n",
        "mcp_servers.x.command = 'x'\nb = '''\n[mcp_servers.tools]\n'''",
        "[[p]]\n[mcp_servers.x.env]\n[[p]]\n[mcp_servers.x]\n",
    ] {
        let expected = if before.ends_with('\n') {
            format!("{before}\n{BLOCK}")
        } else {
            format!("{before}\n\n{}", BLOCK.trim_end())
        };
        assert_eq!(installed(Program::Codex, before, &entry()), expected);
        assert_eq!(uninstalled(Program::Codex, &expected), before);

        let windows = before.replace('\n', "\r\n");
        if windows != before {
            let expected = expected.replace('\n', "\r\n");
            assert_eq!(installed(Program::Codex, &windows, &entry()), expected);
            assert_eq!(uninstalled(Program::Codex, &expected), windows);
        }
    }
}

#[test]
fn an_entry_that_is_there_becomes_the_new_one_in_its_place_and_keeps_what_others_set() {
    let new = "command = \"/usr/bin/tools\"";
    let args = "args = [\"serve\", \"--fast\"]";
    for (before, after) in [
        (
            "[mcp_servers.tools] # ours\n  url = 'http://x'\n  enabled = false # kept\n  command = 'old' # why\n\n# about z\n[z]\n".to_owned(),
            format!(
                "[mcp_servers.tools] # ours\n  enabled = false # kept\n  {new} # why\n  {args}\n  env = {{ KEY = \"secret\" }}\n\n# about z\n[z]\n"
            ),
        ),
        (
            format!("[mcp_servers.tools]\n{new}\n{args}\n\n[mcp_servers.tools.env]\nOLD = '1' # o\n\n[z]"),
            format!("[mcp_servers.tools]\n{new}\n{args}\n\n[mcp_servers.tools.env]\nKEY = \"secret\"\n\n[z]"),
        ),
        (
            format!("[mcp_servers.tools]\n{new}\nenv.A = '1'\n{args}\nenv.B = '1'"),
            format!("[mcp_servers.tools]\n{new}\n{args}\nenv = {{ KEY = \"secret\" }}"),
        ),
        (
            format!("[mcp_servers.tools]\n{new}\n# dotted\nmore.x = 1 # x\n\n[z]\n"),
            format!(
                "[mcp_servers.tools]\n{new}\n# dotted\nmore.x = 1 # x\n{args}\nenv = {{ KEY = \"secret\" }}\n\n[z]\n"
            ),
        ),
        (
            "[mcp_servers.tools.env]\nKEY = 'secret'\n[z]\n".to_owned(),
            format!("[mcp_servers.tools.env]\nKEY = 'secret'\n[z]\n\n[mcp_servers.tools]\n{new}\n{args}\n"),
        ),
        (
            "[mcp_servers]\ntools = { enabled = true, url = 'u', command = 'old' } # c\n".to_owned(),
            format!("[mcp_servers]\ntools = {{ enabled = true, {new} , {args}, env = {{ KEY = \"secret\" }} }} # c\n"),
        ),
        (
            "mcp_servers = { x = {} } # c\n".to_owned(),
            format!("mcp_servers = {{ x = {{}} , tools = {{ {new}, {args}, env = {{ KEY = \"secret\" }} }} }} # c\n"),
        ),
    ] {
        assert_eq!(installed(Program::Codex, &before, &entry()), after, "{before}");
    }
}

#[test]
fn variables_go_with_an_entry_that_has_none() {
    let bare = Entry { env: [].into(), ..entry() };
    let (head, _) = BLOCK.split_once("\n\n").unwrap();
    assert_eq!(installed(Program::Codex, BLOCK, &bare), format!("{head}\n"));
}

#[test]
fn an_entry_that_says_the_same_in_other_words_is_left_alone() {
    for text in [
        "mcp_servers.tools.command = 't'\nmcp_servers.tools.args = [ # none\n]\n",
        "mcp_servers = {tools = {args=[],command='''t''',startup_timeout_sec=3}}",
        "[mcp_servers.\"t\\u006fols\"]\nargs = []\ncommand = \"\"\"\\\n  t\"\"\"",
    ] {
        assert_eq!(installed(Program::Codex, text, &small()), text);
    }
}

#[test]
fn an_entry_is_taken_out_whatever_it_is_written_like_and_comments_around_it_stay() {
    for (before, after) in [
        ("# a\n[mcp_servers.tools]\ncommand = 'x' # c\n# b\n\n# z\n[z]\n", "# a\n# b\n\n# z\n[z]\n"),
        ("[mcp_servers.tools]\ncommand = 'x'\n\n[z]\n", "[z]\n"),
        (
            "[z]\n\n[mcp_servers.tools.env]\nA = '1'\n[y]\n[mcp_servers.tools]\n[mcp_servers.tools.tools.x]\n",
            "[z]\n[y]\n",
        ),
        ("[mcp_servers]\ntools.command = 'x'\ny = {}\ntools.args = [\n]\n[z]", "[mcp_servers]\ny = {}\n[z]"),
        ("[mcp_servers]\ntools = { command = 'x' } # c\n", "[mcp_servers]\n"),
        ("mcp_servers.tools.command = 'x'\nb = 1\n", "b = 1\n"),
        ("mcp_servers = { x = {}, tools = {} } # c\n", "mcp_servers = { x = {}} # c\n"),
        ("a = 1\n[[mcp_servers.tools]]\nb = 1\n[[mcp_servers.tools]]\n", "a = 1\n"),
        ("[mcp_servers]\ntools = 3", "[mcp_servers]"),
        ("[mcp_servers.x]\n", "[mcp_servers.x]\n"),
        ("[tools]", "[tools]"),
    ] {
        assert_eq!(uninstalled(Program::Codex, before), after, "{before:?}");
    }
}

#[test]
fn what_no_entry_can_be_put_into_is_named() {
    let dotted = "mcp_servers.tools is written with dotted keys: write it as a table of its own, [mcp_servers.tools]";
    for (text, expected) in [
        ("mcp_servers = 1", "mcp_servers is a number, not a table"),
        ("[[mcp_servers]]", "mcp_servers is a list of tables, not a table"),
        ("mcp_servers.tools = []", "mcp_servers.tools is a list, not a table"),
        ("mcp_servers.tools.command = 'x'", dotted),
        ("[mcp_servers]\ntools.command = 'x'", dotted),
        ("mcp_servers = {tools.command = 'x'}", dotted),
        ("a = 1\n\u{e9} = 2\n", "line 2, column 1: invalid unquoted key, expected letters, numbers, `-`, `_`"),
        ("a = 1\nb = \n", "line 2, column 5: string values must be quoted, expected literal string"),
        ("[mcp_servers.tools]\n[mcp_servers.tools]\n", "line 2, column 14: duplicate key"),
    ] {
        assert_eq!(problem(Program::Codex, text), expected, "{text:?}");
    }
}

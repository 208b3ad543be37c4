//! Keys with a name, as agents type them: into programs that show what they read, menus and an editor.

use std::{fs, time::Duration};

use gloveport_terminal::{RunEnd, Shell};

use crate::hard_cases::support::{Lab, done, each, goes_on, input, installed, later, run, runs, soon, until, within};

/// Shows every byte that it reads in hexadecimal, and each Enter as the end of a line. `on` and `off` switch the
/// application mode of the arrows, and `q` ends it.
const READER: &str = "import os, sys, termios, tty\n\
    saved = termios.tcgetattr(0)\n\
    tty.setraw(0)\n\
    os.write(1, b'ready\\r\\n')\n\
    line = b''\n\
    while True:\n\
    \x20   byte = os.read(0, 1)\n\
    \x20   if byte != b'\\r':\n\
    \x20       line += byte\n\
    \x20       continue\n\
    \x20   if line == b'q': break\n\
    \x20   modes = {b'on': b'\\x1b[?1h', b'off': b'\\x1b[?1l'}\n\
    \x20   os.write(1, modes.get(line, b'') + b'<' + line.hex().encode() + b'>\\r\\n')\n\
    \x20   line = b''\n\
    termios.tcsetattr(0, termios.TCSANOW, saved)\n";

/// What is typed, and what a program reads before Enter.
const KEYS: [(&str, &str); 46] = [
    ("Up", "1b5b41"),
    ("Down", "1b5b42"),
    ("Right", "1b5b43"),
    ("Left", "1b5b44"),
    ("Escape", "1b"),
    ("Tab", "09"),
    ("BTab", "1b5b5a"),
    ("Space", "20"),
    ("BSpace", "7f"),
    ("Home", "1b5b317e"),
    ("End", "1b5b347e"),
    ("PageUp", "1b5b357e"),
    ("PPage", "1b5b357e"),
    ("PgUp", "1b5b357e"),
    ("PageDown", "1b5b367e"),
    ("NPage", "1b5b367e"),
    ("PgDn", "1b5b367e"),
    ("IC", "1b5b327e"),
    ("DC", "1b5b337e"),
    ("F1", "1b4f50"),
    ("F2", "1b4f51"),
    ("F3", "1b4f52"),
    ("F4", "1b4f53"),
    ("F5", "1b5b31357e"),
    ("F6", "1b5b31377e"),
    ("F7", "1b5b31387e"),
    ("F8", "1b5b31397e"),
    ("F9", "1b5b32307e"),
    ("F10", "1b5b32317e"),
    ("F11", "1b5b32337e"),
    ("F12", "1b5b32347e"),
    ("^x", "18"),
    ("M-x", "1b78"),
    ("C-M-x", "1b18"),
    ("S-Up", "1b5b313b3241"),
    ("C-Up", "1b5b313b3541"),
    ("M-Left", "1b5b313b3344"),
    ("C-S-End", "1b5b313b3646"),
    ("S-F5", "1b5b31353b327e"),
    (" Up ", "1b5b41"),
    // Enter is a key, too, and another one follows it.
    ("Enter", "><"),
    ("on", "6f6e"),
    ("Up", "1b4f41"),
    ("C-Up", "1b5b313b3541"),
    ("off", "6f6666"),
    ("Up", "1b5b41"),
];

async fn reader(lab: &Lab) {
    fs::write(lab.work.join("reader.py"), READER).unwrap();
    let started = tokio::spawn({
        let shell: Shell = lab.shell.clone();
        async move { shell.run(run("python3 reader.py").no_change_after(Duration::from_millis(200))).await }
    });
    until("the reader", || lab.log().contains("ready")).await;
    within("its first report", started).await.unwrap().unwrap();
}

/// Waits for the line that shows what was typed, and nothing else than that.
async fn expect_line(lab: &Lab, from: u64, key: &str, bytes: &str) {
    let expected = format!("<{bytes}>\r\n");
    let shown = || String::from_utf8(lab.bytes(from..lab.shell.output().end())).unwrap();
    until(&format!("{key} as {expected:?}"), || shown().len() >= expected.len()).await;
    let seen = shown();
    assert!(seen.ends_with(&expected), "{key}: {seen:?}");
}

#[tokio::test]
async fn every_named_key_reaches_a_program_as_a_terminal_sends_it_and_enter_follows() {
    each([false, true], async |beside| {
        let lab = Lab::new().await;
        reader(&lab).await;
        for (key, bytes) in KEYS {
            let from = lab.shell.output().end();
            if beside {
                lab.shell.type_in(key).await.unwrap();
            } else {
                lab.shell.run(input(key).at_most(Duration::from_millis(5))).await.unwrap();
            }
            let bytes = if key == "Enter" { ">\r\n<" } else { bytes };
            expect_line(&lab, from, key, bytes).await;
        }
        let report = within("the end", lab.shell.run(input("q"))).await.unwrap();
        assert_eq!(report.end, RunEnd::Completed { status: 0 });
        assert_eq!(lab.shell.run(run("echo next")).await.unwrap().output, "next");
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_named_key_is_seen_by_a_program_that_reads_lines() {
    let lab = Lab::new().await;
    lab.check(soon(run("cat -v")), runs("")).await;
    lab.check(soon(input("Up")), goes_on("^[[A")).await;
    lab.check(soon(input("M-x")), goes_on("^[x")).await;
    lab.check(soon(input("Upside Down")), goes_on("Upside Down")).await;
    lab.check(soon(input("up")), goes_on("up")).await;
    lab.check(input("^d"), done("", 0).after_reports()).await;
    lab.check(soon(run("sleep 1000")), runs("")).await;
    lab.check(input("^C"), done("^C", 130).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn the_name_of_a_key_is_a_word_for_an_idle_shell_and_in_an_unfinished_command() {
    let lab = Lab::new().await;
    for name in ["Up", "Escape", "F1", "M-x", "Enter"] {
        lab.check(name, done(&format!("bash: {name}: command not found"), 127)).await;
    }
    let report = lab.run(input("Up")).await;
    assert_eq!(report.end, RunEnd::NothingToType);
    lab.check(soon(run("cat <<E")), runs("")).await;
    lab.check(soon(input("Home")), goes_on("")).await;
    lab.check(input("E"), done("Home", 0).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn a_menu_moves_with_the_arrows_and_is_confirmed() {
    let lab = Lab::new().await;
    fs::write(
        lab.work.join("menu.py"),
        "import curses\n\
         def main(screen):\n\
         \x20   at = 0\n\
         \x20   names = ['one', 'two', 'three', 'four']\n\
         \x20   while True:\n\
         \x20       for row, name in enumerate(names):\n\
         \x20           screen.addstr(row, 0, ('> ' if row == at else '  ') + name)\n\
         \x20       key = screen.getch()\n\
         \x20       if key == curses.KEY_DOWN: at += 1\n\
         \x20       elif key == curses.KEY_UP: at -= 1\n\
         \x20       elif key == curses.KEY_END: at = 3\n\
         \x20       elif key == 10: return names[at]\n\
         print('chosen', curses.wrapper(main))\n",
    )
    .unwrap();
    for (key, chosen) in [("Down", "two"), ("End", "four"), ("Enter", "one")] {
        let shown = "> one\n  two\n  three\n  four";
        lab.check(later(run("python3 menu.py")), runs(shown)).await;
        lab.check(input(key), done(&format!("chosen {chosen}"), 0).after_reports()).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn an_editor_leaves_its_insert_mode_with_escape() {
    let lab = Lab::new().await;
    for editor in ["vim -u NONE -i NONE", "busybox vi"] {
        if !installed(editor.split(' ').next().unwrap()) {
            continue;
        }
        lab.prepare("printf 'end\\n' > f").await;
        let report = lab.run(later(run(&format!("{editor} f")))).await;
        assert_eq!(report.end, RunEnd::TimedOut, "{editor}");
        lab.run(soon(input("ihello"))).await;
        lab.run(soon(input("Escape"))).await;
        let report = lab.run(input(":wq")).await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{editor}: {}", report.output);
        lab.check("cat f", done("hello\nend", 0)).await;
    }
    lab.close().await;
}

//! The `run` action (`bash-session`).

use gloveport_protocol::BoxFuture;
use serde_json::{Value, json};

use crate::{
    Check,
    bench::Bench,
    check::{Expect, Problem, Text, Want},
};

const HELP: &str = "You may wait longer to see additional output by sending empty command '', send other commands to \
                    interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to interrupt/kill the \
                    previous command before sending your new command, or use the timeout parameter in execute_bash for \
                    future commands.]";
const CONTINUED: &str = "[Below is the output of the previous command.]\n";
const ECHO: &str = "the reference leaves echoes in the output that it does not recognise (bash-session 8)";

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = SIMPLE
        .iter()
        .map(|(id, title, spec, command, content, exit)| {
            Check::new(id, title, spec).run(command, Expect::ran(content, *exit))
        })
        .collect();
    checks.extend(idle());
    checks.extend(state());
    checks.push(git());
    checks.extend(several());
    checks.extend(long_output());
    checks.extend(limits());
    checks.extend(interaction());
    checks.extend(keys());
    checks.extend(static_commands());
    checks.extend(oddities());
    checks
}

/// Id, title, specification, command, content and exit code.
type Simple = (&'static str, &'static str, &'static str, &'static str, &'static str, i64);

#[rustfmt::skip]
const SIMPLE: [Simple; 36] = [
    ("commands/echo", "a command gives its output and exit code", "bash-session 8 row 6", "echo 'hello world'", "hello world", 0),
    ("commands/chain", "chained commands are one command", "bash-session 8 row 8", "echo \"first\" && echo \"second\" && echo \"third\"", "first\nsecond\nthird", 0),
    ("commands/semicolon", "commands behind a semicolon are part of it", "bash-session 8 row 9", "echo a; echo b", "a\nb", 0),
    ("commands/quoted-newline", "a newline in quotes does not split", "bash-session 8 row 12", "echo -e \"hello\nworld\"", "hello\nworld", 0),
    ("commands/continued-line", "a backslash at the end of a line does not split", "bash-session 8 row 13", "echo \\\n -e \"foo\"", "foo", 0),
    ("commands/blank-lines", "blank lines inside the output stay", "bash-session 8 row 14", "echo -e \"a\\n\\n\\nz\"", "a\n\n\nz", 0),
    ("commands/spaces", "blanks inside lines stay", "bash-session 8 row 15", "echo 'hello   world    with\nspecial  chars'", "hello   world    with\nspecial  chars", 0),
    ("commands/heredoc", "a here-document is one command", "bash-session 8 row 16", "cat << EOF\nline 1\nline 2\nEOF", "line 1\nline 2", 0),
    ("commands/heredoc-quoted", "a quoted here-document expands nothing", "bash-session 8 row 17", "cat <<'EOF'\n$HOME\n  x\nEOF", "$HOME\n  x", 0),
    ("commands/if", "a compound command of several lines is one command", "bash-session 8 row 19", "if true; then\necho \"inside if\"\nfi", "inside if", 0),
    ("commands/false", "a failure gives its exit code", "bash-session 8 row 21", "false", "", 1),
    ("commands/exit-code", "a subshell gives its exit code", "bash-session 8 row 22", "(exit 5)", "", 5),
    ("commands/function-status", "a function gives its status", "bash-session 8 row 23", "f() { return 3; }; f", "", 3),
    ("commands/cd-missing", "a missing directory is told by the shell", "bash-session 8 row 24", "cd /nonexist", "bash: cd: /nonexist: No such file or directory", 1),
    ("commands/home", "a tilde is the home of the user", "bash-session 8 row 28", "(cd ~ && test \"$PWD\" = \"$HOME\" && echo home)", "home", 0),
    ("commands/exports", "variables are set one behind the other", "bash-session 8 row 47", "(export K=\"v\"; export L=\"w\"; echo $K$L)", "vw", 0),
    ("commands/no-newline", "output without a newline is complete", "bash-session 8 row 32", "printf \"no newline\"", "no newline", 0),
    ("commands/leading-newlines", "newlines in front of the output are lost", "bash-session 8 row 33", "printf \"\\n\\n\\nlead\"", "lead", 0),
    ("commands/trailing-newlines", "newlines behind the output are lost", "bash-session 8 row 34", "printf \"a\\n\\n\\n\"", "a", 0),
    ("commands/trailing-blanks", "blanks at the ends of lines are lost", "bash-session 8 row 35", "echo \"a   \"", "a", 0),
    ("commands/tab", "tabs become blanks", "bash-session 8 row 36", "printf \"a\\tb\\n\"", "a       b", 0),
    ("commands/colour", "colours are dropped", "bash-session 8 row 37", "echo -e \"\\e[31mred\\e[0m\"", "red", 0),
    ("commands/carriage-return", "carriage returns write over", "bash-session 8 row 38", "printf \"10%%\\r50%%\\r100%%\\n\"", "100%", 0),
    ("commands/backspace", "backspaces move back", "bash-session 3.3", "printf 'a\\bb\\n'", "b", 0),
    ("commands/unicode", "text outside of ASCII comes as it is", "bash-session 8 row 40", "echo é漢字😀", "é漢字😀", 0),
    ("commands/stderr", "errors are part of the output", "bash-session 8 row 41", "echo err >&2", "err", 0),
    ("commands/nothing", "a command may print nothing", "bash-session 8 row 42", "echo -n", "", 0),
    ("commands/and-false", "the last command of a chain decides", "bash-session 8 row 82", "true && false", "", 1),
    ("commands/pipe", "a pipe ends", "bash-session 8 row 83", "yes | head -3", "y\ny\ny", 0),
    ("commands/python", "a program gets its text from a here-document", "bash-session 8 row 18", "cat - <<'EOF' | tr a b\naa\nEOF", "bb", 0),
    ("commands/not-found", "an unknown command is told by the shell", "bash-session 8 row 7", "nonexistent_command", "bash: nonexistent_command: command not found", 127),
    ("commands/no-key", "a text that is almost a key is a command", "bash-session 8 row 79", "C-ab", "bash: C-ab: command not found", 127),
    ("commands/pwd-static-like", "a directory of another command does not stay", "bash-session 3", "(cd /usr && pwd)", "/usr", 0),
    ("commands/terminal", "the output is a terminal", "bash-session 2", "test -t 1 && test -t 0 && echo yes", "yes", 0),
    ("commands/terminal-size", "the terminal has 1000 columns and rows", "bash-session 2", "stty size", "1000 1000", 0),
    ("commands/git-alias", "git has no pager", "bash-session 8 row 80", "alias git", "alias git='git --no-pager'", 0),
];

/// A `run` observation without a result of the shell.
fn message(content: &str) -> Expect {
    Expect::whole(json!({
        "message": "Command `` executed with exit code -1.", "observation": "run", "content": content,
        "extras": {
            "command": "", "hidden": false,
            "metadata": {"exit_code": -1, "pid": -1, "username": null, "hostname": null, "working_dir": null,
                         "py_interpreter_path": null, "prefix": "", "suffix": ""}
        },
        "success": false
    }))
}

/// A `run` observation of a command that goes on.
fn goes_on(content: &str, prefix: &str) -> Expect {
    Expect::status(200)
        .at("/observation", "run")
        .is("/content", content)
        .at("/extras/metadata/exit_code", -1)
        .at("/extras/metadata/pid", -1)
        .at("/extras/metadata/working_dir", Value::Null)
        .is("/extras/metadata/prefix", prefix)
        .at("/success", false)
}

fn timed_out(content: &str, prefix: &str, seconds: &str) -> Expect {
    let suffix = format!("\n[The command timed out after {seconds} seconds. {HELP}");
    goes_on(content, prefix).is("/extras/metadata/suffix", &suffix)
}

fn no_change(content: &str, prefix: &str) -> Expect {
    let start = "\n[The command has no new output after ".to_owned();
    let number = Text::Number(start, format!(" seconds. {HELP}"));
    goes_on(content, prefix).want(Want::Text("/extras/metadata/suffix", number))
}

fn refused(content: &str, prefix: &str, command: &str) -> Expect {
    let suffix = format!(
        "\n[Your command \"{command}\" is NOT executed. The previous command is still running - You CANNOT send new \
         commands until the previous command is completed. By setting `is_input` to `true`, you can interact with the \
         current process: {HELP}"
    );
    goes_on(content, prefix).is("/extras/metadata/suffix", &suffix)
}

fn key_ended(exit: i64, key: char) -> Expect {
    Expect::status(200).at("/extras/metadata/exit_code", exit).at("/extras/metadata/prefix", "").is(
        "/extras/metadata/suffix",
        &format!("\n[The command completed with exit code {exit}. CTRL+{key} was sent.]"),
    )
}

fn input() -> Value {
    json!({"is_input": true})
}

fn idle() -> Vec<Check> {
    let no_logs = "ERROR: No previous running command to retrieve logs from.";
    let no_process = "ERROR: No previous running command to interact with.";
    vec![
        Check::new("commands/idle-empty", "nothing runs whose output could be fetched", "bash-session 8 rows 2 and 5")
            .run("", message(no_logs))
            .run("   ", message(no_logs)),
        Check::new("commands/idle-input", "nothing runs that could take input or keys", "bash-session 8 rows 3 and 4")
            .run_with("x", &input(), message(no_process))
            .run_with("C-c", &input(), message(no_process)),
        Check::new("commands/idle-key", "a key at the prompt acts on the shell", "bash-session 8 row 70")
            .run("C-c", key_ended(130, 'C').is("/content", "^C"))
            .run("echo $?", Expect::ran("130", 0)),
    ]
}

fn state() -> Vec<Check> {
    vec![
        Check::new(
            "commands/observation",
            "the observation of a command has exactly these members",
            "actions-and-observations 4.2",
        )
        .run("cd {dir}", Expect::ended(0))
        .run(
            "false",
            Expect::status(200)
                .is("/message", "Command `false` executed with exit code 1.")
                .is("/observation", "run")
                .is("/content", "")
                .at("/success", false)
                .is("/extras/command", "false")
                .at("/extras/hidden", false)
                .at("/extras/metadata/exit_code", 1)
                .want(Want::Integer("/extras/metadata/pid"))
                .is("/extras/metadata/working_dir", "{dir}")
                .want(Want::Text("/extras/metadata/username", Text::Has(String::new())))
                .want(Want::Text("/extras/metadata/hostname", Text::Has(String::new())))
                .want(Want::Text("/extras/metadata/py_interpreter_path", Text::Has(String::new())))
                .is("/extras/metadata/prefix", "")
                .want(Want::Absent("/id"))
                .want(Want::Absent("/timestamp"))
                .want(Want::Absent("/source"))
                .want(Want::Absent("/cause")),
        )
        .run("cd {workspace}", Expect::ended(0)),
        Check::new(
            "commands/directory",
            "the directory of the shell stays and is told",
            "bash-session 8 rows 25 to 27 and 85",
        )
        .run("mkdir {dir}/test && cd {dir}", Expect::ended(0).is("/extras/metadata/working_dir", "{dir}"))
        .run("cd test && pwd", Expect::ran("{dir}/test", 0).is("/extras/metadata/working_dir", "{dir}/test"))
        .run("touch one; pwd && ls", Expect::ran("{dir}/test\none", 0))
        .run("cd -", Expect::ran("{dir}", 0).is("/extras/metadata/working_dir", "{dir}"))
        .run("ln -s test link && cd link && pwd", Expect::ran("{dir}/link", 0))
        .run("true", Expect::ran("", 0).is("/extras/metadata/working_dir", "{dir}/link"))
        .run("cd {workspace}", Expect::ended(0).is("/extras/metadata/working_dir", "{workspace}")),
        Check::new("commands/variables", "variables, functions and aliases stay", "bash-session 8 rows 29 and 30")
            .run("export GC_A=1; GC_B=2; gc_f() { echo f $1; }; alias gc_a='echo aliased'", Expect::ran("", 0))
            .run("echo $GC_A $GC_B", Expect::ran("1 2", 0))
            .run("env | grep -c '^GC_'", Expect::ran("1", 0))
            .run("gc_f x; gc_a y", Expect::ran("f x\naliased y", 0))
            .run("unset GC_A GC_B; unset -f gc_f; unalias gc_a", Expect::ran("", 0)),
        Check::new("commands/status-variable", "the status of the command before is kept", "bash-session 8 row 31")
            .run("(exit 3)", Expect::ran("", 3))
            .run("echo $?", Expect::ran("3", 0)),
        Check::new(
            "commands/background",
            "a job in the background is told with its process id",
            "bash-session 8 row 43",
        )
        .run(
            "sleep 0.2 &",
            Expect::ended(0)
                .want(Want::Text("/content", Text::Number("[1] ".to_owned(), String::new())))
                .at("/observation", "run"),
        )
        .run("wait", Expect::ended(0)),
    ]
}

fn git() -> Check {
    let url = "https://example.com/r.git";
    Check::new("commands/git", "output has no trace of the command", "bash-session 8 row 48")
        .code(|bench| {
            Box::pin(async {
                let found = bench.shell("command -v git || true").await?;
                if found.is_empty() { Err(Problem::skip("the sandbox has no git")) } else { Ok(()) }
            })
        })
        .run("mkdir {dir}/g && cd {dir}/g", Expect::ended(0))
        .run(&format!("git init -q && git remote add origin {url}"), Expect::ended(0))
        .run("git remote -v", Expect::ended(0).has("/content", url).has_not("/content", "git remote -v"))
        .run("cd {workspace}", Expect::ended(0))
}

fn several() -> Vec<Check> {
    let refused = |pieces: &[&str]| {
        let list: Vec<String> = pieces.iter().enumerate().map(|(at, piece)| format!("({}) {piece}", at + 1)).collect();
        Expect::error(&format!(
            "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately OR chain them into a \
             single command via && or ;\nProvided commands:\n{}",
            list.join("\n")
        ))
    };
    let rows: &[(&str, &[&str])] = &[
        ("echo a\necho b", &["echo a", "echo b"]),
        ("  echo a  \necho b  ", &["echo a", "echo b"]),
        ("# c\nls", &["# c", "ls"]),
        ("echo \"Hello\" # x\n# y\nls -l", &["echo \"Hello\" # x\n# y", "ls -l"]),
        ("cat <<-EOF\n\ta\n\tEOF\nls", &["cat <<-EOF\n\ta\n\tEOF", "ls"]),
        ("for i in 1 2; do\necho $i\ndone\nls", &["for i in 1 2; do\necho $i\ndone", "ls"]),
        ("a=1\nb=2", &["a=1", "b=2"]),
        ("if [ a ]; then ls; fi\nls", &["if [ a ]; then ls; fi", "ls"]),
        ("cd /a && \\\nls\npwd", &["cd /a && \\\nls", "pwd"]),
    ];
    let examples = Check::new("commands/several-examples", "commands end where bash ends them", "bash-session 4");
    vec![
        rows.iter().fold(examples, |check, (text, pieces)| check.run(text, refused(pieces))),
        Check::new(
            "commands/several",
            "several commands are refused, and none is executed",
            "bash-session 8 rows 10 and 11",
        )
        .run("touch {dir}/a\ntouch {dir}/b", refused(&["touch {dir}/a", "touch {dir}/b"]))
        .run("ls\n\n# c\npwd", refused(&["ls\n\n# c", "pwd"]))
        .run("cat <<EOF\na\nEOF\necho Done", refused(&["cat <<EOF\na\nEOF", "echo Done"]))
        .run("f() {\necho in f\n}\nf", refused(&["f() {\necho in f\n}", "f"]))
        .run("ls;\npwd", refused(&["ls;", "pwd"]))
        .run("ls &\npwd", refused(&["ls &", "pwd"]))
        .run("ls -A {dir}", Expect::ran(".keep", 0)),
        Check::new("commands/loops", "nested loops of several lines are one command", "bash-session 8 row 20")
            .run(
                "for i in 1 2; do\n  for j in a b; do\n    touch {dir}/f$i$j\n  done\ndone && echo \"created files\"",
                Expect::ran("created files", 0),
            )
            .run("ls {dir}", Expect::ran("f1a  f1b  f2a  f2b", 0)),
        Check::new("commands/pipe-line", "a pipe at the end of a line does not split", "bash-session 8 row 86")
            .run("echo a |\ncat", Expect::ended(0).ends("/content", "a")),
    ]
}

fn long_output() -> Vec<Check> {
    let lines = |last: u32| (1..=last).map(|n| format!("Line {n}")).collect::<Vec<_>>().join("\n");
    let whole = lines(5000);
    let characters: Vec<char> = whole.chars().collect();
    let cut: String = characters[..15000]
        .iter()
        .chain("\n[... Observation truncated due to length ...]\n".chars().collect::<Vec<_>>().iter())
        .chain(&characters[characters.len() - 15000..])
        .collect();
    let command = "for i in $(seq 1 5000); do echo \"Line $i\"; done";
    vec![
        Check::new("commands/long", "long output loses its middle", "bash-session 8 row 49")
            .run(command, Expect::ran(&cut, 0)),
        Check::new("commands/long-hidden", "the output of a hidden command is whole", "bash-session 8 row 50")
            .run_with(command, &json!({"hidden": true}), Expect::ran(&whole, 0).at("/extras/hidden", true)),
        Check::new("commands/long-line", "a line longer than the terminal comes as one line", "bash-session 8 row 39")
            .run("printf 'x%.0s' $(seq 2500)", Expect::ran(&"x".repeat(2500), 0)),
        Check::new(
            "commands/lost",
            "what does not fit the history is lost, and the prefix says so",
            "bash-session 8 row 51",
        )
        .run(
            "for i in $(seq 1 50000); do echo \"Line $i\"; done",
            Expect::status(200)
                .at("/extras/metadata/exit_code", 0)
                .starts("/extras/metadata/prefix", "[Previous command outputs are truncated. Showing the last 10")
                .ends("/extras/metadata/prefix", " lines of the output below.]\n")
                .has("/content", "Line 40000\n")
                .ends("/content", "Line 50000"),
        ),
    ]
}

fn limits() -> Vec<Check> {
    vec![
        Check::new(
            "commands/hard-limit",
            "a command that takes too long goes on, and its output comes later",
            "bash-session 8 rows 58 and 59",
        )
        .run_limited(
            "for i in 1 2 3; do echo $i; sleep 3; done",
            &json!({"blocking": true}),
            // Then a soft limit of 2 s or more ends neither before the next output nor before the next limit.
            1.5,
            timed_out("1", "", "1.5"),
        )
        .run_limited("", &json!({}), 3.0, timed_out("2", CONTINUED, "3.0"))
        .run("echo other", refused("", CONTINUED, "echo other"))
        .run_with("", &json!({"blocking": true}), Expect::ran("3", 0)),
        Check::new(
            "commands/soft-limit",
            "a command without new output is told, and goes on",
            "bash-session 8 rows 60 and 61",
        )
        .run("read -p 'Enter name: ' name && echo \"Hello $name\"", no_change("Enter name:", ""))
        .run_with("John", &input(), Expect::ran("Hello John", 0)),
        Check::new("commands/blocking", "a blocking command has no soft limit", "bash-session 8 row 74").run_limited(
            "sleep 3 && echo done",
            &json!({"blocking": true}),
            20.0,
            Expect::ran("done", 0),
        ),
        Check::new(
            "commands/finished-meanwhile",
            "a command that ended meanwhile is complete",
            "bash-session 8 rows 71 and 72",
        )
        .run_limited("sleep 2", &json!({"blocking": true}), 1.0, timed_out("", "", "1.0"))
        .code(ended_meanwhile)
        .run("", Expect::ran("", 0))
        .run("echo next", Expect::ran("next", 0)),
        Check::new(
            "commands/typed-late",
            "input for a command that ended meanwhile is a command",
            "bash-session 8 row 73",
        )
        .run_limited("sleep 2", &json!({"blocking": true}), 1.0, timed_out("", "", "1.0"))
        .code(ended_meanwhile)
        .run_with("text", &input(), Expect::ran("bash: text: command not found", 127)),
    ]
}

/// Waits until a command has ended that nothing tells of.
fn ended_meanwhile(_: &Bench) -> BoxFuture<'_, Result<(), Problem>> {
    Box::pin(async {
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        Ok(())
    })
}

fn interaction() -> Vec<Check> {
    vec![
        Check::new(
            "commands/heredoc-input",
            "the lines of a here-document may come one by one",
            "bash-session 8 rows 62 to 64",
        )
        .run_limited("cat << EOF", &json!({}), 1.0, timed_out("", "", "1.0"))
        .run_limited("line 1", &input(), 1.0, timed_out("", CONTINUED, "1.0"))
        .run_limited("line 2", &input(), 1.0, timed_out("", CONTINUED, "1.0"))
        .run_with("EOF", &input(), Expect::ran("line 1\nline 2", 0)),
        Check::new(
            "commands/questions",
            "a program that asks gets its answers, and other commands are refused",
            "bash-session 8 row 65",
        )
        .run_limited(
            "read -p 'Enter your name: ' n; read -p 'Enter your age: ' a; echo \"Hello $n, $a\"",
            &json!({}),
            1.0,
            timed_out("Enter your name:", "", "1.0"),
        )
        .run("Alice", refused("", CONTINUED, "Alice"))
        .run_limited("Alice", &input(), 1.0, timed_out("Enter your age:", CONTINUED, "1.0"))
        .run_with("25", &input(), Expect::ran("Hello Alice, 25", 0)),
        Check::new("commands/cat", "a program gets lines and the end of the input", "bash-session 8 row 68")
            .run_limited("cat", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run_limited("hello", &input(), 1.0, goes_on("hello", CONTINUED))
            .run_with("C-d", &input(), key_ended(0, 'D').is("/content", "")),
        Check::new("commands/open-quote", "an open quote waits for the rest", "bash-session 8 row 75")
            .run_limited("echo \"unclosed", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run_with("x\"", &input(), Expect::ran("unclosed\nx", 0)),
        Check::new("commands/open-backtick", "an open substitution is interrupted", "bash-session 8 row 76")
            .run_limited("echo `unclosed", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run_with("C-c", &input(), key_ended(130, 'C').is("/content", "^C")),
    ]
}

fn keys() -> Vec<Check> {
    vec![
        Check::new("commands/interrupt", "C-c interrupts", "bash-session 8 row 66")
            .run_limited("sleep 100", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run("C-c", refused("", CONTINUED, "C-c"))
            .run_with("C-c", &input(), key_ended(130, 'C').is("/content", "^C")),
        Check::new("commands/stop", "C-z stops, and the job can go on", "bash-session 8 row 69")
            .run_limited("sleep 100", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run_with(
                "C-z",
                &input(),
                key_ended(148, 'Z').is("/content", "^Z\n[1]+  Stopped                 sleep 100"),
            )
            .run_limited("fg", &json!({}), 1.0, timed_out("sleep 100", "", "1.0"))
            .run_with("C-C", &input(), key_ended(130, 'C').is("/content", "^C")),
    ]
}

fn static_commands() -> Vec<Check> {
    let there = |more: Value| {
        let mut arguments = json!({"is_static": true});
        if let (Some(arguments), Some(more)) = (arguments.as_object_mut(), more.as_object()) {
            arguments.extend(more.clone());
        }
        arguments
    };
    vec![
        Check::new("commands/static", "a static command has a shell of its own", "bash-session 8 row 78")
            .run("cd {dir}; GC_X=main", Expect::ended(0))
            .run_with(
                "GC_X=other; cd /; pwd",
                &there(json!({"cwd": "/usr"})),
                Expect::ran("/", 0).is("/extras/metadata/working_dir", "/"),
            )
            .run_with("pwd", &there(json!({"cwd": "/usr"})), Expect::ran("/usr", 0))
            .run_with("pwd", &there(json!({})), Expect::ran("{workspace}", 0))
            .run("echo $GC_X; pwd", Expect::ran("main\n{dir}", 0))
            .run("unset GC_X; cd {workspace}", Expect::ended(0)),
        Check::new("commands/static-busy", "a static command runs beside one that goes on", "bash-session 6")
            .run_limited("cat", &json!({}), 1.0, timed_out("", "", "1.0"))
            .run_with(
                "echo beside",
                &there(json!({"hidden": true})),
                Expect::ran("beside", 0).at("/extras/hidden", true),
            )
            .run_limited("x", &input(), 1.0, goes_on("x", CONTINUED))
            .run_with("C-d", &input(), key_ended(0, 'D')),
    ]
}

fn oddities() -> Vec<Check> {
    let any = || Expect::status(200);
    vec![
        Check::new("commands/open-end", "a semicolon at the end is no error", "bash-session 8 row 46").run(
            "echo test;",
            Expect::ran("test", 0).or(any().at("/extras/metadata/exit_code", 0).ends("/content", "test"), ECHO),
        ),
        Check::new("commands/quoted-blank-lines", "blank lines in quotes stay", "bash-session 8 row 84").run(
            "echo \"multi\n\n\nline\"",
            Expect::ran("multi\n\n\nline", 0)
                .or(any().at("/extras/metadata/exit_code", 0).ends("/content", "multi\n\n\nline"), ECHO),
        ),
        Check::new("commands/find-exec", "an escaped semicolon reaches the program", "bash-session 8 row 45")
            .file("s/a.txt", "needle")
            .file("s/b.txt", "hay")
            .run(
                "find {dir}/s -type f -exec grep -l \"needle\" {} \\;",
                Expect::ran("{dir}/s/a.txt", 0)
                    .or(any().at("/extras/metadata/exit_code", 0).ends("/content", "{dir}/s/a.txt"), ECHO),
            ),
        Check::new("commands/escaped-semicolon", "an escaped semicolon is an argument", "bash-session 5.1").run(
            "echo a \\; b",
            Expect::ran("a ; b", 0).or(
                any().at("/extras/metadata/exit_code", 127),
                "the reference doubles the backslash; gloveport should not (bash-session 5.1)",
            ),
        ),
        Check::new("commands/comment", "a comment alone does nothing", "bash-session 5.1")
            .run("(exit 7)", Expect::ran("", 7))
            .run(
                "# only a comment",
                Expect::ran("", 7).or(
                    Expect::error("'str' object has no attribute 'kind'"),
                    "the reference cannot read it; gloveport should run it (bash-session 5.1, REF-BUG)",
                ),
            ),
        Check::new("commands/clear", "clearing the screen loses nothing of importance", "bash-session 8 row 53").run(
            "clear",
            Expect::ran("", 0).or(
                any()
                    .at("/extras/metadata/exit_code", 0)
                    .is("/content", "")
                    .starts("/extras/metadata/prefix", "[Previous command outputs are truncated."),
                "the reference takes it for lost output; gloveport should not (bash-session 8 row 53)",
            ),
        ),
        Check::new("commands/echo-of-text", "output that looks like the command stays", "bash-session 3.3")
            .run("echo \"echo hi\"", Expect::ran("echo hi", 0)),
        Check::new("commands/heredoc-file", "a here-document goes into a file", "bash-session 5.1")
            .run(
                "cat <<EOF > {dir}/f\nx\nEOF",
                Expect::ended(0).or(any(), "the reference duplicates the text (bash-session 5.1, REF-BUG)"),
            )
            .run(
                "cat {dir}/f",
                Expect::ran("x", 0).or(
                    any().has("/content", "EOF"),
                    "the reference duplicates the text; gloveport must not (bash-session 5.1, REF-BUG)",
                ),
            ),
    ]
}

//! What a program does with its arguments: runs another one, prints something, or is for the rules to judge.

use super::{
    call::{Call, command_behind},
    checks,
    machine::{Faults, Machine},
    place::UNKNOWN,
    print, python,
    table::Rule,
    value::{Flow, Value},
};

/// Most words that a program takes from its input.
const MAX_INPUT_WORDS: usize = 256;

/// Programs that run the command behind their options: name, options with a value, operands before the command.
const WRAPPERS: [(&str, &[&str], usize); 30] = [
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("builtin", &[], 0),
    ("exec", &["-a"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "-p"], 0),
    ("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("unbuffer", &[], 0),
    ("chrt", &[], 1),
    ("taskset", &["-c"], 1),
    ("strace", &["-o", "-e", "-s", "-p", "-u", "-P"], 0),
    ("ltrace", &["-o", "-e", "-s", "-p", "-u"], 0),
    ("chroot", &["--userspec", "--groups"], 1),
    ("unshare", &[], 0),
    ("nsenter", &["-t", "--target"], 0),
    ("busybox", &[], 0),
    ("toybox", &[], 0),
    ("caffeinate", &["-t", "-w"], 0),
    ("systemd-run", &["-p", "-u", "--unit", "--property"], 0),
    ("systemd-inhibit", &[], 0),
    ("dbus-run-session", &[], 0),
    ("xvfb-run", &["-n", "-s", "-e", "-f"], 0),
    ("catchsegv", &[], 0),
    ("faketime", &[], 1),
    ("proxychains", &["-f"], 0),
    ("torsocks", &[], 0),
    ("firejail", &[], 0),
    ("time", &["-f", "-o"], 0),
    ("coproc", &[], 0),
];

/// Programs that run a command with other rights: name, options with a value.
const PRIVILEGED: [(&str, &[&str]); 4] = [
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-D", "-R", "-U", "--user", "--group", "--chdir"]),
    ("doas", &["-u", "-C"]),
    ("pkexec", &["--user"]),
    ("runuser", &["-u", "-g", "-G", "--user"]),
];

impl Machine<'_> {
    /// Runs a call: what it prints is the result.
    pub(super) fn run(&mut self, call: &Call<'_>) -> Value {
        if !self.afford(call.words.len()) {
            return Value::unknown(Flow::default());
        }
        self.nested(|machine| judge(machine, call)).unwrap_or_else(|| Value::unknown(Flow::default()))
    }
}

fn judge(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let program = call.program();
    if let Some((_, valued, skip)) = WRAPPERS.iter().find(|(name, ..)| *name == program) {
        return rest(machine, call, command_behind(call.args(), valued, *skip));
    }
    if let Some((_, valued)) = PRIVILEGED.iter().find(|(name, _)| *name == program) {
        machine.report(Rule::Privilege, &call.quote());
        if let [text, ..] = call.values(&["-c", "--command"]).as_slice()
            && program == "runuser"
        {
            return code(machine, call, text);
        }
        return rest(machine, call, without_assignments(command_behind(call.args(), valued, 0)));
    }
    match program {
        "env" => env(machine, call),
        "command" if !call.short('v') && !call.short('V') => rest(machine, call, command_behind(call.args(), &[], 0)),
        "su" => {
            machine.report(Rule::Privilege, &call.quote());
            match call.values(&["-c", "--command"]).first() {
                Some(text) => code(machine, call, text),
                None => code(machine, call, call.input),
            }
        }
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "mksh" | "fish" | "rbash" => shell(machine, call),
        "eval" | "watch" => {
            let args = if program == "eval" { call.args() } else { command_behind(call.args(), &["-n", "-i"], 0) };
            code(machine, call, &joined(args))
        }
        "trap" => match call.operands().first() {
            Some(text) => code(machine, call, text),
            None => Value::default(),
        },
        "script" => match call.values(&["-c", "--command"]).first() {
            Some(text) => code(machine, call, text),
            None => Value::unknown(Flow::default()),
        },
        "flock" => {
            let behind = command_behind(call.args(), &["-w", "-E"], 1);
            match behind {
                [option, text, ..] if option.text == "-c" => code(machine, call, text),
                behind => rest(machine, call, behind),
            }
        }
        "source" | "." => match call.operands().first() {
            Some(file) => run_file(machine, call, file),
            None => Value::default(),
        },
        "xargs" | "parallel" => xargs(machine, call),
        "cd" | "pushd" | "popd" => change_directory(machine, call),
        "export" | "declare" | "local" | "readonly" | "typeset" => declare(machine, call),
        _ => leaf(machine, call),
    }
}

/// A program that runs no other, or does so in a way of its own.
fn leaf(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let program = call.program();
    if call.path().contains('/')
        && let Some(content) = machine.written(&Value::known(call.path()))
    {
        return run_written(machine, call, &content);
    }
    if is_interpreter(program) {
        interpreter(machine, call);
    }
    match program {
        "find" | "fd" => checks::delete::find(machine, call),
        "ssh" => {
            let behind = command_behind(call.args(), SSH_VALUED, 1);
            let text = joined(behind);
            machine.scoped(|machine| {
                machine.directory = None;
                machine.text(&text.text, call.input, Faults::Tolerated);
            });
        }
        "docker" | "podman" | "kubectl" => container(machine, call),
        _ => {}
    }
    checks::all(machine, call);
    print::output(machine, call)
}

/// Options of `ssh` that have a value.
const SSH_VALUED: &[&str] = &[
    "-i", "-p", "-l", "-o", "-F", "-L", "-R", "-D", "-J", "-b", "-c", "-E", "-e", "-I", "-m", "-O", "-Q", "-S", "-W",
    "-w", "-B",
];

fn rest(machine: &mut Machine<'_>, call: &Call<'_>, words: &[Value]) -> Value {
    if words.is_empty() {
        return Value::unknown(call.input.flow);
    }
    machine.run(&Call { words, input: call.input })
}

fn without_assignments(words: &[Value]) -> &[Value] {
    let count = words.iter().take_while(|word| is_assignment(&word.text)).count();
    words.get(count..).unwrap_or_default()
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_'))
}

fn env(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    if let [text, ..] = call.values(&["-S", "--split-string"]).as_slice() {
        return code(machine, call, text);
    }
    let behind = command_behind(call.args(), &["-u", "-C", "--unset", "--chdir"], 0);
    for word in behind.iter().take_while(|word| is_assignment(&word.text)) {
        assign(machine, word);
    }
    match without_assignments(behind) {
        [] => Value::unknown(Flow::SECRET),
        words => rest(machine, call, words),
    }
}

fn assign(machine: &mut Machine<'_>, word: &Value) {
    if let Some((name, text)) = word.text.split_once('=') {
        machine.set(name, Value { text: text.to_owned(), flow: word.flow });
    }
}

fn declare(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let operands = call.operands();
    for word in &operands {
        assign(machine, word);
    }
    let lists = operands.is_empty();
    if lists { Value::unknown(Flow::SECRET) } else { Value::default() }
}

fn joined(words: &[Value]) -> Value {
    let mut all = Value::default();
    for word in words {
        if !all.text.is_empty() {
            all.text.push(' ');
        }
        all.text.push_str(&word.text);
        all.flow = all.flow.and(word.flow);
    }
    all
}

/// Runs a text as commands. When not even its beginning is known, where it comes from decides.
pub(super) fn code(machine: &mut Machine<'_>, call: &Call<'_>, text: &Value) -> Value {
    if text.is_opaque() {
        judge_origin(machine, call, text.flow);
        return Value::unknown(text.flow);
    }
    let nothing = Value::unknown(Flow::default());
    machine.text(&text.text, &nothing, Faults::Reported)
}

fn judge_origin(machine: &mut Machine<'_>, call: &Call<'_>, flow: Flow) {
    if flow.has(Flow::DOWNLOAD) {
        machine.report(Rule::RunDownload, &format!("… | {}", call.quote()));
    } else if flow.has(Flow::DECODED) {
        machine.report(Rule::RunDecoded, &format!("… | {}", call.quote()));
    }
}

fn shell(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let mut args = call.args().iter();
    let mut wants_text = false;
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        match text {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                args.next();
            }
            "-" | "--" | "-s" => {}
            option if option.starts_with("--") || option.starts_with('+') => {}
            option if option.starts_with('-') => wants_text |= option.contains('c'),
            _ if wants_text => return code(machine, call, arg),
            _ if call.short('s') => break,
            _ => return run_file(machine, call, arg),
        }
    }
    code(machine, call, call.input)
}

/// Runs a file as commands.
fn run_file(machine: &mut Machine<'_>, call: &Call<'_>, file: &Value) -> Value {
    if file.text == "/dev/stdin" {
        return code(machine, call, call.input);
    }
    // A name that stands for the output of commands.
    if file.is_opaque() && file.flow.has(Flow::DOWNLOAD) {
        judge_origin(machine, call, file.flow);
        return Value::unknown(file.flow);
    }
    match machine.written(file) {
        Some(content) => run_written(machine, call, &content),
        None => Value::unknown(Flow::default()),
    }
}

/// Runs what the same text wrote into a file.
fn run_written(machine: &mut Machine<'_>, call: &Call<'_>, content: &Value) -> Value {
    if content.is_opaque() {
        judge_origin(machine, call, content.flow);
        return Value::unknown(content.flow);
    }
    machine.text(&content.text, call.input, Faults::Tolerated)
}

fn is_interpreter(program: &str) -> bool {
    let name = program.trim_end_matches(|one: char| one.is_ascii_digit() || one == '.');
    matches!(name, "python" | "pypy" | "ipython" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "php" | "lua")
}

/// Programs that run a text in another language. Of that, only Python is looked into.
fn interpreter(machine: &mut Machine<'_>, call: &Call<'_>) {
    let python = call.program().contains("py");
    let codes = call.values(&["-c", "-e", "--eval", "-r"]);
    let text = match codes.first() {
        Some(text) => text.clone(),
        None => match call.operands().first() {
            // With `-m` the input is data.
            _ if call.texts().any(|text| text == "-m") => return,
            Some(file) if file.text != "-" => {
                let opaque = file.is_opaque() && file.flow.has(Flow::DOWNLOAD);
                if opaque { Value::unknown(file.flow) } else { machine.written(file).unwrap_or_default() }
            }
            _ => call.input.clone(),
        },
    };
    if text.is_opaque() {
        judge_origin(machine, call, text.flow);
    } else if python {
        python::walk(machine, &text.text);
    }
}

/// A program that runs a command with words from its input as arguments.
fn xargs(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let valued = ["-I", "-n", "-P", "-L", "-s", "-d", "-E", "-a", "-j", "--max-args", "--max-procs", "--delimiter"];
    let behind = command_behind(call.args(), &valued, 0);
    let mut words: Vec<Value> = behind.iter().take_while(|word| word.text != ":::").cloned().collect();
    let mut given: Vec<Value> = behind.iter().skip(words.len() + 1).cloned().collect();
    given.extend(
        call.input
            .text
            .split_whitespace()
            .take(MAX_INPUT_WORDS)
            .map(|text| Value { text: text.to_owned(), flow: call.input.flow }),
    );
    let placeholder = call.values(&["-I"]).first().map_or_else(|| "{}".to_owned(), |value| value.text.clone());
    let mut replaced = false;
    for word in &mut words {
        if !placeholder.is_empty() && word.text.contains(&placeholder) {
            let text = given.first().map_or_else(|| UNKNOWN.to_string(), |one| one.text.clone());
            word.text = word.text.replace(&placeholder, &text);
            word.flow = word.flow.and(call.input.flow);
            replaced = true;
        }
    }
    if !replaced {
        words.append(&mut given);
    }
    rest(machine, call, &words)
}

fn change_directory(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let operands = call.operands();
    machine.directory = match (call.program(), operands.first()) {
        ("popd", _) => None,
        (_, None) => Some("~".to_owned()),
        (_, Some(target)) if target.text == "-" || !target.is_known() => None,
        (_, Some(target)) => {
            let path = machine.locate(&target.text).path;
            (!path.is_empty()).then_some(path)
        }
    };
    Value::default()
}

/// `docker exec`, `kubectl exec` and the like: the command runs in another file system.
fn container(machine: &mut Machine<'_>, call: &Call<'_>) {
    let Some(at) = call.texts().position(|text| text == "exec") else { return };
    let args = call.args().get(at + 1..).unwrap_or_default();
    let valued = ["-u", "-w", "-e", "--user", "--workdir", "--env", "-n", "-c", "--namespace", "--container"];
    let mut behind = command_behind(args, &valued, 1);
    if let [dashes, command @ ..] = behind
        && dashes.text == "--"
    {
        behind = command;
    }
    let words = behind.to_vec();
    machine.scoped(|machine| {
        machine.directory = None;
        rest(machine, call, &words);
    });
}

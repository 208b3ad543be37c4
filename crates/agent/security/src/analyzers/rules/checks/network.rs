//! What leaves the machine, and what comes from outside.

use crate::analyzers::rules::{
    call::Call,
    checks::{secret, write},
    machine::Machine,
    shell::{Redirect, RedirectKind},
    table::Rule,
    value::{Flow, Value},
};

/// Programs that send what they are given.
const SENDERS: [&str; 24] = [
    "curl", "wget", "nc", "ncat", "netcat", "telnet", "socat", "ssh", "scp", "sftp", "rsync", "ftp", "tftp", "lftp",
    "http", "https", "xh", "rclone", "mail", "sendmail", "dig", "nslookup", "host", "ping",
];

/// Options whose value is a key or a configuration that the program uses itself and does not send.
const OWN_FILES: [&str; 13] = [
    "-i",
    "-E",
    "-K",
    "--cert",
    "--key",
    "--cacert",
    "--capath",
    "--config",
    "--netrc-file",
    "-o",
    "--output",
    "--private-key",
    "--certificate",
];

/// Options of `curl` and `wget` whose value can name a file to send.
const FILE_OPTIONS: [&str; 11] = [
    "-d",
    "--data",
    "--data-binary",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "-F",
    "--form",
    "-T",
    "--upload-file",
    "--form-string",
];

pub(super) fn check(machine: &mut Machine<'_>, call: &Call<'_>) {
    let program = call.program();
    if program == "git" {
        if call.flow().has(Flow::TOKEN) && call.texts().any(|text| text.contains("://")) {
            machine.report(Rule::TokenInRequest, &call.quote());
        }
        return;
    }
    if !SENDERS.contains(&program) {
        return;
    }
    if gives_shell(call) {
        machine.report(Rule::ReverseShell, &call.quote());
    }
    let flow = call.input.flow.and(call.flow());
    if flow.has(Flow::SECRET) || names_secret(machine, call) {
        machine.report(Rule::UploadSecret, &call.quote());
        return;
    }
    if is_local(call) {
        return;
    }
    if flow.has(Flow::TOKEN) {
        machine.report(Rule::TokenInRequest, &call.quote());
    }
    if sends_file(call) {
        machine.report(Rule::UploadFile, &call.quote());
    }
}

/// Whether an argument names a secret file that would be sent.
fn names_secret(machine: &Machine<'_>, call: &Call<'_>) -> bool {
    let mut own = false;
    let copies = matches!(call.program(), "scp" | "rsync" | "sftp");
    let remote_to_local = copies && !sends_file(call);
    for arg in call.args() {
        if std::mem::replace(&mut own, OWN_FILES.contains(&arg.text.as_str())) || remote_to_local {
            continue;
        }
        let own_value = OWN_FILES.iter().any(|name| {
            name.starts_with("--") && arg.text.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        });
        // `ssh` sends no file that is named.
        if own_value || call.program() == "ssh" {
            continue;
        }
        let option = arg.text.strip_prefix("-T").unwrap_or(&arg.text);
        if option.split(['@', '<', '=', ';', ':']).any(|part| secret::is_secret(machine, part)) {
            return true;
        }
    }
    false
}

/// Whether everything goes to this machine itself.
fn is_local(call: &Call<'_>) -> bool {
    let mut local = false;
    for arg in call.args() {
        let text = arg.text.as_str();
        let (is_url, host) = match text.split_once("://") {
            Some((_, rest)) => (true, rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
            None => (false, text),
        };
        let here = ["localhost", "127.", "[::1]", "0.0.0.0", "::1"].iter().any(|name| host.starts_with(name));
        if is_url && !here {
            return false;
        }
        local |= here;
    }
    local
}

fn sends_file(call: &Call<'_>) -> bool {
    match call.program() {
        "curl" => {
            let upload = call.values(&["-T", "--upload-file"]);
            let at_file = call.values(&FILE_OPTIONS).into_iter().any(|value| {
                value.text.split_once('@').is_some_and(|(before, file)| {
                    (before.is_empty() || before.ends_with('=')) && !file.is_empty() && file != "-"
                })
            });
            at_file || upload.iter().any(|value| value.text != "-" && value.text != ".")
        }
        "wget" => call.long("post-file") || call.long("body-file"),
        "scp" | "rsync" => call.operands().last().is_some_and(|target| {
            let colon = target.text.find(':');
            colon.is_some_and(|at| !target.text.get(..at).unwrap_or_default().contains('/'))
                || target.text.contains("://")
        }),
        _ => false,
    }
}

/// `nc -e /bin/sh`, `socat EXEC:…`.
fn gives_shell(call: &Call<'_>) -> bool {
    match call.program() {
        "nc" | "ncat" | "netcat" => {
            call.short('e') || call.long("exec") || call.long("sh-exec") || !call.values(&["-c"]).is_empty()
        }
        "socat" => call.texts().any(|text| {
            let text = text.to_ascii_lowercase();
            text.starts_with("exec:") || text.starts_with("system:")
        }),
        _ => false,
    }
}

/// A shell whose input or output is a connection.
pub(in crate::analyzers::rules) fn shell_redirects(machine: &mut Machine<'_>, call: &Call<'_>, redirects: &[Redirect]) {
    let shell = matches!(call.program(), "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash");
    for redirect in redirects.iter().filter(|redirect| shell && redirect.kind != RedirectKind::Text) {
        let target = redirect.word().map(|word| machine.value(word)).unwrap_or_default();
        if is_connection(&target.text) {
            machine.report(Rule::ReverseShell, &format!("{} > {}", call.quote(), target.text));
        }
    }
}

/// Output that goes to a connection.
pub(in crate::analyzers::rules) fn redirect(machine: &mut Machine<'_>, target: &Value, flow: Flow, quotation: &str) {
    if !is_connection(&target.text) {
        return;
    }
    if flow.has(Flow::SECRET) {
        machine.report(Rule::UploadSecret, quotation);
    } else if flow.has(Flow::TOKEN) {
        machine.report(Rule::TokenInRequest, quotation);
    }
}

fn is_connection(name: &str) -> bool {
    name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/")
}

/// What a downloading program prints; what it writes is remembered.
pub(in crate::analyzers::rules) fn download(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let content = Value::unknown(Flow::DOWNLOAD);
    let (letter, long, to_file) = match call.program() {
        "wget" => ('O', "--output-document", true),
        "aria2c" => ('o', "--out", true),
        _ => ('o', "--output", call.short('O') || call.long("remote-name") || call.long("remote-name-all")),
    };
    let mut files = short_values(call, letter);
    files.extend(call.values(&[long]));
    if files.is_empty() && !to_file {
        return content;
    }
    if files.is_empty() {
        let directory = call.values(&["-P", "--directory-prefix", "-d", "--dir", "--output-dir"]);
        let directory = directory.first().map_or(".", |value| value.text.as_str()).to_owned();
        for url in call.operands() {
            let path = url.text.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            files.push(Value::known(format!("{directory}/{name}")));
        }
    }
    let mut output = Value::default();
    for file in files {
        if matches!(file.text.as_str(), "-" | "/dev/stdout") {
            output = content.clone();
            continue;
        }
        write::target(machine, &file, &call.quote());
        machine.fill(&file, &content);
    }
    output
}

/// The values of an option of one letter, also when it stands behind others: `-qO file`, `-qO-`.
fn short_values(call: &Call<'_>, letter: char) -> Vec<Value> {
    let mut found = Vec::new();
    let mut args = call.args().iter();
    while let Some(arg) = args.next() {
        if !arg.text.starts_with('-') || arg.text.starts_with("--") {
            continue;
        }
        // A letter that is part of a value is none.
        let Some((before, rest)) = arg.text.split_once(letter) else { continue };
        if !before.chars().skip(1).all(|one| one.is_ascii_alphabetic()) {
            continue;
        }
        if rest.is_empty() {
            found.extend(args.next().cloned());
        } else {
            found.push(Value { text: rest.to_owned(), flow: arg.flow });
        }
    }
    found
}

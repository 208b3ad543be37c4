//! What a program prints, as far as its arguments say.

use super::{
    call::Call,
    checks::network,
    machine::Machine,
    place::UNKNOWN,
    value::{Flow, Value},
};

/// Programs that turn their input into something else, also into commands.
const DECODERS: [&str; 9] = ["base64", "base32", "xxd", "openssl", "rev", "uudecode", "tr", "gpg", "basenc"];

/// The output of a call.
pub(super) fn output(machine: &mut Machine<'_>, call: &Call<'_>) -> Value {
    let passed = call.input.flow.and(call.flow());
    match call.program() {
        "echo" => echo(call),
        "printf" => printf(call),
        "pwd" => machine.directory.clone().map_or_else(|| Value::unknown(passed), Value::known),
        "true" | "false" | ":" | "rm" | "mkdir" | "touch" | "chmod" | "chown" | "kill" | "test" | "[" | "wait"
        | "sleep" | "unset" | "shift" | "set"
            if !call.args().is_empty() =>
        {
            Value::default()
        }
        "printenv" if !call.args().is_empty() => {
            let flow = call.texts().fold(Flow::default(), |flow, name| flow.and(super::expand::flow_of_name(name)));
            Value::unknown(flow)
        }
        "printenv" | "set" => Value::unknown(Flow::SECRET),
        "find" => found(call),
        "curl" | "wget" | "fetch" | "http" | "https" | "xh" | "aria2c" => network::download(machine, call),
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => Value::unknown(Flow::DOWNLOAD),
        program if DECODERS.contains(&program) => Value::unknown(read(machine, call, passed).flow.and(Flow::DECODED)),
        "tee" => call.input.clone(),
        _ => read(machine, call, passed),
    }
}

fn echo(call: &Call<'_>) -> Value {
    let mut all = Value { flow: call.flow(), ..Value::default() };
    let mut options = true;
    for arg in call.args() {
        options &= matches!(arg.text.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en");
        if options {
            continue;
        }
        if !all.text.is_empty() {
            all.text.push(' ');
        }
        all.text.push_str(&arg.text);
    }
    all.text.push('\n');
    all
}

fn printf(call: &Call<'_>) -> Value {
    let operands = call.operands();
    let Some((format, values)) = operands.split_first() else { return Value::default() };
    let mut text = format.text.replace("\\n", "\n");
    for value in values {
        text = text.replacen("%s", &value.text, 1);
    }
    if text.contains('%') {
        return Value::unknown(call.flow());
    }
    Value { text, flow: call.flow() }
}

/// Names below the directories that are searched.
fn found(call: &Call<'_>) -> Value {
    let mut text = String::new();
    for root in super::checks::delete::roots(call) {
        text.push_str(root.text.trim_end_matches('/'));
        text.extend(['/', UNKNOWN, '\n']);
    }
    Value { text, flow: call.flow() }
}

/// Any other program: it may print what it reads.
fn read(machine: &mut Machine<'_>, call: &Call<'_>, passed: Flow) -> Value {
    let operands = call.operands();
    let reads = super::checks::secret::READERS.contains(&call.program());
    if call.program() == "cat" && operands.is_empty() {
        return call.input.clone();
    }
    if !reads {
        return Value::unknown(passed);
    }
    let mut flow = passed;
    for operand in &operands {
        let content = machine.content(operand);
        if operands.len() == 1 && call.program() == "cat" {
            return content;
        }
        flow = flow.and(content.flow);
    }
    Value::unknown(flow)
}

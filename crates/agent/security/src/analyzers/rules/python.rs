//! Shell commands in Python cells, as far as plain text shows them.
//!
//! Best effort: string literals that are given directly to `os.system`, `os.popen`, `subprocess` and IPython's own ways to
//! run commands, and to `shutil.rmtree`. What Python puts together at run time is not seen.

use super::{
    call::Call,
    machine::{Faults, Machine},
    place::UNKNOWN,
    value::{Flow, Value},
};

/// Functions whose first argument is a command, as a text or a list of words.
const RUNNERS: [&str; 17] = [
    "os.system",
    "os.popen",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.Popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "sp.run",
    "sp.call",
    "sp.check_call",
    "sp.check_output",
    "sp.Popen",
    "commands.getoutput",
    "get_ipython().system",
    "asyncio.create_subprocess_shell",
];

/// Functions whose first argument is a tree to delete.
const REMOVERS: [&str; 2] = ["shutil.rmtree", "rmtree"];

/// Most words of a list.
const MAX_WORDS: usize = 256;
/// Most tokens of an argument that are looked at.
const MAX_TOKENS: usize = 4 * MAX_WORDS;

/// A part of Python code.
#[derive(Debug, PartialEq)]
enum Token {
    /// Names with dots between them.
    Name(String),
    /// The value of a literal; [`UNKNOWN`] stands for what is computed.
    Text(String),
    /// Any other character that is no blank.
    Mark(char),
}

/// Walks through the commands in a cell.
pub(super) fn walk(machine: &mut Machine<'_>, code: &str) {
    let code = shell_lines(machine, code);
    let tokens = tokens(&code);
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        if tokens.get(at + 1) != Some(&Token::Mark('(')) {
            continue;
        }
        let arguments = tokens.get(at + 2..tokens.len().min(at + 2 + MAX_TOKENS)).unwrap_or_default();
        let runs = RUNNERS.contains(&name.as_str());
        if !runs && !REMOVERS.contains(&name.as_str()) {
            continue;
        }
        let words = match arguments.first() {
            Some(Token::Mark('[')) => list(arguments.get(1..).unwrap_or_default()),
            _ => vec![literal(arguments)],
        };
        command(machine, runs, words, arguments.first() == Some(&Token::Mark('[')));
    }
}

fn command(machine: &mut Machine<'_>, runs: bool, words: Vec<Option<String>>, is_list: bool) {
    let nothing = Value::unknown(Flow::default());
    if !runs {
        if let Some(Some(path)) = words.into_iter().next() {
            let words = ["rm", "-r", &path].map(Value::known);
            machine.run(&Call { words: &words, input: &nothing });
        }
    } else if is_list {
        let words: Vec<Value> =
            words.into_iter().map(|word| word.map_or_else(|| Value::unknown(Flow::default()), Value::known)).collect();
        if !words.is_empty() {
            machine.run(&Call { words: &words, input: &nothing });
        }
    } else if let Some(Some(text)) = words.into_iter().next() {
        machine.text(&text, &nothing, Faults::Tolerated);
    }
}

/// Walks through the lines and cells that IPython gives to a shell; the rest is Python.
fn shell_lines(machine: &mut Machine<'_>, code: &str) -> String {
    let nothing = Value::unknown(Flow::default());
    let first = code.trim_start().lines().next().unwrap_or_default();
    if ["%%bash", "%%sh", "%%script bash", "%%script sh", "%%system", "%%!"]
        .iter()
        .any(|magic| first.starts_with(magic))
    {
        let (_, body) = code.trim_start().split_once('\n').unwrap_or_default();
        machine.text(body, &nothing, Faults::Reported);
        return String::new();
    }
    let mut rest = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        let text = line.trim();
        // `files = !ls` keeps the output.
        let assigned = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let value = assigned.filter(|(name, _)| name.chars().all(|one| one.is_alphanumeric() || one == '_'));
        let command = [Some(text), value.map(|(_, value)| value)].into_iter().flatten().find_map(|text| {
            let behind = ["!!", "!", "%sx ", "%system "].iter().find_map(|prefix| text.strip_prefix(prefix));
            behind.filter(|command| !command.starts_with('='))
        });
        match command {
            Some(command) => drop(machine.text(command, &nothing, Faults::Tolerated)),
            None => rest.push_str(line),
        }
    }
    rest
}

/// The value of literals that follow each other, if there are only such up to the end of the argument.
fn literal(tokens: &[Token]) -> Option<String> {
    let mut text = String::new();
    let mut any = false;
    for token in tokens {
        match token {
            Token::Text(more) => {
                text.push_str(more);
                any = true;
            }
            Token::Mark('+') => {}
            Token::Mark(',' | ')' | ']') => break,
            // A part that is computed.
            Token::Name(_) | Token::Mark(_) if any => text.push(UNKNOWN),
            Token::Name(_) | Token::Mark(_) => return None,
        }
    }
    any.then_some(text)
}

/// The words of a list, up to its end.
fn list(tokens: &[Token]) -> Vec<Option<String>> {
    let end = tokens.iter().position(|token| *token == Token::Mark(']')).unwrap_or(tokens.len());
    let inside = tokens.get(..end).unwrap_or_default();
    let words = inside.split(|token| *token == Token::Mark(',')).filter(|word| !word.is_empty());
    words.take(MAX_WORDS).map(literal).collect()
}

/// The tokens of Python code, without comments.
fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(one) = rest.chars().next() {
        if one == '#' {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
        } else if one == '\'' || one == '"' {
            let (text, behind) = quoted(rest, "");
            found.push(Token::Text(text));
            rest = behind;
        } else if one.is_alphabetic() || one == '_' {
            let end = rest.find(|one: char| !(one.is_alphanumeric() || matches!(one, '_' | '.'))).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let prefix = name.len() <= 2 && name.chars().all(|one| "rRbBfFuU".contains(one));
            if prefix && behind.starts_with(['\'', '"']) {
                let (text, behind) = quoted(behind, name);
                found.push(Token::Text(text));
                rest = behind;
            } else {
                found.push(Token::Name(name.to_owned()));
                rest = behind;
            }
        } else {
            if !one.is_whitespace() && one != '\\' {
                found.push(Token::Mark(one));
            }
            rest = rest.get(one.len_utf8()..).unwrap_or_default();
        }
    }
    found
}

/// The value of a literal, and what stands behind it.
fn quoted<'a>(code: &'a str, prefix: &str) -> (String, &'a str) {
    let raw = prefix.contains(['r', 'R']);
    let formatted = prefix.contains(['f', 'F']);
    let quote = code.chars().next().unwrap_or('"');
    let triple: String = [quote; 3].iter().collect();
    let long = code.starts_with(&triple);
    let mut rest = code.get(if long { 3 } else { 1 }..).unwrap_or_default();
    let mut text = String::new();
    while let Some(one) = rest.chars().next() {
        let ends = if long { rest.starts_with(&triple) } else { one == quote || one == '\n' };
        if ends {
            let length = if long { 3 } else { 1 };
            return (text, rest.get(length..).unwrap_or_default());
        }
        rest = rest.get(one.len_utf8()..).unwrap_or_default();
        match one {
            '\\' if !raw => {
                let next = rest.chars().next().unwrap_or(' ');
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
                match next {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    '\n' => {}
                    '\\' | '\'' | '"' => text.push(next),
                    other => text.extend(['\\', other]),
                }
            }
            '{' if formatted && !rest.starts_with('{') => {
                let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                rest = rest.get(end..).unwrap_or_default();
                text.push(UNKNOWN);
            }
            other => text.push(other),
        }
    }
    (text, rest)
}

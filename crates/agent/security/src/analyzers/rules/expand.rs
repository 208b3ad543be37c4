//! What words become, as far as the text itself says.

use super::{
    machine::Machine,
    place::UNKNOWN,
    shell::{Change, Piece, Quoting, Script, Word},
    value::{Flow, Value},
};

/// Longest text that is put together, in bytes. What a command is does not depend on what comes later.
const MAX_TEXT: usize = 64 * 1024;
/// Most words that one word becomes.
const MAX_FIELDS: usize = 1024;
/// Most words that braces make of one.
const MAX_BRACES: usize = 64;

/// Stands for a value that is not known, but not empty: something unknown with something that is there.
const NOT_EMPTY: &str = "\0_";

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 9] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"];

/// Collects the words that one word becomes.
#[derive(Default)]
struct Fields {
    done: Vec<Value>,
    open: Option<Value>,
}

impl Fields {
    fn open(&mut self) -> &mut Value {
        self.open.get_or_insert_with(Value::default)
    }

    fn end(&mut self) {
        if let Some(value) = self.open.take()
            && self.done.len() < MAX_FIELDS
        {
            self.done.push(value);
        }
    }
}

impl Machine<'_> {
    /// The words that a word becomes: values without quotes are split at blanks.
    pub(super) fn fields(&mut self, word: &Word) -> Vec<Value> {
        if let Some(text) = word.as_bare() {
            if !self.afford(text.len()) {
                return vec![Value::unknown(Flow::default())];
            }
            return braces(text).into_iter().map(Value::known).collect();
        }
        let mut fields = Fields::default();
        for piece in &word.pieces {
            let (value, quoting) = self.piece(piece);
            if quoting == Quoting::Quoted || matches!(piece, Piece::Text { .. }) {
                // A quoted `~` is a file of that name.
                if fields.open.is_none()
                    && quoting == Quoting::Quoted
                    && value.text.starts_with('~')
                    && matches!(piece, Piece::Text { .. })
                {
                    fields.open().text.push_str("./");
                }
                self.append(fields.open(), &value);
                continue;
            }
            if value.text.starts_with(char::is_whitespace) {
                fields.end();
            }
            for (index, part) in value.text.split_whitespace().enumerate() {
                if index > 0 {
                    fields.end();
                }
                let part = Value { text: part.to_owned(), flow: value.flow };
                self.append(fields.open(), &part);
            }
            if value.text.ends_with(char::is_whitespace) {
                fields.end();
            }
        }
        fields.end();
        fields.done
    }

    /// What a word becomes where it is not split, as in an assignment.
    pub(super) fn value(&mut self, word: &Word) -> Value {
        let mut all = Value::default();
        for piece in &word.pieces {
            let (value, _) = self.piece(piece);
            self.append(&mut all, &value);
        }
        all
    }

    /// Adds a text to another, within limits.
    pub(super) fn append(&mut self, all: &mut Value, more: &Value) {
        all.flow = all.flow.and(more.flow);
        if all.text.len() > MAX_TEXT {
            return;
        }
        if all.text.len() + more.text.len() > MAX_TEXT || !self.afford(more.text.len()) {
            all.text.push(UNKNOWN);
        } else {
            all.text.push_str(&more.text);
        }
    }

    fn piece(&mut self, piece: &Piece) -> (Value, Quoting) {
        match piece {
            Piece::Text { text, quoting } => (Value::known(text.as_str()), *quoting),
            Piece::Variable { name, change, quoting } => (self.variable(name, change), *quoting),
            Piece::Substitution { script, quoting } => (self.output(script), *quoting),
            Piece::Process(script) => (Value::unknown(self.output(script).flow), Quoting::Quoted),
            Piece::Unknown => (Value::unknown(Flow::default()), Quoting::Quoted),
        }
    }

    /// What commands print, without the ends of lines behind it.
    fn output(&mut self, script: &Script) -> Value {
        let nothing = Value::default();
        let mut output = self.scoped(|machine| machine.script(script, &nothing));
        output.text.truncate(output.text.trim_end_matches('\n').len());
        output
    }

    fn variable(&mut self, name: &str, change: &Change) -> Value {
        let known = self.lookup(name);
        match change {
            Change::None => known.unwrap_or_else(|| Value::unknown(flow_of_name(name))),
            Change::Default(word) => {
                let other = self.value(word);
                known.unwrap_or(Value { flow: other.flow.and(flow_of_name(name)), ..other })
            }
            Change::Required(word) => {
                self.value(word);
                known.unwrap_or_else(|| Value { text: NOT_EMPTY.to_owned(), flow: flow_of_name(name) })
            }
            Change::Other(word) => {
                let flow = self.value(word).flow;
                let own = known.map_or_else(|| flow_of_name(name), |value| value.flow);
                Value::unknown(flow.and(own))
            }
        }
    }

    fn lookup(&mut self, name: &str) -> Option<Value> {
        if let Some(length) = self.variables.get(name).map(|value| value.text.len()) {
            return if self.afford(length) { self.variables.get(name).cloned() } else { None };
        }
        let text = match name {
            "HOME" => "~",
            "TMPDIR" | "TMP" | "TEMP" => "/tmp",
            "IFS" => " ",
            "PWD" => return self.directory.clone().map(Value::known),
            _ => return None,
        };
        Some(Value::known(text))
    }
}

/// Whether the name of a variable says that its value is secret.
pub(super) fn flow_of_name(name: &str) -> Flow {
    let name = name.to_ascii_uppercase();
    let secret = SECRET_NAMES.iter().any(|part| name.contains(part));
    if secret { Flow::TOKEN } else { Flow::default() }
}

/// The words that `a{b,c}d` stands for. Sequences such as `{1..3}` and nested braces stay as they are.
fn braces(text: &str) -> Vec<String> {
    let mut words = vec![text.to_owned()];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some((before, list, after)) = first_list(word) else {
            at += 1;
            continue;
        };
        let made: Vec<String> = list.split(',').map(|one| format!("{before}{one}{after}")).collect();
        if words.len() + made.len() > MAX_BRACES {
            break;
        }
        words.splice(at..=at, made);
    }
    words
}

fn first_list(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('{')?;
    let (before, rest) = text.split_at(open);
    let (list, after) = rest.strip_prefix('{')?.split_once('}')?;
    (list.contains(',') && !list.contains('{')).then_some((before, list, after))
}

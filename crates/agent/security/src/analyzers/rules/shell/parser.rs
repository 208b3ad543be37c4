//! Commands: pipelines, lists and the constructs of the shell.

use super::{
    Command, Fault, MAX_DEPTH, Parsed, Pipeline, Script, Simple, Stage, Word, redirect::Document, word::Context,
};

/// The result of reading a part of the text.
pub(super) type Result<T> = std::result::Result<T, Fault>;

/// Reads shell text. What stands before a fault is part of the result, as a shell runs it before it finds the fault.
pub(in super::super) fn parse(text: &str) -> Parsed {
    let mut reader = Reader::new(text.as_bytes(), 0);
    let mut script = Script::default();
    let fault = reader.top_level(&mut script).err();
    Parsed { script, fault }
}

/// Reads a text once from front to back.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    depth: u32,
    /// The here-documents whose bodies begin with the next line.
    pub(super) documents: Vec<Document>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], depth: u32) -> Self {
        Self { bytes, at: 0, depth, documents: Vec::new() }
    }

    /// A reader for a text within this one.
    pub(super) fn inner<'b>(&self, bytes: &'b [u8]) -> Reader<'b> {
        Reader::new(bytes, self.depth)
    }

    /// The commands of a text within this one.
    pub(super) fn parse_inner(&self, bytes: &[u8]) -> Result<Script> {
        let mut script = Script::default();
        let mut reader = self.inner(bytes);
        reader.nested(|reader| reader.top_level(&mut script))?;
        Ok(script)
    }

    fn top_level(&mut self, script: &mut Script) -> Result<()> {
        self.list_into(script)?;
        // Anything else ends a construct which nobody began.
        if self.peek().is_none() { self.bodies() } else { Err(Fault::Syntax) }
    }

    /// Reads something one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    pub(super) fn find(&self, from: usize, byte: u8) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        rest.iter().position(|one| *one == byte).map(|offset| from + offset)
    }

    /// A part of the text.
    pub(super) fn text(&self, start: usize, end: usize) -> String {
        String::from_utf8_lossy(self.bytes.get(start..end).unwrap_or_default()).into_owned()
    }

    /// Passes over blanks, continued lines and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => self.at = self.find(self.at, b'\n').unwrap_or(self.bytes.len()),
                _ => return,
            }
        }
    }

    /// Passes over blanks and ends of lines, and reads the here-documents that begin there.
    fn lines(&mut self) -> Result<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.bodies()?;
        }
    }

    /// Commands up to something that ends them, which is not taken.
    pub(super) fn list(&mut self) -> Result<Script> {
        let mut script = Script::default();
        self.nested(|reader| reader.list_into(&mut script))?;
        Ok(script)
    }

    fn list_into(&mut self, script: &mut Script) -> Result<()> {
        loop {
            self.lines()?;
            match self.peek() {
                None | Some(b')') => return Ok(()),
                Some(b';') if self.peek_at(1) == Some(b';') || self.peek_at(1) == Some(b'&') => return Ok(()),
                _ => {}
            }
            if CLOSERS.iter().any(|word| self.at_keyword(word)) {
                return Ok(());
            }
            let mut pipeline = self.pipeline()?;
            self.blanks();
            match (self.peek(), self.peek_at(1)) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => {
                    self.at += 2;
                    self.lines()?;
                    if self.at_end_of_list() {
                        return Err(Fault::Syntax);
                    }
                }
                (Some(b';'), next) if next != Some(b';') && next != Some(b'&') => self.at += 1,
                (Some(b'&'), _) => {
                    self.at += 1;
                    pipeline.background = true;
                }
                _ => {}
            }
            script.pipelines.push(pipeline);
        }
    }

    fn at_end_of_list(&self) -> bool {
        matches!(self.peek(), None | Some(b')' | b';' | b'&' | b'|'))
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        let mut stages = Vec::new();
        loop {
            self.lines()?;
            while self.keyword("!") || self.keyword("time") || self.coprocess() {
                self.lines()?;
            }
            stages.push(self.stage()?);
            self.blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Ok(Pipeline { stages, background: false });
            }
            self.at += if self.peek_at(1) == Some(b'&') { 2 } else { 1 };
            self.lines()?;
            if self.at_end_of_list() {
                return Err(Fault::Syntax);
            }
        }
    }

    /// `coproc`, also with a name before a construct.
    fn coprocess(&mut self) -> bool {
        if !self.keyword("coproc") {
            return false;
        }
        self.blanks();
        let start = self.at;
        let name = self.name();
        self.blanks();
        if name.is_empty() || !(self.at_keyword("{") || self.peek() == Some(b'(')) {
            self.at = start;
        }
        true
    }

    fn stage(&mut self) -> Result<Stage> {
        let Some(command) = self.nested(Self::compound)? else { return self.simple() };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Stage { command, redirects }),
            }
        }
    }

    /// A construct of the shell, if one begins here.
    fn compound(&mut self) -> Result<Option<Command>> {
        if self.starts_with("((")
            && let Some(end) = self.arithmetic_end(self.at + 2)
        {
            self.at = end + 2;
            return Ok(Some(Command::Group(Script::default())));
        }
        if self.peek() == Some(b'(') {
            self.at += 1;
            return Ok(Some(Command::Subshell(self.script_until_parenthesis()?)));
        }
        if self.keyword("{") {
            let script = self.list()?;
            self.expect("}")?;
            return Ok(Some(Command::Group(script)));
        }
        if self.keyword("if") {
            return self.sections(&["then", "elif", "else"], "fi").map(Some);
        }
        if self.keyword("while") || self.keyword("until") {
            return self.sections(&["do"], "done").map(Some);
        }
        if self.keyword("for") || self.keyword("select") {
            return self.for_loop().map(Some);
        }
        if self.keyword("case") {
            return self.case().map(Some);
        }
        if self.keyword("[[") {
            return self.condition().map(Some);
        }
        if self.keyword("function") {
            self.blanks();
            let name = self.word(Context::Argument)?.as_bare().unwrap_or_default().to_owned();
            self.blanks();
            if self.starts_with("()") {
                self.at += 2;
            }
            return self.function(name).map(Some);
        }
        match self.function_name() {
            Some(name) => self.function(name).map(Some),
            None => Ok(None),
        }
    }

    /// Lists with keywords between them: the commands of all.
    fn sections(&mut self, between: &[&str], end: &str) -> Result<Command> {
        let mut all = Script::default();
        loop {
            all.pipelines.append(&mut self.list()?.pipelines);
            if between.iter().any(|word| self.keyword(word)) {
                continue;
            }
            self.expect(end)?;
            return Ok(Command::Group(all));
        }
    }

    fn for_loop(&mut self) -> Result<Command> {
        self.blanks();
        let mut words = Vec::new();
        let mut name = String::new();
        if self.starts_with("((") {
            self.at = self.arithmetic_end(self.at + 2).ok_or(Fault::Syntax)? + 2;
        } else {
            name = self.name();
            self.lines()?;
            if self.keyword("in") {
                words = self.words()?;
            }
        }
        self.blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.lines()?;
        let (open, close) = if self.at_keyword("{") { ("{", "}") } else { ("do", "done") };
        self.expect(open)?;
        let body = self.list()?;
        self.expect(close)?;
        Ok(Command::Loop { name, words, body })
    }

    /// Words up to something that is none.
    fn words(&mut self) -> Result<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            let word = self.word(Context::Argument)?;
            if self.at == start {
                return Ok(words);
            }
            words.push(word);
        }
    }

    fn case(&mut self) -> Result<Command> {
        self.blanks();
        self.word(Context::Argument)?;
        self.lines()?;
        self.expect("in")?;
        let mut all = Script::default();
        loop {
            self.lines()?;
            if self.keyword("esac") {
                return Ok(Command::Group(all));
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            loop {
                self.words()?;
                self.blanks();
                match self.peek() {
                    Some(b'|') => self.at += 1,
                    Some(b')') => break,
                    _ => return Err(Fault::Syntax),
                }
            }
            self.at += 1;
            all.pipelines.append(&mut self.list()?.pipelines);
            while matches!(self.peek(), Some(b';' | b'&')) {
                self.at += 1;
            }
        }
    }

    /// What follows `[[`. Only the commands in it matter.
    fn condition(&mut self) -> Result<Command> {
        let mut simple = Simple::default();
        loop {
            self.lines()?;
            if self.keyword("]]") {
                let stage = Stage { command: Command::Simple(simple), redirects: Vec::new() };
                let pipeline = Pipeline { stages: vec![stage], background: false };
                return Ok(Command::Group(Script { pipelines: vec![pipeline] }));
            }
            let start = self.at;
            let word = self.word(Context::Argument)?;
            if self.at > start {
                // A condition runs no program: what it looks at is kept as the values of a variable without a name.
                simple.assignments.push((String::new(), word));
            } else if self.peek().is_some_and(|byte| b"<>&|()".contains(&byte)) {
                self.at += 1;
            } else {
                return Err(Fault::Syntax);
            }
        }
    }

    /// The name of a function whose definition begins here; what stands before its body is taken.
    fn function_name(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| b" \t\n;&|()<>'\"\\`$=".contains(byte))?;
        let mut end = self.at + length;
        let name = self.text(self.at, end);
        while self.bytes.get(end) == Some(&b' ') {
            end += 1;
        }
        let rest = self.bytes.get(end..)?.strip_prefix(b"(")?;
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        if name.is_empty() || rest.get(blanks) != Some(&b')') {
            return None;
        }
        self.at = end + 1 + blanks + 1;
        Some(name)
    }

    fn function(&mut self, name: String) -> Result<Command> {
        self.lines()?;
        let stage = self.nested(Self::stage)?;
        let pipeline = Pipeline { stages: vec![stage], background: false };
        Ok(Command::Function { name, body: Script { pipelines: vec![pipeline] } })
    }

    fn simple(&mut self) -> Result<Stage> {
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let start = self.at;
            let mut word = self.word(Context::Argument)?;
            if self.at == start {
                break;
            }
            // `declare -a name=(…)`
            if self.peek() == Some(b'(') && word.as_bare().is_some_and(|text| text.ends_with('=')) {
                word.pieces.extend(self.array()?.pieces);
            }
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty() {
            return Err(Fault::Syntax);
        }
        if self.peek() == Some(b'(') {
            return Err(Fault::Syntax);
        }
        Ok(Stage { command: Command::Simple(simple), redirects })
    }

    /// `name=value` or `name=(values)`.
    fn assignment(&mut self) -> Result<Option<(String, Word)>> {
        let start = self.at;
        let name = self.name();
        let numeric = name.as_bytes().first().is_none_or(u8::is_ascii_digit);
        if !numeric && self.peek() == Some(b'[') {
            let near = self.bytes.len().min(self.at + MAX_SUBSCRIPT);
            let close = self.bytes.get(self.at..near).and_then(|part| part.iter().position(|byte| *byte == b']'));
            self.at += close.map_or(0, |offset| offset + 1);
        }
        if !numeric && self.peek() == Some(b'+') && self.peek_at(1) == Some(b'=') {
            self.at += 1;
        }
        if numeric || self.peek() != Some(b'=') {
            self.at = start;
            return Ok(None);
        }
        self.at += 1;
        let value = if self.peek() == Some(b'(') { self.array()? } else { self.word(Context::Argument)? };
        Ok(Some((name, value)))
    }

    /// The values of an array with blanks between them, at the parenthesis.
    fn array(&mut self) -> Result<Word> {
        self.at += 1;
        let mut all = Word::default();
        loop {
            self.lines()?;
            if self.peek() == Some(b')') {
                self.at += 1;
                return Ok(all);
            }
            let start = self.at;
            let word = self.word(Context::Argument)?;
            if self.at == start {
                return Err(Fault::Syntax);
            }
            if !all.pieces.is_empty() {
                all.push(" ", super::Quoting::Bare);
            }
            all.pieces.extend(word.pieces);
        }
    }

    /// Whether this word stands here on its own.
    fn at_keyword(&self, word: &str) -> bool {
        self.starts_with(word) && self.peek_at(word.len()).is_none_or(|next| b" \t\r\n;&|()<>".contains(&next))
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        self.lines()?;
        if self.keyword(word) { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Where the `))` stands that ends the expression which begins here, if it is one.
    pub(super) fn arithmetic_end(&self, from: usize) -> Option<usize> {
        let mut open = 0_usize;
        let mut at = from;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => return (self.bytes.get(at + 1) == Some(&b')')).then_some(at),
                b'\'' => at = self.find(at + 1, b'\'')?,
                b'\\' => at += 1,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Passes over a list of patterns.
    pub(super) fn skip_parentheses(&mut self) -> Result<()> {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' if open == 1 => return Ok(()),
                b')' => open -= 1,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        Err(Fault::Syntax)
    }
}

/// Longest index of an array in an assignment, so that looking for its end stays cheap.
const MAX_SUBSCRIPT: usize = 256;

/// What ends the commands of a construct.
const CLOSERS: [&str; 8] = ["}", "then", "elif", "else", "fi", "do", "done", "esac"];

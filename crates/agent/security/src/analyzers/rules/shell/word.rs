//! Words: quotes, escapes, expansions.

use super::{
    Change, Fault, Piece, Quoting, Script, Word,
    parser::{Reader, Result},
};

/// Where a word stands, which decides where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// An argument: ends at blanks and operators.
    Argument,
    /// Inside `${…}`: ends at the brace.
    Brace,
    /// Inside double quotes within `${…}`, or the quotes themselves: ends at the quote.
    Quotes,
    /// The body of a here-document: ends with the text.
    Body,
}

impl Reader<'_> {
    /// Reads a word up to what ends it in the context; that itself is not taken.
    pub(super) fn word(&mut self, context: Context) -> Result<Word> {
        self.nested(|reader| reader.word_here(context))
    }

    fn word_here(&mut self, context: Context) -> Result<Word> {
        let mut word = Word::default();
        let quoting = match context {
            Context::Argument | Context::Brace => Quoting::Bare,
            Context::Quotes | Context::Body => Quoting::Quoted,
        };
        while let Some(byte) = self.peek() {
            match (byte, context) {
                (b'<' | b'>', Context::Argument) if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    let script = self.script_until_parenthesis()?;
                    word.pieces.push(Piece::Process(script));
                }
                (b'"', Context::Quotes)
                | (b'}', Context::Brace)
                | (b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>', Context::Argument) => {
                    return Ok(word);
                }
                (b'(', Context::Argument) => {
                    if !is_pattern_list(&word) {
                        return Ok(word);
                    }
                    self.skip_parentheses()?;
                    word.pieces.push(Piece::Unknown);
                }
                (b'\'', Context::Argument | Context::Brace) => self.single_quotes(&mut word)?,
                (b'"', Context::Argument | Context::Brace) => self.double_quotes(&mut word)?,
                (b'\\', _) => self.escape(&mut word, context),
                (b'`', _) => self.backticks(&mut word, quoting)?,
                (b'$', _) => self.dollar(&mut word, context, quoting)?,
                _ => self.plain(&mut word, quoting),
            }
        }
        if matches!(context, Context::Brace | Context::Quotes) { Err(Fault::Syntax) } else { Ok(word) }
    }

    /// Text up to the next character that could mean something.
    fn plain(&mut self, word: &mut Word, quoting: Quoting) {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            if b" \t\n;&|()<>'\"\\`$}".contains(&byte) {
                break;
            }
            self.at += 1;
        }
        let text = self.text(start, self.at);
        word.push(&text, quoting);
    }

    fn single_quotes(&mut self, word: &mut Word) -> Result<()> {
        let start = self.at + 1;
        let end = self.find(start, b'\'').ok_or(Fault::Syntax)?;
        let text = self.text(start, end);
        word.push(&text, Quoting::Quoted);
        self.at = end + 1;
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Result<()> {
        self.at += 1;
        // An empty text is a word of its own.
        word.push("", Quoting::Quoted);
        let inner = self.word(Context::Quotes)?;
        self.at += 1;
        word.pieces.extend(inner.pieces);
        Ok(())
    }

    fn escape(&mut self, word: &mut Word, context: Context) {
        let Some(next) = self.peek_at(1) else {
            self.at += 1;
            return word.push("\\", Quoting::Quoted);
        };
        if next == b'\n' {
            self.at += 2;
            return;
        }
        // In quotes a backslash takes the meaning only from what has one there.
        let literal = match context {
            Context::Argument | Context::Brace => false,
            Context::Quotes => !b"$`\"\\".contains(&next),
            Context::Body => !b"$`\\".contains(&next),
        };
        let start = if literal { self.at } else { self.at + 1 };
        self.at += 2;
        // A character may have more bytes.
        while self.peek().is_some_and(|byte| byte & 0xC0 == 0x80) {
            self.at += 1;
        }
        let text = self.text(start, self.at);
        word.push(&text, Quoting::Quoted);
    }

    fn backticks(&mut self, word: &mut Word, quoting: Quoting) -> Result<()> {
        self.at += 1;
        let mut inner = Vec::new();
        loop {
            match self.peek().ok_or(Fault::Syntax)? {
                b'`' => break,
                b'\\' if self.peek_at(1).is_some_and(|next| b"$`\\".contains(&next)) => {
                    inner.extend(self.peek_at(1));
                    self.at += 2;
                }
                byte => {
                    inner.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        let script = self.parse_inner(&inner)?;
        word.pieces.push(Piece::Substitution { script, quoting });
        Ok(())
    }

    fn dollar(&mut self, word: &mut Word, context: Context, quoting: Quoting) -> Result<()> {
        let next = self.peek_at(1);
        match next {
            Some(b'(') => {
                let piece = self.parentheses(quoting)?;
                word.pieces.extend(piece);
            }
            Some(b'{') => {
                self.at += 2;
                let piece = self.braces(quoting)?;
                word.pieces.push(piece);
            }
            Some(b'\'') if quoting == Quoting::Bare => {
                self.at += 2;
                let text = self.c_quotes()?;
                word.push(&text, Quoting::Quoted);
            }
            Some(b'"') if context == Context::Argument => {
                self.at += 1;
                self.double_quotes(word)?;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.at += 1;
                let name = self.name();
                word.pieces.push(Piece::Variable { name, change: Change::None, quoting });
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                word.pieces.push(Piece::Variable { name: char::from(byte).to_string(), change: Change::None, quoting });
            }
            _ => {
                self.at += 1;
                word.push("$", quoting);
            }
        }
        Ok(())
    }

    /// `$(…)` or `$((…))`, at the dollar.
    fn parentheses(&mut self, quoting: Quoting) -> Result<Vec<Piece>> {
        if self.peek_at(2) == Some(b'(')
            && let Some(end) = self.arithmetic_end(self.at + 3)
        {
            let inner = self.text(self.at + 3, end);
            self.at = end + 2;
            let mut pieces = self.commands_in(&inner)?;
            pieces.push(Piece::Unknown);
            return Ok(pieces);
        }
        self.at += 2;
        let script = self.script_until_parenthesis()?;
        Ok(vec![Piece::Substitution { script, quoting }])
    }

    /// The substitutions in a text that is itself no command.
    fn commands_in(&self, text: &str) -> Result<Vec<Piece>> {
        let word = self.inner(text.as_bytes()).word(Context::Body)?;
        Ok(word.pieces.into_iter().filter(|piece| matches!(piece, Piece::Substitution { .. })).collect())
    }

    /// What follows `${`.
    fn braces(&mut self, quoting: Quoting) -> Result<Piece> {
        let opaque = matches!(self.peek(), Some(b'#' | b'!')) && self.peek_at(1) != Some(b'}');
        if opaque {
            self.at += 1;
        }
        let mut name = self.name();
        if name.is_empty()
            && let Some(byte) = self.peek()
            && (byte.is_ascii_digit() || b"@*#?-$!".contains(&byte))
        {
            self.at += 1;
            name.push(char::from(byte));
        }
        let mut quoting = quoting;
        if self.peek() == Some(b'[') {
            // All elements are as many words, also in quotes.
            if self.peek_at(1) == Some(b'@') {
                quoting = Quoting::Bare;
            }
            self.at = self.find(self.at, b']').ok_or(Fault::Syntax)? + 1;
        }
        let defaulted = match (self.peek(), self.peek_at(1)) {
            (Some(b':'), Some(b'-' | b'=' | b'+' | b'?')) => 2,
            (Some(b'-' | b'=' | b'+' | b'?'), _) => 1,
            _ => 0,
        };
        let required = defaulted > 0 && self.peek_at(defaulted - 1) == Some(b'?');
        self.at += defaulted;
        let rest = self.word(Context::Brace)?;
        self.at += 1;
        let change = match defaulted {
            _ if opaque => Change::Other(rest),
            _ if required => Change::Required(rest),
            0 if rest.pieces.is_empty() => Change::None,
            0 => Change::Other(rest),
            _ => Change::Default(rest),
        };
        Ok(Piece::Variable { name, change, quoting })
    }

    /// The text of `$'…'`, behind the quote.
    fn c_quotes(&mut self) -> Result<String> {
        let mut text = Vec::new();
        loop {
            let byte = self.peek().ok_or(Fault::Syntax)?;
            self.at += 1;
            match byte {
                b'\'' => return Ok(String::from_utf8_lossy(&text).into_owned()),
                b'\\' => self.c_escape(&mut text)?,
                _ => text.push(byte),
            }
        }
    }

    fn c_escape(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let byte = self.peek().ok_or(Fault::Syntax)?;
        self.at += 1;
        let code = match byte {
            b'n' => u32::from(b'\n'),
            b't' => u32::from(b'\t'),
            b'r' => u32::from(b'\r'),
            b'a' | b'b' | b'e' | b'E' | b'f' | b'v' => u32::from(b' '),
            b'x' => self.digits(16, 2),
            b'u' => self.digits(16, 4),
            b'U' => self.digits(16, 8),
            b'0'..=b'7' => {
                self.at -= 1;
                self.digits(8, 3)
            }
            other => u32::from(other),
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: u32) -> u32 {
        let mut number: u32 = 0;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else { break };
            number = number.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        number
    }

    /// The letters, digits and underscores at hand.
    pub(super) fn name(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        self.text(start, self.at)
    }

    /// The commands up to the closing parenthesis, which is taken.
    pub(super) fn script_until_parenthesis(&mut self) -> Result<Script> {
        let script = self.list()?;
        self.blanks();
        if self.peek() != Some(b')') {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        Ok(script)
    }
}

/// Whether a parenthesis at the end of this word opens a list of patterns, as in `!(*.rs)`.
fn is_pattern_list(word: &Word) -> bool {
    match word.pieces.last() {
        Some(Piece::Text { text, quoting: Quoting::Bare }) => text.ends_with(['?', '*', '+', '@', '!']),
        _ => false,
    }
}

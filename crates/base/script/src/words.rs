//! Words: quotes, expansions and substitutions, as far as they decide where a word ends.

use super::lexer::{Fault, Kind, Read, Reader};

impl Reader<'_> {
    /// Reads a word up to the blank or operator that ends it.
    pub(super) fn read_word(&mut self) -> Read<()> {
        let start = self.at;
        let outer = std::mem::take(&mut self.spans);
        let mut special = false;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'<' | b'>' if self.byte(1) == Some(b'(') => self.read_substitution(1)?,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'[' if is_name(self.text.get(start..self.at).unwrap_or_default()) => {
                    self.read_subscript();
                    continue;
                }
                b'\\' | b'\'' | b'"' | b'`' | b'$' => self.read_special()?,
                _ => {
                    // The reference takes this for a comment inside a substitution.
                    self.opaque |= byte == b'#' && self.substitutions > 0;
                    self.at += 1;
                    continue;
                }
            }
            special = true;
        }
        if special {
            self.check_word(start);
        }
        self.spans = outer;
        Ok(())
    }

    /// Passes the subscript of an assignment if it contains blanks, which are a part of the word there. Any other
    /// bracket is read like an ordinary character.
    fn read_subscript(&mut self) {
        let rest = self.text.get(self.at..self.text.len().min(self.at + MAX_SUBSCRIPT)).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| b"]\n\\'\"`(){}<>;&|".contains(byte))
            .filter(|end| rest.get(*end) == Some(&b']'));
        let assigns = end
            .and_then(|end| rest.get(end + 1..))
            .is_some_and(|rest| rest.starts_with(b"=") || rest.starts_with(b"+="));
        self.at += end.filter(|_| assigns).unwrap_or(1);
    }

    /// Reads a quote, an expansion or an escaped byte.
    pub(super) fn read_special(&mut self) -> Read<()> {
        match self.byte(0) {
            Some(b'\\') => {
                if !self.skip_continuation()? {
                    self.skip(2)?;
                }
                Ok(())
            }
            Some(b'\'') => {
                self.at += 1;
                self.skip_past(b'\'')
            }
            Some(b'"') => self.nested(Self::read_double_quotes),
            Some(b'`') => self.read_backticks(),
            Some(b'$') => self.read_dollar(false),
            _ => self.skip(1),
        }
    }

    /// Passes bytes that have to be there.
    pub(super) fn skip(&mut self, count: usize) -> Read<()> {
        if self.at + count > self.text.len() {
            return Err(Fault::Syntax);
        }
        self.at += count;
        Ok(())
    }

    fn skip_past(&mut self, byte: u8) -> Read<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|found| *found == byte).ok_or(Fault::Syntax)?;
        self.at += length + 1;
        Ok(())
    }

    fn read_double_quotes(&mut self) -> Read<()> {
        self.at += 1;
        loop {
            match self.byte(0).ok_or(Fault::Syntax)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.skip(2)?,
                b'`' => self.read_backticks()?,
                b'$' => self.read_dollar(true)?,
                _ => self.at += 1,
            }
        }
    }

    /// Reads what a dollar sign starts.
    fn read_dollar(&mut self, quoted: bool) -> Read<()> {
        match self.byte(1) {
            Some(b'(') if self.byte(2) == Some(b'(') => self.nested(Self::read_arithmetic_or_substitution),
            Some(b'(') => self.read_substitution(1),
            Some(b'{') => {
                let (opaque, known) = (self.opaque, self.spans.len());
                let start = self.at;
                self.at += 2;
                self.nested(|reader| reader.read_matched(b'{', b'}'))?;
                self.opaque = opaque;
                self.spans.truncate(known);
                self.check_parameter(start);
                Ok(())
            }
            Some(b'[') => {
                self.opaque = true;
                self.at += 2;
                self.nested(|reader| reader.read_matched(b'[', b']'))
            }
            Some(b'\'') if !quoted => {
                self.at += 2;
                loop {
                    match self.byte(0).ok_or(Fault::Syntax)? {
                        b'\'' => return self.skip(1),
                        b'\\' => self.skip(2)?,
                        _ => self.at += 1,
                    }
                }
            }
            Some(b'$' | b'#') => self.skip(2),
            _ => self.skip(1),
        }
    }

    /// Reads up to the closing bracket that belongs to an opening one in front.
    pub(super) fn read_matched(&mut self, open: u8, close: u8) -> Read<()> {
        let mut count = 1u32;
        loop {
            match self.byte(0).ok_or(Fault::Syntax)? {
                byte if byte == close => {
                    self.at += 1;
                    count -= 1;
                    if count == 0 {
                        return Ok(());
                    }
                }
                // Inside braces of an expansion only those behind a dollar sign count.
                byte if byte == open && open != b'{' => {
                    self.at += 1;
                    count += 1;
                }
                b'\\' => self.skip(2)?,
                b'\'' | b'"' | b'`' | b'$' => self.read_special()?,
                _ => self.at += 1,
            }
        }
    }

    /// Reads `$((`: an expression, or a substitution that starts with a subshell.
    fn read_arithmetic_or_substitution(&mut self) -> Read<()> {
        self.opaque = true;
        let start = self.at;
        self.at += 3;
        if let Some(end) = self.arithmetic_end()? {
            self.rewind(end);
            return Ok(());
        }
        self.rewind(start);
        self.read_substitution(1)
    }

    /// Finds the end of an expression whose double parenthesis has just been read. There is none if the parentheses
    /// belong to two subshells.
    pub(super) fn arithmetic_end(&mut self) -> Read<Option<usize>> {
        let start = self.at;
        if let Some(known) = self.arithmetic.get(&start) {
            return Ok(*known);
        }
        let end = match self.nested(|reader| reader.read_matched(b'(', b')')) {
            Ok(()) => (self.byte(0) == Some(b')')).then_some(self.at + 1),
            Err(Fault::Syntax) => None,
            Err(Fault::TooDeep) => return Err(Fault::TooDeep),
        };
        self.arithmetic.insert(start, end);
        Ok(end)
    }

    /// Reads a command or process substitution whose parenthesis is `offset` bytes ahead.
    pub(super) fn read_substitution(&mut self, offset: usize) -> Read<()> {
        let start = self.at;
        self.at += offset + 1;
        let pending = std::mem::take(&mut self.pending);
        self.substitutions += 1;
        let first_end = self.nested(Self::substituted_script)?;
        self.substitutions -= 1;
        if !self.pending.is_empty() {
            return Err(Fault::Syntax);
        }
        self.pending = pending;
        // The reference reads the first command only and takes the rest for ordinary characters of the word.
        match first_end {
            Some(end) => self.spans.push((start, end + 1)),
            None => self.opaque = true,
        }
        Ok(())
    }

    /// Reads commands up to a closing parenthesis. Returns where the reference stops reading them, which is at the
    /// end of the first line.
    fn substituted_script(&mut self) -> Read<Option<usize>> {
        let mut first_end = None;
        loop {
            self.skip_newlines()?;
            if self.take_if(Kind::Close)? {
                return Ok(first_end);
            }
            let line = self.simple_list()?;
            if first_end.is_none() {
                first_end = Some(line.end);
                if self.peek()?.kind == Kind::Close {
                    self.check_substituted_line(line);
                }
            }
            if !matches!(self.peek()?.kind, Kind::Newline | Kind::Close) {
                return Err(Fault::Syntax);
            }
        }
    }

    /// Reads a substitution in backticks. The shell parses its commands only when it expands them; the reference
    /// parses them at once.
    fn read_backticks(&mut self) -> Read<()> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.byte(0).ok_or(Fault::Syntax)? {
                b'`' => break,
                b'\\' => self.skip(2)?,
                _ => self.at += 1,
            }
        }
        let content = self.text.get(start + 1..self.at).unwrap_or_default();
        self.at += 1;
        self.spans.push((start, self.at));
        if !content.is_empty() && !self.opaque {
            let mut inner = Reader::new(content);
            inner.depth = self.depth + 1;
            // It does not know how to nest them.
            let nests = content.windows(2).any(|pair| pair == b"\\`");
            let read = if nests { Err(Fault::Syntax) } else { inner.script() };
            self.opaque |= read.is_err() || inner.opaque || inner.starts.is_empty();
        }
        Ok(())
    }
}

/// The longest subscript that is looked at for blanks.
const MAX_SUBSCRIPT: usize = 256;

/// Whether a text can be the name of a variable.
pub(super) fn is_name(text: &[u8]) -> bool {
    text.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

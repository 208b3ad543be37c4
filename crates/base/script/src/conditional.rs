//! Conditional expressions: what stands between `[[` and `]]`.

use super::lexer::{Fault, Kind, Read, Reader};

impl Reader<'_> {
    /// Reads a conditional expression with its brackets. Returns where it ends.
    pub(super) fn conditional(&mut self) -> Read<usize> {
        // The reference takes the brackets for reserved words but has no use for them.
        self.opaque = true;
        self.take()?;
        self.nested(Self::either)?;
        let token = self.take()?;
        if token.kind == Kind::Word && self.word(token).as_ref() == b"]]" { Ok(token.end) } else { Err(Fault::Syntax) }
    }

    fn either(&mut self) -> Read<()> {
        loop {
            self.term()?;
            self.skip_newlines()?;
            if !self.take_if(Kind::AndOr)? {
                return Ok(());
            }
        }
    }

    fn term(&mut self) -> Read<()> {
        self.skip_newlines()?;
        let token = self.take()?;
        match token.kind {
            Kind::Open => {
                self.nested(Self::either)?;
                if self.take_if(Kind::Close)? { Ok(()) } else { Err(Fault::Syntax) }
            }
            Kind::Word => match self.word(token).as_ref() {
                b"!" => self.nested(Self::term),
                b"]]" => Err(Fault::Syntax),
                word if is_unary(word) => self.unary(),
                _ => self.binary(),
            },
            _ => Err(Fault::Syntax),
        }
    }

    /// Reads the operand of an operator such as `-f`.
    fn unary(&mut self) -> Read<()> {
        let token = self.take()?;
        let operand = token.kind == Kind::Word && self.word(token).as_ref() != b"]]";
        if operand { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Reads what follows the left operand: nothing, or an operator and the right operand.
    fn binary(&mut self) -> Read<()> {
        let token = self.peek()?;
        let pattern = match token.kind {
            Kind::Redirect if token.end == token.start + 1 => false,
            Kind::Word => match self.word(token).as_ref() {
                b"]]" => return Ok(()),
                b"=~" => {
                    self.take()?;
                    return self.pattern(true);
                }
                b"=" | b"==" | b"!=" => true,
                b"-eq" | b"-ne" | b"-lt" | b"-le" | b"-gt" | b"-ge" | b"-nt" | b"-ot" | b"-ef" => false,
                _ => return Err(Fault::Syntax),
            },
            Kind::AndOr | Kind::Close | Kind::Newline => return Ok(()),
            _ => return Err(Fault::Syntax),
        };
        self.take()?;
        if pattern { self.pattern(false) } else { self.unary() }
    }

    /// Reads a right operand in which parentheses are part of the word: of a regular expression anywhere, of a
    /// pattern behind one of `?*+@!`.
    fn pattern(&mut self, regex: bool) -> Read<()> {
        self.skip_blanks()?;
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            let before = self.at.checked_sub(1).filter(|at| *at >= start).and_then(|at| self.text.get(at));
            match byte {
                b'(' if regex || before.is_some_and(|before| b"?*+@!".contains(before)) => {
                    self.at += 1;
                    self.nested(|reader| reader.read_matched(b'(', b')'))?;
                }
                b'<' | b'>' if self.byte(1) == Some(b'(') => self.read_substitution(1)?,
                b'|' if regex => self.at += 1,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' | b'\'' | b'"' | b'`' | b'$' => self.read_special()?,
                _ => self.at += 1,
            }
        }
        let operand = self.text.get(start..self.at).unwrap_or_default();
        if matches!(operand, b"" | b"]]") { Err(Fault::Syntax) } else { Ok(()) }
    }
}

/// Whether a word is an operator with one operand.
fn is_unary(word: &[u8]) -> bool {
    matches!(word, [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
}

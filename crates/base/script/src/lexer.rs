//! Tokens: operators, words, new lines, and the here-documents that follow them.

use std::{borrow::Cow, collections::BTreeMap};

/// How deep constructs may nest. Each level costs less than 8 KiB of stack in an unoptimised build, so that the
/// deepest text fits into the smallest stack that a thread of the server has (2 MiB) many times over.
pub(super) const MAX_DEPTH: u32 = 80;

/// Why reading stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The text ends too early, or has something where it may not stand.
    Syntax,
    /// The text nests deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// The result of reading a part of the text.
pub(super) type Read<T> = Result<T, Fault>;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Newline,
    End,
    /// `&&`, `||`
    AndOr,
    /// `|`, `|&`
    Pipe,
    Semicolon,
    Ampersand,
    /// `;;`, `;&`, `;;&`
    CaseEnd,
    Open,
    Close,
    /// Any redirection operator except those of here-documents.
    Redirect,
    /// `<<`, or `<<-` when `strip` is set.
    HereDoc {
        strip: bool,
    },
}

/// A token and where it lies in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A here-document whose body is still to come.
#[derive(Debug)]
pub(super) struct PendingDoc {
    delimiter: Vec<u8>,
    quoted: bool,
    strip: bool,
}

/// Reads a text once from front to back.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// The token at hand, when it has been looked at but not taken.
    ahead: Option<Token>,
    pub(super) pending: Vec<PendingDoc>,
    /// How many constructs are open.
    pub(super) depth: u32,
    /// How many command substitutions are open.
    pub(super) substitutions: u32,
    /// Whether the line at hand ends with an operator that wants another command.
    continued: bool,
    /// Whether the reference fails on the text, or might.
    pub(super) opaque: bool,
    /// Where the top-level commands start.
    pub(super) starts: Vec<usize>,
    /// Where the last top-level command ends, its here-documents included.
    pub(super) last_end: usize,
    /// The substitutions of the word at hand: where each starts (at `$`, `<`, `>` or a backtick) and where the
    /// reference goes on reading.
    pub(super) spans: Vec<(usize, usize)>,
    /// What was found out about double parentheses: whether they hold an expression, and where that ends. Without
    /// this, each level of nesting would double the time.
    pub(super) arithmetic: BTreeMap<usize, Option<usize>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            ahead: None,
            pending: Vec::new(),
            depth: 0,
            arithmetic: BTreeMap::new(),
            substitutions: 0,
            continued: false,
            opaque: false,
            starts: Vec::new(),
            last_end: 0,
            spans: Vec::new(),
        }
    }

    /// Reads something one level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Whether the command at hand is a part of another one.
    fn is_inside(&self) -> bool {
        self.depth > 1
    }

    /// The byte that is `offset` bytes ahead.
    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        self.text.get(self.at + offset).copied()
    }

    pub(super) fn starts_with(&self, prefix: &[u8]) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(prefix))
    }

    /// The token at hand, left in place.
    pub(super) fn peek(&mut self) -> Read<Token> {
        if let Some(token) = self.ahead {
            return Ok(token);
        }
        let token = self.token()?;
        self.ahead = Some(token);
        Ok(token)
    }

    /// Takes the token at hand.
    pub(super) fn take(&mut self) -> Read<Token> {
        let token = self.peek()?;
        self.ahead = None;
        Ok(token)
    }

    /// Takes the token at hand if it is of this kind.
    pub(super) fn take_if(&mut self, kind: Kind) -> Read<bool> {
        let found = self.peek()?.kind == kind;
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    /// Goes to another place in the text.
    pub(super) fn rewind(&mut self, at: usize) {
        self.at = at;
        self.ahead = None;
    }

    pub(super) fn skip_newlines(&mut self) -> Read<()> {
        while self.take_if(Kind::Newline)? {}
        Ok(())
    }

    /// Passes the new lines behind an operator that wants another command.
    pub(super) fn skip_newlines_after_operator(&mut self) -> Read<()> {
        self.continued = true;
        let result = self.skip_newlines();
        self.continued = false;
        result
    }

    /// The text of a token without its line continuations.
    pub(super) fn word(&self, token: Token) -> Cow<'a, [u8]> {
        let raw = self.text.get(token.start..token.end).unwrap_or_default();
        if !raw.contains(&b'\n') {
            return Cow::Borrowed(raw);
        }
        let mut clean = Vec::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((first, tail)) = rest.split_first() {
            match (first, tail.first()) {
                (b'\\', Some(b'\n')) => rest = tail.get(1..).unwrap_or_default(),
                (b'\\', Some(second)) => {
                    clean.extend([*first, *second]);
                    rest = tail.get(1..).unwrap_or_default();
                }
                _ => {
                    clean.push(*first);
                    rest = tail;
                }
            }
        }
        Cow::Owned(clean)
    }

    /// Passes a backslash and the newline behind it. A text may not end there.
    pub(super) fn skip_continuation(&mut self) -> Read<bool> {
        let found = self.starts_with(b"\\\n");
        if found {
            self.at += 2;
            if self.at >= self.text.len() {
                return Err(Fault::Syntax);
            }
        }
        Ok(found)
    }

    pub(super) fn skip_blanks(&mut self) -> Read<()> {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.skip_continuation()? => {}
                Some(b'#') => {
                    // The reference loses here-documents inside a command when a comment follows their operator.
                    self.opaque |= !self.pending.is_empty() && self.is_inside();
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    self.at += length;
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads the next token.
    fn token(&mut self) -> Read<Token> {
        self.skip_blanks()?;
        let start = self.at;
        let (kind, length) = match (self.byte(0), self.operator_byte(1)?, self.operator_byte(2)?) {
            (None, ..) => (Kind::End, 0),
            (Some(b'\n'), ..) => {
                self.at += 1;
                self.read_documents()?;
                return Ok(Token { kind: Kind::Newline, start, end: self.at });
            }
            (Some(b'&'), Some(b'&'), _) | (Some(b'|'), Some(b'|'), _) => (Kind::AndOr, 2),
            (Some(b'&'), Some(b'>'), Some(b'>')) | (Some(b'<'), Some(b'<'), Some(b'<')) => (Kind::Redirect, 3),
            (Some(b'&'), Some(b'>'), _)
            | (Some(b'<'), Some(b'&' | b'>'), _)
            | (Some(b'>'), Some(b'&' | b'>' | b'|'), _) => (Kind::Redirect, 2),
            (Some(b'&'), ..) => (Kind::Ampersand, 1),
            (Some(b'|'), Some(b'&'), _) => (Kind::Pipe, 2),
            (Some(b'|'), ..) => (Kind::Pipe, 1),
            (Some(b';'), Some(b';'), Some(b'&')) => (Kind::CaseEnd, 3),
            (Some(b';'), Some(b';' | b'&'), _) => (Kind::CaseEnd, 2),
            (Some(b';'), ..) => (Kind::Semicolon, 1),
            (Some(b'('), ..) => (Kind::Open, 1),
            (Some(b')'), ..) => (Kind::Close, 1),
            (Some(b'<'), Some(b'<'), Some(b'-')) => (Kind::HereDoc { strip: true }, 3),
            (Some(b'<'), Some(b'<'), _) => (Kind::HereDoc { strip: false }, 2),
            (Some(b'<' | b'>'), Some(b'('), _) => (Kind::Word, 0),
            (Some(b'<' | b'>'), ..) => (Kind::Redirect, 1),
            (Some(_), ..) => (Kind::Word, 0),
        };
        if kind == Kind::Word {
            self.read_word()?;
        } else {
            self.at += length;
        }
        Ok(Token { kind, start, end: self.at })
    }

    /// A byte that may belong to an operator. An operator that is broken by a line continuation is left to the shell.
    fn operator_byte(&self, offset: usize) -> Read<Option<u8>> {
        let byte = self.byte(offset);
        let operator = matches!(self.byte(0), Some(b'&' | b'|' | b';' | b'<' | b'>'));
        if operator && byte == Some(b'\\') && self.byte(offset + 1) == Some(b'\n') && offset == 1 {
            return if self.byte(3).is_some_and(|next| b"&|;<>(-".contains(&next)) {
                Err(Fault::Syntax)
            } else {
                Ok(None)
            };
        }
        Ok(byte)
    }

    /// Notes a here-document whose delimiter is the word at hand.
    pub(super) fn expect_document(&mut self, strip: bool) -> Read<()> {
        let token = self.take()?;
        if token.kind != Kind::Word {
            return Err(Fault::Syntax);
        }
        let raw = self.word(token);
        let quoted = raw.iter().any(|byte| b"'\"\\".contains(byte));
        // The reference compares the lines with the delimiter as it is written, quotes included.
        self.opaque |= quoted || raw.iter().any(|byte| b"$`<>".contains(byte));
        self.pending.push(PendingDoc { delimiter: unquoted(&raw), quoted, strip });
        Ok(())
    }

    /// Reads the bodies of the here-documents that were announced on the line before.
    fn read_documents(&mut self) -> Read<()> {
        let start = self.at;
        let pending = std::mem::take(&mut self.pending);
        for document in &pending {
            self.read_document(document)?;
        }
        if !pending.is_empty() && (self.continued || self.is_inside()) {
            self.check_inner_documents(start, pending.len());
        }
        Ok(())
    }

    fn read_document(&mut self, document: &PendingDoc) -> Read<()> {
        let mut line = Vec::new();
        while self.at < self.text.len() {
            line.clear();
            self.read_line(!document.quoted, &mut line);
            let tabs = if document.strip { line.iter().take_while(|byte| **byte == b'\t').count() } else { 0 };
            let content = line.get(tabs..).unwrap_or_default();
            if content == document.delimiter {
                return Ok(());
            }
        }
        Err(Fault::Syntax)
    }

    /// Reads a line, joined with the next ones where a backslash asks for it.
    fn read_line(&mut self, join: bool, line: &mut Vec<u8>) {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let raw = rest.get(..length).unwrap_or_default();
            self.at += (length + 1).min(rest.len());
            let backslashes = raw.iter().rev().take_while(|byte| **byte == b'\\').count();
            if !join || backslashes % 2 == 0 || length == rest.len() {
                line.extend_from_slice(raw);
                return;
            }
            line.extend(raw.get(..length.saturating_sub(1)).unwrap_or_default());
        }
    }
}

/// Removes the quotes of a here-document's delimiter.
fn unquoted(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut quote = None;
    let mut bytes = word.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'\\') => plain.extend(bytes.next()),
            (Some(b'"'), b'\\') if bytes.peek().is_some_and(|next| b"\\\"$`".contains(next)) => {
                plain.extend(bytes.next());
            }
            _ => plain.push(byte),
        }
    }
    plain
}

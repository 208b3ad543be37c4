//! Redirections, and the here-documents that follow the line of theirs.

use std::{cell::OnceCell, rc::Rc};

use super::{
    Fault, Piece, Quoting, Redirect, RedirectKind, Target, Word,
    parser::{Reader, Result},
    word::Context,
};

/// A here-document whose body is still to come.
pub(super) struct Document {
    delimiter: Vec<u8>,
    strip: bool,
    quoting: Quoting,
    body: Rc<OnceCell<Word>>,
}

impl Reader<'_> {
    /// Reads the here-documents that begin here.
    pub(super) fn bodies(&mut self) -> Result<()> {
        for document in std::mem::take(&mut self.documents) {
            let start = self.at;
            let (end, next) = self.document_end(&document);
            let mut text = self.text(start, end);
            if document.strip {
                text = text.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect();
            }
            self.at = next;
            let word = match document.quoting {
                Quoting::Quoted => {
                    let mut word = Word::default();
                    word.push(&text, Quoting::Quoted);
                    word
                }
                Quoting::Bare => self.inner(text.as_bytes()).word(Context::Body)?,
            };
            // The cell is set once: its document leaves the list here.
            let _set = document.body.set(word);
        }
        Ok(())
    }

    /// Where the body ends, and where the line behind its delimiter begins.
    fn document_end(&self, document: &Document) -> (usize, usize) {
        let mut start = self.at;
        while start < self.bytes.len() {
            let end = self.find(start, b'\n').unwrap_or(self.bytes.len());
            let mut line = self.bytes.get(start..end).unwrap_or_default();
            if document.strip {
                line = line.trim_ascii_start();
            }
            let next = (end + 1).min(self.bytes.len());
            if line == document.delimiter {
                return (start, next);
            }
            start = next;
        }
        (self.bytes.len(), self.bytes.len())
    }

    /// A redirection, if one begins here.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>> {
        let digits = self.bytes.get(self.at..).unwrap_or_default();
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let descriptor = self.text(self.at, self.at + digits);
        let operator = self.bytes.get(self.at + digits..).unwrap_or_default();
        let found = OPERATORS.iter().find(|(text, _)| operator.starts_with(text.as_bytes()));
        let Some((text, kind)) = found else { return Ok(None) };
        if digits > 0 && text.starts_with('&') {
            return Ok(None);
        }
        // `<(` begins a word.
        if text.len() == 1 && operator.get(1) == Some(&b'(') {
            return Ok(None);
        }
        self.at += digits + text.len();
        self.blanks();
        let only_errors = !matches!(descriptor.as_str(), "" | "1");
        if matches!(*text, "<<" | "<<-") {
            let target = self.document(*text == "<<-")?;
            return Ok(Some(Redirect { kind: RedirectKind::Text, target, only_errors }));
        }
        let start = self.at;
        let word = self.word(Context::Argument)?;
        if self.at == start {
            return Err(Fault::Syntax);
        }
        let duplicates = *kind == RedirectKind::Duplicate
            && word.as_bare().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
        let kind = match kind {
            RedirectKind::Duplicate if !duplicates && *text == ">&" => RedirectKind::Write,
            kind => *kind,
        };
        Ok(Some(Redirect { kind, target: Target::Word(word), only_errors }))
    }

    /// The delimiter of a here-document; its body follows the line.
    fn document(&mut self, strip: bool) -> Result<Target> {
        let start = self.at;
        let word = self.word(Context::Argument)?;
        let written = self.text(start, self.at);
        if written.is_empty() {
            return Err(Fault::Syntax);
        }
        let mut delimiter = String::new();
        for piece in &word.pieces {
            if let Piece::Text { text, .. } = piece {
                delimiter.push_str(text);
            }
        }
        let quoting = if written.contains(['\'', '"', '\\']) { Quoting::Quoted } else { Quoting::Bare };
        let body = Rc::new(OnceCell::new());
        let delimiter = delimiter.into_bytes();
        self.documents.push(Document { delimiter, strip, quoting, body: Rc::clone(&body) });
        Ok(Target::Body(body))
    }
}

/// The operators of redirections, longer ones first.
const OPERATORS: [(&str, RedirectKind); 12] = [
    ("<<<", RedirectKind::Text),
    ("<<-", RedirectKind::Text),
    ("&>>", RedirectKind::Write),
    ("<<", RedirectKind::Text),
    ("<>", RedirectKind::Write),
    ("<&", RedirectKind::Duplicate),
    (">>", RedirectKind::Write),
    (">|", RedirectKind::Write),
    (">&", RedirectKind::Duplicate),
    ("&>", RedirectKind::Write),
    ("<", RedirectKind::Read),
    (">", RedirectKind::Write),
];

//! Where the reference's way of reading a word differs from the shell's.
//!
//! It first finds the end of a word much as the shell does, then walks over the word's characters again to find
//! expansions. That second walk knows little about quotes, so it finds expansions where there are none.

use super::grammar::{Line, is_reserved};
use super::lexer::{Kind, Reader, Token};

impl Reader<'_> {
    /// Marks the text when the reference can not expand the word that starts at `start` and ends here.
    pub(super) fn check_word(&mut self, start: usize) {
        if self.opaque {
            return;
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        // A word in single quotes is taken whole.
        if word.first() == Some(&b'\'') && word.last() == Some(&b'\'') {
            return;
        }
        self.spans.sort_unstable();
        let double_quoted = word.first() == Some(&b'"');
        let mut at = 0;
        while let Some(byte) = word.get(at) {
            let next = word.get(at + 1);
            let substitution = match (byte, next) {
                (b'\\', _) => {
                    at += 2;
                    continue;
                }
                (b'$', Some(b'{')) => {
                    let rest = word.get(at..).unwrap_or_default();
                    at += rest.iter().position(|byte| *byte == b'}').unwrap_or_default().max(1);
                    continue;
                }
                (b'$', Some(b'(' | b'[')) | (b'`', _) => true,
                (b'<' | b'>', Some(b'(')) => !double_quoted,
                _ => false,
            };
            if !substitution {
                at += 1;
                continue;
            }
            let known = self.spans.binary_search_by_key(&(start + at), |span| span.0);
            match known.ok().and_then(|index| self.spans.get(index)) {
                Some((_, end)) if *end > start + at => at = end - start,
                _ => {
                    self.opaque = true;
                    return;
                }
            }
        }
    }

    /// Marks the text when a line continuation stands between two commands.
    pub(super) fn check_gap(&mut self, start: usize, end: usize) {
        let gap = self.text.get(start..end).unwrap_or_default();
        self.opaque |= gap.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"\\"));
    }

    /// Marks the text when the here-documents inside a command, which end here, are anything but one document of mere
    /// words. The reference tends to notice such documents too late and reads their lines as commands.
    pub(super) fn check_inner_documents(&mut self, start: usize, count: usize) {
        let text = self.text.get(start..self.at).unwrap_or_default();
        let plain = text.iter().all(|byte| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace());
        let lines = text.trim_ascii_end().split(|byte| *byte == b'\n').count();
        self.opaque |= !plain || count > 1 || lines < 2 || text.split(u8::is_ascii_whitespace).any(is_reserved);
    }

    /// Marks the text when a lone brace is an argument: the reference looks for a reserved word behind it.
    pub(super) fn check_argument(&mut self, token: Token) {
        self.opaque |= matches!(self.text.get(token.start..token.end), Some(b"{" | b"}"));
    }

    /// Marks the text when the reference fails on a command substitution whose first line this is, and which ends on
    /// that line.
    pub(super) fn check_substituted_line(&mut self, line: Line) {
        self.opaque |= line.trailing || !matches!(line.operator, None | Some(Kind::Semicolon));
    }

    /// Marks the text when the reference finds another end of the parameter expansion that starts at `start` and
    /// ends here.
    pub(super) fn check_parameter(&mut self, start: usize) {
        let inner = self.text.get(start + 2..self.at.saturating_sub(1)).unwrap_or_default();
        let has = |bytes: &[u8]| inner.iter().any(|byte| bytes.contains(byte));
        self.opaque |= has(b"'\"\\") && has(b"{}()<>$`") || has(b"'") && has(b"\"");
    }
}

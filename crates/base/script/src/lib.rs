//! Decides whether a text is one command for the shell, several, or none yet.
//!
//! The reference takes a text apart with a parser of its own and refuses texts of several commands, but it accepts
//! whatever that parser can not read (`spec/bash-session.md`, section 4). Two questions therefore have to be answered
//! about every text: what bash makes of it, and whether the reference can read it. One pass over the text answers
//! both: `grammar` and `lexer` read it as bash does, and everything that the reference is known to stumble over, or
//! that might make it see other boundaries, is marked on the way as *opaque* to it ([`Script::Block`] instead of
//! [`Script::Several`]). A wrong mark costs little in one direction only, so doubts are marked too.
//!
//! The reader works on bytes, looks at each of them a small constant number of times, and recurses no deeper than
//! [`lexer::MAX_DEPTH`]. A deeper text can not be judged. If it has one line, the shell may just as well judge it and
//! it counts as [`Script::Incomplete`]: typed as it is. If it has several, typing it is not safe, because a command
//! in it might read the lines behind it as its input; it counts as [`Script::Block`], and if it was unfinished the
//! shell reports that as an error.

mod conditional;
mod grammar;
mod lexer;
mod reference;
mod words;

#[cfg(test)]
mod tests;

use lexer::{Fault, Reader};

/// What a text is to the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// Blank, a comment, or exactly one complete top-level command: can be typed as it is.
    One,
    /// Several complete commands that the reference also sees as several: refused with the list of pieces.
    Several(Vec<String>),
    /// Several complete commands in a text that the reference accepts as one: all are run in order.
    ///
    /// One command with comment lines or blank lines before or behind it is a block too, because each of those lines
    /// would be answered with a prompt of its own, or be read by the command as its input.
    Block,
    /// Not a complete script: unfinished (open quote, here-document, `if` without `fi`) or a syntax error. Sent to
    /// the shell as it is.
    Incomplete,
}

/// Tells what a text is to the shell.
///
/// The text is read with the options of a freshly started interactive bash; in particular, extended patterns
/// (`extglob`) are off outside `[[ ]]`.
pub fn classify(text: &str) -> Script {
    if is_plain(text.as_bytes()) {
        return Script::One;
    }
    let mut reader = Reader::new(text.as_bytes());
    match reader.script() {
        Ok(()) => judge(text, &reader),
        Err(Fault::TooDeep) if text.trim().contains('\n') => Script::Block,
        Err(Fault::TooDeep | Fault::Syntax) => Script::Incomplete,
    }
}

/// Names the kind of a text that was read to its end.
fn judge(text: &str, reader: &Reader<'_>) -> Script {
    let pieces = pieces(text, &reader.starts);
    if pieces.len() > 1 && !reader.opaque {
        return Script::Several(pieces);
    }
    let body = text.trim();
    let alone = match reader.starts.as_slice() {
        [] => !body.contains('\n'),
        [start] => text.get(*start..reader.last_end).is_some_and(|command| {
            let command = command.trim_end();
            body.strip_prefix(command).is_some_and(|rest| !rest.contains('\n'))
        }),
        _ => false,
    };
    if alone { Script::One } else { Script::Block }
}

/// Cuts a text where its top-level commands start. Comments in front of the first are a piece of their own.
fn pieces(text: &str, starts: &[usize]) -> Vec<String> {
    let lead = starts.first().map_or(text, |first| text.get(..*first).unwrap_or_default()).trim_end();
    let mut pieces = Vec::with_capacity(starts.len() + 1);
    if !lead.is_empty() {
        pieces.push(lead.to_owned());
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    pieces
        .extend(starts.iter().zip(ends).filter_map(|(start, end)| Some(text.get(*start..end)?.trim_end().to_owned())));
    pieces
}

/// Whether a text is a single line of words without any meaning to the grammar, which most commands are.
fn is_plain(text: &[u8]) -> bool {
    let first = text.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty()).unwrap_or_default();
    text.iter().all(|byte| PLAIN[usize::from(*byte)]) && !grammar::is_reserved(first)
}

/// Bytes that stand for themselves wherever they are.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the index stays below 256")]
        let character = byte as u8;
        table[byte] = character.is_ascii_alphanumeric()
            || character >= 0x80
            || matches!(character, b' ' | b'\t' | b'_' | b'-' | b'.' | b'/' | b',' | b':' | b'@' | b'%' | b'+' | b'=')
            || matches!(character, b'^' | b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'~' | b'!');
        byte += 1;
    }
    table
};

//! A secret in the pieces that the forms treat apart.

/// A piece of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line break: `\n` or `\r\n`.
    Newline,
    /// This many single quotes in a row.
    Quotes(usize),
    /// Any other character.
    Char(char),
}

/// The pieces of a text, in order.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        let piece = match char {
            '\n' => Piece::Newline,
            '\r' if rest.next_if_eq(&'\n').is_some() => Piece::Newline,
            '\'' => {
                let mut count = 1;
                while rest.next_if_eq(&'\'').is_some() {
                    count += 1;
                }
                Piece::Quotes(count)
            }
            other => Piece::Char(other),
        };
        pieces.push(piece);
    }
    pieces
}

//! All forms of all secrets, and the search for them.

use zeroize::Zeroizing;

use super::{
    HIDDEN,
    coded::{Base64, Hex},
    escapes,
    outcome::{Head, Outcome},
    units::Units,
};

/// Fewest characters of a line that is a secret on its own, and of a secret without the blanks around it.
const SHORTEST_LINE: usize = 16;
const SHORTEST_TRIMMED: usize = 6;

/// One form of one secret.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Units(Units),
    Base64(Base64),
    Hex(Hex),
}

impl Pattern {
    fn compare(&self, text: &[u8], start: usize) -> Outcome {
        match self {
            Self::Units(units) => units.compare(text, start),
            Self::Base64(base64) => base64.compare(text, start),
            Self::Hex(hex) => hex.compare(text, start),
        }
    }

    fn heads(&self) -> Vec<Head> {
        match self {
            Self::Units(units) => units.heads(),
            Self::Base64(base64) => base64.heads(),
            Self::Hex(hex) => hex.heads(),
        }
    }
}

/// Whether more text may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The text ends here.
    Here,
    /// More may come: what could be the beginning of a secret is left for the next scan.
    Open,
}

/// Where a scan of a stream goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resume {
    /// From this place on the text is to be given again, with more behind it.
    pub(super) from: usize,
    /// This much of it, from its beginning, is hidden already.
    pub(super) hidden: usize,
}

/// All forms of all secrets.
#[derive(Default)]
pub(super) struct Patterns {
    forms: Vec<Pattern>,
    /// Which two bytes some pattern begins with: one bit for each pair. Most places of a text are ruled out by it.
    pairs: Zeroizing<Vec<u64>>,
    /// The patterns by the two bytes that they begin with, sorted.
    index: Zeroizing<Vec<(u16, usize)>>,
}

impl Patterns {
    /// The forms of these secrets.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            for text in texts(secret) {
                forms.extend(escapes::forms(text).into_iter().map(Pattern::Units));
            }
            forms.extend(Base64::forms(secret.as_bytes()).map(Pattern::Base64));
            forms.extend(Hex::form(secret.as_bytes()).map(Pattern::Hex));
        }
        let mut index = Zeroizing::new(Vec::new());
        for (number, pattern) in forms.iter().enumerate() {
            for (first, second) in pattern.heads() {
                let seconds = second.map_or(0..=u8::MAX, |second| second..=second);
                index.extend(seconds.map(|second| (u16::from_be_bytes([first, second]), number)));
            }
        }
        index.sort_unstable();
        index.dedup();
        let mut pairs = Zeroizing::new(vec![0_u64; 1 << 10]);
        for (pair, _) in index.iter() {
            if let Some(word) = pairs.get_mut(usize::from(pair >> 6)) {
                *word |= 1 << (pair & 63);
            }
        }
        Self { forms, pairs, index }
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The first place from `start` on where the text begins as some pattern does.
    fn candidate(&self, text: &[u8], start: usize) -> Option<usize> {
        let rest = text.get(start..).filter(|rest| !rest.is_empty() && !self.is_empty())?;
        let found = rest.array_windows().position(|pair| {
            let pair = u16::from_be_bytes(*pair);
            self.pairs.get(usize::from(pair >> 6)).is_some_and(|word| word >> (pair & 63) & 1 == 1)
        });
        // The last byte has no second one; what may begin with it is looked up there.
        Some(start + found.unwrap_or(rest.len() - 1))
    }

    /// Compares all patterns with the text at a place.
    fn compare(&self, text: &[u8], start: usize) -> Outcome {
        let (low, high) = match text.get(start..) {
            Some([first, second, ..]) => (u16::from_be_bytes([*first, *second]), u16::from_be_bytes([*first, *second])),
            Some([first]) => (u16::from_be_bytes([*first, 0]), u16::from_be_bytes([*first, u8::MAX])),
            _ => return Outcome::NONE,
        };
        let from = self.index.partition_point(|(pair, _)| *pair < low);
        let entries = self.index.get(from..).unwrap_or_default().iter().take_while(|(pair, _)| *pair <= high);
        let patterns = entries.filter_map(|(_, number)| self.forms.get(*number));
        patterns.fold(Outcome::NONE, |all, pattern| all.or(pattern.compare(text, start)))
    }

    /// Where the first match begins.
    pub(super) fn first_match(&self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(start) = self.candidate(text, at) {
            if self.compare(text, start).end.is_some() {
                return Some(start);
            }
            at = start + 1;
        }
        None
    }

    /// Appends the text to `out` with its secrets hidden, as far as they are decided. `resume.hidden` says how much
    /// of the text, from its beginning, is hidden already.
    pub(super) fn scan(&self, text: &[u8], resume: Resume, ending: Ending, out: &mut Vec<u8>) -> Resume {
        // Before this place all is written to `out`, or hidden.
        let mut done = resume.hidden;
        let mut at = 0;
        let mut held = text.len();
        while let Some(start) = self.candidate(text, at) {
            let found = self.compare(text, start);
            if let Some(end) = found.end {
                // A match that begins within a hidden part makes that part longer.
                if start >= done {
                    out.extend_from_slice(text.get(done..start).unwrap_or_default());
                    out.extend_from_slice(HIDDEN.as_bytes());
                }
                done = done.max(end);
            }
            if found.open && ending == Ending::Open {
                held = start;
                break;
            }
            at = start + 1;
        }
        out.extend_from_slice(text.get(done..held).unwrap_or_default());
        Resume { from: held, hidden: done.saturating_sub(held) }
    }
}

/// The texts of a secret that are looked for: the secret, what is left of it without blanks around it, and its long
/// lines if it has several.
fn texts(secret: &str) -> Vec<&str> {
    let mut texts = vec![secret];
    let trimmed = secret.trim();
    if trimmed != secret && trimmed.chars().count() >= SHORTEST_TRIMMED {
        texts.push(trimmed);
    }
    if trimmed.contains('\n') {
        let lines = trimmed.lines().map(str::trim);
        // Headers of PEM files say nothing, and stand in ordinary text.
        let header = |line: &str| line.starts_with("-----") && line.ends_with("-----");
        texts.extend(lines.filter(|line| line.chars().count() >= SHORTEST_LINE && !header(line)));
    }
    texts
}

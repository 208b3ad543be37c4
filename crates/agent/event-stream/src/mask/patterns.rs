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
    /// Which two bytes some form begins with: one bit for each pair. Most places of a text are ruled out by it.
    pairs: Zeroizing<Vec<u64>>,
    /// How many pairs are set before each word of `pairs`.
    before: Vec<usize>,
    /// For each pair that is set, in order: where its forms begin in `index`; and the end of the last.
    starts: Vec<usize>,
    /// The forms of each pair.
    index: Vec<usize>,
}

impl Patterns {
    /// The forms of these secrets.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            if body(secret).is_some() {
                forms.push(Pattern::Units(escapes::literal_form(secret)));
            }
            for text in wholes(secret) {
                forms.extend(escapes::forms(text).into_iter().map(Pattern::Units));
                forms.extend(Base64::forms(text.as_bytes()).map(Pattern::Base64));
                forms.extend(Hex::form(text.as_bytes()).map(Pattern::Hex));
            }
            for line in lines(secret) {
                forms.extend(escapes::forms(line).into_iter().map(Pattern::Units));
            }
        }
        Self::indexed(forms)
    }

    /// The forms, and how they are found by their first two bytes.
    fn indexed(forms: Vec<Pattern>) -> Self {
        let mut heads = Zeroizing::new(Vec::new());
        for (number, pattern) in forms.iter().enumerate() {
            for (first, second) in pattern.heads() {
                let seconds = second.map_or(0..=u8::MAX, |second| second..=second);
                heads.extend(seconds.map(|second| (u16::from_be_bytes([first, second]), number)));
            }
        }
        heads.sort_unstable();
        heads.dedup();
        let mut pairs = Zeroizing::new(vec![0_u64; 1 << 10]);
        let mut starts = Vec::new();
        let mut last = None;
        for (place, (pair, _)) in heads.iter().enumerate() {
            if last.replace(*pair) != Some(*pair) {
                starts.push(place);
            }
            if let Some(word) = pairs.get_mut(usize::from(pair >> 6)) {
                *word |= 1 << (pair & 63);
            }
        }
        starts.push(heads.len());
        let set = |word: &u64| usize::try_from(word.count_ones()).unwrap_or(0);
        let before = pairs.iter().scan(0, |sum, word| Some(std::mem::replace(sum, *sum + set(word)))).collect();
        let index = heads.iter().map(|(_, number)| *number).collect();
        Self { forms, pairs, before, starts, index }
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

    /// How many pairs before this one are set.
    fn rank(&self, pair: u16) -> usize {
        let word = usize::from(pair >> 6);
        let bits = self.pairs.get(word).copied().unwrap_or_default() & ((1 << (pair & 63)) - 1);
        self.before.get(word).copied().unwrap_or_default() + usize::try_from(bits.count_ones()).unwrap_or(0)
    }

    /// The forms that begin with a pair; with any second byte if there is none.
    fn beginning_with(&self, first: u8, second: Option<u8>) -> &[usize] {
        let (low, high) = second.map_or((0, u8::MAX), |second| (second, second));
        let start = self.rank(u16::from_be_bytes([first, low]));
        let last = u16::from_be_bytes([first, high]);
        let end = last.checked_add(1).map_or(self.starts.len().saturating_sub(1), |next| self.rank(next));
        let place = |rank| self.starts.get(rank).copied().unwrap_or_default();
        self.index.get(place(start)..place(end)).unwrap_or_default()
    }

    /// Compares all forms with the text at a place.
    fn compare(&self, text: &[u8], start: usize) -> Outcome {
        let numbers = match text.get(start..) {
            Some([first, second, ..]) => self.beginning_with(*first, Some(*second)),
            Some([first]) => self.beginning_with(*first, None),
            _ => &[],
        };
        let forms = numbers.iter().filter_map(|number| self.forms.get(*number));
        forms.fold(Outcome::NONE, |all, form| all.or(form.compare(text, start)))
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

/// What is looked for in all forms: the secret, or what stands between the first and the last line if it is a PEM file; and
/// the secret without the blanks around it, which a program may drop, as `$(…)` does.
fn wholes(secret: &str) -> Vec<&str> {
    let whole = body(secret).unwrap_or(secret);
    let trimmed = whole.trim();
    if trimmed != whole && trimmed.chars().count() >= SHORTEST_TRIMMED { vec![whole, trimmed] } else { vec![whole] }
}

/// The long lines of a secret that has several.
fn lines(secret: &str) -> impl Iterator<Item = &str> {
    let several = secret.trim().contains('\n');
    let lines = secret.lines().map(str::trim).filter(move |_| several);
    lines.filter(|line| line.chars().count() >= SHORTEST_LINE && !is_armour(line))
}

/// What stands between the first and the last line of a PEM file. These two say nothing, and stand in ordinary text.
fn body(secret: &str) -> Option<&str> {
    let (first, rest) = secret.trim().split_once('\n')?;
    let (body, last) = rest.rsplit_once('\n')?;
    let body = body.trim();
    (is_armour(first.trim()) && is_armour(last.trim()) && !body.is_empty()).then_some(body)
}

/// Whether a line is the header or the footer of a PEM file.
fn is_armour(line: &str) -> bool {
    line.starts_with("-----") && line.ends_with("-----")
}

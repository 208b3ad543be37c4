//! A form of a secret as a row of steps, each with the spellings that it may have.

use zeroize::Zeroizing;

use super::outcome::{Head, Outcome};

/// Shortest match of a form that is not the literal one, in bytes.
const SHORTEST: usize = 6;

/// Whether a match counts however short it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It does: the literal form.
    Any,
    /// It must have at least [`SHORTEST`] bytes.
    Bounded,
}

/// The spellings of one step, longest first.
type Step = Vec<Zeroizing<Vec<u8>>>;

/// A row of steps.
///
/// At each step the longest spelling that fits is taken, and not reconsidered. The spellings of a step differ before
/// the shorter one ends (or differ by what no other step begins with), so nothing is missed by that, and a text is
/// compared in time proportional to what matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Units {
    steps: Vec<Step>,
    length: Length,
}

impl Units {
    /// The row of these steps. Neighbours with one spelling each become one step.
    pub(super) fn new(length: Length, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        for mut spellings in rows {
            spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            spellings.dedup();
            let mut step: Step = spellings.into_iter().map(|text| Zeroizing::new(text.into_bytes())).collect();
            match (steps.last_mut().map(Vec::as_mut_slice), step.as_mut_slice()) {
                (Some([before]), [only]) => before.append(only),
                _ => steps.push(step),
            }
        }
        Self { steps, length }
    }

    /// Whether both match the same texts, but for the bound of the length.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.steps == other.steps
    }

    /// Compares with the text at a place.
    pub(super) fn compare(&self, text: &[u8], start: usize) -> Outcome {
        let mut at = start;
        let mut open = false;
        for step in &self.steps {
            let Some(rest) = text.get(at..) else { return Outcome { end: None, open } };
            let mut taken = None;
            for spelling in step {
                if rest.starts_with(spelling) {
                    taken = Some(spelling.len());
                    break;
                }
                open |= spelling.starts_with(rest);
            }
            match taken {
                Some(len) => at += len,
                None => return Outcome { end: None, open },
            }
        }
        let long_enough = self.length == Length::Any || at - start >= SHORTEST;
        Outcome { end: long_enough.then_some(at), open }
    }

    /// What a match may begin with.
    pub(super) fn heads(&self) -> Vec<Head> {
        let mut heads = Vec::new();
        for spelling in self.steps.first().into_iter().flatten() {
            match (spelling.as_slice(), self.steps.get(1)) {
                ([first, second, ..], _) => heads.push((*first, Some(*second))),
                ([first], Some(next)) => {
                    heads.extend(next.iter().map(|spelling| (*first, spelling.first().copied())));
                }
                ([first], None) => heads.push((*first, None)),
                ([], _) => {}
            }
        }
        heads
    }
}

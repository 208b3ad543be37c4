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

/// One step: the spellings that may stand there. None is the beginning of another, so at most one fits.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// The shortest one, which is the usual one.
    plain: Zeroizing<Vec<u8>>,
    others: Vec<Zeroizing<Vec<u8>>>,
}

/// A row of steps. A text is compared in time proportional to what matches.
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
            spellings.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            spellings.dedup();
            let mut spellings = spellings.into_iter().map(|text| Zeroizing::new(text.into_bytes()));
            let Some(mut plain) = spellings.next() else { continue };
            let others: Vec<_> = spellings.collect();
            match steps.last_mut() {
                Some(before) if before.others.is_empty() && others.is_empty() => before.plain.append(&mut plain),
                _ => steps.push(Step { plain, others }),
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
            let rest = text.get(at..).unwrap_or_default();
            if rest.starts_with(&step.plain) {
                at += step.plain.len();
                continue;
            }
            open |= step.plain.starts_with(rest);
            let other = step.others.iter().find(|spelling| rest.starts_with(spelling));
            let Some(spelling) = other else {
                open |= step.others.iter().any(|spelling| spelling.starts_with(rest));
                return Outcome { end: None, open };
            };
            at += spelling.len();
        }
        let long_enough = self.length == Length::Any || at - start >= SHORTEST;
        Outcome { end: long_enough.then_some(at), open }
    }

    /// What a match may begin with.
    pub(super) fn heads(&self) -> Vec<Head> {
        let mut heads = Vec::new();
        for spelling in self.steps.first().into_iter().flat_map(Step::spellings) {
            match (spelling, self.steps.get(1)) {
                ([first, second, ..], _) => heads.push((*first, Some(*second))),
                ([first], Some(next)) => {
                    heads.extend(next.spellings().map(|spelling| (*first, spelling.first().copied())));
                }
                ([first], None) => heads.push((*first, None)),
                ([], _) => {}
            }
        }
        heads
    }
}

impl Step {
    fn spellings(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.plain).chain(&self.others).map(|spelling| spelling.as_slice())
    }
}

//! Where in a file lines are that look like a draft.

use std::{collections::HashMap, ops::Range};

/// Lines of a chunk.
const CHUNK: usize = 20;
/// How many chunks are shown.
const SHOWN: usize = 3;
/// Characters of the draft that count, and of one chunk. Together with the number of chunks this bounds the work.
const MAX_DRAFT: usize = 4_000;
const MAX_CHUNK: usize = 4_000;
/// Chunks that are compared: the first hundred thousand lines.
const MAX_CHUNKS: usize = 5_000;

/// Some lines that stand together.
#[derive(Debug, PartialEq)]
pub(super) struct Chunk {
    /// Which, counted from 0.
    pub(super) lines: Range<usize>,
    /// How much of them the draft has, in order: from 0 to 1.
    pub(super) similarity: f64,
}

/// The most similar chunks of 20 lines, the best first and of equals the first in the file first.
pub(super) fn most_similar(lines: &[String], draft: &str) -> Vec<Chunk> {
    let draft: Vec<char> = draft.chars().take(MAX_DRAFT).collect();
    let mut chunks: Vec<Chunk> = lines
        .chunks(CHUNK)
        .take(MAX_CHUNKS)
        .enumerate()
        .map(|(index, chunk)| {
            let start = index * CHUNK;
            let text: Vec<char> = chunk.join("\n").chars().take(MAX_CHUNK).collect();
            Chunk { lines: start..start + chunk.len(), similarity: covered(&text, &draft) }
        })
        .collect();
    chunks.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
    chunks.truncate(SHOWN);
    chunks
}

/// How much of a text is in a draft.
#[expect(clippy::cast_precision_loss, reason = "both are at most some thousands")]
fn covered(text: &[char], draft: &[char]) -> f64 {
    if text.is_empty() { 0.0 } else { common_subsequence(text, draft) as f64 / text.len() as f64 }
}

/// The length of the longest common subsequence: characters that both have in the same order.
///
/// One bit for each character of the first text; a zero says that the subsequence grows there. For each character of
/// the second text, the bits are renewed in a few operations on whole words.
fn common_subsequence(one: &[char], other: &[char]) -> usize {
    const BITS: usize = u64::BITS as usize;
    let words = one.len().div_ceil(BITS);
    let mut places: HashMap<char, Vec<u64>> = HashMap::new();
    for (index, sign) in one.iter().enumerate() {
        places.entry(*sign).or_insert_with(|| vec![0; words])[index / BITS] |= 1 << (index % BITS);
    }
    let mut row = vec![u64::MAX; words];
    for places in other.iter().filter_map(|sign| places.get(sign)) {
        let mut carry = false;
        for (word, places) in row.iter_mut().zip(places) {
            let (sum, first) = word.overflowing_add(*word & places);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *word = sum | (*word & !places);
        }
    }
    let zeros: usize = row.iter().map(|word| word.count_zeros() as usize).sum();
    // Bits behind the end are never places, so they stay one.
    zeros.min(one.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(one: &[char], other: &[char]) -> usize {
        let mut row = vec![0; other.len() + 1];
        for sign in one {
            let mut diagonal = 0;
            for (index, candidate) in other.iter().enumerate() {
                let above = row[index + 1];
                row[index + 1] = if sign == candidate { diagonal + 1 } else { above.max(row[index]) };
                diagonal = above;
            }
        }
        row[other.len()]
    }

    proptest! {
        #[test]
        fn the_subsequence_is_the_longest(one in "[abc ]{0,200}", other in "[abcé]{0,200}") {
            let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
            prop_assert_eq!(common_subsequence(&one, &other), slow(&one, &other));
        }
    }

    #[test]
    fn the_chunks_that_look_like_the_draft_come_first() {
        let lines: Vec<String> =
            (0..70).map(|line| format!("{} {line}", if line / 20 == 2 { "wanted" } else { "xyz" })).collect();
        let chunks = most_similar(&lines, &lines[40..60].join("\n"));
        assert_eq!(chunks[0], Chunk { lines: 40..60, similarity: 1.0 });
        assert_eq!(chunks.len(), 3);
        assert!(chunks[1].similarity < 1.0 && chunks[1].similarity >= chunks[2].similarity);
    }

    #[test]
    fn of_equal_chunks_the_first_come_first_and_an_empty_one_is_not_similar() {
        let lines = vec![String::from("a"); 70];
        let ranges: Vec<_> = most_similar(&lines, "b").into_iter().map(|chunk| chunk.lines).collect();
        assert_eq!(ranges, [0..20, 20..40, 40..60]);
        assert_eq!(most_similar(&[String::new()], "b"), [Chunk { lines: 0..1, similarity: 0.0 }]);
        assert_eq!(most_similar(&[], "b"), []);
    }

    #[test]
    fn long_lines_and_drafts_are_compared_in_bounded_time() {
        let lines = vec!["x".repeat(100_000); 100];
        let best = most_similar(&lines, &"x".repeat(100_000)).remove(0);
        assert_eq!(best, Chunk { lines: 0..20, similarity: 1.0 });
    }
}

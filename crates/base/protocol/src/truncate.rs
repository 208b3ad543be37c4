//! Cuts the middle out of long texts (actions-and-observations 2.7).

use std::borrow::Cow;

/// Longest content of a visible `run` observation, in Unicode code points.
pub const CONTENT_LIMIT: usize = 30_000;

/// Stands where text was cut out.
pub const NOTICE: &str = "\n[... Observation truncated due to length ...]\n";

/// Keeps `limit / 2` code points of each end if the text has more than `limit`, and puts [`NOTICE`] between them.
///
/// The result is longer than `limit` by the notice; cutting it again with the same even limit changes nothing.
pub fn truncate_content(content: &str, limit: usize) -> Cow<'_, str> {
    // A code point has at least one byte, so short texts need no counting.
    if content.len() <= limit || content.chars().nth(limit).is_none() {
        return Cow::Borrowed(content);
    }
    let half = limit / 2;
    let head_end = content.char_indices().nth(half).map_or(content.len(), |(at, _)| at);
    let tail_start = match half.checked_sub(1) {
        Some(from_the_end) => content.char_indices().nth_back(from_the_end).map_or(0, |(at, _)| at),
        None => content.len(),
    };
    let (head, tail) = (content.get(..head_end).unwrap_or_default(), content.get(tail_start..).unwrap_or_default());
    Cow::Owned([head, NOTICE, tail].concat())
}

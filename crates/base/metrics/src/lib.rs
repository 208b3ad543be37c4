//! What servers count, in the text form of Prometheus.
//!
//! | module | idea |
//! |---|---|
//! | [`Text`] | the text form |
//! | [`Histogram`] | durations, by how many are below each of some bounds |

mod histogram;
mod text;

pub use histogram::Histogram;
pub use text::{TYPE, Text, float};

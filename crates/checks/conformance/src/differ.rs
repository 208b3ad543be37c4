//! Two servers, the same operations, and where they differ.

mod compare;
mod normal;
mod operation;
mod random;
mod rules;

pub use compare::{Comparison, DifferOptions, Difference, compare};
pub use operation::{Operation, read_operations, write_operations};
pub use random::generate;
pub use rules::{RULES, Rule};

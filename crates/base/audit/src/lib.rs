//! The audit log of a sandbox: a file of JSON lines that is only added to, in which each record carries a hash of all before it.
//!
//! | module | idea |
//! |---|---|
//! | [`Event`] | what is recorded |
//! | [`Record`] | an event with its number, its time, and its place in the chain |
//! | [`Log`] | adds records to a file, also where several processes do |
//! | [`Reader`] | reads the records of a file, and checks the chain |
//! | [`record`] | tells the log of this process, if it has one |
//!
//! Whoever changes, removes or inserts a record breaks the chain behind it. Whoever removes the last ones does not, and whoever
//! can write the whole file can write another one: the log is kept where the sandbox cannot reach it, and the hash of its last
//! record can be kept elsewhere.

mod event;
#[cfg(unix)]
mod log;
mod reader;
mod record;
mod sink;

pub use event::{Event, Text};
#[cfg(unix)]
pub use log::{Log, LogError, MOST_BYTES};
pub use reader::{Broken, ReadError, Reader};
pub use record::{Hash, Record};
pub use sink::{Sink, record, record_into};

//! What BrowserGym says and understands: actions as text, keys, ids of elements, pages as text (spec/browser.md).
//!
//! Nothing here talks to a browser: texts and JSON of Chromium go in, texts and values come out.

pub mod axtree;
pub mod bid;
pub mod content;
mod error;
pub mod keys;
pub mod language;
pub mod operation;
pub mod overlay;
mod page_text;
mod printable;
pub mod properties;
mod repr;
mod script;
mod snapshot;

pub use error::ActionError;
pub use page_text::page_text;
pub use script::parse_script;
pub use snapshot::Snapshot;

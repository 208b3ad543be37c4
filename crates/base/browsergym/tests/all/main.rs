//! The crate against recordings of BrowserGym and Playwright.

mod bid;
mod content;
mod keys;
mod language;
mod operation;

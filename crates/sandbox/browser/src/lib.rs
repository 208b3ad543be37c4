//! Chromium over the DevTools protocol (spec/browser.md).
//!
//! | module | idea |
//! |---|---|
//! | [`Browser`] | the handle, and the task that owns it |
//! | `step` | one step: actions, effects, what is to be seen |
//! | `act`, `element`, `input`, `navigate` | what actions do |
//! | `settle` | when they have had their effects |
//! | `observe` | what a page is like |
//! | `extras` | the browser for programs: pages by address, elements by what they show, files, traffic, pictures |
//! | `live`, `script` | a browser that is up, and functions in its documents |
//! | [`options`] | how a browser is started |
//! | [`find`] | which browser the image has |
//! | `launch` | one start: profile, command line, pipes |
//! | `cdp` | calls, events, and clients of their own |
//! | `world` | what is known of pages, frames and requests |

mod act;
mod browser;
mod cdp;
mod element;
mod extras;
pub mod find;
mod input;
mod launch;
mod live;
mod navigate;
mod observe;
pub mod options;
mod script;
mod settle;
mod step;
mod world;

pub use browser::{Browser, BrowserError, BrowserState, TOO_LONG};

pub use cdp::{CdpError, Tunnel};
pub use extras::{Frame, Held, KeyChange, LiveInput, MouseChange, Screencast};
pub use find::NoBrowser;
pub use launch::Failure;
pub use observe::Observation;
pub use options::BrowserOptions;
pub use step::Step;
pub use world::{ConsoleEntry, Download, DownloadState, NetworkEntry};

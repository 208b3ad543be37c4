//! Web pages of other origins: which may use an interface from a browser, and what its answers tell browsers.
//!
//! The key of an interface is in a header, or among the protocols that a WebSocket offers, and a browser adds neither of them by
//! itself. So a page that may ask still has to bring the key, and no answer ever allows credentials (cookies, certificates).
//!
//! | module | idea |
//! |---|---|
//! | `setting` | [`Origins`]: which pages may ask |
//! | `visit` | [`Visit`]: what is answered to one of them |
//! | `interface` | [`Interface`]: what there is for pages, and where in a sandbox |

mod interface;
mod setting;
mod visit;

pub use interface::Interface;
pub use setting::{OriginError, Origins};
pub use visit::Visit;

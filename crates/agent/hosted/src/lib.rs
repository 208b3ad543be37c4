//! What providers of hosted services share (`spec/hosted-apis.md` 6 to 8). A service is reached over HTTP; whatever a backend must
//! know of a sandbox is in the labels that the service keeps, and our program is put into each sandbox and started there.
//!
//! | module | idea |
//! |---|---|
//! | [`fault`] | which error an answer is |
//! | [`service`] | requests, again where that helps |
//! | [`seal`] | the key of a sandbox, as a label carries it |
//! | [`record`] | what the labels of a sandbox say |
//! | [`ports`] | ports of programs by name |
//! | [`settings`] | values of configuration that every service has: URLs, keys, paths |
//! | [`program`] | the file that is put into sandboxes |
//! | [`server`] | our program as the server of a sandbox: its command, its variables, its scripts, its end |
//! | [`backend`] | what a backend has of sandboxes: its own, held ones, what goes on |
//! | [`making`] | how a sandbox is made: in a task of its own, for a wish, with a key and a record |
//! | [`garbage`] | why a sandbox is one that nobody wants, and what is removed |

pub mod backend;
pub mod fault;
pub mod garbage;
pub mod making;
pub mod ports;
pub mod program;
pub mod record;
pub mod seal;
pub mod server;
pub mod service;
pub mod settings;

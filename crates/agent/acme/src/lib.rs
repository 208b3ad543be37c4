//! A certificate from an authority that speaks ACME (RFC 8555), kept in a directory and renewed in time.
//!
//! That a name is ours is shown by a certificate for the challenge, to whoever asks the TLS port (TLS-ALPN-01, RFC 8737), or by a
//! record that a program puts into the DNS (DNS-01), which is the only way for `*.example.org`. All that is known is in the
//! directory, so servers that share it share the certificate; one of them at a time renews it.
//!
//! | module | idea |
//! |---|---|
//! | [`Acme`] | renews when it is time |
//! | [`AcmeOptions`] | which authority, for which names |
//! | `order` | from an order to a certificate |
//! | `challenge` | how it is shown that a name is ours |
//! | `hook` | the program that changes the DNS |
//! | `http` | requests to the authority |
//! | `store` | the directory |
//! | `held` | what a certificate says of itself |

mod acme;
mod challenge;
mod error;
mod held;
mod hook;
mod http;
mod options;
mod order;
mod store;

pub use acme::Acme;
pub use error::AcmeError;
pub use options::{AcmeOptions, LETS_ENCRYPT};

/// The protocol by which an authority asks for the certificate of a challenge.
pub const PROTOCOL: &[u8] = b"acme-tls/1";

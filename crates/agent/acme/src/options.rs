//! What can be set.

use std::path::PathBuf;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Which authority, for which names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeOptions {
    /// URL of the authority's ACME directory.
    pub directory: String,
    /// File with the certificate that vouches for that URL, in PEM form, where the authorities of the system do not.
    pub root: Option<PathBuf>,
    /// Whom the authority may write to.
    pub email: Option<String>,
    /// The names of the certificate, such as `example.org` and `*.example.org`.
    pub names: Vec<String>,
    /// The program that changes the DNS, as `PROGRAM add|remove NAME VALUE`; `None` shows the names by TLS.
    pub dns_hook: Option<PathBuf>,
    /// Where account, key and certificate are kept.
    pub store: PathBuf,
}

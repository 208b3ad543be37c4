//! What programs in a sandbox trust, and how they are told.

use std::fs;

/// In a directory of the sandbox: the certificates of all authorities that programs trust, that of the sandbox among them.
pub const CERTIFICATES: &str = "certificates.pem";
/// There: the certificate of the authority of the sandbox.
pub const AUTHORITY: &str = "authority.pem";
/// Files in which systems have the certificates of the authorities that programs trust.
pub const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The variable that names another file of the same kind as [`BUNDLES`].
pub const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";
/// Variables that name the certificates of all authorities to programs …
const BUNDLE_VARIABLES: [&str; 9] = [
    BUNDLE_VARIABLE,
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "UV_SSL_CERT_FILE",
];
/// … and those that name one more to programs that have their own.
const AUTHORITY_VARIABLES: [&str; 2] = ["DENO_CERT", "NODE_EXTRA_CA_CERTS"];

/// Variables that lead programs to [`CERTIFICATES`] and [`AUTHORITY`] in this directory.
pub fn variables(directory: &str) -> impl Iterator<Item = (String, String)> {
    let named = |names: &'static [&'static str], file: &str| {
        let path = format!("{directory}/{file}");
        names.iter().map(move |name| ((*name).to_owned(), path.clone()))
    };
    named(&BUNDLE_VARIABLES, CERTIFICATES).chain(named(&AUTHORITY_VARIABLES, AUTHORITY))
}

/// What is in [`CERTIFICATES`]: these, and that of the authority of the sandbox.
pub fn certificates(roots: &str, authority: &str) -> String {
    format!("{}\n{authority}", roots.trim_end())
}

/// The certificates of the authorities that programs of this machine trust, for whom [`BUNDLE_VARIABLE`] may name a file;
/// empty if there are none.
pub fn roots_of_machine(named: Option<&str>) -> String {
    named.into_iter().chain(BUNDLES).find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn programs_find_all_authorities_and_those_with_their_own_find_one_more() {
        let all: BTreeMap<String, String> = variables("/there").collect();
        assert_eq!(all["SSL_CERT_FILE"], "/there/certificates.pem");
        assert_eq!(all["NODE_EXTRA_CA_CERTS"], "/there/authority.pem");
        assert_eq!(all.len(), BUNDLE_VARIABLES.len() + AUTHORITY_VARIABLES.len());
        assert_eq!(certificates("one\n\n", "two"), "one\ntwo");
    }
}

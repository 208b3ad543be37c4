//! Files of the sandbox by URI: `sandbox:///workspace/a%20b.txt`.
//!
//! They are no `file:` URIs, which programs on the client's side would look for on their own machine.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const SCHEME: &str = "sandbox://";
/// How clients make the URI of any file.
pub(crate) const TEMPLATE: &str = "sandbox://{+path}";
/// Everything but what a path may have in a URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URI of an absolute path.
pub(crate) fn of(path: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(path, ESCAPED))
}

/// The absolute path of a URI, if it has one.
pub(crate) fn path(uri: &str) -> Option<String> {
    let path = percent_decode_str(uri.strip_prefix(SCHEME)?).decode_utf8().ok()?.into_owned();
    (path.starts_with('/') && !path.contains('\0')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_uri_lead_to_each_other() {
        for (file, expected) in
            [("/w/a.txt", "sandbox:///w/a.txt"), ("/w/a b#?%é", "sandbox:///w/a%20b%23%3F%25%C3%A9")]
        {
            assert_eq!(of(file), expected);
            assert_eq!(path(expected).as_deref(), Some(file));
        }
        assert_eq!(path("sandbox:///w/a b").as_deref(), Some("/w/a b"));
        for wrong in ["file:///w", "sandbox://host", "sandbox:///a%00", "sandbox:///%ff", ""] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}

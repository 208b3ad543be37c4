//! Errors in the words of people.
//!
//! What a library, a server or the wire format says is for programs: it names the layers that an error went through, the
//! calls of the interface, and the exceptions of the reference.

use gloveport_client::{ClientError, causes};
use gloveport_provider::ProviderError;

/// What only tells through which layers an error came.
const LAYERS: [&str; 6] = [
    "error sending request: ",
    "client error (Connect): ",
    "tcp connect error: ",
    "dns error: ",
    "error resolving DNS: ",
    "DNS error: ",
];

/// An error with its causes, for people.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(for_people).filter(|cause| !is_layer(cause)) {
        // Some errors tell their causes themselves.
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) && !is_told(&text, &cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether a text ends with what the system says, in other words.
fn is_told(text: &str, cause: &str) -> bool {
    let Some((reason, _)) = cause.split_once(" (os error ") else { return false };
    text.ends_with(reason) || (text.ends_with(" does not exist") && reason == "No such file or directory")
}

/// Whether a cause tells nothing else.
fn is_layer(text: &str) -> bool {
    LAYERS.iter().any(|layer| layer.strip_suffix(": ") == Some(text))
        || (text.starts_with("error sending request for url (") && text.ends_with(')'))
}

/// The text of one error. What a server says itself is enough; the rest of a status error is for programs.
fn for_people(error: &(dyn std::error::Error + 'static)) -> String {
    let text = match (error.downcast_ref::<ClientError>(), error.downcast_ref::<ProviderError>()) {
        (Some(ClientError::Status(status)), _) => match &status.native {
            // A hint that names a call of the interface helps who makes calls.
            Some(native) if native.hint.contains("/v1/") || native.hint.contains("/docs") => native.message.clone(),
            Some(native) => format!("{}; {}", native.message, native.hint),
            None => error.to_string(),
        },
        (Some(ClientError::Unreachable { url, source }), _) => {
            // The call of the interface is none of the person's.
            let server: Vec<&str> = url.splitn(4, '/').take(3).collect();
            format!("no server answers at {}/; is it running?: {}", server.join("/"), causes(source))
        }
        (_, Some(ProviderError::UnknownProvider { name, .. })) if name == "exec" => {
            "the runtime `exec:` names no program; write exec:/path/to/program".to_owned()
        }
        (_, Some(ProviderError::UnknownProvider { name, known })) => format!(
            "there is no runtime `{name}`: it is not one of {}, and there is no program gloveport-provider-{name} in PATH",
            known.join(", ")
        ),
        _ => error.to_string(),
    };
    plain(text)
}

/// A text without what is no news to a person.
fn plain(mut text: String) -> String {
    for layer in LAYERS {
        text = text.replace(layer, "");
    }
    if let Some((before, rest)) = text.split_once("error sending request for url (")
        && let Some((_, after)) = rest.split_once("): ")
    {
        text = format!("{before}{after}");
    }
    if let Some((before, rest)) = text.split_once("no records found for Query {")
        && let Some(name) = rest.split_once("Name(\"").and_then(|(_, rest)| rest.split('"').next())
    {
        text = format!("{before}there is no host `{}`", name.trim_end_matches('.'));
    }
    if let Some((before, reason, path)) = errno(&text) {
        text = match reason {
            "No such file or directory" => format!("{before}{path} does not exist"),
            reason => format!("{before}{path}: {reason}"),
        };
    }
    text
}

/// What stands before an exception of Python, why it was raised, and for which path.
pub(crate) fn errno(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("[Errno ")?;
    let (number, rest) = rest.split_once("] ")?;
    number.parse::<i32>().ok()?;
    let (reason, rest) = rest.split_once(": '")?;
    let (path, _) = rest.split_once('\'')?;
    Some((before, reason, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong_and_not_through_which_layers_it_went() {
        for (text, expected) in [
            (
                "no server answers at http://x/; is it running?: error sending request: client error (Connect): tcp connect \
                 error: Connection refused (os error 111)",
                "no server answers at http://x/; is it running?: Connection refused (os error 111)",
            ),
            (
                "POST http://foo/x: error sending request for url (http://foo/x): client error (Connect): dns error: error \
                 resolving DNS: DNS error: no records found for Query { name: Name(\"foo.\"), query_type: AAAA }: no \
                 records found for Query { name: Name(\"foo.\"), query_type: AAAA }",
                "POST http://foo/x: there is no host `foo`",
            ),
            ("[Errno 2] No such file or directory: '/a b'", "/a b does not exist"),
            ("cannot do it: [Errno 13] Permission denied: '/x': more", "cannot do it: /x: Permission denied"),
            ("[Errno x] y: 'z'", "[Errno x] y: 'z'"),
        ] {
            assert_eq!(plain(text.to_owned()), expected);
        }
    }
}

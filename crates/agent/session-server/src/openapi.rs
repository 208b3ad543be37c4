//! What an `OpenAPI` document says of the requests. It is the file `openapi.json`; tests compare it with the routes, and with
//! what is answered.

use serde_json::Value;

const DOCUMENT: &str = include_str!("openapi.json");

/// An `OpenAPI` document of the requests: tags, paths and schemas, to be put into that of a whole interface. What a test has read
/// can be read.
pub fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gloveport_testing::openapi;

    use super::*;

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let served = openapi::routes(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
        assert_eq!(openapi::documented(&document()), served);
        assert!(served.len() > 12);
    }

    #[test]
    fn every_call_is_described_and_answers_errors_in_one_form() {
        openapi::check(&document(), |_, status| (!status.starts_with('2')).then_some("Error"));
    }
}

//! Tags, names, and the words of messages.

use std::collections::BTreeMap;

use gloveport_hosted::{fault::Words, record::Labels};
use gloveport_provider::SessionId;
use sha2::{Digest as _, Sha256};

use crate::wire::Tag;

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "modal";

/// The tags that the provider sets itself.
pub(crate) const LABELS: Labels = Labels {
    session: "gloveport.modal.session",
    wish: "gloveport.modal.wish",
    record: "gloveport.modal.record",
    settings: "gloveport.modal.settings",
    most: 64 * 1024,
    purpose: "gloveport: keys of Modal sandboxes, 1",
};

/// What messages about the service say.
pub(crate) const WORDS: Words = Words {
    name: "Modal",
    no_key: "set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or token_id and token_secret_file in [extended.modal]",
    wrong_key: "look at MODAL_TOKEN_ID and MODAL_TOKEN_SECRET: the token is wrong or was revoked",
    forbidden: "the token may not do this: look at its workspace and environment",
    payment: "look at the billing of the workspace",
    quota: "the workspace has as many sandboxes or requests as its plan allows: end some, or try it later",
    network: "look at the network, and at server_url in [extended.modal]",
    disk: "take a smaller image",
};

/// Most characters of a name at the service.
const LONGEST: usize = 63;

/// The name of a session's sandbox. The service has each name once among those that live.
pub(crate) fn of(session: &SessionId) -> String {
    let text = session.as_str();
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let digest = gloveport_ids::hex(&Sha256::digest(text));
    format!("gloveport-{}", digest.get(..40).unwrap_or(&digest))
}

/// Labels as tags, in the order of their names.
pub(crate) fn tags(labels: &BTreeMap<String, String>) -> Vec<Tag> {
    labels.iter().map(|(name, value)| Tag { tag_name: name.clone(), tag_value: value.clone() }).collect()
}

/// Tags as labels.
pub(crate) fn labels(tags: Vec<Tag>) -> BTreeMap<String, String> {
    tags.into_iter().map(|tag| (tag.tag_name, tag.tag_value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_for_the_service_becomes_another_one() {
        let session = |text: String| SessionId::new(text).unwrap();
        assert_eq!(of(&session("conv-1_2.x".to_owned())), "conv-1_2.x");
        let (long, other) = (of(&session("a".repeat(64))), of(&session("a".repeat(65))));
        assert!(long.len() <= LONGEST && long != other && long.starts_with("gloveport-"), "{long}");
    }
}

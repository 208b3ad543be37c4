//! Labels, ports and words.

use std::collections::BTreeMap;

use gloveport_hosted::{
    fault::Words,
    ports::Reserved,
    record::{Labelled, Labels},
};

use crate::wire::Told;

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "daytona";

/// The labels that the provider sets itself.
pub(crate) const LABELS: Labels = Labels {
    session: "gloveport.daytona.session",
    wish: "gloveport.daytona.wish",
    record: "gloveport.daytona.record",
    settings: "gloveport.daytona.settings",
    most: 64 * 1024,
    purpose: "gloveport: keys of Daytona sandboxes, 1",
};
/// The label that all have, by which they are listed.
const OURS: (&str, &str) = ("gloveport.runtime", NAME);

/// What the API key is used for when it seals the secrets of a sandbox.
pub(crate) const SECRETS: &str = "gloveport: secrets of Daytona sandboxes, 1";

/// What messages about the service say.
pub(crate) const WORDS: Words = Words {
    name: "Daytona",
    no_key: "set DAYTONA_API_KEY, or api_key_file in [extended.daytona]",
    wrong_key: "look at DAYTONA_API_KEY: the key is wrong or was revoked",
    forbidden: "the key may not do this, or the organization has all that its tier allows: look at both on the dashboard",
    payment: "look at the billing of the organization",
    quota: "the organization has as many sandboxes or requests as its tier allows: delete some, or try it later",
    network: "look at the network, and at api_url in [extended.daytona]",
    disk: "ask for more disk, or take a snapshot with a larger one",
};

/// What the names of snapshots begin with that were made for a fork and end with it.
pub(crate) const FORK: &str = "gloveport-fork-";
/// The session of processes in a sandbox in which our server runs.
pub(crate) const SERVER: &str = "gloveport-server";
/// Ports of the daemon in every sandbox (`hosted-apis` 3.4).
pub(crate) const RESERVED: Reserved = Reserved { ports: &[2280, 22_222, 33_333], whose: "the daemon of Daytona" };

/// The label that all sandboxes have, as a filter of lists.
pub(crate) fn all() -> BTreeMap<String, String> {
    [(OURS.0.to_owned(), OURS.1.to_owned())].into()
}

/// What the labels of a sandbox say; none for one of somebody else.
pub(crate) fn labelled(told: &Told) -> Option<Labelled> {
    let mut labelled = LABELS.read(Some(&told.labels))?;
    labelled.labels.remove(OURS.0);
    Some(labelled)
}

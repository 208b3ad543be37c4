//! Labels, and the words of messages.

use gloveport_hosted::{fault::Words, record::Labels};

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "runloop";

/// The labels that the provider sets itself.
pub(crate) const LABELS: Labels = Labels {
    session: "gloveport.runloop.session",
    wish: "gloveport.runloop.wish",
    record: "gloveport.runloop.record",
    settings: "gloveport.runloop.settings",
    most: 64 * 1024,
    purpose: "gloveport: keys of Runloop sandboxes, 1",
};

/// What messages about the service say.
pub(crate) const WORDS: Words = Words {
    name: "Runloop",
    no_key: "set RUNLOOP_API_KEY, or api_key_file in [extended.runloop]",
    wrong_key: "look at RUNLOOP_API_KEY: the key is wrong or was revoked",
    forbidden: "the key may not do this: look at what it is restricted to",
    payment: "look at the billing of the account",
    quota: "the account has as many devboxes or requests as it may: shut some down, or try it later",
    network: "look at the network, and at api_url in [extended.runloop]",
    disk: "take a larger size",
};

/// What the names of snapshots begin with that were made for a fork and end with it.
pub(crate) const FORK: &str = "gloveport-fork-";

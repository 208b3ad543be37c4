//! Labels, ports and names.

use gloveport_hosted::{fault::Words, ports::Reserved, record::Labels};

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "e2b";

/// The labels that the provider sets itself. The service keeps them in memory of its database.
pub(crate) const LABELS: Labels = Labels {
    session: "gloveport.e2b.session",
    wish: "gloveport.e2b.wish",
    record: "gloveport.e2b.record",
    settings: "gloveport.e2b.settings",
    most: 64 * 1024,
    purpose: "gloveport: keys of E2B sandboxes, 1",
};

/// What messages about the service say.
pub(crate) const WORDS: Words = Words {
    name: "E2B",
    no_key: "set E2B_API_KEY, or api_key_file in [extended.e2b]",
    wrong_key: "look at E2B_API_KEY: the key is wrong or was revoked",
    forbidden: "the key may not do this: look at its team, and at the plan of that",
    payment: "look at the billing of the team",
    quota: "the team has as many sandboxes or requests as its plan allows: delete some, or try it later",
    network: "look at the network, and at api_url and domain in [extended.e2b]",
    disk: "take a template with a larger disk",
};

/// What the names of snapshots begin with that were made for a fork and end with it.
pub(crate) const FORK: &str = "gloveport-fork-";

/// Whether a fork is made through the snapshot of these names.
pub(crate) fn is_of_fork(names: &[String]) -> bool {
    names.iter().any(|name| name.rsplit('/').next().is_some_and(|it| it.starts_with(FORK)))
}
/// The tag of our server among the processes of a sandbox.
pub(crate) const TAG: &str = "gloveport-server";
/// The port of the agent (`hosted-apis` 2.3).
pub(crate) const AGENT_PORT: u16 = 49_983;
/// The same, as no program's.
pub(crate) const RESERVED: Reserved = Reserved { ports: &[AGENT_PORT], whose: "the agent of E2B" };

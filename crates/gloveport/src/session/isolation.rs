//! How far a sandbox on this machine is kept apart from it, told to people.

use gloveport_provider::{Level, NetworkPolicy, Sandbox, SandboxSpec};

use crate::here;

/// Of a sandbox that is kept apart from nothing …
const NONE: &str =
    "note: the runtime `local` has no isolation: commands run on this machine as you, with all your files";
/// … what helps, where nobody has chosen that, or no other level was to be had.
const CHOOSE: &str = "--isolation container gives them a place of their own, without an engine";
const NOT_HERE: &str = "`gloveport doctor` says why no level is to be had here";
/// Of one that the kernel keeps.
const FILES: &str = "note: the sandbox is kept to its own files and those of the system";
/// Of one in a container of this machine's own.
const CONTAINER: &str =
    "note: the sandbox is in a container of its own, with its workspace and what the system has to be read";
/// Of one whose container has a kernel of its own.
const GVISOR: &str = "note: the sandbox is in a container of its own on gVisor's kernel, with its workspace and what the system has \
                      to be read";
/// Where nobody has chosen it.
const WAY_OUT: &str = "; --isolation none keeps it from nothing";

/// The level that a sandbox has.
fn level(sandbox: &Sandbox) -> Level {
    sandbox.labels.get(Level::LABEL).and_then(|name| Level::named(name)).unwrap_or_default()
}

/// Whether it is kept from nothing, as those are that wait for a session.
pub(super) fn is_none(sandbox: &Sandbox) -> bool {
    level(sandbox) == Level::None
}

/// Whether nobody has said how far it is to be kept apart.
pub(super) fn is_default(spec: &SandboxSpec) -> bool {
    spec.confinement.as_ref().is_some_and(|confinement| confinement.or_weaker)
}

/// What a person must know of one on this machine, that was made from this.
pub(super) fn note(sandbox: &Sandbox, spec: &SandboxSpec) -> String {
    let way_out = if is_default(spec) { WAY_OUT } else { "" };
    match level(sandbox) {
        Level::None if spec.confinement.is_none() => format!("{NONE}; {CHOOSE}"),
        Level::None if is_default(spec) => format!("{NONE}; {NOT_HERE}"),
        Level::None => NONE.to_owned(),
        Level::Files => {
            let mut open = here::isolation_gaps();
            if spec.network == NetworkPolicy::Full {
                open.push("the network, nor from servers on this machine (--network none closes it)");
            }
            if open.is_empty() {
                return format!("{FILES}, and has no network{way_out}");
            }
            format!("{FILES}; it is not kept from {}{way_out}", open.join(", nor from "))
        }
        level @ (Level::Container | Level::Gvisor) => {
            let network = match spec.network {
                NetworkPolicy::Full if !spec.edge_secrets.is_empty() => {
                    "; it reaches everybody through a proxy, and nobody without (--network HOSTS names who may be reached)"
                }
                NetworkPolicy::Full => "; it has this machine's network (--network none closes it)",
                NetworkPolicy::None => ", and has no network",
                NetworkPolicy::Only(_) => "; it reaches the hosts that were named, through a proxy",
            };
            let place = if level == Level::Gvisor { GVISOR } else { CONTAINER };
            format!("{place}{network}{way_out}")
        }
    }
}

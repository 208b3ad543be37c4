//! What pages wrote and fetched, without secrets.

use serde_json::Value;

use crate::{
    live::Live,
    world::{ConsoleEntry, NetworkEntry},
};

/// Headers whose values give access to something.
const SECRET: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];
/// What stands in the place of such a value.
const MASK: &str = "***";

/// How many lines there were, and those since so many.
pub(super) fn console(live: &Live, since: u64) -> (u64, Vec<ConsoleEntry>) {
    live.shared.with(|world| {
        let (count, _) = world.log.counts();
        (count, world.log.console_since(known(since, count)))
    })
}

/// How many requests there were, and those since so many.
pub(super) fn network(live: &Live, since: u64) -> (u64, Vec<NetworkEntry>) {
    let (count, entries) = live.shared.with(|world| {
        let (_, count) = world.log.counts();
        (count, world.log.network_since(known(since, count)))
    });
    (count, entries.into_iter().map(masked).collect())
}

/// A count of more than there were is of a browser that has ended.
fn known(since: u64, count: u64) -> u64 {
    if since > count { 0 } else { since }
}

/// The same without secrets.
pub(super) fn masked(mut entry: NetworkEntry) -> NetworkEntry {
    for headers in [&mut entry.request_headers, &mut entry.response_headers] {
        for (name, value) in headers.as_object_mut().into_iter().flatten() {
            if SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
                *value = Value::from(MASK);
            }
        }
    }
    entry
}

//! Where a page of a list begins: behind the last sandbox of the one before, by the time when it was made and its id. What is
//! made or deleted in the meantime moves nothing.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash as _, Hasher as _},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use gloveport_provider::{Sandbox, SandboxId};

use crate::fault::Fault;

/// The first word of a cursor.
const FORM: &str = "1";
/// Most characters of one.
const LONGEST: usize = 512;

/// The place of a sandbox in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    nanos: u128,
    id: SandboxId,
}

impl Place {
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { nanos: sandbox.created.map(since).unwrap_or_default(), id: sandbox.id.clone() }
    }

    /// The cursor behind it, for a list with these filters.
    pub(super) fn cursor(&self, filters: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{FORM} {} {} {:x}", self.nanos, self.id, digest(filters)))
    }

    /// The place that a cursor stands for.
    pub(super) fn read(cursor: &str, filters: &str) -> Result<Self, Fault> {
        let wrong =
            || Fault::wrong("`cursor` is none: take `next_cursor` of the page before, or list from the beginning");
        if cursor.len() > LONGEST {
            return Err(wrong());
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
        let text = String::from_utf8(bytes).map_err(|_| wrong())?;
        let [FORM, nanos, id, known] = text.split(' ').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let place = Self { nanos: nanos.parse().map_err(|_| wrong())?, id: SandboxId::new(id).map_err(|_| wrong())? };
        if known != format!("{:x}", digest(filters)) {
            return Err(Fault::wrong("`cursor` is that of a list with other filters; list from the beginning"));
        }
        Ok(place)
    }
}

/// Tells filters apart, so that mistakes are noticed. It protects nothing.
fn digest(filters: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    filters.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_everything_else_is_refused() {
        let place = Place { nanos: 17, id: SandboxId::new("a-b").unwrap() };
        let cursor = place.cursor("state=running");
        assert_eq!(Place::read(&cursor, "state=running").unwrap(), place);
        assert!(Place::read(&cursor, "").unwrap_err().detail().contains("other filters"));
        let of = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        for wrong in [
            String::new(),
            "!".to_owned(),
            of("1 2 a"),
            of("2 17 a-b 0"),
            of("1 -1 a-b 0"),
            of("1 17 ../x 0"),
            of(&format!("1 {} a 0", "9".repeat(60))),
            format!("{cursor}A"),
            "A".repeat(100_000),
        ] {
            assert!(Place::read(&wrong, "state=running").is_err(), "{wrong:?}");
        }
    }
}

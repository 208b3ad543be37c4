//! Names of entries, and what goes with them into a tree.

use crate::error::ArchiveError;

/// Why a name can not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadName {
    Absolute,
    Parent,
    Nul,
    Empty,
}

impl BadName {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Absolute => "the name is absolute",
            Self::Parent => "the name has a `..`",
            Self::Nul => "the name has a NUL",
            Self::Empty => "the name is empty",
        }
    }
}

/// The components of a name, without those that mean nothing.
pub(crate) fn components(name: &[u8]) -> Result<Vec<&[u8]>, BadName> {
    if name.contains(&0) {
        return Err(BadName::Nul);
    }
    if name.starts_with(b"/") {
        return Err(BadName::Absolute);
    }
    let components: Vec<&[u8]> =
        name.split(|byte| *byte == b'/').filter(|component| !component.is_empty() && *component != b".").collect();
    if components.contains(&b"..".as_slice()) {
        return Err(BadName::Parent);
    }
    if components.is_empty() { Err(BadName::Empty) } else { Ok(components) }
}

/// What an entry gets on its way out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) mode: u32,
    /// `None` for whoever unpacks.
    pub(crate) owner: Option<(u32, u32)>,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) modified: (i64, u32),
}

/// What a file that replaces another takes over from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Mode and owner.
    Attributes,
    /// Nothing.
    Nothing,
}

/// A name for a file that is not complete.
pub(crate) fn temporary_name(entry: &[u8]) -> Result<String, ArchiveError> {
    let random = gloveport_ids::random::<8>();
    let random = random.map_err(|error| ArchiveError::Write { entry: shown(entry), source: error.into() })?;
    Ok(format!(".gloveport-{random}.tmp"))
}

/// A name for messages.
pub(crate) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_and_dangerous_ones_are_refused() {
        for (name, expected) in [
            ("a", Ok(vec!["a"])),
            ("./a//b/", Ok(vec!["a", "b"])),
            ("a..b/..c/...", Ok(vec!["a..b", "..c", "..."])),
            ("a\\..\\b", Ok(vec!["a\\..\\b"])),
            ("/a", Err(BadName::Absolute)),
            ("a/../b", Err(BadName::Parent)),
            ("..", Err(BadName::Parent)),
            ("a\0b", Err(BadName::Nul)),
            ("", Err(BadName::Empty)),
            (".//.", Err(BadName::Empty)),
        ] {
            let expected = expected.map(|list| list.into_iter().map(str::as_bytes).collect::<Vec<_>>());
            assert_eq!(components(name.as_bytes()), expected, "{name:?}");
        }
    }
}

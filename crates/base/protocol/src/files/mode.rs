//! Permission bits as people write them.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

/// Permission bits of a file: on the wire a text of octal digits such as `"0644"`. A number, such as 420, is read as well.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileMode(u32);

/// These are no permission bits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a mode must be permission bits in octal, such as \"0644\", up to \"7777\", and is {0}")]
pub struct NoMode(String);

impl FileMode {
    /// All bits that a mode can have.
    const ALL: u32 = 0o7777;

    /// The permission bits among those of a file.
    #[must_use]
    pub const fn of_file(bits: u32) -> Self {
        Self(bits & Self::ALL)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<u64> for FileMode {
    type Error = NoMode;

    fn try_from(bits: u64) -> Result<Self, NoMode> {
        match u32::try_from(bits) {
            Ok(bits) if bits <= Self::ALL => Ok(Self(bits)),
            _ => Err(NoMode(bits.to_string())),
        }
    }
}

impl FromStr for FileMode {
    type Err = NoMode;

    fn from_str(text: &str) -> Result<Self, NoMode> {
        let is_octal = !text.is_empty() && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        match u32::from_str_radix(text, 8) {
            Ok(bits) if is_octal && bits <= Self::ALL => Ok(Self(bits)),
            _ => Err(NoMode(format!("{text:?}"))),
        }
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Debug for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileMode({self})")
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = FileMode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("permission bits in octal, such as \"0644\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FileMode, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, bits: u64) -> Result<FileMode, E> {
                FileMode::try_from(bits).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl PartialSchema for FileMode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Permission bits in octal."))
            .pattern(Some("^0*[0-7]{1,4}$"))
            .examples(["0644"])
            .into()
    }
}

impl ToSchema for FileMode {
    fn name() -> Cow<'static, str> {
        "FileMode".into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_mode_is_text_and_numbers_of_before_are_read() {
        for (wire, bits) in [
            (json!("0644"), Some(0o644)),
            (json!("755"), Some(0o755)),
            (json!("7777"), Some(0o7777)),
            (json!("00644"), Some(0o644)),
            (json!(420), Some(0o644)),
            (json!("10000"), None),
            (json!("+644"), None),
            (json!("0o644"), None),
            (json!("899"), None),
            (json!(""), None),
            (json!(4096), None),
            (json!(-1), None),
            (json!(6.5), None),
            (json!(null), None),
        ] {
            assert_eq!(from_value::<FileMode>(wire.clone()).ok().map(FileMode::bits), bits, "{wire}");
        }
        assert_eq!(serde_json::to_value(FileMode::of_file(0o100_600)).unwrap(), json!("0600"));
        assert_eq!(format!("{:?}", FileMode::of_file(0o7)), "FileMode(0007)");
    }
}

//! Which systems and architectures images are for.

use std::fmt;

use serde::Deserialize;

use crate::words::shown;

/// A system and an architecture, as manifests name them.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) variant: Option<String>,
}

impl Platform {
    /// That of this machine.
    pub(crate) fn own() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "x86" => "386",
            "aarch64" => "arm64",
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            "loongarch64" => "loong64",
            other => other,
        };
        Self { os: "linux".into(), architecture: architecture.into(), variant: None }
    }

    /// How well something for `offered` fits: the least is best, `None` is not at all.
    pub(crate) fn fit(&self, offered: &Self) -> Option<u32> {
        if self.os != offered.os || self.architecture != offered.architecture {
            return None;
        }
        match (self.architecture.as_str(), offered.variant.as_deref().unwrap_or_default()) {
            (_, "") => Some(0),
            ("amd64", "v1") | ("arm64", "v8") => Some(1),
            // Whether this processor can do what a later variant needs is not known.
            ("amd64" | "arm64", _) => None,
            _ => Some(2),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| shown(text, 30);
        write!(formatter, "{}/{}", short(&self.os), short(&self.architecture))?;
        match &self.variant {
            Some(variant) => write!(formatter, "/{}", short(variant)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_here_fits_and_the_plain_one_is_best() {
        let of = |os: &str, architecture: &str, variant: Option<&str>| Platform {
            os: os.into(),
            architecture: architecture.into(),
            variant: variant.map(str::to_owned),
        };
        let own = of("linux", "amd64", None);
        for (offered, expected) in [
            (of("linux", "amd64", None), Some(0)),
            (of("linux", "amd64", Some("v1")), Some(1)),
            (of("linux", "amd64", Some("v3")), None),
            (of("linux", "arm64", Some("v8")), None),
            (of("windows", "amd64", None), None),
            (of("unknown", "unknown", None), None),
        ] {
            assert_eq!(own.fit(&offered), expected, "{offered}");
        }
    }
}

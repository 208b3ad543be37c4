//! What an image is built for, and which program fits it.

use std::{
    fmt,
    fs::File,
    io::{ErrorKind, Read as _},
    path::Path,
    str::FromStr,
};

use crate::error::ImageError;

/// Architectures of Linux, as engines name them, with the number that programs have for them.
const ARCHITECTURES: [(&str, u16); 6] =
    [("amd64", 0x3e), ("arm64", 0xb7), ("arm", 0x28), ("riscv64", 0xf3), ("ppc64le", 0x15), ("s390x", 0x16)];

/// An operating system and an architecture: `linux/amd64`, `linux/arm64/v8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    text: String,
    architecture: &'static str,
}

impl Platform {
    /// The architecture, as engines name it.
    pub const fn architecture(&self) -> &'static str {
        self.architecture
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Platform {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let refused = |reason: &str| ImageError::Value {
            what: "the platform",
            value: text.escape_debug().to_string(),
            reason: reason.into(),
        };
        let mut parts = text.split('/');
        if parts.next() != Some("linux") {
            return Err(refused("images are for linux/ARCHITECTURE"));
        }
        let architecture = parts.next().unwrap_or_default();
        let known = ARCHITECTURES.iter().find(|(name, _)| *name == architecture);
        let Some((architecture, _)) = known else {
            return Err(refused("the architecture is not one of amd64, arm64, arm, riscv64, ppc64le and s390x"));
        };
        let variant = parts.next();
        if variant.is_some_and(|variant| !["v6", "v7", "v8"].contains(&variant)) || parts.next().is_some() {
            return Err(refused("what follows the architecture is not one of v6, v7 and v8"));
        }
        Ok(Self { text: text.into(), architecture })
    }
}

/// The architecture that a program is for.
pub(crate) fn architecture_of(program: &Path) -> Result<&'static str, ImageError> {
    let refused = |reason: String| ImageError::Program { path: program.into(), reason };
    let mut head = [0; 20];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut head));
    read.map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => refused("it is not a Linux program".into()),
        _ => refused(error.to_string()),
    })?;
    let [0x7f, b'E', b'L', b'F', _, order, .., low, high] = head else {
        return Err(refused("it is not a Linux program".into()));
    };
    let machine = if order == 2 { u16::from_be_bytes([low, high]) } else { u16::from_le_bytes([low, high]) };
    let known = ARCHITECTURES.iter().find(|(_, number)| *number == machine);
    known.map(|(name, _)| *name).ok_or_else(|| refused(format!("its architecture (ELF machine {machine}) is unknown")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_those_of_engines() {
        for text in ["linux/amd64", "linux/arm64", "linux/arm64/v8", "linux/arm/v7"] {
            let platform: Platform = text.parse().unwrap();
            assert_eq!(platform.to_string(), text);
        }
        for text in [
            "",
            "linux",
            "linux/",
            "windows/amd64",
            "linux/x86_64",
            "linux/amd64/",
            "linux/amd64 --x",
            "linux/arm/v7/x",
        ] {
            assert!(text.parse::<Platform>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_program_tells_what_it_is_for() {
        let own = std::env::current_exe().unwrap();
        let expected = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        assert_eq!(architecture_of(&own).unwrap(), expected);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#!/bin/sh\necho no program of Linux\n").unwrap();
        assert!(architecture_of(file.path()).is_err());
    }
}

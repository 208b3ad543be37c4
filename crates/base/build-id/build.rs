//! Makes the name of this build: a hash of the sources of the sandbox half and of what it stands on.
//!
//! It is the same on every system, whatever separates names in its paths and ends the lines of a checkout there.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// FNV-1a of 128 bits: a name for sources, not a protection from anybody.
struct Hash(u128);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
        // What follows is another part.
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }
}

/// All files in a directory and below it, sorted.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { waiting.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    Ok(found)
}

/// A file as it is where lines end with a line feed alone.
fn with_plain_ends(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut after = bytes.get(1..).unwrap_or_default().to_vec().into_iter();
    bytes.retain(|byte| after.next() != Some(b'\n') || *byte != b'\r');
    bytes
}

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../..");
    let mut sources = vec![root.join("Cargo.lock"), root.join("Cargo.toml")];
    for half in ["crates/base", "crates/sandbox"] {
        let mut crates =
            fs::read_dir(root.join(half))?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        crates.sort();
        for one in crates.iter().filter(|one| one.join("Cargo.toml").is_file()) {
            println!("cargo::rerun-if-changed={}", one.join("src").display());
            sources.push(one.join("Cargo.toml"));
            sources.extend(files(&one.join("src"))?);
        }
    }
    let mut hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    for source in &sources {
        let name = source.strip_prefix(&root).unwrap_or(source);
        hash.add(name.to_string_lossy().replace('\\', "/").as_bytes());
        hash.add(&with_plain_ends(fs::read(source)?));
    }
    for source in sources.iter().filter(|source| source.ends_with("Cargo.toml") || source.ends_with("Cargo.lock")) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let build = format!("{:032x}", hash.0);
    println!("cargo::rustc-env=GLOVEPORT_SANDBOX_BUILD={build}");
    println!("cargo::metadata=BUILD={build}");
    Ok(())
}

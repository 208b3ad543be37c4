//! Tells both programs with the sandbox half in them what this build of it is called, and has the linker write the name
//! into `gloveport-sandbox` as its build id, where a provider reads it without starting the program.

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

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../..");
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
        hash.add(name.to_string_lossy().as_bytes());
        hash.add(&fs::read(source)?);
    }
    for source in sources.iter().filter(|source| source.ends_with("Cargo.toml") || source.ends_with("Cargo.lock")) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let build = format!("{:032x}", hash.0);
    println!("cargo::rustc-env=GLOVEPORT_SANDBOX_BUILD={build}");
    if variable("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo::rustc-link-arg-bins=-Wl,--build-id=0x{build}");
    }
    Ok(())
}

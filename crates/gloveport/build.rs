//! How the binary is linked: small, because it is put into every sandbox.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" || !variable("TARGET").ends_with("-linux-gnu") {
        return;
    }
    // A static binary relocates itself. Packed, the list of places takes a tenth of the space.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // The linker that comes with Rust for this target, and no other by default, keeps one of several equal functions.
    if variable("TARGET") == "x86_64-unknown-linux-gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

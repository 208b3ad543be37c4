//! Has the linker write the name of this build into `gloveport-sandbox` as its build id, where a provider reads it without
//! starting the program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Told by the build script of `gloveport-build-id`.
    let build = env::var("DEP_GLOVEPORT_BUILD_ID_BUILD").unwrap_or_default();
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--build-id=0x{build}");
    }
}

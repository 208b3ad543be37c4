//! An environment of our own for interpreters without `ipykernel`. Nothing is ever installed into the user's.

use std::{os::unix::ffi::OsStrExt as _, path::PathBuf, time::Duration};

use sha2::{Digest as _, Sha256};

use crate::{
    find::{self, Python},
    launch::Failure,
    options::KernelOptions,
};

/// The program that makes it. It runs as the kernel's user, who then owns all of it.
const INSTALLER: &str = include_str!("install.py");
/// Time for all of it: a slow network, and another server that makes it first.
const TIME: Duration = Duration::from_mins(20);
/// Most of its output that is kept.
const MOST: usize = 16 * 1024;

/// Where the environment for an interpreter is.
fn place(options: &KernelOptions, python: &Python) -> Option<PathBuf> {
    let parent = match &options.environments {
        Some(parent) => parent.clone(),
        None => options.surroundings.home()?.join(".cache/gloveport/kernels"),
    };
    let mut digest = Sha256::new();
    digest.update(python.real.as_os_str().as_bytes());
    digest.update([0]);
    digest.update(&python.version);
    // An environment sees the packages of the one that it is made from.
    digest.update([0]);
    digest.update(python.program.as_os_str().as_bytes());
    Some(parent.join(gloveport_ids::hex(&digest.finalize()[..8])))
}

/// The environment if it is there and works.
pub(crate) async fn existing(options: &KernelOptions, python: &Python) -> Option<Python> {
    let program = place(options, python)?.join("bin/python");
    let found = find::probe(&options.surroundings, &program).await.ok()?;
    found.has_kernel.then_some(found)
}

/// Makes the environment.
pub(crate) async fn install(options: &KernelOptions, python: &Python) -> Result<Python, Failure> {
    let Some(place) = place(options, python) else {
        return Err(Failure::lasting(
            format!("{} has no `ipykernel`, and there is no home directory to install it in", python.program.display()),
            format!("run `{} -m pip install ipykernel`", python.program.display()),
        ));
    };
    let argv = [python.program.as_os_str().to_owned(), "-c".into(), INSTALLER.into(), place.clone().into_os_string()];
    let ended = options.surroundings.run(&argv, TIME, MOST).await;
    let failed = |why: &str| {
        let (program, place) = (python.program.display(), place.display());
        Failure::lasting(
            format!("{program} has no `ipykernel`, and it cannot be installed: {why}"),
            format!("run `{program} -m venv {place} && {place}/bin/python -m pip install ipykernel`"),
        )
    };
    let ended = ended.map_err(|error| failed(&error.to_string()))?;
    if !ended.succeeded() {
        return Err(failed(ended.text().lines().last().unwrap_or("no reason is known")));
    }
    find::probe(&options.surroundings, &place.join("bin/python")).await.map_err(|reason| failed(&reason))
}

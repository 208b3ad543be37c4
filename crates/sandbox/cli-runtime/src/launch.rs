//! How a bash is started for one command.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write as _,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use gloveport_sys::{SpawnError, SpawnSpec, host::find_program, spawn::Descriptors};

/// Names the file that a bash without a terminal reads first.
const STARTUP: &str = "BASH_ENV";
/// Where it finds ours.
const STARTUP_FILE: &str = "/proc/self/fd/0";
/// `bash -c TEXT`.
pub(crate) fn spec(text: &str, directory: &Path, environment: Vec<(OsString, OsString)>) -> Result<SpawnSpec, String> {
    Ok(SpawnSpec {
        program: bash(&environment, directory)?,
        arguments: ["bash", "-c", text].map(OsString::from).into(),
        environment,
        directory: Some(directory.to_owned()),
        identity: None,
        memory_limit: None,
        descriptors: Descriptors::Plain,
    })
}

/// The same for a bash that gets its standard input as descriptor 3, and a start-up file in its place.
///
/// A bash that starts on a terminal which is nobody's makes it its controlling one, and with its end the kernel ends all
/// that it left in the background. So it gets the terminal only behind its start.
pub(crate) fn asking(mut spec: SpawnSpec) -> std::io::Result<(SpawnSpec, OwnedFd)> {
    let mut script = OsString::from("exec <&3 3<&-\n");
    if let Some((_, file)) = spec.environment.iter_mut().find(|(name, _)| name == STARTUP) {
        // In one word, whatever is in it.
        script.push("BASH_ENV='");
        for (index, part) in file.as_bytes().split(|byte| *byte == b'\'').enumerate() {
            if index > 0 {
                script.push(r"'\''");
            }
            script.push(OsStr::from_bytes(part));
        }
        script.push("'\n[ ! -f \"$BASH_ENV\" ] || . \"$BASH_ENV\"\n");
        *file = STARTUP_FILE.into();
    } else {
        script.push("unset BASH_ENV\n");
        spec.environment.push((STARTUP.into(), STARTUP_FILE.into()));
    }
    let file = rustix::fs::memfd_create("startup", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = fs::File::from(file);
    file.write_all(script.as_bytes())?;
    Ok((spec, file.into()))
}

fn bash(environment: &[(OsString, OsString)], directory: &Path) -> Result<PathBuf, String> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.to_string_lossy());
    path.and_then(|path| find_program("bash", &path, directory))
        .or_else(|| find_program("bash", "/bin:/usr/bin:/usr/local/bin", directory))
        .ok_or_else(|| "[Errno 2] No such file or directory: 'bash'".to_owned())
}

/// The error in the words of the reference, where it has some.
pub(crate) fn spawn_text(error: &SpawnError) -> String {
    match error {
        SpawnError::System { errno, .. } => {
            gloveport_sys::os_error::described(&std::io::Error::from_raw_os_error(*errno), "bash")
        }
        other => other.to_string(),
    }
}

//! One program that reads a text and answers, within a time and a size.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use gloveport_sys::{
    Identity, SpawnSpec, host,
    spawn::{self, Descriptors},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid},
};

use super::OUTPUT;

/// A program, and as whom and with what environment it runs.
pub(in crate::lint) struct Program<'a> {
    /// Its name or path.
    pub(in crate::lint) name: &'a str,
    /// The user; `None` for that of this process.
    pub(in crate::lint) identity: Option<&'a Identity>,
    /// Its whole environment; `None` for that of this process.
    pub(in crate::lint) environment: Option<&'a [(OsString, OsString)]>,
}

impl Program<'_> {
    /// What the program writes when it reads `input`; its beginning, if it is much. Whatever it started is ended.
    pub(in crate::lint) fn output(&self, arguments: &[&str], input: &str, limit: Duration) -> io::Result<String> {
        let deadline = Instant::now() + limit;
        // No pipe, so that nobody waits for a program that does not read, and in memory, so that no directory matters.
        let mut file = File::from(memfd_create("text to be judged", MemfdFlags::CLOEXEC)?);
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        let mut running = self.start(arguments, &file)?;
        let output = running.read(deadline)?;
        running.wait(deadline)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    fn start(&self, arguments: &[&str], input: &File) -> io::Result<Running> {
        let environment = self.environment.map_or_else(|| std::env::vars_os().collect(), <[_]>::to_vec);
        let directory = Path::new("/");
        let program = if self.name.contains('/') {
            directory.join(self.name)
        } else {
            let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.to_string_lossy());
            host::find_program(self.name, &path.unwrap_or_default(), directory).ok_or(io::ErrorKind::NotFound)?
        };
        let spec = SpawnSpec {
            program,
            arguments: [self.name].iter().chain(arguments).map(OsString::from).collect(),
            environment,
            // Where a program is run, it looks for modules.
            directory: Some(directory.to_owned()),
            identity: self.identity.cloned(),
            memory_limit: None,
            descriptors: Descriptors::Plain,
        };
        let (output, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let null = File::options().write(true).open("/dev/null")?;
        let pid = spawn::spawn(&spec, &[input.as_fd(), end.as_fd(), null.as_fd()]).map_err(io::Error::other)?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Running { pid, output: Some(output) })
    }
}

/// A program in a session of its own, which ends with this.
struct Running {
    pid: Pid,
    output: Option<OwnedFd>,
}

impl Running {
    /// Reads until the end, or until there is enough.
    fn read(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut output = Vec::new();
        let Some(stdout) = self.output.take() else { return Ok(output) };
        let mut stdout = File::from(stdout);
        let mut buffer = [0; 4096];
        while output.len() < OUTPUT {
            wait_readable(&stdout, deadline)?;
            match stdout.read(&mut buffer)? {
                0 => break,
                length => output.extend_from_slice(&buffer[..length]),
            }
        }
        Ok(output)
    }

    /// Waits for the end.
    fn wait(&self, deadline: Instant) -> io::Result<()> {
        wait_readable(&pidfd_open(self.pid, PidfdFlags::empty())?, deadline)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = kill_process_group(self.pid, Signal::KILL)
            && error != Errno::SRCH
        {
            tracing::warn!(%error, "a linter cannot be ended");
        }
        while let Err(error) = waitpid(Some(self.pid), WaitOptions::empty()) {
            if error != Errno::INTR {
                tracing::warn!(%error, "a linter cannot be waited for");
                break;
            }
        }
    }
}

/// Waits until there is something to read, or the end.
fn wait_readable(file: &impl AsFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut files = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
        match poll(&mut files, Some(&Timespec::try_from(left).map_err(io::Error::other)?)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

//! One program that reads a text and answers, within a time and a size.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::{fd::AsFd, unix::process::CommandExt as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

/// Most bytes that are taken of what it says.
const OUTPUT: usize = 64 * 1024;

/// What the program writes when it reads `input`; its beginning, if it is much. Whatever it started is ended.
pub(super) fn output(program: &str, arguments: &[&str], input: &str, limit: Duration) -> io::Result<String> {
    let deadline = Instant::now() + limit;
    // A file and not a pipe, so that nobody waits for a program that does not read.
    let mut file = tempfile::tempfile()?;
    file.write_all(input.as_bytes())?;
    file.rewind()?;
    let mut running = Running::start(program, arguments, file)?;
    let output = running.read(deadline)?;
    running.wait(deadline)?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// A program in a process group of its own, which ends with this.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str], input: File) -> io::Result<Self> {
        let mut command = Command::new(program);
        // Where a program is run, it looks for modules.
        command.args(arguments).current_dir("/").process_group(0);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// Reads until the end, or until there is enough.
    fn read(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut output = Vec::new();
        let Some(stdout) = &mut self.0.stdout else { return Ok(output) };
        let mut buffer = [0; 4096];
        while output.len() < OUTPUT {
            wait_readable(stdout, deadline)?;
            match stdout.read(&mut buffer)? {
                0 => break,
                length => output.extend_from_slice(&buffer[..length]),
            }
        }
        Ok(output)
    }

    /// Waits for the end; a program that still writes is ended before.
    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        self.0.stdout = None;
        let pid = Pid::from_child(&self.0);
        wait_readable(&pidfd_open(pid, PidfdFlags::empty())?, deadline)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        if let Err(error) = kill_process_group(group, Signal::KILL)
            && error != Errno::SRCH
        {
            tracing::warn!(%error, "a linter can not be ended");
        }
        if let Err(error) = self.0.wait() {
            tracing::warn!(%error, "a linter can not be waited for");
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

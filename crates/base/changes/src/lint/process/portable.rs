//! The same with what std has everywhere: the program runs as this process's user, and what it started is left alone.

use std::{
    ffi::OsString,
    io::{self, Read as _, Seek as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::OUTPUT;

/// Pause between looks whether a program has ended that has closed its output.
const LOOK: Duration = Duration::from_millis(10);

/// A program, and with what environment it runs.
pub(in crate::lint) struct Program<'a> {
    /// Its name or path.
    pub(in crate::lint) name: &'a str,
    /// Its whole environment; `None` for that of this process.
    pub(in crate::lint) environment: Option<&'a [(OsString, OsString)]>,
}

impl Program<'_> {
    /// What the program writes when it reads `input`; its beginning, if it is much.
    pub(in crate::lint) fn output(&self, arguments: &[&str], input: &str, limit: Duration) -> io::Result<String> {
        let deadline = Instant::now() + limit;
        // No pipe, so that nobody waits for a program that does not read.
        let mut file = tempfile::tempfile()?;
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        let mut command = Command::new(self.name);
        command.args(arguments).stdin(file).stdout(Stdio::piped()).stderr(Stdio::null());
        // Where a program is run, it looks for modules.
        command.current_dir("/");
        if let Some(environment) = self.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        let mut running = Running(command.spawn()?);
        let output = running.read(deadline)?;
        running.wait(deadline)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

/// A program that ends with this.
struct Running(Child);

impl Running {
    /// Reads until the end, or until there is enough.
    fn read(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let Some(stdout) = self.0.stdout.take() else { return Ok(Vec::new()) };
        let (sender, receiver) = mpsc::sync_channel(1);
        // The thread ends with the program, or with whatever else holds its output open.
        thread::spawn(move || {
            let mut output = Vec::new();
            let read = stdout.take(OUTPUT as u64).read_to_end(&mut output);
            let _nobody_waits = sender.send(read.map(|_| output));
        });
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Waits for the end.
    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        while self.0.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // Nothing that std has everywhere tells the end within a time.
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill() {
            tracing::debug!(%error, "a linter has ended already");
        }
        if let Err(error) = self.0.wait() {
            tracing::warn!(%error, "a linter cannot be waited for");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_the_text_and_is_ended_at_its_limit() {
        let shell = Program { name: "/bin/sh", environment: None };
        let minute = Duration::from_mins(1);
        assert_eq!(shell.output(&["-c", "cat; pwd"], "text\n", minute).unwrap(), "text\n/\n");
        let variables = [(OsString::from("NAME"), OsString::from("value"))];
        let alone = Program { environment: Some(&variables), ..shell };
        assert_eq!(alone.output(&["-c", "echo $NAME $HOME"], "", minute).unwrap(), "value\n");
        let much = alone.output(&["-c", "yes 2>&1"], "", minute);
        assert!(much.is_ok_and(|text| text.len() == OUTPUT) || cfg!(not(target_os = "linux")));
        let error = alone.output(&["-c", "exec sleep 600"], "", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

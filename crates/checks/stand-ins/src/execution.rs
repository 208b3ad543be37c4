//! A program in a sandbox.

use std::{
    collections::BTreeMap,
    io::{Read, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use tokio::sync::watch;

use crate::Machine;

/// Most bytes of output that are kept of each stream; what is beyond is dropped.
const KEPT: usize = 32 * 1024 * 1024;
/// How long what a program leaves running may hold its output open before its end is told.
const HELD: Duration = Duration::from_millis(200);

/// What is started.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its variables, beside `PATH` and `HOME`.
    pub environment: BTreeMap<String, String>,
    /// Where it starts; `None` is the home directory.
    pub cwd: Option<String>,
    /// Somebody may write to it.
    pub stdin: bool,
}

impl Program {
    /// A command of the shell.
    pub fn shell(command: &str, environment: BTreeMap<String, String>) -> Self {
        let words = ["sh", "-c", command].map(str::to_owned).into();
        Self { words, environment, cwd: None, stdin: false }
    }
}

/// What a program has said, and how it has ended.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// How it has ended; 128 and more for a signal. Output is whole then, but for what is left running.
    pub exit: Option<i32>,
}

/// A program that was started.
pub struct Execution {
    output: watch::Receiver<Output>,
    stdin: Mutex<Option<ChildStdin>>,
    pid: u32,
}

impl Execution {
    /// Starts a program. A machine that rests starts none.
    ///
    /// # Errors
    ///
    /// It cannot be started, in words.
    ///
    /// # Panics
    ///
    /// Its output is not there.
    pub fn start(machine: &Arc<Machine>, program: &Program) -> Result<Self, String> {
        let home = machine.home();
        let (name, arguments) = program.words.split_first().ok_or("there is no program")?;
        let cwd = program.cwd.as_deref().unwrap_or(&home);
        let mut command = machine.command(name, cwd).ok_or("the sandbox rests")?;
        command
            .args(arguments)
            .env_clear()
            .envs([("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", &home)]);
        let (name_of_mark, mark) = machine.mark();
        command.envs(&program.environment).env(name_of_mark, mark);
        command.stdin(if program.stdin { Stdio::piped() } else { Stdio::null() });
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name} in {cwd}: {error}"))?;
        let (tell, output) = watch::channel(Output::default());
        let (pid, stdin) = (child.id(), Mutex::new(child.stdin.take()));
        let (tell, (reads, read_to_end)) = (Arc::new(tell), mpsc::channel());
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        read(out, &tell, reads.clone(), |output| &mut output.stdout);
        read(err, &tell, reads, |output| &mut output.stderr);
        std::thread::spawn(move || wait(child, &tell, &read_to_end));
        Ok(Self { output, stdin, pid })
    }

    /// What there is now.
    pub fn output(&self) -> Output {
        self.output.borrow().clone()
    }

    /// Tells of changes.
    pub fn follow(&self) -> watch::Receiver<Output> {
        self.output.clone()
    }

    /// Writes to its standard input. Whether that is open.
    pub fn tell(&self, text: &[u8]) -> bool {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        stdin.as_mut().is_some_and(|stdin| stdin.write_all(text).and_then(|()| stdin.flush()).is_ok())
    }

    /// Closes its standard input.
    pub fn close_input(&self) {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends it and what it has started.
    pub fn kill(&self) {
        // Another process may have its number once it has ended.
        if self.output.borrow().exit.is_some() {
            return;
        }
        let all = crate::machine::tree(self.pid);
        crate::machine::signal("KILL", &all);
    }
}

/// Waits for the end of a program, and then for that of its output, which what it leaves running may hold open.
fn wait(mut child: Child, tell: &watch::Sender<Output>, read_to_end: &mpsc::Receiver<()>) {
    let status = child.wait().unwrap();
    // It ends when both readers are gone: nobody sends anything.
    let _held = read_to_end.recv_timeout(HELD);
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    tell.send_modify(|output| output.exit = Some(code));
}

/// Reads a stream to its end, and holds `reads` until then.
fn read(
    mut from: impl Read + Send + 'static,
    to: &Arc<watch::Sender<Output>>,
    reads: mpsc::Sender<()>,
    of: fn(&mut Output) -> &mut Vec<u8>,
) {
    let to = Arc::clone(to);
    std::thread::spawn(move || {
        let _reads = reads;
        let mut buffer = vec![0; 32 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            to.send_modify(|output| {
                let all = of(output);
                let room = KEPT.saturating_sub(all.len()).min(length);
                all.extend_from_slice(&buffer[..room]);
            });
        }
    });
}

//! Where the files and processes of a sandbox are.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long processes that were killed may take to be gone.
const GONE: Duration = Duration::from_secs(10);

/// How far sandboxes are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not at all: paths and processes are those of this machine. The processes of a sandbox are a group.
    Plain,
    /// Each has a layer over the files of this machine, and its own processes. Needs root.
    Apart,
}

/// The variable with the directory of a machine, by which its processes are known.
const MARK: &str = "STAND_IN_MACHINE";

/// Makes the files of a sandbox from those of this machine, and waits for the end of its standard input, which is that of the
/// program with the stand-in: `$1` is its directory. It is ready when the root of its first process is its own: files are put in
/// by that.
const APART: &str = r#"set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs tmpfs "$1/root/tmp"
mount -t tmpfs tmpfs "$1/root/run"
exec chroot "$1/root" sh -c "echo ready; exec cat""#;

/// Leads the group of a sandbox's processes, and takes all with it when the program with the stand-in ends.
const PLAIN: &str = "echo ready; cat; kill -KILL 0";

/// Whether sandboxes can be kept apart here: that takes root and `unshare`.
pub fn can_be_apart() -> bool {
    let made = Command::new("unshare").args(["--mount", "--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    made.is_ok_and(|status| status.success())
}

/// What keeps the processes of a sandbox together: a process with the id of the first of them. They end with it.
struct Keeper {
    child: Child,
    first: u32,
}

/// A machine. It ends when this is dropped.
pub struct Machine {
    kind: Kind,
    directory: PathBuf,
    /// None while it rests.
    keeper: Mutex<Option<Keeper>>,
}

impl Machine {
    /// A new one in this directory, with the files of a snapshot.
    ///
    /// # Panics
    ///
    /// It cannot be made.
    pub fn new(kind: Kind, directory: PathBuf, snapshot: Option<&Path>) -> Self {
        for part in ["root", "work"] {
            fs::create_dir_all(directory.join(part)).unwrap();
        }
        match snapshot {
            Some(snapshot) => copy(snapshot, &directory.join("upper")),
            None => fs::create_dir_all(directory.join("upper")).unwrap(),
        }
        let machine = Self { kind, directory, keeper: Mutex::default() };
        machine.wake();
        machine
    }

    /// It runs, with the files that it had. Nothing is started.
    ///
    /// # Panics
    ///
    /// It cannot be set up.
    pub fn wake(&self) {
        let mut keeper = self.keeper();
        if keeper.is_some() {
            return;
        }
        let mut command = match self.kind {
            Kind::Plain => {
                let mut command = Command::new("sh");
                command.args(["-c", PLAIN]).process_group(0);
                command
            }
            Kind::Apart => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", APART, "init"]);
                command.arg(&self.directory);
                command
            }
        };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "a sandbox could not be set up");
        let first = match self.kind {
            Kind::Plain => child.id(),
            Kind::Apart => children(child.id())[0],
        };
        *keeper = Some(Keeper { child, first });
    }

    fn keeper(&self) -> std::sync::MutexGuard<'_, Option<Keeper>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<u32> {
        self.keeper().as_ref().map(|keeper| keeper.first)
    }

    /// The variable that all its programs have.
    pub(crate) fn mark(&self) -> (&'static str, &Path) {
        (MARK, &self.directory)
    }

    /// A command for a program in it; none while it rests.
    ///
    /// # Panics
    ///
    /// The id of its first process is none.
    pub fn command(&self, program: &str, cwd: &str) -> Option<Command> {
        let first = self.first()?;
        Some(match self.kind {
            Kind::Plain => {
                let mut command = Command::new(program);
                command.current_dir(cwd).process_group(i32::try_from(first).unwrap());
                command
            }
            Kind::Apart => {
                let mut command = Command::new("nsenter");
                let target = first.to_string();
                let cwd = format!("--wd=/proc/{first}/root{cwd}");
                command.args(["--target", &target, "--mount", "--pid", "--root", &cwd, program]);
                command
            }
        })
    }

    /// The home directory of its user, as paths in it are.
    pub fn home(&self) -> String {
        match self.kind {
            Kind::Plain => self.directory.join("root").display().to_string(),
            Kind::Apart => "/root".to_owned(),
        }
    }

    /// Where one of its files is on this machine; a path that is not absolute begins in the home directory.
    ///
    /// # Panics
    ///
    /// It rests, and nobody but it has these files.
    pub fn path(&self, path: &str) -> PathBuf {
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.home()) };
        match self.kind {
            Kind::Plain => PathBuf::from(whole),
            Kind::Apart => {
                let first = self.first().unwrap_or_else(|| panic!("{whole} of a sandbox that rests"));
                PathBuf::from(format!("/proc/{first}/root{whole}"))
            }
        }
    }

    /// Keeps the files that it has beyond those of this machine.
    ///
    /// # Panics
    ///
    /// They cannot be copied.
    pub fn keep(&self, to: &Path) {
        copy(&self.directory.join("upper"), to);
    }

    /// Its processes, as this machine knows them.
    fn all(&self) -> Vec<u32> {
        let mut all = match (&*self.keeper(), self.kind) {
            (None, _) => Vec::new(),
            (Some(keeper), Kind::Plain) => vec![keeper.first],
            // If it has ended, another process may have its number by now.
            (Some(keeper), Kind::Apart) => children(keeper.child.id()),
        };
        if self.kind == Kind::Plain {
            all.extend(marked(&self.directory));
        }
        // What has lost its parent has the mark, or belongs to the first process, and so is among these.
        with_children(all)
    }

    /// No process of it goes on, and memory stays.
    pub fn stop(&self) {
        signal("STOP", &self.all());
    }

    /// All go on.
    pub fn go_on(&self) {
        signal("CONT", &self.all());
    }

    /// All its processes end, and files stay.
    ///
    /// # Panics
    ///
    /// They do not end in time.
    pub fn rest(&self) {
        let all = self.all();
        let Some(mut keeper) = self.keeper().take() else { return };
        signal("KILL", &all);
        let _has_ended = keeper.child.kill();
        let _has_ended = keeper.child.wait();
        let began = Instant::now();
        while self.kind == Kind::Apart && Path::new(&format!("/proc/{}", keeper.first)).exists() {
            assert!(began.elapsed() < GONE, "process {} of a sandbox does not end", keeper.first);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.rest();
        // Without the right to, as for a layer that is in use for one moment more, the directory of all is removed later.
        let _left = fs::remove_dir_all(&self.directory);
    }
}

/// Copies files with all that belongs to them.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "cp {} {}", from.display(), to.display());
}

/// The processes that were started in a machine with this directory, wherever they have gone since: they have its name among
/// their variables.
fn marked(directory: &Path) -> Vec<u32> {
    let named = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = named.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mark = format!("{MARK}={}", directory.display());
    let has_mark = |pid: &u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

/// The processes that a process has started.
///
/// # Panics
///
/// The system lists what is no process.
pub fn children(pid: u32) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Processes, and those that they have started.
fn with_children(mut all: Vec<u32>) -> Vec<u32> {
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        let new: Vec<u32> = children(*pid).into_iter().filter(|pid| !all.contains(pid)).collect();
        all.extend(new);
        at += 1;
    }
    all
}

/// A process, and those that it has started.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    with_children(vec![pid])
}

/// Sends a signal to processes, of which some may have ended.
pub fn signal(name: &str, pids: &[u32]) {
    if !pids.is_empty() {
        let pids = pids.iter().map(u32::to_string);
        let _some_ended = Command::new("kill").arg(format!("-{name}")).args(pids).stderr(Stdio::null()).status();
    }
}

//! Where the files and processes of a sandbox are.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use gloveport_stand_ins::{Kind, children, signal};

/// Makes the files of a sandbox from those of this machine, and waits for the end of its standard input, which is that of the
/// test program: `$1` is its directory.
const INIT: &str = r#"set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs tmpfs "$1/root/tmp"
mount -t tmpfs tmpfs "$1/root/run"
echo ready
exec chroot "$1/root" cat"#;

/// A machine. It ends when this is dropped.
pub(super) struct Machine {
    pub(super) directory: PathBuf,
    /// What keeps it apart, with the id of its first process.
    apart: Option<(Child, u32)>,
    /// Processes that were started in it, as this machine knows them.
    started: Mutex<Vec<u32>>,
}

impl Machine {
    /// A new one in this directory, with the files of a snapshot.
    pub(super) fn new(kind: Kind, directory: PathBuf, snapshot: Option<&Path>) -> Self {
        for part in ["root", "work"] {
            fs::create_dir_all(directory.join(part)).unwrap();
        }
        match snapshot {
            Some(snapshot) => super::copy(snapshot, &directory.join("upper")),
            None => fs::create_dir_all(directory.join("upper")).unwrap(),
        }
        let apart = (kind == Kind::Apart).then(|| Self::first(&directory));
        Self { directory, apart, started: Mutex::default() }
    }

    fn first(directory: &Path) -> (Child, u32) {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INIT, "init"]).arg(directory);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "a sandbox could not be set up");
        let first = children(child.id())[0];
        (child, first)
    }

    /// A command for a program in it.
    pub(super) fn command(&self, program: &str, cwd: &str) -> Command {
        match &self.apart {
            None => {
                let mut command = Command::new(program);
                command.current_dir(cwd);
                command
            }
            Some((_, first)) => {
                let mut command = Command::new("nsenter");
                let target = first.to_string();
                command.args([
                    "--target",
                    &target,
                    "--mount",
                    "--pid",
                    "--root",
                    &format!("--wd=/proc/{first}/root{cwd}"),
                ]);
                command.arg(program);
                command
            }
        }
    }

    /// Where one of its files is on this machine.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        match &self.apart {
            None => PathBuf::from(path),
            Some((_, first)) => PathBuf::from(format!("/proc/{first}/root{path}")),
        }
    }

    /// The files that it has beyond those of this machine.
    pub(super) fn layer(&self) -> PathBuf {
        self.directory.join("upper")
    }

    pub(super) fn started(&self, pid: u32) {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }

    pub(super) fn ended(&self, pid: u32) {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != pid);
    }

    /// Its processes, as this machine knows them.
    fn all(&self) -> Vec<u32> {
        let roots = match &self.apart {
            Some((_, first)) => vec![*first],
            None => Vec::new(),
        };
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<u32> = roots.into_iter().chain(started.iter().copied()).collect();
        let mut at = 0;
        while let Some(pid) = all.get(at) {
            let new: Vec<u32> = children(*pid).into_iter().filter(|pid| !all.contains(pid)).collect();
            all.extend(new);
            at += 1;
        }
        // What has lost its parent belongs to the first process, and so is among these.
        all
    }

    /// No process of it goes on.
    pub(super) fn stop(&self) {
        signal("STOP", &self.all());
    }

    /// All go on.
    pub(super) fn go_on(&self) {
        signal("CONT", &self.all());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let all = self.all();
        signal("KILL", &all);
        if let Some((child, _)) = &mut self.apart {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // Without the right to, as for a layer that is in use for one moment more, the directory of all is removed later.
        let _left = fs::remove_dir_all(&self.directory);
    }
}

//! How sandboxes start, and what time does to them.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use super::state::{Made, Modal};
use crate::{Execution, Machine, Program, Shared, World, lock};

impl Made {
    /// It ends for good: with this status, exit code and words.
    pub(super) fn end(&mut self, status: u64, code: i32, words: &str) {
        if self.machine.take().is_some() {
            self.more.result = Some((status, code, words.to_owned()));
            self.more.execs.clear();
            "finished".clone_into(&mut self.state);
        }
    }
}

/// What has reached its time ends.
pub(super) fn turn(world: &mut World<Modal>) {
    let (now, mut changed) = (world.now(), false);
    for made in world.sandboxes.values_mut().filter(|made| made.machine.is_some()) {
        let limit = Duration::from_secs(made.more.definition.number(7));
        if made.more.began.unwrap_or(made.created) + limit <= now {
            made.end(4, 0, "");
            changed = true;
        }
    }
    if changed {
        world.changed();
    }
}

/// Starts a sandbox that was made.
pub(super) async fn boot(world: Shared<Modal>, id: String) {
    let slow = lock(&world).slow;
    tokio::time::sleep(slow).await;
    let (of, name) = (Arc::clone(&world), id.clone());
    let started = tokio::task::spawn_blocking(move || start(&of, &name)).await.unwrap();
    let mut world = lock(&world);
    if let (Err(said), Some(made)) = (started, world.sandboxes.get_mut(&id)) {
        made.end(5, 1, &said);
    }
    world.changed();
}

/// Puts in what is mounted, and starts the entry point, with which the sandbox ends.
fn start(world: &Shared<Modal>, id: &str) -> Result<(), String> {
    let (machine, program, files) = {
        let world = lock(world);
        let made = world.sandboxes.get(id).ok_or("it is gone")?;
        let machine = made.machine.clone().ok_or("it has ended")?;
        let mounts = made.more.definition.texts(2);
        let files: Vec<_> = mounts
            .iter()
            .flat_map(|mount| world.face.mounts.get(mount).into_iter().flatten())
            .filter_map(|(path, digest, mode)| Some((path.clone(), world.face.files.get(digest)?.clone(), *mode)))
            .collect();
        let words = made.more.definition.texts(1);
        let words = if words.is_empty() { ["sleep", "infinity"].map(str::to_owned).into() } else { words };
        let cwd = Some(made.more.definition.text(8)).filter(|path| !path.is_empty());
        let program = Program { words, environment: made.more.environment.clone(), cwd, stdin: true };
        (machine, program, files)
    };
    for (path, content, mode) in files {
        put(&machine, &path, &content, mode).map_err(|error| format!("{path}: {error}"))?;
    }
    let entry = Arc::new(Execution::start(&machine, &program)?);
    {
        let mut world = lock(world);
        let now = world.now();
        let made = world.sandboxes.get_mut(id).filter(|made| made.machine.is_some()).ok_or("it has ended")?;
        made.more.entry = Some(Arc::clone(&entry));
        made.more.began = Some(now);
    }
    let (world, id) = (Arc::clone(world), id.to_owned());
    std::thread::spawn(move || {
        let code = code_of(&entry);
        let mut world = lock(&world);
        if let Some(made) = world.sandboxes.get_mut(&id) {
            made.end(if code == 0 { 1 } else { 2 }, code, "");
        }
        world.changed();
    });
    Ok(())
}

/// Waits in a thread of its own for the end of a program.
fn code_of(execution: &Execution) -> i32 {
    loop {
        if let Some(code) = execution.output().exit {
            return code;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes a file with its directories. It has its name when it is whole: others may run the same. And another process writes it, as
/// a program cannot be run that is open for writing in any process, of which this one begets many.
fn put(machine: &Machine, path: &str, content: &[u8], mode: u32) -> std::io::Result<()> {
    let path = machine.path(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let [written, new] = ["written", "new"].map(|word| path.with_extension(World::<Modal>::next(word)));
    fs::write(&written, content)?;
    fs::set_permissions(&written, fs::Permissions::from_mode(mode))?;
    crate::machine::copy(&written, &new);
    fs::remove_file(&written)?;
    fs::rename(&new, &path)
}

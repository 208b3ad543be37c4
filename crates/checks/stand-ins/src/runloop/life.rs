//! How sandboxes start, rest, go on and end.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::json;

use super::state::{Devbox, Runloop};
use crate::{Execution, Machine, Program, Shared, World, lock, milliseconds};

/// Time that a sandbox has if nobody says another one.
const KEPT: Duration = Duration::from_hours(1);

impl Devbox {
    /// It is in another state from now on.
    pub(super) fn enter(&mut self, state: &str, now: SystemTime) {
        state.clone_into(&mut self.state);
        self.more.transitions.push((state.to_owned(), milliseconds(now)));
    }

    /// It ends for good.
    pub(super) fn shut_down(&mut self, reason: &'static str, now: SystemTime) {
        if self.machine.take().is_some() {
            self.more.shutdown = Some(reason);
            self.more.ended = Some(now);
            self.more.executions.clear();
            self.enter("shutdown", now);
        }
    }

    /// Its processes end, and its files stay.
    pub(super) fn rest(&mut self, now: SystemTime) {
        if let Some(machine) = &self.machine {
            machine.rest();
            self.more.executions.clear();
            self.enter("suspended", now);
        }
    }

    fn environment(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.more.wish["environment_variables"].clone()).unwrap_or_default()
    }
}

/// What has reached its time ends or rests.
pub(super) fn turn(world: &mut World<Runloop>) {
    let (now, mut changed) = (world.now(), false);
    for devbox in world.sandboxes.values_mut().filter(|devbox| devbox.state == "running") {
        let parameters = &devbox.more.wish["launch_parameters"];
        let idle = &parameters["lifecycle"]["after_idle"];
        let idle = if idle.is_null() { &parameters["after_idle"] } else { idle };
        if let Some(seconds) = idle["idle_time_seconds"].as_u64() {
            let used = devbox.more.used.unwrap_or(devbox.created);
            if used + Duration::from_secs(seconds) <= now {
                if idle["on_idle"] == "suspend" {
                    devbox.rest(now);
                } else {
                    devbox.shut_down("idle", now);
                }
                changed = true;
            }
            continue;
        }
        let kept = parameters["keep_alive_time_seconds"].as_u64().map_or(KEPT, Duration::from_secs);
        if devbox.created + kept <= now {
            devbox.shut_down("keep_alive_timeout", now);
            changed = true;
        }
    }
    if changed {
        world.changed();
    }
}

/// Changes a sandbox that is still there, and has not ended.
fn change(world: &Shared<Runloop>, id: &str, work: impl FnOnce(&mut Devbox, SystemTime)) {
    let mut world = lock(world);
    let now = world.now();
    if let Some(devbox) = world.sandboxes.get_mut(id).filter(|devbox| devbox.machine.is_some()) {
        work(devbox, now);
    }
    world.changed();
}

/// Starts a sandbox that was made (`is_new`), or that has rested.
pub(super) async fn boot(world: Shared<Runloop>, id: String, is_new: bool) {
    let slow = lock(&world).slow;
    tokio::time::sleep(slow).await;
    if is_new {
        change(&world, &id, |devbox, now| devbox.enter("initializing", now));
    }
    let (of, name) = (Arc::clone(&world), id.clone());
    let started = tokio::task::spawn_blocking(move || start(&of, &name, is_new)).await.unwrap();
    change(&world, &id, |devbox, now| match started {
        Ok(()) => {
            devbox.more.used = Some(now);
            devbox.enter("running", now);
        }
        Err(said) => {
            devbox.more.logs.push(json!({
                "level": "error", "source": "setup_commands", "timestamp_ms": milliseconds(now), "message": said,
            }));
            devbox.machine = None;
            devbox.more.failure = Some("execution_failed");
            devbox.more.ended = Some(now);
            devbox.enter("failure", now);
        }
    });
}

/// Puts in what is mounted, runs what is to run at each start, and starts the entry point.
fn start(world: &Shared<Runloop>, id: &str, is_new: bool) -> Result<(), String> {
    let (machine, environment, wish, objects) = {
        let world = lock(world);
        let devbox = world.sandboxes.get(id).ok_or("it is gone")?;
        let machine = devbox.machine.clone().ok_or("it has ended")?;
        let mounts = devbox.more.wish["mounts"].as_array().cloned().unwrap_or_default();
        let objects: Vec<_> = mounts
            .iter()
            .filter(|mount| is_new && mount["type"] == "object_mount")
            .filter_map(|mount| {
                let object = world.face.objects.get(mount["object_id"].as_str()?)?;
                Some((mount["object_path"].as_str()?.to_owned(), object.content.clone()))
            })
            .collect();
        (machine, devbox.environment(), devbox.more.wish.clone(), objects)
    };
    machine.wake();
    for (path, content) in objects {
        put(&machine, &path, &content).map_err(|error| format!("{path}: {error}"))?;
    }
    let commands = wish["launch_parameters"]["launch_commands"].as_array().cloned().unwrap_or_default();
    for command in commands.iter().filter_map(|command| command.as_str()) {
        let execution = Execution::start(&machine, &Program::shell(command, environment.clone()))?;
        let ended = end_of(&execution);
        if ended.exit != Some(0) {
            return Err(format!("{command}: {:?} {}", ended.exit, String::from_utf8_lossy(&ended.stderr)));
        }
    }
    if let Some(command) = wish["entrypoint"].as_str() {
        let execution = Execution::start(&machine, &Program::shell(command, environment))?;
        let (world, id) = (Arc::clone(world), id.to_owned());
        std::thread::spawn(move || {
            end_of(&execution);
            change(&world, &id, |devbox, now| {
                if devbox.state == "running" {
                    devbox.shut_down("entrypoint_exit", now);
                }
            });
        });
    }
    Ok(())
}

/// Waits in a thread of its own for the end of a program.
fn end_of(execution: &Execution) -> crate::Output {
    loop {
        let output = execution.output();
        if output.exit.is_some() {
            return output;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes a file with its directories.
pub(super) fn put(machine: &Machine, path: &str, content: &[u8]) -> std::io::Result<()> {
    let path = machine.path(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // A program that runs cannot be written to.
    let _is_new = fs::remove_file(&path);
    fs::write(&path, content)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))
}

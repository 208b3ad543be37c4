//! How sandboxes start, rest, go on and end.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::state::{Daytona, Held};
use crate::{Shared, World, lock};

/// How long the service goes on telling of a sandbox that it deletes.
const DELETING: Duration = Duration::from_millis(30);

impl Held {
    /// It is in another state from now on.
    pub(super) fn enter(&mut self, state: &str) {
        state.clone_into(&mut self.state);
        self.more.changes += 1;
    }

    /// What its ports ask for.
    pub(super) fn token(&self, id: &str) -> String {
        format!("preview-{id}-{}", self.more.turns)
    }

    /// Its processes end, and its files stay.
    fn rest(&mut self) {
        self.more.sessions.clear();
        if let Some(machine) = &self.machine {
            machine.rest();
        }
        self.enter("stopped");
    }

    /// It ends for good.
    pub(super) fn destroy(&mut self) {
        self.more.sessions.clear();
        self.machine = None;
        self.enter("destroying");
    }
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// What has reached its time is stopped or deleted.
pub(super) fn turn(world: &mut World<Daytona>) {
    let now = world.now();
    let is_over = |time: Option<SystemTime>| time.is_some_and(|time| time <= now);
    world.sandboxes.retain(|_, sandbox| !is_over(sandbox.more.destroyed));
    for sandbox in world.sandboxes.values_mut().filter(|sandbox| sandbox.state == "started") {
        let idle = minutes(sandbox.more.auto_stop);
        if idle > Duration::ZERO && sandbox.more.used + idle <= now {
            sandbox.rest();
        }
    }
    world.sandboxes.retain(|_, sandbox| sandbox.state != "stopped" || sandbox.more.auto_delete != 0);
}

/// Does something with a sandbox that takes its time, in a thread that may wait.
async fn later(world: &Shared<Daytona>, id: &str, work: impl FnOnce(&mut Held) + Send + 'static) {
    let slow = lock(world).slow;
    tokio::time::sleep(slow).await;
    let (world, id) = (Arc::clone(world), id.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut world = lock(&world);
        if let Some(sandbox) = world.sandboxes.get_mut(&id) {
            work(sandbox);
        }
        turn(&mut world);
        world.changed();
    })
    .await
    .unwrap();
}

/// Starts a sandbox that was made, or that has rested.
pub(super) async fn boot(world: Shared<Daytona>, id: String) {
    let now = lock(&world).now();
    later(&world, &id, move |sandbox| {
        let Some(machine) = &sandbox.machine else { return };
        if sandbox.state == "resuming" {
            machine.go_on();
        } else {
            machine.wake();
        }
        sandbox.more.turns += 1;
        sandbox.more.used = now;
        sandbox.enter("started");
    })
    .await;
}

/// Lets a sandbox rest, with its memory or without.
pub(super) async fn rest(world: Shared<Daytona>, id: String, with_memory: bool) {
    later(&world, &id, move |sandbox| {
        let Some(machine) = &sandbox.machine else { return };
        if with_memory {
            machine.stop();
            sandbox.enter("paused");
        } else {
            sandbox.rest();
        }
    })
    .await;
}

/// Forgets a sandbox that was deleted.
pub(super) async fn bury(world: Shared<Daytona>, id: String) {
    let slow = lock(&world).slow;
    tokio::time::sleep(slow.max(DELETING)).await;
    let mut world = lock(&world);
    world.sandboxes.remove(&id);
    world.changed();
}

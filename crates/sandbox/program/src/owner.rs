//! Who owns the processes that are started.

use std::sync::Arc;

use gloveport_sys::{Guard, Spawner, confined::Confinement};

/// What is told of a server that ended because its guard was killed.
pub(crate) const LOST: &str = "its process guard was killed, and with it everything that it had started";

/// The owner of every process that is started.
#[derive(Debug)]
pub struct Owner {
    /// What starts them.
    pub spawner: Spawner,
    /// The guard's process.
    pub pid: u32,
}

impl Owner {
    /// Starts the guard. Call it while this is the only thread.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self::of(Guard::start()?))
    }

    /// The same, where all that it starts is kept to a part of the machine, and this process to the same places.
    pub(crate) fn start_confined(confinement: &Confinement) -> anyhow::Result<Self> {
        Ok(Self::of(Guard::start_confined(confinement)?))
    }

    /// The same, for the first process of a container, whose files may have several owners.
    pub(crate) fn start_inside(network: bool, has_owners: bool) -> anyhow::Result<Self> {
        Ok(Self::of(Guard::start_inside(network, has_owners)?))
    }

    /// The same on a kernel that is the sandbox's own.
    pub(crate) fn start_on_own_kernel() -> anyhow::Result<Self> {
        Ok(Self::of(Guard::start_on_own_kernel()?))
    }

    fn of(guard: Guard) -> Self {
        let pid = guard.pid();
        Self { spawner: Spawner::Guarded(Arc::new(guard)), pid }
    }

    /// Ends when the guard was killed; what it owned has been ended then.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let lost = match &self.spawner {
            Spawner::Guarded(guard) => guard.lost(),
            Spawner::Direct => Err(std::io::ErrorKind::Unsupported.into()),
        };
        async {
            match lost {
                Ok(lost) => lost.await,
                Err(error) => {
                    tracing::warn!(%error, "the process guard cannot be watched");
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Whether the guard still lives. A server whose guard was killed can start nothing, and ends.
    pub fn check(&self) -> anyhow::Result<()> {
        let lives = gloveport_sys::process::stat(self.pid).is_some_and(|stat| stat.state != 'Z');
        anyhow::ensure!(lives, "{LOST}");
        Ok(())
    }
}

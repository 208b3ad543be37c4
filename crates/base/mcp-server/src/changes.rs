//! What happens to files, for a client that wants to know.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_protocol::files::{FileChange, FileEvent};
use rmcp::{
    ErrorData,
    model::{
        ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
        ServerNotification,
    },
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use crate::{
    computer::{Changes, Computer, Failure},
    resources,
};

/// Files that one client can watch.
const MOST: usize = 64;
/// What waits for one client; more is left out.
const WAITING: usize = 64;
/// Changes within this time are told as one.
const PAUSE: Duration = Duration::from_millis(300);

/// What one client watches. Dropping it ends all watches.
#[derive(Debug)]
pub(crate) struct Watches {
    told: mpsc::Sender<ServerNotification>,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    files: HashMap<String, Task>,
    list: Option<Task>,
}

/// A task that ends with its owner.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watches {
    /// Nothing so far; and where the client's part of it can be read.
    pub(crate) fn new() -> (Self, mpsc::Receiver<ServerNotification>) {
        let (told, waiting) = mpsc::channel(WAITING);
        (Self { told, running: Mutex::default() }, waiting)
    }

    /// Tells from now on when this resource changes.
    pub(crate) async fn file(&self, computer: &Arc<dyn Computer>, uri: &str) -> Result<(), ErrorData> {
        let path = resources::known(uri)?;
        if self.running.lock().unwrap_or_else(PoisonError::into_inner).files.len() >= MOST {
            let told = format!("{MOST} resources are watched already; unsubscribe from one first");
            return Err(ErrorData::invalid_request(told, None));
        }
        // A file that is replaced is another one of the same name, which only its directory knows.
        let parent = match path.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((parent, _)) => parent,
        };
        let failed = |failure: Failure| ErrorData::internal_error(failure.text, None);
        let changes = computer.watch(parent, false).await.map_err(failed)?;
        let updated = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
        let notification = ServerNotification::ResourceUpdatedNotification(updated);
        let concerns = move |event: &FileEvent| event.path == path || event.change == FileChange::Overflow;
        let task = Task(tokio::spawn(tell(changes, concerns, notification, self.told.clone())));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).files.insert(uri.to_owned(), task);
        Ok(())
    }

    /// Tells nothing more of this resource.
    pub(crate) fn forget(&self, uri: &str) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).files.remove(uri);
    }

    /// Tells from now on when files of the workspace come and go. A tree that cannot be watched is not.
    pub(crate) async fn list(&self, computer: &Arc<dyn Computer>) {
        if self.running.lock().unwrap_or_else(PoisonError::into_inner).list.is_some() {
            return;
        }
        let changes = match computer.watch(computer.directory(), true).await {
            Ok(changes) => changes,
            Err(failure) => {
                tracing::debug!("changes of the list of files are not told: {}", failure.text);
                return;
            }
        };
        let told = ServerNotification::ResourceListChangedNotification(ResourceListChangedNotification::default());
        let concerns = |event: &FileEvent| {
            matches!(event.change, FileChange::Created | FileChange::Removed | FileChange::Overflow)
        };
        let task = Task(tokio::spawn(tell(changes, concerns, told, self.told.clone())));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).list = Some(task);
    }
}

/// Tells once for all changes that concern the client and come shortly after each other.
async fn tell(
    mut changes: Box<dyn Changes>,
    concerns: impl Fn(&FileEvent) -> bool,
    notification: ServerNotification,
    told: mpsc::Sender<ServerNotification>,
) {
    while let Ok(Some(event)) = changes.next().await {
        if !concerns(&event) {
            continue;
        }
        let until = Instant::now() + PAUSE;
        while let Ok(Ok(Some(_))) = timeout_at(until, changes.next()).await {}
        if told.is_closed() {
            return;
        }
        // A client that does not read hears of the next change.
        let _full = told.try_send(notification.clone());
    }
}

//! Work on files with the rights of whoever owns the commands, as git has them.

use std::{io, thread};

use gloveport_sys::{Surroundings, file_identity};
use tokio::sync::oneshot;

/// Does this on a thread of its own: what a thread gives up of its rights, it gives up for good.
pub(crate) async fn as_user<T: Send + 'static>(
    surroundings: &Surroundings,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let identity = surroundings.identity.clone();
    let (sender, done) = oneshot::channel();
    let all = move || {
        let taken = identity.as_ref().map_or(Ok(()), file_identity::take_on);
        // Whoever asked may be gone.
        let _unheard = sender.send(taken.map(|()| work()));
    };
    thread::Builder::new().name("repository".into()).spawn(all)?;
    done.await.unwrap_or_else(|_| Err(io::Error::other("the files could not be looked at")))
}

//! An owner's life: one session after the other until the server closes its socket.

use std::{
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use super::{Event, ORPHAN_GRACE, child_signals, detach, end_descendants, has_children, reap, wait_either};
use crate::{
    cgroup::Cgroup,
    confined::BesideTerminals,
    exit::Exit,
    mark::Mark,
    spawn::{self, SpawnError, SpawnSpec},
    wire::{self, Order, Report},
};

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing of it is left.
    Gone,
    /// The server is gone, or something of the session does not die: whoever inherits it has to see to it.
    Last,
}

/// Lives as the owner of one session after the other. The first descriptor is its socket.
pub(super) fn run(descriptors: Vec<OwnedFd>, mark: &Mark, beside: Option<&BesideTerminals>) {
    detach("gloveport-owner");
    let Some(socket) = descriptors.into_iter().next().map(UnixStream::from) else { return };
    let Ok(children) = child_signals() else { return };
    while let Ok(Some((order, descriptors))) = wire::receive::<Order>(&socket) {
        // An order to end one that has ended is no matter any more.
        let Order::Start { session, spec } = order else { continue };
        let owner = Owner { socket: &socket, children: &children, session, beside };
        if owner.own(&spec, descriptors, mark) == End::Last || wire::send(&socket, &Report::Gone, &[]).is_err() {
            return;
        }
    }
}

struct Owner<'a> {
    socket: &'a UnixStream,
    children: &'a OwnedFd,
    session: u64,
    beside: Option<&'a BesideTerminals>,
}

impl Owner<'_> {
    fn own(&self, spec: &SpawnSpec, descriptors: Vec<OwnedFd>, mark: &Mark) -> End {
        let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(OwnedFd::as_fd).collect();
        let started = spawn::spawn_in(spec, &borrowed, mark.cgroup().map(Cgroup::directory), self.beside);
        drop(descriptors);
        let report = match &started {
            Ok(pid) => Report::Started { pid: *pid },
            Err(error) => Report::Failed(SpawnError::clone(error)),
        };
        let is_told = wire::send(self.socket, &report, &[]).is_ok();
        let Ok(program) = started else { return if is_told { End::Gone } else { End::Last } };
        let told = |pid: u32, exit: Exit| {
            if pid == program {
                let _server_gone = wire::send(self.socket, &Report::Exited(exit), &[]);
            }
        };
        let grace = if is_told { self.watch(told) } else { Some((ORPHAN_GRACE, End::Last)) };
        let Some((grace, end)) = grace else { return End::Gone };
        end_descendants(self.children, grace, told);
        if has_children() { End::Last } else { end }
    }

    /// Returns when nothing of the session is left, or how it is to be ended.
    fn watch(&self, told: impl Fn(u32, Exit)) -> Option<(Duration, End)> {
        loop {
            match wait_either(self.children, self.socket, None) {
                Event::Children => {
                    while let Some((pid, exit)) = reap() {
                        told(pid, exit);
                    }
                    if !has_children() {
                        return None;
                    }
                }
                Event::Socket => match wire::receive::<Order>(self.socket) {
                    Ok(Some((Order::End { session, grace_ms }, _))) if session == self.session => {
                        return Some((Duration::from_millis(grace_ms), End::Gone));
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return Some((ORPHAN_GRACE, End::Last)),
                },
                Event::Time => {}
            }
        }
    }
}

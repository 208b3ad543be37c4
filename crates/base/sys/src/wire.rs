//! Frames between the server and the guard: a length, then JSON, with file descriptors beside the first byte.

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::{
    exit::Exit,
    spawn::{SpawnError, SpawnSpec},
};

/// Most file descriptors that travel with one frame.
const MAX_DESCRIPTORS: usize = crate::spawn::MOST_DESCRIPTORS;
/// A frame holds one environment; the kernel's own bound for it is of the same size.
const MAX_FRAME: u32 = 8 * 1024 * 1024;

/// What the server asks the guard for: an owner. The owner's end of its socket travels beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wanted;

/// What the server tells an owner. Sessions of an owner have numbers, so that nothing that is meant for one that has ended
/// reaches the next one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start this in a session of its own. The program's descriptors travel beside it.
    Start { session: u64, spec: SpawnSpec },
    /// End every process of the session; those that do not end by themselves within this time are killed.
    End { session: u64, grace_ms: u64 },
}

/// What an owner reports of its session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Started {
        pid: u32,
    },
    Failed(SpawnError),
    Exited(Exit),
    /// Nothing of it is left; another one can be started.
    Gone,
}

/// Sends one frame, with descriptors beside it.
pub fn send(socket: &UnixStream, body: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let body = serde_json::to_vec(body)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= MAX_FRAME).ok_or_else(too_large)?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(&body);

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let sent =
        rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL))?;
    let mut socket = socket;
    socket.write_all(frame.get(sent..).unwrap_or_default())
}

/// Receives one frame; `None` at the end of the stream.
pub fn receive<T: for<'a> Deserialize<'a>>(socket: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut header = [0_u8; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut header)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?
    .bytes;
    if received == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let mut socket = socket;
    socket.read_exact(header.get_mut(received..).unwrap_or_default())?;
    let length = u32::from_le_bytes(header);
    if length > MAX_FRAME {
        return Err(too_large());
    }
    let mut body = vec![0; usize::try_from(length).map_err(|_| too_large())?];
    socket.read_exact(&mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, descriptors)))
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message is larger than 8 MiB")
}

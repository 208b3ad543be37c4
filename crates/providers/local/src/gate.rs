//! Talks to the gate of a running sandbox, over the socket in its directory.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    time::Duration,
};

use gloveport_contract::gate::{Answer, LONGEST, NetworkChange, NetworkState, SOCKET};
use gloveport_provider::{ProviderError, SandboxId};

use crate::{
    fault::{NAME, engine},
    state::State,
};

/// Time for each of both sides.
const LIMIT: Duration = Duration::from_secs(10);

/// Has the gate make a change, and tells what it does then.
pub(crate) fn change(state: &State, id: &SandboxId, change: &NetworkChange) -> Result<NetworkState, ProviderError> {
    let directory = match File::open(state.sandbox(id)) {
        Ok(directory) => directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ProviderError::NotFound(id.clone())),
        Err(error) => return Err(engine(format!("find the gate of `{id}`"), error)),
    };
    // A name of any length, where addresses are short.
    let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
    let socket = match UnixStream::connect(path) {
        Ok(socket) => socket,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ProviderError::Unsupported {
                provider: NAME.to_owned(),
                what: format!(
                    "changes of the network of `{id}`, which was started without a gate (`--isolation container --network HOSTS`)"
                ),
            });
        }
        Err(error) => return Err(engine(format!("talk to the gate of `{id}`"), error)),
    };
    let answer = ask(&socket, change).map_err(|error| engine(format!("talk to the gate of `{id}`"), error))?;
    match answer {
        Answer::State(state) => Ok(state),
        Answer::Wrong(reason) => Err(ProviderError::Spec { field: "network".to_owned(), reason }),
    }
}

fn ask(mut socket: &UnixStream, change: &NetworkChange) -> io::Result<Answer> {
    socket.set_write_timeout(Some(LIMIT))?;
    socket.set_read_timeout(Some(LIMIT))?;
    let mut line = serde_json::to_vec(change)?;
    line.push(b'\n');
    socket.write_all(&line)?;
    let mut answer = Vec::new();
    BufReader::new(socket.take(LONGEST)).read_until(b'\n', &mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

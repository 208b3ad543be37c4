//! Ports of the machine that lead into a sandbox with a network of its own.

use std::{net::Ipv4Addr, os::fd::OwnedFd, sync::Arc, time::Duration};

use anyhow::Context as _;
use rustix::net;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Connections that wait to be taken, of one port.
const WAITING: i32 = 128;
/// Connections of one port at the same time; those above that wait.
const AT_ONCE: usize = 256;
/// Time for a program of the sandbox to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a connection could not be taken, as with too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Leads a port that is reserved on the machine to the same one of this network until `stop`.
pub(super) fn lead(socket: OwnedFd, stop: CancellationToken) -> anyhow::Result<()> {
    net::listen(&socket, WAITING).context("cannot listen on a reserved port")?;
    let listener = std::net::TcpListener::from(socket);
    listener.set_nonblocking(true).context("cannot use a reserved port")?;
    let port = listener.local_addr().context("cannot look at a reserved port")?.port();
    let listener = TcpListener::from_std(listener).context("cannot use a reserved port")?;
    lead_to(listener, port, stop);
    Ok(())
}

/// Leads what is listened on to a port of this network's loopback interface until `stop`.
pub(super) fn lead_to(listener: TcpListener, port: u16, stop: CancellationToken) {
    tokio::spawn(async move {
        tokio::select! {
            () = take(&listener, port) => {}
            () = stop.cancelled() => {}
        }
    });
}

async fn take(listener: &TcpListener, port: u16) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    pass_on(stream, port).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, port, "a connection cannot be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Passes on what comes through a connection, both ways. One that nobody inside takes is reset, as without somebody between.
async fn pass_on(mut outer: TcpStream, port: u16) {
    let connected = timeout(PATIENCE, TcpStream::connect((Ipv4Addr::LOCALHOST, port))).await;
    match connected {
        Ok(Ok(mut inner)) => {
            // Small parts of an answer do not wait for each other.
            for stream in [&outer, &inner] {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, port, "small parts of a connection may wait");
                }
            }
            if let Err(error) = tokio::io::copy_bidirectional(&mut outer, &mut inner).await {
                tracing::debug!(%error, port, "a connection into the sandbox broke");
            }
        }
        Ok(Err(_)) | Err(_) => {
            if let Err(error) = outer.set_zero_linger() {
                tracing::debug!(%error, port, "a connection cannot be reset");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_connection_is_passed_on_both_ways_and_one_that_nobody_takes_is_reset() {
        let inner = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = inner.local_addr().unwrap().port();
        let served = tokio::spawn(async move {
            let (mut stream, _) = inner.accept().await.unwrap();
            let mut asked = String::new();
            stream.read_to_string(&mut asked).await.unwrap();
            stream.write_all(format!("{asked} back").as_bytes()).await.unwrap();
        });
        let outer = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = outer.local_addr().unwrap();
        let passing = tokio::spawn(async move {
            for _ in 0..2 {
                pass_on(outer.accept().await.unwrap().0, port).await;
            }
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"there").await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "there back");
        served.await.unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let error = client.read_to_string(&mut answer).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        passing.await.unwrap();
    }
}

//! Connects to the socket of a service, and to nothing that its user puts in its place.

use std::{io, os::fd::AsRawFd as _, path::Path};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use tokio::net::UnixStream;

/// Connects to the socket at this path.
///
/// The directory belongs to the user of the service, who could put a link to a socket there that only the server may
/// connect to. So no link is followed in the last part of the path.
pub async fn connect_socket(path: &Path) -> io::Result<UnixStream> {
    let socket = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::other(format!("{} is no socket", path.display())));
    }
    // What was looked at is what is connected to, whatever has the name now.
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    #[tokio::test]
    async fn a_link_in_the_place_of_a_socket_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, link) = (directory.path().join("socket"), directory.path().join("link"));
        let listener = UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        assert!(connect_socket(&socket).await.is_ok());
        let error = connect_socket(&link).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{} is no socket", link.display()));
        assert!(connect_socket(directory.path()).await.is_err());
        drop(listener);
        let error = connect_socket(&socket).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(connect_socket(&link.join("x")).await.unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}

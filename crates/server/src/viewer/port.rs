//! The port of the viewer, and the file that tells it.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::Duration,
};

use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq as _;
use tokio::{net::TcpListener, time::sleep};

/// Ports behind that of the server that are considered.
const RANGE: u16 = 1024;
/// Ports that are tried.
const TRIES: usize = 10;
/// Pause after one that is in use.
const PAUSE: Duration = Duration::from_millis(100);

/// A free port among the 1,024 behind `beside`, by chance; `None` if ten of them were in use.
pub async fn choose_port(beside: u16) -> Option<u16> {
    let mut candidates: Vec<u16> = (beside.checked_add(1)?..=beside.saturating_add(RANGE)).collect();
    for _ in 0..TRIES {
        if candidates.is_empty() {
            break;
        }
        let port = candidates.swap_remove(below(candidates.len()).ok()?);
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.is_ok() {
            return Some(port);
        }
        sleep(PAUSE).await;
    }
    None
}

/// A random number below a small bound.
fn below(bound: usize) -> io::Result<usize> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(usize::from_ne_bytes(bytes) % bound.max(1))
}

/// Writes `http://localhost:{port}/{ticket}` without a newline, readable for its owner only, who is this process's user
/// until it is given to another one.
///
/// The file is made beside its place and moved there, so whatever stands there is replaced and not followed: a link
/// that somebody planted in a directory that all can write to leads nowhere.
///
/// # Errors
///
/// The directory can not be written, or the file belongs to somebody else.
pub fn write_url(file: &Path, port: u16, ticket: &Ticket) -> io::Result<File> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    temporary.as_file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
    write!(temporary, "http://localhost:{port}/{}", ticket.0)?;
    temporary.persist(file).map_err(|error| error.error)
}

/// What the address of the viewer has that nobody can guess.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(String);

impl Ticket {
    /// A new one.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// Whether somebody has this ticket. The time that it takes tells nothing of it.
    pub fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ticket(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[tokio::test]
    async fn a_port_is_free_and_behind_that_of_the_server() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let beside = server.local_addr().unwrap().port();
        let port = choose_port(beside).await.unwrap();
        assert!(port > beside && port <= beside.saturating_add(RANGE), "{beside} {port}");
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        assert_eq!(choose_port(u16::MAX).await, None);
    }

    #[test]
    fn tickets_are_long_and_no_two_are_the_same() {
        let (one, other) = (Ticket::new().unwrap(), Ticket::new().unwrap());
        assert!(one.0.len() == 32 && one != other && format!("{one:?}") == "Ticket(..)");
        assert!(one.is(&one.0) && !one.is(&other.0) && !one.is("") && !one.is(&one.0[..31]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_is_in_use_is_not_chosen() {
        let beside = u16::MAX - 1;
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, u16::MAX)).await;
        if taken.is_ok() {
            assert_eq!(choose_port(beside).await, None);
        }
        drop(taken);
    }

    #[test]
    fn the_address_replaces_a_planted_link_and_has_no_newline() {
        let directory = tempfile::tempdir().unwrap();
        let (file, victim) = (directory.path().join("url"), directory.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &file).unwrap();
        let ticket = Ticket::new().unwrap();
        write_url(&file, 8042, &ticket).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("http://localhost:8042/{}", ticket.0));
        assert!(!file.is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        write_url(&file, 1, &ticket).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("http://localhost:1/{}", ticket.0));
        assert!(write_url(&directory.path().join("no/where"), 1, &ticket).is_err());
    }
}

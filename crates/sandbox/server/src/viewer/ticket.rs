//! The ticket of the viewer, and the file that tells its address.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use subtle::ConstantTimeEq as _;

/// What the paths of its pages begin with.
pub(super) const PREFIX: &str = "/viewer/";

/// Writes `http://localhost:{port}/viewer/{ticket}` without a newline, readable for its owner only, who is this process's user
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
    write!(temporary, "http://localhost:{port}{PREFIX}{}", ticket.0)?;
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
        Ok(Self(gloveport_ids::random::<16>()?))
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

    #[test]
    fn tickets_are_long_and_no_two_are_the_same() {
        let (one, other) = (Ticket::new().unwrap(), Ticket::new().unwrap());
        assert!(one.0.len() == 32 && one != other && format!("{one:?}") == "Ticket(..)");
        assert!(one.is(&one.0) && !one.is(&other.0) && !one.is("") && !one.is(&one.0[..31]));
    }

    #[test]
    fn the_address_replaces_a_planted_link_and_has_no_newline() {
        let directory = tempfile::tempdir().unwrap();
        let (file, victim) = (directory.path().join("url"), directory.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &file).unwrap();
        let ticket = Ticket::new().unwrap();
        write_url(&file, 8042, &ticket).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("http://localhost:8042/viewer/{}", ticket.0));
        assert!(!file.is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        write_url(&file, 1, &ticket).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("http://localhost:1/viewer/{}", ticket.0));
        assert!(write_url(&directory.path().join("no/where"), 1, &ticket).is_err());
    }
}

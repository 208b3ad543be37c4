//! Where the viewer is found, and to whom it shows files.

use std::{fmt, fs::File, os::unix::fs::fchown, path::Path, sync::Arc};

use gloveport_sys::Identity;

use super::ticket::{Ticket, write_url};
use crate::{options::ServerLimits, transfer::Transfers};

/// To whom files are shown, and as whom.
#[derive(Clone)]
pub struct Viewer {
    pub(super) ticket: Ticket,
    pub(super) identity: Option<Identity>,
    pub(super) turns: Arc<Transfers>,
}

impl Viewer {
    /// Writes the address of the viewer of the server on `port` to `url_file`, before there is a server. A viewer that
    /// cannot be told is missed by nobody but those who want to view a file, so that is only logged.
    pub fn announce(port: u16, url_file: &Path) -> Option<Announced> {
        let ticket = match Ticket::new() {
            Ok(ticket) => ticket,
            Err(error) => {
                tracing::warn!(%error, "there is no ticket for the file viewer");
                return None;
            }
        };
        match write_url(url_file, port, &ticket) {
            Ok(file) => Some(Announced { ticket, file }),
            Err(error) => {
                let file = url_file.display();
                tracing::warn!(%error, %file, "the address of the file viewer cannot be written");
                None
            }
        }
    }
}

impl fmt::Debug for Viewer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Viewer").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// A viewer whose address is told.
#[derive(Debug)]
pub struct Announced {
    ticket: Ticket,
    file: File,
}

impl Announced {
    /// Shows files with the rights of a user if it is another one than this process's, who gets the file with the address,
    /// too.
    pub fn serve_as(self, identity: Option<&Identity>) -> Viewer {
        if let Some(identity) = identity
            && let Err(error) = fchown(&self.file, Some(identity.uid), Some(identity.gid))
        {
            tracing::warn!(%error, user = identity.uid, "the user cannot get the address of the file viewer");
        }
        let limits = ServerLimits { transfers: PAGES, ..ServerLimits::default() };
        Viewer { ticket: self.ticket, identity: identity.cloned(), turns: Arc::new(Transfers::new(&limits)) }
    }
}

/// Pages that are made at the same time.
const PAGES: usize = 4;

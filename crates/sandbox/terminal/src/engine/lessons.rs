//! How a shell that does not report is taught to.

use std::{io::Write as _, path::Path};

use rustix::fs::{Gid, Uid};

use super::{shells::Owner, state::Engine};
use crate::instance::{bash_lesson, quoted};

impl Engine {
    /// Makes the shell read how it has to report. Nothing of that is seen, and `$?` stays what it is.
    pub(super) fn teach(&mut self, before: &str, enter: char) -> bool {
        let Some((nonce, terminal)) = self.shells.reader_lesson() else { return false };
        match self.private_file(lesson(&nonce, &terminal).as_bytes(), self.shells.reader_owner().as_ref()) {
            Ok(file) => {
                let line = lesson_line(&file, before, enter);
                if let Some(scanner) = self.shells.instance.as_mut().and_then(|instance| instance.scanner.as_mut()) {
                    scanner.typed(&line);
                }
                self.typing.add(line.into_bytes());
                if let Some(command) = self.phase.running() {
                    command.reads(file);
                }
                self.write_terminal();
                true
            }
            Err(error) => {
                tracing::warn!(%error, "a shell that does not report can not be taught to");
                false
            }
        }
    }

    /// A file that nobody may read but the session's user, or the user of a shell inside of it.
    pub(super) fn private_file(&self, bytes: &[u8], owner: Option<&Owner>) -> std::io::Result<tempfile::TempPath> {
        let mut file = tempfile::Builder::new().prefix(".gloveport-").tempfile()?;
        file.write_all(bytes)?;
        file.flush()?;
        let own = self.options.identity.as_ref();
        let own = own.map(|identity| (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid)));
        if let Some((uid, gid)) = owner.map(|owner| (owner.uid, owner.gid)).or(own) {
            // Root reads it anyway, and to be told so needs no right.
            let is_own = uid == rustix::process::geteuid() || uid.is_root();
            match rustix::fs::fchown(file.as_file(), Some(uid), Some(gid)) {
                Err(error) if !is_own => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(file.into_temp_path())
    }
}

/// The text of the file from which bash reads how it has to report. It is told the last status.
pub(super) fn lesson(nonce: &str, terminal: &str) -> String {
    format!("{}__gp_arm \"$1\"\n__gp_f \"$1\"\n", bash_lesson(nonce, terminal))
}

/// The line that makes bash read its lesson.
pub(super) fn lesson_line(file: &Path, before: &str, enter: char) -> String {
    format!(" {before}{{ . {} \"$?\"; }} >/dev/null 2>&1{enter}", quoted(&file.to_string_lossy()))
}

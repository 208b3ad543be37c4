//! Linux: as everything else on it writes files.

use std::{fs::File, io, path::Path};

use gloveport_sys::replace::{self, NewFile};

#[derive(Debug)]
pub(super) struct Replacement(replace::Replacement);

impl Replacement {
    pub(super) fn begin(path: &Path, mode: Option<u32>) -> io::Result<Self> {
        replace::Replacement::begin(path, NewFile { mode, owner: None }).map(Self)
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.0.file()
    }

    pub(super) fn drop_privileges(&self) -> io::Result<()> {
        self.0.drop_privileges()
    }

    pub(super) fn commit(self) -> io::Result<()> {
        self.0.commit().map(drop)
    }
}

pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    replace::open_to_read(path)
}

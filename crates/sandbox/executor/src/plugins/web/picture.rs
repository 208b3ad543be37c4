//! Pictures of pages: as the wire has them, and as files (spec/browser.md 5.2, 6.2).

use std::{
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gloveport_browser::Observation;
use gloveport_browsergym::overlay;
use gloveport_sys::{
    held::{self, Missing},
    replace::{NewFile, Replacement},
};
use rustix::fs::{AtFlags, Gid, Uid};

/// Where pictures are stored, in the workspace.
const DIRECTORY: &str = ".browser_screenshots";

/// The picture of a page, and the same with marks.
pub(super) struct Pictures {
    /// As PNG.
    pub(super) screenshot: Vec<u8>,
    marked: Vec<u8>,
}

impl Pictures {
    /// What is seen of a page.
    pub(super) fn of(seen: &Observation) -> Result<Self, String> {
        let mut picture = overlay::decode_png(&seen.screenshot).map_err(|error| error.to_string())?;
        let screenshot = overlay::encode_png(&picture).map_err(|error| error.to_string())?;
        overlay::draw(&mut picture, &seen.properties);
        let marked = overlay::encode_png(&picture).map_err(|error| error.to_string())?;
        Ok(Self { screenshot, marked })
    }

    /// The picture as an address that contains it.
    pub(super) fn screenshot_url(&self) -> String {
        url(&self.screenshot)
    }

    /// The one with marks, likewise.
    pub(super) fn set_of_marks_url(&self) -> String {
        url(&self.marked)
    }
}

fn url(png: &[u8]) -> String {
    let mut text = "data:image/png;base64,".to_owned();
    BASE64_STANDARD.encode_string(png, &mut text);
    text
}

/// Stores a picture in the workspace, and answers with its path.
pub(super) fn store(workspace: &Path, png: &[u8], owner: Option<(u32, u32)>) -> Result<String, String> {
    let directory = workspace.join(DIRECTORY);
    let name = format!("screenshot_{}.png", jiff::Zoned::now().strftime("%Y%m%d_%H%M%S_%6f"));
    let path = directory.join(&name);
    let stored = own_directory(&directory, owner).and_then(|directory| {
        let new = NewFile { mode: Some(0o644), owner };
        let mut file = Replacement::begin_over(directory, name.into(), path.clone(), new)?;
        file.file().write_all(png)?;
        file.commit().map(drop)
    });
    stored.map_err(|error| format!("the picture of the page cannot be stored as {}: {error}", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

/// Opens a directory of the sandbox's user, which is made if it is missing.
pub(super) fn own_directory(path: &Path, owner: Option<(u32, u32)>) -> io::Result<OwnedFd> {
    match held::directory(path, Missing::Refused) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    let directory = held::directory(path, Missing::Made(0o755))?;
    if let Some((user, group)) = owner
        && rustix::fs::fstat(&directory)?.st_uid == rustix::process::geteuid().as_raw()
    {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(&directory, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    Ok(directory)
}

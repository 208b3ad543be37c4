//! Whether an image would be whole after the machine has lost its power.
//!
//! Until everything of a file system is on its disk, minutes may pass on a busy machine. An image can be used before, and a
//! thread waits for that and leaves a mark. An image without it counts only until the machine starts again.

use std::{
    fs::File,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use gloveport_platform as platform;
use rustix::fs::{Mode, OFlags};

/// The mark.
const MARK: &str = "durable";

/// Whether a thread of this process waits for the disk.
static WAITS: AtomicBool = AtomicBool::new(false);

/// What tells this start of the machine from others.
pub(super) fn this_start() -> String {
    platform::boot_id().unwrap_or_default()
}

/// Whether an image is whole that was unpacked at this start of the machine.
pub(super) fn is_whole(directory: &Path, start: &str) -> bool {
    start == this_start() || directory.join(MARK).exists()
}

/// Waits, on a thread, until everything of an image is on the disk, if nothing says that it is; then something does.
pub(super) fn wait_for_disk(directory: &Path) {
    if directory.join(MARK).exists() || WAITS.swap(true, Relaxed) {
        return;
    }
    let opened = File::open(directory);
    let waits = move || {
        // By its open directory, since another one can have its name by then.
        let marked = opened.and_then(|directory| {
            rustix::fs::syncfs(&directory)?;
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&directory, MARK, flags, Mode::RUSR | Mode::WUSR)?;
            Ok(())
        });
        if let Err(error) = marked {
            tracing::debug!("an image may not be on the disk yet: {error}");
        }
        WAITS.store(false, Relaxed);
    };
    if thread::Builder::new().name("image-to-disk".into()).spawn(waits).is_err() {
        WAITS.store(false, Relaxed);
    }
}

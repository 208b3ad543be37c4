//! Facts about the machine that observations and statistics carry.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Short host name: up to the first dot.
pub fn short_host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Installed memory in bytes.
pub fn total_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Size of the file system that holds `path`, in bytes: `(total, free, available to ordinary users)`.
pub fn file_system(path: &Path) -> Option<(u64, u64, u64)> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some((stat.f_blocks * stat.f_frsize, stat.f_bfree * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}

/// Clock ticks of `/proc` per second.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// First executable file called `program` in a `PATH`-like list; relative entries start at `directory`.
pub fn find_program(program: &str, path: &str, directory: &Path) -> Option<PathBuf> {
    path.split(':').map(|entry| directory.join(entry).join(program)).find(|candidate| {
        fs::metadata(candidate).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

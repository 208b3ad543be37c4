//! What this process uses.

use std::{fs, io};

use gloveport_metrics::float;
use gloveport_protocol::{DiskUsage, IoCounters, MemoryUsage};
use gloveport_sys::process;
use rustix::{
    fs::statvfs,
    system::sysinfo,
    time::{ClockId, clock_gettime},
};

/// CPU time of all threads, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    float(u64::try_from(time.tv_sec).unwrap_or(0)) + float(u64::try_from(time.tv_nsec).unwrap_or(0)) / 1e9
}

/// Resident bytes.
pub(crate) fn resident() -> u64 {
    process::resident(std::process::id()).map_or(0, |(resident, _)| resident)
}

/// Memory of this process.
pub(crate) fn memory() -> MemoryUsage {
    let rss = resident();
    let system = sysinfo();
    let total = u64::from(system.mem_unit).saturating_mul(system.totalram).max(1);
    MemoryUsage { rss, vms: virtual_bytes().unwrap_or(0), percent: float(rss) / float(total) * 100.0 }
}

fn virtual_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The root file system.
pub(crate) fn disk() -> io::Result<DiskUsage> {
    let volume = statvfs("/")?;
    let total = volume.f_blocks.saturating_mul(volume.f_frsize);
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    let used = total.saturating_sub(volume.f_bfree.saturating_mul(volume.f_frsize));
    let usable = used.saturating_add(free);
    let percent = if usable == 0 { 0.0 } else { one_decimal(float(used) / float(usable) * 100.0) };
    Ok(DiskUsage { total, used, free, percent })
}

/// Transfers of this process.
pub(crate) fn io() -> IoCounters {
    let (write_bytes, read_bytes) = process::storage_io(std::process::id()).unwrap_or((0, 0));
    IoCounters { read_bytes, write_bytes }
}

/// A number rounded to one decimal.
pub(crate) fn one_decimal(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

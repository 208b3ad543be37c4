//! Memory of this process.

use std::{ffi::c_void, fs, io};

use rustix::mm::{Advice, madvise};

/// Unmaps the code and the constants of this program that are in memory, and tells how many bytes of address space that
/// was about.
///
/// The kernel maps a program in large pieces around what runs, and starting up runs a lot that is never needed again, as
/// it reads more than a megabyte of addresses that have to be adjusted. What is needed later is mapped again, from the
/// page cache, a few microseconds a piece. So a server that waits takes up only what waiting needs.
///
/// # Errors
///
/// The kernel does not tell its mappings, or does not take the advice; nothing is changed then.
pub fn unmap_idle_code() -> io::Result<usize> {
    let program = fs::read_link("/proc/self/exe")?;
    let mappings = fs::read_to_string("/proc/self/maps")?;
    let mut unmapped = 0;
    for line in mappings.lines() {
        let Some((start, end)) = unchanging(line, &program.to_string_lossy()) else { continue };
        discard(start, end - start)?;
        unmapped += end - start;
    }
    Ok(unmapped)
}

/// The addresses of a line of `/proc/self/maps`, if it is code of the program, or the constants at the start of its file.
fn unchanging(line: &str, program: &str) -> Option<(usize, usize)> {
    // Addresses, permissions, offset, device, inode, path.
    let mut fields = line.split_ascii_whitespace();
    let (addresses, permissions, offset) = (fields.next()?, fields.next()?, fields.next()?);
    // Both are private, never writable, and never were: what was written to would be lost. The start of the file, where
    // its headers are, is never written to; other data that cannot be written now may have been adjusted at the start.
    let starts_file = offset.bytes().all(|digit| digit == b'0');
    let never_written = permissions == "r-xp" || (permissions == "r--p" && starts_file);
    if !never_written || !line.ends_with(program) || fields.nth(2)? != program {
        return None;
    }
    let (start, end) = addresses.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    (start < end).then_some((start, end))
}

#[expect(unsafe_code, reason = "the caller of `madvise` has to guarantee that nothing is lost")]
fn discard(start: usize, length: usize) -> io::Result<()> {
    let address = std::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: the range is one mapping of the kernel's own list. It is of the program's file, private, not writable and
    // never was, so no page of it differs from the file, which cannot be written while it runs (ETXTBSY): each page has
    // the same bytes again when it is needed.
    Ok(unsafe { madvise(address, length, Advice::LinuxDontNeed) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_and_first_constants_of_the_program_are_taken() {
        let line = |permissions: &str, path: &str| format!("1000-3000 {permissions} 00001000 fe:00 42    {path}");
        for (line, expected) in [
            (line("r-xp", "/bin/program"), Some((0x1000, 0x3000))),
            (line("r--p", "/bin/program"), None),
            (line("r--p", "/bin/program").replace("00001000 ", "00000000 "), Some((0x1000, 0x3000))),
            (line("rw-p", "/bin/program").replace("00001000 ", "00000000 "), None),
            (line("rwxp", "/bin/program"), None),
            (line("r-xs", "/bin/program"), None),
            (line("r-xp", "/bin/other"), None),
            (line("r-xp", "/x/bin/program"), None),
            ("1000-3000 r-xp 00000000 00:00 0    [vdso]".to_owned(), None),
            ("3000-1000 r-xp 00001000 fe:00 42 /bin/program".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(unchanging(&line, "/bin/program"), expected, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on_without_its_mapped_code() {
        let sum = || (0..1000_u64).map(|n| n.to_string().len() as u64).sum::<u64>();
        let before = sum();
        assert!(unmap_idle_code().unwrap() > 100_000);
        assert_eq!(sum(), before);
    }
}

//! Filters of system calls: the few steps that they are made of, and how the kernel gets one.

#![expect(unsafe_code, reason = "no safe library installs a filter of system calls")]

use std::{
    io,
    mem::offset_of,
    os::fd::{FromRawFd as _, OwnedFd},
};

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_FILTER_FLAG_NEW_LISTENER,
    SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, SECCOMP_RET_KILL_PROCESS,
    SECCOMP_SET_MODE_FILTER, c_long, c_ulong, seccomp_data, sock_filter, sock_fprog,
};

/// The architecture that the numbers of calls belong to, as the kernel names it.
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const ARCHITECTURE: Option<u32> = None;

/// The first steps of every filter: calls of another architecture end the process, and then the number of the call is there
/// to be looked at. `None` for an architecture whose calls are not known here.
pub(crate) fn beginning() -> Option<Vec<sock_filter>> {
    Some(vec![
        load(offset_of!(seccomp_data, arch))?,
        jump(BPF_JEQ, ARCHITECTURE?, 1, 0),
        answer(SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(seccomp_data, nr))?,
    ])
}

/// Takes 32 bits of what the kernel tells of a call.
pub(crate) fn load(offset: usize) -> Option<sock_filter> {
    Some(step(BPF_LD | BPF_W | BPF_ABS, u32::try_from(offset).ok()?, 0, 0))
}

/// Takes the low half of an argument of the call, which both architectures have first.
pub(crate) fn load_argument(number: usize) -> Option<sock_filter> {
    load(offset_of!(seccomp_data, args) + number * size_of::<u64>())
}

/// Leaves of what was taken these bits.
pub(crate) fn and(bits: u32) -> sock_filter {
    step(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0)
}

/// Goes on so many steps further, as a test of what was taken says.
pub(crate) fn jump(test: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    step(BPF_JMP | test | BPF_K, value, if_true, if_false)
}

/// Ends with an answer.
pub(crate) fn answer(value: u32) -> sock_filter {
    step(BPF_RET | BPF_K, value, 0, 0)
}

/// The number of a call as filters see it.
pub(crate) fn number(call: c_long) -> Option<u32> {
    u32::try_from(call).ok()
}

fn step(code: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    // Codes of the classic filter have 16 bits.
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt: if_true, jf: if_false, k: value }
}

/// Installs the filter for all threads, for good.
pub(crate) fn install(program: Vec<sock_filter>) -> io::Result<()> {
    match install_with(program, SECCOMP_FILTER_FLAG_TSYNC)? {
        0 => Ok(()),
        thread => Err(io::Error::other(format!("the thread {thread} has another filter"))),
    }
}

/// Installs the filter for this thread, which must be the only one, and gives what its notices come from.
pub(crate) fn install_with_notices(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let notices = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Not every kernel lets a notice that was taken be answered before a signal comes in between.
    let descriptor = install_with(program.to_vec(), notices | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_| install_with(program.to_vec(), notices))?;
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn install_with(mut program: Vec<sock_filter>, flags: c_ulong) -> io::Result<c_long> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until after the call, and its length is right.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What a filter answers to a call, worked out as the kernel does.
#[cfg(test)]
pub(crate) fn judged(program: &[sock_filter], architecture: u32, call: c_long, arguments: [u64; 6]) -> u32 {
    use libc::{BPF_JGE, BPF_JSET};

    let (mut at, mut value) = (0_usize, 0_u32);
    loop {
        let step = program[at];
        at += 1;
        let decide = |is: bool| usize::from(if is { step.jt } else { step.jf });
        match u32::from(step.code) {
            code if code == BPF_LD | BPF_W | BPF_ABS => {
                value = match step.k {
                    0 => u32::try_from(call).unwrap(),
                    4 => architecture,
                    offset @ 16.. => {
                        let place = usize::try_from(offset - 16).unwrap();
                        let half = arguments[place / 8] >> (if place % 8 == 0 { 0 } else { 32 });
                        u32::try_from(half & u64::from(u32::MAX)).unwrap()
                    }
                    offset => panic!("{offset} is loaded"),
                };
            }
            code if code == BPF_ALU | BPF_AND | BPF_K => value &= step.k,
            code if code == BPF_JMP | BPF_JEQ | BPF_K => at += decide(value == step.k),
            code if code == BPF_JMP | BPF_JGE | BPF_K => at += decide(value >= step.k),
            code if code == BPF_JMP | BPF_JSET | BPF_K => at += decide(value & step.k != 0),
            code if code == BPF_RET | BPF_K => return step.k,
            code => panic!("{code} is no step"),
        }
    }
}

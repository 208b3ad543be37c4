//! The system calls that are left to a child: to read, write, compute and end.

#![expect(unsafe_code, reason = "no safe library installs a filter of system calls")]

use std::{io, mem::offset_of};

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_SET_MODE_FILTER, c_long, seccomp_data, sock_filter,
    sock_fprog,
};

/// The architecture that the numbers belong to, as the kernel names it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Calls that may be made in any way: on descriptors that are open, on memory, on oneself.
const ALLOWED: [c_long; 24] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_lseek,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that may be made, but not to make memory that can be run.
const MAPPING: [c_long; 2] = [libc::SYS_mmap, libc::SYS_mprotect];

/// Everything else fails with this: libraries that look around find nothing, and go on.
const REFUSED: u32 = SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();

/// Installs the filter for all threads, for good.
pub(super) fn install() -> io::Result<()> {
    let Some(mut program) = program() else { return Err(io::ErrorKind::Unsupported.into()) };
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until after the call, and its length is right.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &raw const filter)
    };
    match result {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!("the thread {thread} has another filter"))),
    }
}

/// The filter as the kernel runs it; none for an architecture whose calls are not known here.
fn program() -> Option<Vec<sock_filter>> {
    let load = |offset: usize| Some(statement(BPF_LD | BPF_W | BPF_ABS, u32::try_from(offset).ok()?));
    let number = |call: c_long| u32::try_from(call).ok();
    let answer = |value| statement(BPF_RET | BPF_K, value);
    // The low half of the third argument; both architectures have it first.
    let protection = offset_of!(seccomp_data, args) + 2 * size_of::<u64>();

    let mut program = vec![
        load(offset_of!(seccomp_data, arch))?,
        jump(BPF_JEQ, ARCHITECTURE?, 1, 0),
        answer(SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(seccomp_data, nr))?,
    ];
    for call in ALLOWED {
        program.extend([jump(BPF_JEQ, number(call)?, 0, 1), answer(SECCOMP_RET_ALLOW)]);
    }
    for call in MAPPING {
        program.extend([
            jump(BPF_JEQ, number(call)?, 0, 4),
            load(protection)?,
            jump(BPF_JSET, libc::PROT_EXEC.cast_unsigned(), 0, 1),
            answer(REFUSED),
            answer(SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(answer(REFUSED));
    Some(program)
}

fn statement(code: u32, value: u32) -> sock_filter {
    jump_with(code, value, 0, 0)
}

fn jump(test: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    jump_with(BPF_JMP | test | BPF_K, value, if_true, if_false)
}

fn jump_with(code: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    // Codes of the classic filter have 16 bits.
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt: if_true, jf: if_false, k: value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call.
    fn answer(architecture: u32, call: c_long, third: u64) -> u32 {
        let program = program().unwrap();
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let step = program[at];
            at += 1;
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match step.k {
                        0 => u32::try_from(call).unwrap(),
                        4 => architecture,
                        32 => u32::try_from(third & u64::from(u32::MAX)).unwrap(),
                        offset => panic!("{offset} is loaded"),
                    };
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if value == step.k { step.jt } else { step.jf });
                }
                code if code == BPF_JMP | BPF_JSET | BPF_K => {
                    at += usize::from(if value & step.k == 0 { step.jf } else { step.jt });
                }
                code if code == BPF_RET | BPF_K => return step.k,
                code => panic!("{code} is no step"),
            }
        }
    }

    #[test]
    fn only_what_reads_writes_computes_and_ends_is_allowed() {
        let own = ARCHITECTURE.unwrap();
        for call in ALLOWED {
            assert_eq!(answer(own, call, 0), SECCOMP_RET_ALLOW, "{call}");
        }
        for call in [
            libc::SYS_openat,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_kill,
            libc::SYS_tgkill,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_prctl,
            libc::SYS_ioctl,
            libc::SYS_fcntl,
            libc::SYS_dup,
            libc::SYS_memfd_create,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_unlinkat,
            libc::SYS_fchmod,
            libc::SYS_sendmsg,
            100_000,
        ] {
            assert_eq!(answer(own, call, 0), REFUSED, "{call}");
        }
        for call in MAPPING {
            assert_eq!(answer(own, call, 3), SECCOMP_RET_ALLOW, "memory to read and write");
            assert_eq!(answer(own, call, 7), REFUSED, "memory to run");
        }
        // Another table of numbers: that of 32 bits, say, in which a harmless number means something else.
        assert_eq!(answer(0x4000_0003, libc::SYS_read, 0), SECCOMP_RET_KILL_PROCESS);
    }
}

//! The system calls that are left to a child: to read, write, compute and end.

use std::io;

use libc::{BPF_JEQ, BPF_JSET, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, c_long, sock_filter};

use crate::bpf::{self, answer, jump, number};

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
    bpf::install(program().ok_or(io::ErrorKind::Unsupported)?)
}

/// The filter as the kernel runs it; none for an architecture whose calls are not known here.
fn program() -> Option<Vec<sock_filter>> {
    let mut program = bpf::beginning()?;
    for call in ALLOWED {
        program.extend([jump(BPF_JEQ, number(call)?, 0, 1), answer(SECCOMP_RET_ALLOW)]);
    }
    for call in MAPPING {
        program.extend([
            jump(BPF_JEQ, number(call)?, 0, 4),
            bpf::load_argument(2)?,
            jump(BPF_JSET, libc::PROT_EXEC.cast_unsigned(), 0, 1),
            answer(REFUSED),
            answer(SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(answer(REFUSED));
    Some(program)
}

#[cfg(test)]
mod tests {
    use libc::SECCOMP_RET_KILL_PROCESS;

    use super::*;
    use crate::bpf::ARCHITECTURE;

    fn answer(architecture: u32, call: c_long, third: u64) -> u32 {
        bpf::judged(&program().unwrap(), architecture, call, [0, 0, third, 0, 0, 0])
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

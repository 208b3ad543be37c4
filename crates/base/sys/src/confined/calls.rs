//! The system calls that confined programs do not make.

use std::{io, os::fd::OwnedFd};

use libc::{
    BPF_JEQ, BPF_JGE, BPF_JSET, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF, c_int, c_long, c_ulong,
    sock_filter,
};

use crate::bpf::{self, and, answer, jump, number};

/// Calls of no program that works on files: they change the machine, reach into the kernel, or get around the other layers.
const REFUSED: &[c_long] = &[
    // Another view of the files of the machine.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Work that the kernel does later, where no filter sees it.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // What all processes of a user have together.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];
/// What all processes of a user have together, unless they are in a container, which has its own.
const SHARED: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load, libc::SYS_uselib, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[libc::SYS_kexec_file_load];

/// Namespaces, which are another view of the machine.
const NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
/// Commands to a terminal that type for its user, or are for the machine's own.
const TERMINAL: [c_ulong; 4] = [libc::TIOCSTI, 0x541C /* TIOCLINUX */, libc::TIOCCONS, libc::TIOCSETD];
/// `fchmodat2`, which the library does not have.
pub(super) const FCHMODAT2: c_long = 452;
/// Bits of a mode with which a program gets the rights of its file's owner or group.
const RIGHTS: u32 = libc::S_ISUID | libc::S_ISGID;
/// Where the numbers of another table of the same architecture begin.
#[cfg(target_arch = "x86_64")]
const OTHER_TABLE: u32 = 0x4000_0000;

/// What refused calls fail with.
const NOT_PERMITTED: u32 = SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
/// The same where the C library then takes another way.
const NOT_THERE: u32 = SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
/// The same where the kernel has no such protocol.
const NO_PROTOCOL: u32 = SECCOMP_RET_ERRNO | libc::EPROTONOSUPPORT.cast_unsigned();
/// The same for sockets.
const NO_ACCESS: u32 = SECCOMP_RET_ERRNO | libc::EACCES.cast_unsigned();

/// The filter, ready to be installed.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<sock_filter>,
    /// Whether somebody is asked about connections or modes.
    has_notices: bool,
}

/// Where programs are that are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Among all others of the machine, with its network or without.
    Here { network: bool },
    /// In a container, with names and sockets of its own. Modes that give rights are refused, or asked for.
    Inside { modes: Modes },
}

/// What becomes of calls that set a mode which gives rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modes {
    /// They fail.
    Refused,
    /// Somebody is asked, who sets the mode without those bits.
    Asked,
}

impl Filter {
    /// `None` for an architecture whose calls are not known here.
    pub(super) fn new(network: bool) -> Option<Self> {
        program(Where::Here { network }).map(|program| Self { program, has_notices: true })
    }

    /// The same for programs in a container.
    pub(super) fn inside(modes: Modes) -> Option<Self> {
        program(Where::Inside { modes }).map(|program| Self { program, has_notices: modes == Modes::Asked })
    }

    /// Installs it for this thread, which must be the only one, for good. What is asked for comes from the result.
    pub(super) fn install(self) -> io::Result<Option<OwnedFd>> {
        if self.has_notices {
            return bpf::install_with_notices(&self.program).map(Some);
        }
        bpf::install(self.program).map(|()| None)
    }
}

fn program(place: Where) -> Option<Vec<sock_filter>> {
    let mut program = bpf::beginning()?;
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(BPF_JGE, OTHER_TABLE, 0, 1), answer(NOT_PERMITTED)]);
    #[cfg(not(target_arch = "x86_64"))]
    let _only_on_other_machines = BPF_JGE;
    let (shared, asked): (&[c_long], _) = match place {
        Where::Here { .. } => (SHARED, Modes::Refused),
        Where::Inside { modes } => (&[], modes),
    };
    for call in REFUSED.iter().chain(REFUSED_HERE).chain(shared) {
        program.extend([jump(BPF_JEQ, number(*call)?, 0, 1), answer(NOT_PERMITTED)]);
    }
    // Its flags are in memory, which a filter does not see.
    program.extend([jump(BPF_JEQ, number(libc::SYS_clone3)?, 0, 1), answer(NOT_THERE)]);
    let namespaces = NAMESPACES.cast_unsigned();
    // In `clone` the bit of time namespaces belongs to the signal.
    refuse_bits(&mut program, libc::SYS_clone, 0, namespaces)?;
    refuse_bits(&mut program, libc::SYS_unshare, 0, namespaces | 0x80 /* CLONE_NEWTIME */)?;
    let mut commands = vec![bpf::load_argument(1)?];
    for command in TERMINAL {
        // The kernel, too, looks at the low half only.
        commands.extend([jump(BPF_JEQ, u32::try_from(command).ok()?, 0, 1), answer(NOT_PERMITTED)]);
    }
    judge(&mut program, libc::SYS_ioctl, commands)?;
    modes(&mut program, asked)?;
    match place {
        Where::Here { network } => sockets(&mut program, network)?,
        Where::Inside { .. } => families(&mut program)?,
    }
    // Limits of another process, which can end it.
    judge(
        &mut program,
        libc::SYS_prlimit64,
        vec![
            bpf::load_argument(0)?,
            jump(BPF_JEQ, 0, 5, 0),
            bpf::load_argument(2)?,
            jump(BPF_JEQ, 0, 0, 2),
            bpf::load(16 + 2 * 8 + 4)?,
            jump(BPF_JEQ, 0, 1, 0),
            answer(NOT_PERMITTED),
        ],
    )?;
    program.push(answer(SECCOMP_RET_ALLOW));
    Some(program)
}

/// Steps that judge one call by its arguments. Behind them it is allowed.
fn judge(program: &mut Vec<sock_filter>, call: c_long, steps: Vec<sock_filter>) -> Option<()> {
    let length = u8::try_from(steps.len() + 1).ok()?;
    program.push(jump(BPF_JEQ, number(call)?, 0, length));
    program.extend(steps);
    program.push(answer(SECCOMP_RET_ALLOW));
    Some(())
}

/// Refuses a call in whose argument one of the bits is set.
fn refuse_bits(program: &mut Vec<sock_filter>, call: c_long, argument: usize, bits: u32) -> Option<()> {
    judge_bits(program, call, argument, bits, NOT_PERMITTED)
}

/// The same with another verdict.
fn judge_bits(program: &mut Vec<sock_filter>, call: c_long, argument: usize, bits: u32, verdict: u32) -> Option<()> {
    judge(program, call, vec![bpf::load_argument(argument)?, jump(BPF_JSET, bits, 0, 1), answer(verdict)])
}

/// No file gets the rights of its owner for those who run it.
fn modes(program: &mut Vec<sock_filter>, asked: Modes) -> Option<()> {
    let verdict = match asked {
        Modes::Refused => NOT_PERMITTED,
        Modes::Asked => SECCOMP_RET_USER_NOTIF,
    };
    for (call, argument) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)] {
        judge_bits(program, call, argument, RIGHTS, verdict)?;
    }
    for call in [libc::SYS_mknodat, libc::SYS_mkdirat] {
        refuse_bits(program, call, 2, RIGHTS)?;
    }
    let making = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();
    let opening = |flags: usize, mode: usize| {
        Some(vec![
            bpf::load_argument(flags)?,
            jump(BPF_JSET, making, 0, 3),
            bpf::load_argument(mode)?,
            jump(BPF_JSET, RIGHTS, 0, 1),
            answer(NOT_PERMITTED),
        ])
    };
    judge(program, libc::SYS_openat, opening(2, 3)?)?;
    #[cfg(target_arch = "x86_64")]
    {
        judge_bits(program, libc::SYS_chmod, 1, RIGHTS, verdict)?;
        for call in [libc::SYS_creat, libc::SYS_mknod, libc::SYS_mkdir] {
            refuse_bits(program, call, 1, RIGHTS)?;
        }
        judge(program, libc::SYS_open, opening(1, 2)?)?;
    }
    // Its flags and its mode are in memory. Programs then use the other one.
    program.extend([jump(BPF_JEQ, number(libc::SYS_openat2)?, 0, 1), answer(NOT_THERE)]);
    Some(())
}

/// Of the sockets those that reach no service of this machine, and the network only if there is one.
fn sockets(program: &mut Vec<sock_filter>, network: bool) -> Option<()> {
    let family = |family: c_int| u32::try_from(family).ok();
    let mut steps = vec![bpf::load_argument(0)?];
    if network {
        for known in [libc::AF_INET, libc::AF_INET6] {
            steps.extend([jump(BPF_JEQ, family(known)?, 0, 1), answer(SECCOMP_RET_ALLOW)]);
        }
    }
    // Those that go nowhere but where they are connected to, for which somebody else is asked.
    let kinds = 0xf;
    steps.extend([
        jump(BPF_JEQ, family(libc::AF_UNIX)?, 0, 6),
        bpf::load_argument(1)?,
        and(kinds),
        jump(BPF_JEQ, family(libc::SOCK_STREAM)?, 1, 0),
        jump(BPF_JEQ, family(libc::SOCK_SEQPACKET)?, 0, 1),
        answer(SECCOMP_RET_ALLOW),
        answer(NO_ACCESS),
    ]);
    steps.extend(addresses_of_the_machine()?);
    judge(program, libc::SYS_socket, steps)?;
    let pairs = vec![
        bpf::load_argument(0)?,
        jump(BPF_JEQ, family(libc::AF_UNIX)?, 0, 4),
        bpf::load_argument(1)?,
        and(kinds),
        jump(BPF_JEQ, family(libc::SOCK_STREAM)?, 2, 0),
        jump(BPF_JEQ, family(libc::SOCK_SEQPACKET)?, 1, 0),
        answer(NO_ACCESS),
    ];
    judge(program, libc::SYS_socketpair, pairs)?;
    program.extend([jump(BPF_JEQ, number(libc::SYS_connect)?, 0, 1), answer(SECCOMP_RET_USER_NOTIF)]);
    Some(())
}

/// Of the sockets to the kernel those that the C library asks for the addresses of this machine. All others are refused.
fn addresses_of_the_machine() -> Option<[sock_filter; 5]> {
    let family = |family: c_int| u32::try_from(family).ok();
    Some([
        jump(BPF_JEQ, family(libc::AF_NETLINK)?, 0, 3),
        bpf::load_argument(2)?,
        jump(BPF_JEQ, family(libc::NETLINK_ROUTE)?, 0, 1),
        answer(SECCOMP_RET_ALLOW),
        answer(NO_ACCESS),
    ])
}

/// Of the families of sockets those that all programs use; the kernel has many that hardly anybody looks at.
fn families(program: &mut Vec<sock_filter>) -> Option<()> {
    let family = |family: c_int| u32::try_from(family).ok();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let mut steps = vec![bpf::load_argument(0)?];
        for known in [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX] {
            steps.extend([jump(BPF_JEQ, family(known)?, 0, 1), answer(SECCOMP_RET_ALLOW)]);
        }
        // Who adds users to a system tells the kernel's audit of it, and stops where it is forbidden to, but not where there is none.
        steps.extend([
            jump(BPF_JEQ, family(libc::AF_NETLINK)?, 0, 4),
            bpf::load_argument(2)?,
            jump(BPF_JEQ, family(libc::NETLINK_AUDIT)?, 0, 1),
            answer(NO_PROTOCOL),
            bpf::load_argument(0)?,
        ]);
        steps.extend(addresses_of_the_machine()?);
        judge(program, call, steps)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use libc::SECCOMP_RET_KILL_PROCESS;

    use super::*;
    use crate::bpf::{ARCHITECTURE, judged};

    fn asked(network: bool, call: c_long, arguments: [u64; 6]) -> u32 {
        judged(&program(Where::Here { network }).unwrap(), ARCHITECTURE.unwrap(), call, arguments)
    }

    fn asked_inside(call: c_long, arguments: [u64; 6]) -> u32 {
        judged(&program(Where::Inside { modes: Modes::Refused }).unwrap(), ARCHITECTURE.unwrap(), call, arguments)
    }

    fn bits(value: c_int) -> u64 {
        u64::from(value.cast_unsigned())
    }

    #[test]
    fn what_changes_the_machine_is_refused_and_what_programs_do_is_not() {
        for call in REFUSED.iter().chain(REFUSED_HERE) {
            assert_eq!(asked(true, *call, [0; 6]), NOT_PERMITTED, "{call}");
            assert_eq!(asked_inside(*call, [0; 6]), NOT_PERMITTED, "{call}");
        }
        for call in SHARED {
            assert_eq!(asked(true, *call, [0; 6]), NOT_PERMITTED, "{call}");
            assert_eq!(asked_inside(*call, [0; 6]), SECCOMP_RET_ALLOW, "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_kill, libc::SYS_ptrace, libc::SYS_mmap] {
            assert_eq!(asked(false, call, [u64::MAX; 6]), SECCOMP_RET_ALLOW, "{call}");
        }
        assert_eq!(asked(true, libc::SYS_clone3, [0; 6]), NOT_THERE);
        assert_eq!(
            judged(&program(Where::Inside { modes: Modes::Refused }).unwrap(), 0x4000_0003, libc::SYS_read, [0; 6]),
            SECCOMP_RET_KILL_PROCESS
        );
        #[cfg(target_arch = "x86_64")]
        assert_eq!(asked(true, c_long::from(OTHER_TABLE) | libc::SYS_read, [0; 6]), NOT_PERMITTED);
    }

    #[test]
    fn processes_and_threads_are_made_and_namespaces_are_not() {
        let thread =
            bits(libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD | libc::CLONE_SIGHAND);
        assert_eq!(asked(true, libc::SYS_clone, [thread, 0, 0, 0, 0, 0]), SECCOMP_RET_ALLOW);
        for bit in (0..32).map(|bit| 1_i32 << bit).filter(|bit| NAMESPACES & bit != 0) {
            assert_eq!(asked(true, libc::SYS_clone, [bits(bit), 0, 0, 0, 0, 0]), NOT_PERMITTED, "{bit:#x}");
            assert_eq!(asked(true, libc::SYS_unshare, [bits(bit), 0, 0, 0, 0, 0]), NOT_PERMITTED, "{bit:#x}");
        }
        assert_eq!(asked(true, libc::SYS_unshare, [0x80, 0, 0, 0, 0, 0]), NOT_PERMITTED);
        assert_eq!(asked(true, libc::SYS_unshare, [bits(libc::CLONE_FILES), 0, 0, 0, 0, 0]), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn nobody_types_for_the_user_whatever_is_in_the_upper_half() {
        for command in TERMINAL.map(u64::from) {
            for argument in [command, command | 1 << 32, command | u64::MAX << 32] {
                assert_eq!(asked(true, libc::SYS_ioctl, [0, argument, 0, 0, 0, 0]), NOT_PERMITTED, "{argument:#x}");
            }
        }
        assert_eq!(asked(true, libc::SYS_ioctl, [0, libc::TIOCGWINSZ, 0, 0, 0, 0]), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn no_mode_gives_rights_away() {
        let (with, without) = (0o4755, 0o755);
        for (mode, expected) in [(with, NOT_PERMITTED), (0o2755, NOT_PERMITTED), (without, SECCOMP_RET_ALLOW)] {
            for call in [libc::SYS_fchmodat, libc::SYS_mknodat, libc::SYS_mkdirat, 452] {
                assert_eq!(asked(true, call, [0, 0, mode, 0, 0, 0]), expected, "{call} {mode:o}");
            }
            assert_eq!(asked(true, libc::SYS_fchmod, [0, mode, 0, 0, 0, 0]), expected);
            for flags in [libc::O_CREAT, libc::O_TMPFILE] {
                assert_eq!(asked(true, libc::SYS_openat, [0, 0, bits(flags), mode, 0, 0]), expected, "{flags:o}");
            }
            // Without a new file there is no mode, whatever is in its place.
            let directory = bits(libc::O_DIRECTORY | libc::O_CLOEXEC);
            assert_eq!(asked(true, libc::SYS_openat, [0, 0, directory, mode, 0, 0]), SECCOMP_RET_ALLOW);
        }
        assert_eq!(asked(true, libc::SYS_openat2, [0; 6]), NOT_THERE);
    }

    #[test]
    fn somebody_is_asked_for_modes_that_give_rights_where_files_have_several_owners_and_for_no_others() {
        let asked = |call, arguments| {
            judged(&program(Where::Inside { modes: Modes::Asked }).unwrap(), ARCHITECTURE.unwrap(), call, arguments)
        };
        for (mode, expected) in
            [(0o4755, SECCOMP_RET_USER_NOTIF), (0o2755, SECCOMP_RET_USER_NOTIF), (0o1777, SECCOMP_RET_ALLOW)]
        {
            for call in [libc::SYS_fchmodat, FCHMODAT2] {
                assert_eq!(asked(call, [0, 0, mode, 0, 0, 0]), expected, "{call} {mode:o}");
            }
            assert_eq!(asked(libc::SYS_fchmod, [0, mode, 0, 0, 0, 0]), expected);
            #[cfg(target_arch = "x86_64")]
            assert_eq!(asked(libc::SYS_chmod, [0, mode, 0, 0, 0, 0]), expected);
        }
        for call in [libc::SYS_mknodat, libc::SYS_mkdirat] {
            assert_eq!(asked(call, [0, 0, 0o4755, 0, 0, 0]), NOT_PERMITTED, "{call}");
        }
        assert_eq!(asked(libc::SYS_openat, [0, 0, bits(libc::O_CREAT), 0o4755, 0, 0]), NOT_PERMITTED);
        assert_eq!(asked(libc::SYS_unshare, [bits(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0]), NOT_PERMITTED);
    }

    #[test]
    fn sockets_reach_the_network_only_where_there_is_one_and_services_of_the_machine_never() {
        let socket = |network, family: c_int, protocol: c_int| {
            asked(network, libc::SYS_socket, [bits(family), 1, bits(protocol), 0, 0, 0])
        };
        for family in [libc::AF_INET, libc::AF_INET6] {
            assert_eq!(socket(true, family, 0), SECCOMP_RET_ALLOW);
            assert_eq!(socket(false, family, 0), NO_ACCESS);
        }
        for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH, 1_000] {
            assert_eq!(socket(true, family, 0), NO_ACCESS, "{family}");
        }
        assert_eq!(socket(false, libc::AF_NETLINK, libc::NETLINK_ROUTE), SECCOMP_RET_ALLOW);
        assert_eq!(socket(true, libc::AF_NETLINK, libc::NETLINK_AUDIT), NO_ACCESS);
        for (kind, expected) in [
            (libc::SOCK_STREAM | libc::SOCK_CLOEXEC, SECCOMP_RET_ALLOW),
            (libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK, SECCOMP_RET_ALLOW),
            // They are sent to anybody by name.
            (libc::SOCK_DGRAM, NO_ACCESS),
            (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, NO_ACCESS),
            (libc::SOCK_RAW, NO_ACCESS),
        ] {
            for call in [libc::SYS_socket, libc::SYS_socketpair] {
                let arguments = [bits(libc::AF_UNIX), bits(kind), 0, 0, 0, 0];
                assert_eq!(asked(false, call, arguments), expected, "{call} {kind:#x}");
            }
        }
        assert_eq!(asked(true, libc::SYS_socketpair, [bits(libc::AF_INET), 1, 0, 0, 0, 0]), NO_ACCESS);
        assert_eq!(asked(true, libc::SYS_connect, [0; 6]), SECCOMP_RET_USER_NOTIF);
    }

    #[test]
    fn in_a_container_programs_connect_as_they_like_by_what_all_programs_use() {
        assert_eq!(asked_inside(libc::SYS_connect, [0; 6]), SECCOMP_RET_ALLOW);
        for (family, kind, protocol, expected) in [
            (libc::AF_INET, libc::SOCK_DGRAM, 0, SECCOMP_RET_ALLOW),
            (libc::AF_UNIX, libc::SOCK_DGRAM, 0, SECCOMP_RET_ALLOW),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, SECCOMP_RET_ALLOW),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER, NO_ACCESS),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT, NO_PROTOCOL),
            (libc::AF_PACKET, libc::SOCK_RAW, libc::NETLINK_AUDIT, NO_ACCESS),
            (libc::AF_PACKET, libc::SOCK_RAW, 0, NO_ACCESS),
            (libc::AF_VSOCK, libc::SOCK_STREAM, 0, NO_ACCESS),
            (libc::AF_ALG, libc::SOCK_SEQPACKET, 0, NO_ACCESS),
        ] {
            let arguments = [bits(family), bits(kind), bits(protocol), 0, 0, 0];
            assert_eq!(asked_inside(libc::SYS_socket, arguments), expected, "{family} {protocol}");
        }
        assert_eq!(asked_inside(libc::SYS_unshare, [bits(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0]), NOT_PERMITTED);
        assert_eq!(asked_inside(libc::SYS_fchmod, [0, 0o4755, 0, 0, 0, 0]), NOT_PERMITTED);
    }

    #[test]
    fn limits_of_others_are_read_and_not_set() {
        let pointer = 0x7f00_0000_0000;
        for (pid, new, expected) in [
            (0, pointer, SECCOMP_RET_ALLOW),
            (1, 0, SECCOMP_RET_ALLOW),
            (1, pointer, NOT_PERMITTED),
            (1, 0x1000, NOT_PERMITTED),
        ] {
            assert_eq!(asked(true, libc::SYS_prlimit64, [pid, 7, new, 0, 0, 0]), expected, "{pid} {new:#x}");
        }
    }
}

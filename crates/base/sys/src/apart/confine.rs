//! What a child gives up before it reads what others wrote.

use std::io;

use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Gid, Pid, Resource, Rlimit, Signal, Uid, geteuid, getppid, getrlimit, nice,
        set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
    },
    thread::{
        CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups,
        set_thread_uid,
    },
};

use super::filter;
use crate::spawn::Identity;

/// How much the work of others comes first: a little, so that a document is read on a busy machine, too.
const NICE: i32 = 2;

/// What a child may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildLimits {
    /// Bytes of its address space, its own program included.
    pub memory: u64,
    /// Bytes of its stack.
    pub stack: u64,
    /// Seconds of processor time.
    pub seconds: u64,
}

/// Why this process can not be confined. It must not go on then.
#[derive(Debug, thiserror::Error)]
#[error("cannot confine the process that reads documents: {step} failed: {source}")]
pub struct ConfineError {
    /// What was being done.
    step: &'static str,
    /// Why it failed.
    source: io::Error,
}

/// Takes everything from this process that it does not need to read the file that it has, compute, and write to its
/// output, for good: it becomes the given user, gains nothing by any program, is never traced, dies with the thread of
/// `parent` that started it, has the limits, and may make no other system calls than those few. It must have one thread.
///
/// # Errors
///
/// The system refuses a step, or this process was not started by `parent`, or that is gone.
pub fn confine(parent: u32, identity: Option<&Identity>, limits: &ChildLimits) -> Result<(), ConfineError> {
    let at = |step| move |errno: Errno| ConfineError { step, source: errno.into() };
    only_the_standard_descriptors().map_err(|source| ConfineError { step: "close_range", source })?;
    // Who runs out of memory because of a document ends its reader first. Not every system has the file.
    let _told = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _done = nice(NICE);
    become_user(identity).map_err(at("taking on the user"))?;
    set_limits(limits).map_err(at("setrlimit"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("PR_SET_DUMPABLE"))?;
    set_no_new_privs(true).map_err(at("PR_SET_NO_NEW_PRIVS"))?;
    // After the change of the user, which clears it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("PR_SET_PDEATHSIG"))?;
    if getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get().cast_unsigned()) != Some(parent) {
        let gone = "it is gone, or did not start this process";
        return Err(ConfineError { step: "looking for the parent", source: io::Error::other(gone) });
    }
    filter::install().map_err(|source| ConfineError { step: "seccomp", source })
}

/// Closes all but standard input, output and error.
#[expect(unsafe_code, reason = "no safe library closes descriptors that it does not own")]
fn only_the_standard_descriptors() -> io::Result<()> {
    // SAFETY: this process has just been started and owns no descriptor but those three; others could only have been left
    // open for it by mistake, and nothing in it knows of them.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } == 0 {
        return Ok(());
    }
    // Kernels before 5.9 have no such call.
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let open: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: as above. That of the list itself is closed already, which the kernel answers with an error.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

fn become_user(identity: Option<&Identity>) -> rustix::io::Result<()> {
    if let Some(identity) = identity
        && geteuid().is_root()
    {
        let groups: Vec<Gid> = identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups)?;
        set_thread_gid(Gid::from_raw(identity.gid))?;
        set_thread_uid(Uid::from_raw(identity.uid))?;
        if geteuid().as_raw() != identity.uid {
            return Err(Errno::PERM);
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

fn set_limits(limits: &ChildLimits) -> rustix::io::Result<()> {
    for (resource, value) in [
        (Resource::As, limits.memory),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nproc, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        // The standard ones are open already.
        (Resource::Nofile, 3),
        (Resource::Stack, limits.stack),
        (Resource::Cpu, limits.seconds),
    ] {
        let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        // The soft limit of time ends the process with a signal of its own, which tells why; the hard one is for what
        // would catch that.
        let hard = if resource == Resource::Cpu { value.saturating_add(1) } else { value };
        setrlimit(resource, Rlimit { current: Some(value.min(allowed)), maximum: Some(hard.min(allowed)) })?;
    }
    Ok(())
}

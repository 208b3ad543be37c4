//! What a process gives up that starts programs of others.

use std::io;

use rustix::{
    process::{DumpableBehavior, Resource, Rlimit, geteuid, getrlimit, set_dumpable_behavior, setrlimit},
    thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs},
};

/// Processes and threads of a container, where nothing else is asked for.
const MOST_PROCESSES: u64 = 4_096;
/// What root of a container may do to the files and processes in it. None of it reaches what belongs to nobody there. It
/// becomes no other user: processes are counted for each.
const OF_ROOT_INSIDE: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// What it may do beside that where all its users are counted together.
const OF_ROOT_AMONG_USERS: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// What failed.
pub(crate) type Failed = (&'static str, io::Error);

/// No program gets more rights, none is written to a file when it crashes, and this process is not looked into: it has
/// sockets that are its server's, and what it starts has the same user.
pub(super) fn close() -> Result<(), Failed> {
    let at = |step| move |error: rustix::io::Errno| (step, io::Error::from(error));
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(at("setrlimit"))?;
    set_no_new_privs(true).map_err(at("PR_SET_NO_NEW_PRIVS"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("PR_SET_DUMPABLE"))
}

/// Gives up all capabilities.
pub(super) fn drop_capabilities() -> Result<(), Failed> {
    keep(CapabilitySet::empty())
}

/// Bounds the processes of a container.
pub(crate) fn bound_processes(processes: Option<u64>) -> Result<(), Failed> {
    let now = getrlimit(Resource::Nproc);
    let wanted = processes.unwrap_or(MOST_PROCESSES);
    let most = now.maximum.unwrap_or(wanted).min(wanted);
    let bound = Rlimit { current: Some(now.current.unwrap_or(most).min(most)), maximum: Some(most) };
    setrlimit(Resource::Nproc, bound).map_err(|error| ("setrlimit", error.into()))
}

/// What the first process of a container gives up once that is made.
pub(crate) fn give_up_inside(nests: bool, has_users: bool) -> Result<(), Failed> {
    close()?;
    let mut of_root = OF_ROOT_INSIDE;
    if nests {
        // Without this one root of a container is nobody among users that it makes.
        of_root |= CapabilitySet::SETFCAP;
    }
    if has_users {
        of_root |= OF_ROOT_AMONG_USERS;
    }
    keep(if geteuid().is_root() { of_root } else { CapabilitySet::empty() })
}

fn keep(kept: CapabilitySet) -> Result<(), Failed> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        // Kernels refuse those that they do not know, and those who are not root have none to refuse.
        let _unknown = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|error| ("giving up capabilities", error.into()))
}

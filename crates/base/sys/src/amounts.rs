//! What all processes of a sandbox together may use, and whether the kernel keeps them to it here.
//!
//! It does where control groups of the second version are there and one above this process is the user's own, as in a session
//! of systemd's. Elsewhere each process has limits of its own.

use serde::{Deserialize, Serialize};

use crate::cgroup;

/// Bounds for all processes of a sandbox together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    /// Memory in bytes, with what files take of it; none is swapped.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Time of processors, in thousandths of one.
    pub cpu_thousandths: Option<u64>,
}

impl Amounts {
    /// Which of them are bounded.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            memory: self.memory.is_some(),
            processes: self.processes.is_some(),
            processors: self.cpu_thousandths.is_some(),
        }
    }
}

/// Which amounts the kernel keeps a sandbox to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its memory.
    pub memory: bool,
    /// Its processes.
    pub processes: bool,
    /// Its time of processors.
    pub processors: bool,
}

impl Kept {
    /// What can be kept on this machine, by this user.
    pub fn here() -> Self {
        cgroup::kept()
    }

    /// What gives this user a group, where systemd manages them.
    pub fn remedy() -> &'static str {
        if rustix::process::geteuid().is_root() {
            "`systemd-run --scope -p Delegate=yes bash` starts a shell where there is one"
        } else {
            "`systemd-run --user --scope -p Delegate=yes bash` starts a shell where there is one"
        }
    }

    /// All of it, and then parts of it: nobody else keeps sandboxes to their time of processors, so it comes first.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> {
        let or_not = |is_wanted: bool| if is_wanted { [Some(true), Some(false)] } else { [Some(false), None] };
        or_not(self.processors)
            .into_iter()
            .flatten()
            .flat_map(move |processors| {
                or_not(self.memory).into_iter().flatten().flat_map(move |memory| {
                    or_not(self.processes).into_iter().flatten().map(move |processes| Self {
                        memory,
                        processes,
                        processors,
                    })
                })
            })
            .filter(|part| *part != Self::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_with_all_and_keep_processors_longest() {
        let all = Kept { memory: true, processes: true, processors: true };
        let parts: Vec<Kept> = all.parts().collect();
        assert_eq!((parts.len(), parts[0]), (7, all));
        assert!(parts[..4].iter().all(|part| part.processors) && !parts[4].processors, "{parts:?}");
        assert_eq!(Kept::default().parts().count(), 0);
        let memory = Kept { memory: true, ..Kept::default() };
        assert_eq!(memory.parts().collect::<Vec<_>>(), [memory]);
    }
}

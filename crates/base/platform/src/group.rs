//! A program and all that it starts, which end together.
//!
//! On Unix they are a process group. Windows knows which process started which as long as the first one lives, so there
//! [`kill`] ends the whole tree of a program that runs, and nothing is known of what one that has ended left behind.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod other_unix;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;

use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use self::linux as own;
#[cfg(all(unix, not(target_os = "linux")))]
use self::other_unix as own;
#[cfg(unix)]
use self::unix as family;
#[cfg(windows)]
use self::{windows as family, windows as own};

/// The program that this starts will lead a group of its own.
pub fn lead(command: &mut Command) {
    family::lead(command);
}

/// Asks all processes of a group to end. Whether they could be asked: on Windows they cannot.
///
/// Nothing happens if the leader was waited for: its id may be another's.
pub fn ask_to_end(leader: &Child) -> bool {
    family::ask_to_end(leader)
}

/// Ends all processes of a group at once. Nothing happens if the leader was waited for: its id may be another's.
pub fn kill(leader: &Child) {
    if let Err(error) = family::kill(leader) {
        tracing::debug!(%error, "nothing of the group runs any more");
    }
}

/// Whether the leader, which was not waited for, still runs.
pub fn runs(leader: &Child) -> bool {
    own::runs(leader)
}

/// Whether anything else of the group runs, whose leader has ended and was not waited for.
pub fn others_run(leader: &Child) -> bool {
    own::others_run(leader)
}

/// Tells when a leader has ended without waiting for it, so that its id, and with it the group, stays its own.
#[derive(Debug)]
pub struct End(own::End);

impl End {
    /// The end of this program, which runs or was not waited for. Must be called within a tokio runtime.
    pub fn of(leader: &Child) -> io::Result<Self> {
        own::End::of(leader).map(Self)
    }

    /// Waits for it. `leader` is the one that this was made of.
    pub async fn reached(&self, leader: &mut Child) -> io::Result<()> {
        self.0.reached(leader).await
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn a_group_outlives_its_leader_until_it_is_killed() {
        let mut command = Command::new("sh");
        // The second process ends with the pipe that it reads, at the latest.
        command
            .args(["-c", "exec 3<&0; (echo begun; exec cat <&3) & exec true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        lead(&mut command);
        let mut leader = command.spawn().unwrap();
        let _open = leader.stdin.take();
        let mut output = BufReader::new(leader.stdout.take().unwrap());
        let end = End::of(&leader).unwrap();
        end.reached(&mut leader).await.unwrap();
        assert!(!runs(&leader));
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        assert_eq!(line, "begun\n");
        assert!(others_run(&leader));
        kill(&leader);
        // Its output ends when the last of them has.
        line.clear();
        output.read_line(&mut line).await.unwrap();
        assert!(leader.wait().await.unwrap().success());
        assert!(!ask_to_end(&leader), "its id may be another's");
    }
}

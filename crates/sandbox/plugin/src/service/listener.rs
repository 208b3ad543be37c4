//! Who listens on a port: a program that has just been started, or somebody else.

use std::{fs, io};

use gloveport_sys::process;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Whether somebody listens on this port, and certainly none of the processes of this session or below its leader.
///
/// A container or an activated service may be served by a process elsewhere, so this is a reason to look again and no
/// proof of a mistake.
pub(crate) fn is_foreign(port: u16, leader: u32) -> bool {
    let sockets = listening(port);
    if sockets.is_empty() {
        return false;
    }
    let mut all = process::descendants(leader);
    all.push(leader);
    all.extend(process::in_session(leader));
    !all.into_iter().any(|pid| {
        let descriptors = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(descriptors) => descriptors,
            // What has ended since it was listed holds nothing; what cannot be looked into may hold it.
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let mut targets = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    })
}

/// The sockets that listen on a port, as links in `/proc/PID/fd` name them.
fn listening(port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            if let [_, local, _, LISTENING, _, _, _, _, _, inode, ..] = fields.as_slice()
                && local.ends_with(&suffix)
            {
                sockets.push(format!("socket:[{inode}]"));
            }
        }
    }
    sockets
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_of_this_process_is_its_own_and_foreign_to_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_foreign(port, std::process::id()));
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_foreign(port, other.id()));
        drop(listener);
        assert!(!is_foreign(port, other.id()));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

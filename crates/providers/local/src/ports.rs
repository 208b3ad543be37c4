//! Who listens on the ports that were reserved for programs of a sandbox: any user of this machine may, once the sandbox has
//! started.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream},
    time::Duration,
};

/// Time for a listener of this machine whose queue is full.
const PATIENCE: Duration = Duration::from_millis(20);

/// The state of a socket that listens, as the kernel's table has it.
const LISTENS: &str = "0A";

/// Those of these ports on which a program of another user listens.
pub(crate) fn of_others(ports: &[u16]) -> Vec<u16> {
    // The kernel takes milliseconds to write its table, so it is asked only about ports on which somebody listens.
    let ports: Vec<u16> = ports.iter().copied().filter(|port| is_listened_on(*port)).collect();
    if ports.is_empty() {
        return Vec::new();
    }
    let own = rustix::process::geteuid().as_raw();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let listeners = tables.iter().flat_map(|table| table.lines().filter_map(listener));
    listeners.filter(|(port, user)| *user != own && ports.contains(port)).map(|(port, _)| port).collect()
}

/// Whether a connection to a port of this machine is taken, or left waiting.
fn is_listened_on(port: u16) -> bool {
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    addresses.into_iter().any(|address| match TcpStream::connect_timeout(&(address, port).into(), PATIENCE) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::TimedOut,
    })
}

/// The port and the user of a line of the table, if it is of a socket that listens.
fn listener(line: &str) -> Option<(u16, u32)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, state) = (fields.next()?, fields.nth(1)?);
    let port = u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok()?;
    let user = fields.nth(3)?.parse().ok()?;
    (state == LISTENS).then_some((port, user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_read_from_the_kernels_table() {
        let line = "   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 4711 1";
        assert_eq!(listener(line), Some((8080, 1001)));
        let connected = line.replace(" 0A ", " 01 ");
        assert_eq!(listener(&connected), None);
        let six =
            "0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 1 1";
        assert_eq!(listener(six), Some((22, 0)));
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"), None);
    }

    #[test]
    fn a_listener_of_another_user_is_told_and_an_own_one_is_not() {
        let ours = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ours.local_addr().unwrap().port();
        assert_eq!(of_others(&[port]), Vec::<u16>::new());
        if !rustix::process::geteuid().is_root() || fs::metadata("/usr/bin/python3").is_err() {
            println!("skipped: it needs root, and Python");
            return;
        }
        let script = "import os, socket\nos.setuid(4242)\ns = socket.create_server(('127.0.0.1', 0))\n\
                      print(s.getsockname()[1], flush=True)\nimport sys; sys.stdin.read()";
        let mut other = std::process::Command::new("/usr/bin/python3")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(other.stdout.take().unwrap()), &mut line).unwrap();
        let foreign: u16 = line.trim().parse().unwrap();
        assert_eq!(of_others(&[port, foreign]), [foreign]);
        drop(other.stdin.take());
        other.wait().unwrap();
    }
}

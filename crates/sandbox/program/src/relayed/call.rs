//! `relayed-call`: one request to the server of a directory. Its body and that of the answer are files there, so that nothing of
//! them is in the record that an `agent-server` keeps of commands.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::Args;

use super::{ADDRESS, ANSWER, Address, REQUEST};

/// Time for a connection, and for a piece of a request to be taken.
const LIMIT: Duration = Duration::from_secs(10);
/// The wait between two looks whether the server is there.
const LOOK: Duration = Duration::from_millis(5);
/// Most bytes of the head of an answer.
const LONGEST_HEAD: u64 = 64 * 1024;
/// The exit code that says that there is no server.
const NO_SERVER: u8 = 90;

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The directory of the server.
    #[arg(long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// How long the server is waited for, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    /// Name of the call: its body is the file NAME.request, if it has one, and that of the answer becomes NAME.answer.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: String,
    /// Calls whose answers were fetched, and are removed; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = name)]
    fetched: Vec<String>,
    /// The type of the body.
    #[arg(long, value_name = "TYPE", value_parser = word)]
    content_type: Option<String>,
    /// The method.
    #[arg(value_parser = word)]
    method: String,
    /// The path, with its query.
    #[arg(value_parser = word)]
    path: String,
}

/// A name that is one of a file and of nothing else.
fn name(text: &str) -> Result<String, String> {
    let is_name = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_name { Ok(text.to_owned()) } else { Err("it must be up to 64 letters and digits".to_owned()) }
}

/// What may stand in the head of a request.
fn word(text: &str) -> Result<String, String> {
    let is_visible = !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_visible { Ok(text.to_owned()) } else { Err("it must be visible ASCII characters".to_owned()) }
}

/// Sends the request and prints the status of the answer.
pub(crate) fn call(arguments: &CallArgs) -> anyhow::Result<ExitCode> {
    for fetched in &arguments.fetched {
        // Somebody may have cleaned up.
        let _gone = fs::remove_file(arguments.directory.join(format!("{fetched}{ANSWER}")));
    }
    let Some((stream, address)) = connect(&arguments.directory, Duration::from_secs(arguments.wait))? else {
        return Ok(ExitCode::from(NO_SERVER));
    };
    let status = exchange(&stream, &address, arguments)?;
    writeln!(io::stdout(), "{status}")?;
    Ok(ExitCode::SUCCESS)
}

/// A connection to the server; none if there is no server.
fn connect(directory: &Path, wait: Duration) -> anyhow::Result<Option<(TcpStream, Address)>> {
    let (began, path) = (Instant::now(), directory.join(ADDRESS));
    loop {
        match fs::read(&path) {
            Ok(text) => {
                let address = Address::parse(&text)?;
                let place = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port));
                match TcpStream::connect_timeout(&place, LIMIT) {
                    Ok(stream) => return Ok(Some((stream, address))),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error).context("the server cannot be connected to"),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        if began.elapsed() >= wait {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// The status of the answer, whose body is in its file then.
fn exchange(mut stream: &TcpStream, address: &Address, arguments: &CallArgs) -> anyhow::Result<u16> {
    let CallArgs { directory, name, method, path, content_type, .. } = arguments;
    stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(LIMIT)))?;
    let body = directory.join(format!("{name}{REQUEST}"));
    let file = match fs::File::open(&body) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", body.display())),
    };
    // Whatever comes of it, nobody reads it again.
    let removed = file.as_ref().map(|_| fs::remove_file(&body));
    removed.transpose().with_context(|| format!("cannot remove {}", body.display()))?;
    let length = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|meta| meta.len()))?;
    let kind = content_type.as_ref().map_or_else(String::new, |kind| format!("Content-Type: {kind}\r\n"));
    let key = &address.key;
    let head = format!(
        "{method} /{path} HTTP/1.0\r\nHost: localhost\r\nX-Session-API-Key: {key}\r\n{kind}Content-Length: {length}\r\n\r\n"
    );
    let lost = "the server has closed the connection";
    // A server that refuses does not read all; what it says is read all the same.
    let sent = stream.write_all(head.as_bytes()).and_then(|()| match file {
        Some(file) => io::copy(&mut file.take(length), &mut stream).map(drop),
        None => Ok(()),
    });
    let mut answer = BufReader::with_capacity(128 * 1024, stream);
    let status = match (head_of(&mut answer), sent) {
        (Ok(status), _) => status,
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(error).context(lost),
    };
    let path = directory.join(format!("{name}{ANSWER}"));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| format!("cannot make {}", path.display()))?;
    if let Err(error) = io::copy(&mut answer, &mut file) {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        return Err(error).with_context(|| format!("the answer cannot be kept in {}", path.display()));
    }
    Ok(status)
}

/// Reads the head of an answer and gives its status.
fn head_of(answer: &mut impl io::BufRead) -> io::Result<u16> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP");
    let mut head = answer.by_ref().take(LONGEST_HEAD);
    let mut line = String::new();
    head.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    loop {
        line.clear();
        match head.read_line(&mut line)? {
            0 => return Err(broken()),
            _ if line == "\r\n" => return Ok(status),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_an_answer_is_read_to_its_end_and_no_further() {
        let mut answer = io::Cursor::new(b"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nbody\r\n".to_vec());
        assert_eq!(head_of(&mut answer).unwrap(), 404);
        let mut rest = String::new();
        answer.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "body\r\n");
        for broken in ["", "HTTP/1.0", "HTTP/1.0 200 OK\r\n", "HTTP/1.0 abc\r\n\r\n"] {
            assert!(head_of(&mut io::Cursor::new(broken)).is_err(), "{broken:?}");
        }
        let endless = format!("HTTP/1.0 200 OK\r\nA: {}\r\n\r\n", "b".repeat(70_000));
        assert!(head_of(&mut io::Cursor::new(endless)).is_err());
    }

    #[test]
    fn names_are_names_of_files_and_words_stay_in_their_line() {
        assert!(name("a1B").is_ok() && word("execute_action?a=b%20c").is_ok());
        for wrong in ["", "../x", "a.b", "a/b", &"a".repeat(65)] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "a\r\nb", "\u{e9}"] {
            assert!(word(wrong).is_err(), "{wrong:?}");
        }
    }
}

//! A server of the pages that are measured, on the loopback.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// What stands before the milliseconds in the title of a page that says how long it took.
pub(super) const LOADED: &str = "loaded in ";

/// A page without scripts.
const PLAIN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/browsergym/pages/plain.html"));
/// A page with buttons.
const BUTTONS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/browsergym/pages/buttons.html"));
/// Says in its title how long it took to load.
const TIMER: &str = "<script>addEventListener('load', () => setTimeout(() => { const t = performance.timing; \
    document.title = 'loaded in ' + (t.loadEventEnd - t.navigationStart); }))</script>";

/// It serves as long as the program runs.
pub(super) struct Site {
    port: u16,
}

impl Site {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // One that goes away wants no answer.
                thread::spawn(move || answer(&stream).ok());
            }
        });
        Ok(Self { port })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = BufReader::new(stream).lines();
    let first = head.next().transpose()?.unwrap_or_default();
    while head.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = match first.split(' ').nth(1) {
        Some("/plain") => ("200 OK", PLAIN.to_owned()),
        Some("/timed") => ("200 OK", format!("{PLAIN}{TIMER}")),
        Some("/buttons") => ("200 OK", BUTTONS.to_owned()),
        _ => ("404 Not Found", String::new()),
    };
    let length = body.len();
    let kind = "content-type: text/html; charset=utf-8\r\ncache-control: no-store";
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

//! The page on this machine that an authorization server sends the browser to (RFC 8252, 7.3).
//!
//! Any program of this machine, and any page in a browser, can ask it. It answers the one request that has the login's
//! `state` in it, once; all others get an error and change nothing.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_protocol::Secret;
use subtle::ConstantTimeEq as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

/// Most bytes of a request up to its empty line.
const LONGEST_HEAD: usize = 8 * 1024;
/// How long a connection may take from its beginning to its end.
const CONNECTION_LIMIT: Duration = Duration::from_secs(5);
/// Most connections at the same time. Another one ends the oldest, so that silent ones hold up nobody.
const MOST_CONNECTIONS: usize = 64;
/// How long the next connection is not taken after one could not be.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The path of the page.
const PATH: &str = "/callback";

/// What the browser came back with.
pub(crate) enum Answer {
    /// A code, which is good for tokens once, and who says that it has made it (RFC 9207).
    Code { code: Secret, issuer: Option<String> },
    /// There is no code: its error, and what it says about that.
    Error { code: String, description: String },
}

/// A listener on a port of this machine.
#[derive(Debug)]
pub(crate) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub(crate) async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address of the page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the request with this `state`. All connections end with this.
    pub(crate) async fn answer(self, state: &Secret) -> Answer {
        let (sender, mut answered) = oneshot::channel();
        let login = Arc::new(Login { port: self.port, state: state.clone(), sender: Mutex::new(Some(sender)) });
        let (mut connections, mut ages) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
        loop {
            tokio::select! {
                // The sender ends only with the login, which lives here.
                Ok(answer) = &mut answered => return answer,
                Some(_) = connections.join_next() => ages.retain(|connection| !connection.is_finished()),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        if ages.len() >= MOST_CONNECTIONS && let Some(oldest) = ages.pop_front() {
                            oldest.abort();
                        }
                        let login = Arc::clone(&login);
                        ages.push_back(connections.spawn(async move {
                            let _slow = timeout(CONNECTION_LIMIT, login.serve(stream)).await;
                        }));
                    }
                    // There are no more files, or the connection is gone already.
                    Err(error) => {
                        tracing::debug!(%error, "a connection from the browser could not be taken");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

struct Login {
    port: u16,
    state: Secret,
    sender: Mutex<Option<oneshot::Sender<Answer>>>,
}

impl Login {
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let page = match read_head(&mut stream).await? {
            Some(head) => self.judge(&head),
            None => Page::Error("431 Request Header Fields Too Large"),
        };
        let (page, answer) = match page {
            Page::Answer(answer) => {
                // Of two requests with the right state the first one counts.
                match self.sender.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    Some(sender) => (Page::Done, Some((sender, answer))),
                    None => (Page::Error("410 Gone"), None),
                }
            }
            other => (other, None),
        };
        let written = stream.write_all(page.text().as_bytes()).await;
        if let Some((sender, answer)) = answer {
            // Whoever waits has given up, or takes it.
            let _sent = sender.send(answer);
        }
        written?;
        stream.shutdown().await?;
        // What is still unread when a connection closes can take the answer with it.
        let (mut rest, mut seen) = ([0; 1024], 0);
        while let count @ 1.. = stream.read(&mut rest).await? {
            seen += count;
            if seen > LONGEST_HEAD {
                break;
            }
        }
        Ok(())
    }

    fn judge(&self, head: &str) -> Page {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Page::Error("400 Bad Request");
        };
        let mut hosts =
            lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        // A page in a browser reaches this port under a name of its own if that name leads to this machine.
        let here = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let is_here = |host: &str| here.iter().any(|here| host.trim().eq_ignore_ascii_case(here));
        if !hosts.next().is_some_and(|(_, host)| is_here(host)) || hosts.next().is_some() {
            return Page::Error("421 Misdirected Request");
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != PATH {
            return Page::Error("404 Not Found");
        }
        if method != "GET" {
            return Page::Error("405 Method Not Allowed");
        }
        self.answer(query).map_or(Page::Error("400 Bad Request"), Page::Answer)
    }

    /// What a query says, if it belongs to this login.
    fn answer(&self, query: &str) -> Option<Answer> {
        let (mut state, mut code, mut issuer, mut error, mut description) = (None, None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "state" => &mut state,
                "code" => &mut code,
                "iss" => &mut issuer,
                "error" => &mut error,
                "error_description" => &mut description,
                _ => continue,
            };
            // Which of two would count is not said anywhere (RFC 6749, 3.1).
            if place.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        if !bool::from(state?.as_bytes().ct_eq(self.state.expose().as_bytes())) {
            return None;
        }
        match (code, error) {
            (Some(code), None) if !code.is_empty() => Some(Answer::Code { code: Secret::new(code), issuer }),
            (None, Some(code)) => Some(Answer::Error { code, description: description.unwrap_or_default() }),
            _ => None,
        }
    }
}

enum Page {
    Answer(Answer),
    Done,
    Error(&'static str),
}

impl Page {
    /// The whole response.
    fn text(&self) -> String {
        let (status, extra, message) = match self {
            Self::Error(status @ "405 Method Not Allowed") => (*status, "Allow: GET\r\n", *status),
            Self::Error(status) => (*status, "", *status),
            Self::Answer(_) | Self::Done => {
                ("200 OK", "", "You can close this window. How the login ended is told where you started it.")
            }
        };
        let body = format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Login</title></head>\
             <body><p>{message}</p></body></html>\n"
        );
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n{extra}\
             Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
            body.len(),
        )
    }
}

/// The head of a request, up to its empty line; none if it is too long.
async fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let seen = head.len().saturating_sub(3);
        head.extend_from_slice(&chunk[..count]);
        if let Some(end) = head[seen..].windows(4).position(|end| end == b"\r\n\r\n") {
            head.truncate(seen + end);
            return Ok((head.len() <= LONGEST_HEAD).then(|| String::from_utf8_lossy(&head).into_owned()));
        }
        if head.len() > LONGEST_HEAD {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use gloveport_testing::within;

    use super::*;

    async fn ask(port: u16, text: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // It may answer, and close, before it has read all.
        let _refused = stream.write_all(text.as_bytes()).await;
        let mut answer = Vec::new();
        let _closed = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    fn get(port: u16, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
    }

    async fn started() -> (u16, tokio::task::JoinHandle<Answer>) {
        let callback = Callback::listen().await.unwrap();
        let port = callback.port;
        assert_eq!(callback.address(), format!("http://127.0.0.1:{port}/callback"));
        (port, tokio::spawn(async move { callback.answer(&Secret::new("right")).await }))
    }

    #[tokio::test]
    async fn only_the_request_with_the_right_state_is_the_answer_and_others_change_nothing() {
        let (port, answer) = started().await;
        let host = format!("Host: localhost:{port}\r\n");
        for (text, status) in [
            (get(port, "/callback?code=c&state=wrong"), "400"),
            (get(port, "/callback?code=c&state="), "400"),
            (get(port, "/callback?code=c"), "400"),
            (get(port, "/callback?state=right"), "400"),
            (get(port, "/callback?code=c&code=d&state=right"), "400"),
            (get(port, "/callback?code=c&error=e&state=right"), "400"),
            (get(port, "/callback?error=access_denied&state=wrong"), "400"),
            (get(port, "/?code=c&state=right"), "404"),
            (get(port, "/callback/?code=c&state=right"), "404"),
            (get(port, "http://127.0.0.1/callback?code=c&state=right"), "404"),
            (format!("POST /callback?code=c&state=right HTTP/1.1\r\n{host}\r\n"), "405"),
            (format!("HEAD /callback?code=c&state=right HTTP/1.1\r\n{host}\r\n"), "405"),
            ("GET /callback?code=c&state=right HTTP/1.1\r\n\r\n".to_owned(), "421"),
            ("GET /callback?code=c&state=right HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "421"),
            ("GET /callback?code=c&state=right HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(), "421"),
            (format!("GET /callback?code=c&state=right HTTP/1.1\r\n{host}{host}\r\n"), "421"),
            (format!("GET /callback?code=c&state=right\r\n{host}\r\n"), "400"),
            ("\r\n\r\n".to_owned(), "400"),
            (format!("GET /callback?code={} HTTP/1.1\r\n{host}\r\n", "x".repeat(LONGEST_HEAD)), "431"),
        ] {
            let told = within(ask(port, &text)).await;
            assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{text:?}: {told}");
            assert!(!answer.is_finished(), "{text:?}");
        }
        let text = format!("GET /callback?code=c%20d&state=right&iss=me HTTP/1.1\r\nhOST:LOCALHOST:{port}\r\n\r\n");
        let page = within(ask(port, &text)).await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("You can close this window"), "{page}");
        for header in [
            "Cache-Control: no-store\r\n",
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
            "X-Content-Type-Options: nosniff\r\n",
        ] {
            assert!(page.contains(header), "{page}");
        }
        assert!(!page.contains("c d") && !page.contains("right"), "{page}");
        let Answer::Code { code, issuer } = within(answer).await.unwrap() else { panic!() };
        assert_eq!((code.expose(), issuer.as_deref()), ("c d", Some("me")));
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "it listens no more");
    }

    #[tokio::test]
    async fn an_error_is_told_with_what_is_said_about_it() {
        let (port, answer) = started().await;
        within(ask(port, &get(port, "/callback?error=access_denied&error_description=not+you&state=right"))).await;
        let Answer::Error { code, description } = within(answer).await.unwrap() else { panic!() };
        assert_eq!((code.as_str(), description.as_str()), ("access_denied", "not you"));
    }

    #[tokio::test]
    async fn connections_that_say_nothing_hold_up_nobody() {
        let (port, answer) = started().await;
        let silent = join_all((0..3 * MOST_CONNECTIONS).map(|_| TcpStream::connect(("127.0.0.1", port)))).await;
        let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        slow.write_all(b"GET /callback?code=other&state=ri").await.unwrap();
        within(ask(port, &get(port, "/callback?code=c&state=right"))).await;
        let Answer::Code { code, .. } = within(answer).await.unwrap() else { panic!() };
        assert_eq!(code.expose(), "c");
        drop((silent, slow));
    }

    #[tokio::test]
    async fn of_two_requests_with_the_right_state_the_first_one_counts() {
        let (sender, answered) = oneshot::channel();
        let login = Login { port: 1, state: Secret::new("right"), sender: Mutex::new(Some(sender)) };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = async {
            for _ in 0..2 {
                let (stream, _) = listener.accept().await.unwrap();
                login.serve(stream).await.unwrap();
            }
        };
        let asked = async {
            let first = ask(port, "GET /callback?code=first&state=right HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").await;
            let second = ask(port, "GET /callback?code=second&state=right HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").await;
            (first, second)
        };
        let ((first, second), ()) = within(futures_util::future::join(asked, serve)).await;
        assert!(first.starts_with("HTTP/1.1 200 ") && second.starts_with("HTTP/1.1 410 "), "{first}{second}");
        let Answer::Code { code, .. } = answered.await.unwrap() else { panic!() };
        assert_eq!(code.expose(), "first");
    }
}

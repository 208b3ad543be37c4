//! Terminals of a real server, over good connections and bad ones.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use gloveport_client::{
    ActionExecutionClient, AttachOptions, AttachedTerminal, ClientError, ClientOptions, Pause, TerminalEvent,
};
use gloveport_protocol::{
    BoxFuture,
    terminals::{TerminalExit, TerminalRequest, TerminalSize, TerminalState},
};
use gloveport_server::{ServerOptions, SessionKey};
use gloveport_testing::{Server, within};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

async fn started(key: Option<&str>) -> Server {
    Server::start(ServerOptions { session_key: key.map(SessionKey::new), ..ServerOptions::default() }).await
}

fn client(address: SocketAddr, key: Option<&str>) -> ActionExecutionClient {
    ActionExecutionClient::new(&ClientOptions::new(address.to_string()).with_key(key)).unwrap()
}

fn paused(address: SocketAddr, pause: Arc<dyn Pause>) -> ActionExecutionClient {
    ActionExecutionClient::new(&ClientOptions { pause, ..ClientOptions::new(address.to_string()) }).unwrap()
}

/// Does not wait for long.
struct Hasty;

impl Pause for Hasty {
    fn pause(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(2)))
    }
}

/// Waits until it is opened.
#[derive(Default)]
struct Gate(tokio::sync::Notify);

impl Pause for Gate {
    fn pause(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.0.notified())
    }
}

fn sh(id: &str, script: &str) -> TerminalRequest {
    TerminalRequest {
        id: Some(id.to_owned()),
        argv: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
        ..TerminalRequest::default()
    }
}

/// What came, up to a text or to the end.
async fn until(terminal: &mut AttachedTerminal, text: &str) -> (Vec<u8>, Option<TerminalExit>, u32) {
    let (mut bytes, mut again) = (Vec::new(), 0);
    while text.is_empty() || !bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
        match terminal.next().await.unwrap() {
            Some(TerminalEvent::Output { bytes: more, .. }) => bytes.extend_from_slice(&more),
            Some(TerminalEvent::Ended(exit)) => return (bytes, Some(exit), again),
            Some(TerminalEvent::Reconnected { input_in_doubt }) => {
                assert!(!input_in_doubt);
                again += 1;
            }
            Some(TerminalEvent::Reconnecting { .. }) => {}
            other => panic!("{other:?} before {text:?}"),
        }
    }
    (bytes, None, again)
}

#[tokio::test]
async fn a_terminal_is_started_once_attached_to_resized_and_removed() {
    within(async {
        let server = started(Some("key")).await;
        let terminals = client(server.address, Some("key")).terminals();
        let request = sh("a", "trap 'stty size' WINCH; echo ready; while :; do read x; echo \"[$x]\"; done");
        let status = terminals.start(request.clone()).await.unwrap();
        assert_eq!(terminals.start(request).await.unwrap().state, status.state);
        let mut attached = terminals.attach("a", AttachOptions::default()).await.unwrap();
        until(&mut attached, "ready\r\n").await;
        let input = attached.input();
        assert!(input.send("größe\n").await);
        until(&mut attached, "[größe]\r\n").await;
        input.resize(TerminalSize { columns: 99, rows: 9 });
        until(&mut attached, "9 99\r\n").await;
        assert_eq!(terminals.resize("a", TerminalSize { columns: 98, rows: 8 }).await.unwrap().columns, 98);
        until(&mut attached, "8 98\r\n").await;
        assert!(input.signal("NOPE").await);
        // The trap may have told a size twice.
        let next = loop {
            match attached.next().await.unwrap() {
                Some(TerminalEvent::Output { .. }) => {}
                other => break other,
            }
        };
        assert!(matches!(next, Some(TerminalEvent::Refused(_))), "{next:?}");
        assert_eq!(terminals.list().await.unwrap().len(), 1);
        assert_eq!(terminals.status("a").await.unwrap().attached, 1);
        let TerminalState::Ended(end) = terminals.remove("a").await.unwrap().state else { panic!("it did not end") };
        assert_eq!(until(&mut attached, "").await.1, Some(end));
        assert_eq!(attached.next().await.unwrap(), None);
        assert!(terminals.list().await.unwrap().is_empty());
        let wrong = client(server.address, Some("other")).terminals();
        let error = wrong.attach("a", AttachOptions::default()).await.unwrap_err();
        assert_eq!(error.status().unwrap(), 403);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn what_was_typed_before_detaching_arrives_and_the_terminal_lives_on() {
    within(async {
        let server = started(None).await;
        let terminals = client(server.address, None).terminals();
        terminals.start(sh("d", "stty -echo; echo ready; while read x; do echo \"[$x]\"; done")).await.unwrap();
        let mut attached = terminals.attach("d", AttachOptions::default()).await.unwrap();
        let (seen, _, _) = until(&mut attached, "ready\r\n").await;
        let input = attached.input();
        assert!(input.send("last words\n").await);
        attached.detach().await;
        let options = AttachOptions { offset: Some(seen.len() as u64), ..AttachOptions::default() };
        let mut attached = terminals.attach("d", options).await.unwrap();
        assert_eq!(until(&mut attached, "words]\r\n").await.0, b"[last words]\r\n");
        server.stop().await;
    })
    .await;
}

/// A proxy that cuts each connection after a number of bytes in one of the directions.
struct Cutter {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Cutter {
    async fn start(target: SocketAddr, limit: impl Fn(usize) -> (usize, usize) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let (up, down) = limit(counter.fetch_add(1, Relaxed));
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.split(), far.split());
                    tokio::select! {
                        () = forward(near_in, far_out, up) => {}
                        () = forward(far_in, near_out, down) => {}
                    }
                });
            }
        });
        Self { address, connections, task }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    mut limit: usize,
) {
    let mut buffer = [0; 4096];
    while limit > 0 {
        let room = buffer.len().min(limit);
        match from.read(&mut buffer[..room]).await {
            Ok(count) if count > 0 && to.write_all(&buffer[..count]).await.is_ok() => limit -= count,
            _ => return,
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_again_and_again_loses_and_doubles_nothing() {
    const LINES: usize = 3000;
    within(async {
        let server = started(None).await;
        let direct = client(server.address, None).terminals();
        direct.start(sh("cut", "stty -echo; echo ready; while read x; do echo \"<$x>\"; done")).await.unwrap();
        // In turn in the middle of the output, of the input, and of the head of an answer.
        let cutter = Cutter::start(server.address, |number| match number % 3 {
            0 => (1 << 30, 900 + 37 * number),
            1 => (1200 + 41 * number, 1 << 30),
            _ => (1 << 30, 60),
        })
        .await;
        let hasty = paused(cutter.address, Arc::new(Hasty));
        let mut attached = loop {
            // The first connection may be cut before it is one, and many in a row before a whole message is through.
            let options = AttachOptions { attempts: 1000, ..AttachOptions::default() };
            match hasty.terminals().attach("cut", options).await {
                Ok(attached) => break attached,
                Err(ClientError::Status(error)) => panic!("{error}"),
                Err(_) => {}
            }
        };
        // What is typed before is echoed.
        let (mut bytes, _, before) = until(&mut attached, "ready\r\n").await;
        let input = attached.input();
        let typing = tokio::spawn(async move {
            for number in 0..LINES {
                assert!(input.send(format!("line {number} of many\n")).await);
            }
            assert!(input.send("\x04").await);
        });
        let (rest, exit, again) = until(&mut attached, "").await;
        bytes.extend_from_slice(&rest);
        let again = before + again;
        typing.await.unwrap();
        assert_eq!(exit, Some(TerminalExit { exit_code: 0, signal: None }));
        let lines = (0..LINES).map(|number| format!("<line {number} of many>\r\n")).collect::<Vec<_>>().concat();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text == format!("ready\r\n{lines}"), "{} bytes instead of {}", text.len(), lines.len() + 7);
        assert!(again > 5, "{again} of {}", cutter.connections.load(Relaxed));
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_goes_away_is_an_error_after_the_attempts() {
    within(async {
        let server = started(None).await;
        let terminals = client(server.address, None).terminals();
        terminals.start(sh("s", "echo ready; sleep 999")).await.unwrap();
        let options = AttachOptions { attempts: 2, ..AttachOptions::default() };
        let mut attached = terminals.attach("s", options).await.unwrap();
        until(&mut attached, "ready\r\n").await;
        server.stop().await;
        let mut attempts = Vec::new();
        let error = loop {
            match attached.next().await {
                Ok(Some(TerminalEvent::Reconnecting { attempt, .. })) => attempts.push(attempt),
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(attempts, [1, 2]);
        assert!(
            matches!(&error, ClientError::Lost { last, .. } if matches!(**last, ClientError::Unreachable { .. })),
            "{error}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_terminal_that_is_gone_when_the_connection_comes_again_is_an_error_at_once() {
    within(async {
        let server = started(None).await;
        let terminals = client(server.address, None).terminals();
        terminals.start(sh("g", "echo ready; sleep 999")).await.unwrap();
        let cutter = Cutter::start(server.address, |number| (1 << 30, if number == 0 { 300 } else { 1 << 30 })).await;
        let gate = Arc::new(Gate::default());
        let client = paused(cutter.address, Arc::<Gate>::clone(&gate));
        let mut attached = client.terminals().attach("g", AttachOptions::default()).await.unwrap();
        let input = attached.input();
        let cut =
            async { while !matches!(attached.next().await.unwrap(), Some(TerminalEvent::Reconnecting { .. })) {} };
        tokio::select! {
            () = cut => {}
            () = async { while input.send(vec![b'x'; 1024]).await {} } => panic!("it ended"),
        }
        terminals.remove("g").await.unwrap();
        gate.0.notify_one();
        assert_eq!(attached.next().await.unwrap_err().status().unwrap(), 404);
        server.stop().await;
    })
    .await;
}

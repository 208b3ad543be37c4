//! Real servers, from the first page to the last process.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_plugin::{Plugin as _, PluginState};
use gloveport_proxy::{Admission, Mount, ProxyLimits, ServiceProxy};
use gloveport_vscode::VsCode;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};
use tokio_util::sync::CancellationToken;

use crate::support::{LONG, Page, Sandbox, free_port, get, until};

/// Opens the page with the token, and gives the cookie and the page without it.
async fn enter(port: u16, base: &str, token: &str) -> (String, Page) {
    let welcome = get(port, &format!("{base}/?tkn={token}&folder=/tmp"), "").await;
    assert_eq!((welcome.status, welcome.header("location")), (303, Some("./?folder=/tmp")), "{welcome:?}");
    let cookie = welcome.header("set-cookie").unwrap();
    assert!(cookie.ends_with(&format!("; Path={base}/; HttpOnly; SameSite=Lax")), "{cookie}");
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let page = get(port, &format!("{base}/?folder=/tmp"), &cookie).await;
    (cookie, page)
}

/// A file that the page loads, as a browser would ask for it.
fn asset(page: &Page, base: &str) -> String {
    let mut links = page.body.split(['"', '\'']).filter(|text| text.ends_with("workbench.css"));
    let link = links.next().unwrap_or_else(|| panic!("the page loads no style: {}", page.body));
    match link.strip_prefix("./") {
        Some(relative) => format!("{base}/{relative}"),
        None if link.starts_with('/') => link.to_owned(),
        None => format!("{base}/{link}"),
    }
}

/// Connects to the remote agent as the workbench does.
async fn connect(port: u16, path: &str, headers: &[(&'static str, String)]) -> Result<WebSocketStream<TcpStream>, u16> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // The agent knows a window by its token, so each connection has another one.
    let query =
        format!("reconnectionToken=b5ee5f0c-0d4c-4a9a-8a4c-{port:012x}&reconnection=false&skipWebSocketFrames=false");
    let mut request = format!("ws://localhost:{port}{path}?{query}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match timeout(LONG, client_async(request, stream)).await.expect("no answer to the handshake") {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Sends a control message of the remote protocol: kind, id, acknowledgement, length, and the text.
async fn say(socket: &mut WebSocketStream<TcpStream>, text: &str) {
    let mut message = vec![2, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    message.extend(text.bytes());
    socket.send(Message::binary(message)).await.unwrap();
}

/// Waits for a control message with this text in it.
async fn hear(socket: &mut WebSocketStream<TcpStream>, text: &str) {
    let heard = async {
        loop {
            let message = socket.next().await.expect("the agent hung up").unwrap().into_data();
            if String::from_utf8_lossy(&message).contains(text) {
                return;
            }
        }
    };
    timeout(LONG, heard).await.unwrap_or_else(|_| panic!("the agent does not say {text}"));
}

/// The handshake of the workbench with the remote agent, to its end.
async fn shake_hands(port: u16, base: &str, cookie: &str, page: &Page) {
    let commit = page.body.split("stable-").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let path = format!("{base}/stable-{commit}");
    let cookie = ("cookie", cookie.trim_start_matches("Cookie: ").trim().to_owned());
    let origin = |port: u16| ("origin", format!("http://localhost:{port}"));
    assert_eq!(connect(port, &path, &[origin(port)]).await.err(), Some(403), "without the cookie");
    assert_eq!(connect(port, &path, &[cookie.clone(), origin(1)]).await.err(), Some(403), "from another origin");
    let mut socket = connect(port, &path, &[cookie, origin(port)]).await.expect("the upgrade is refused");
    say(&mut socket, r#"{"type":"auth","auth":"00000000000000000000","data":"none"}"#).await;
    hear(&mut socket, r#""type":"sign""#).await;
    let text =
        format!(r#"{{"type":"connectionType","commit":"{commit}","signedData":"none","desiredConnectionType":1}}"#);
    say(&mut socket, &text).await;
    hear(&mut socket, r#""type":"ok""#).await;
}

async fn serve_the_whole_life_of(program: &str, variables: &[(&str, &str)], base: &str) {
    let port = free_port();
    let text = port.to_string();
    let sandbox = Sandbox::new(program, &[variables, &[("VSCODE_PORT", &text)]].concat());
    let plugin = VsCode::default();
    plugin.initialize(&sandbox.host).await.unwrap();
    let token = plugin.token().unwrap();

    // Through the port.
    let (cookie, page) = enter(port, base, &token).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.contains("vscode-workbench-web-configuration"), "{}", page.body);
    let style = get(port, &asset(&page, base), &cookie).await;
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css")), "{}", style.head);
    assert_eq!(get(port, &asset(&page, base), "").await.status, 403, "a second user without the token");
    shake_hands(port, base, &cookie, &page).await;
    assert_eq!(*plugin.state().borrow(), PluginState::Ready);

    // Through the path.
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path_port = listener.local_addr().unwrap().port();
    let proxy = ServiceProxy {
        name: "vscode".to_owned(),
        service: plugin.service().unwrap(),
        mount: Mount::new("/plugins/vscode", ""),
        admission: Admission::new("vscode", plugin.path_token()),
        limits: ProxyLimits::default(),
        stop: stop.clone(),
    };
    let serving = tokio::spawn(gloveport_proxy::serve(listener, Arc::new(proxy)));
    let (path_cookie, page) = enter(path_port, "/plugins/vscode", &token).await;
    assert_eq!(page.status, 200, "{page:?}");
    let style = get(path_port, &asset(&page, "/plugins/vscode"), &path_cookie).await;
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css")), "{}", style.head);
    shake_hands(path_port, "/plugins/vscode", &path_cookie, &page).await;

    // A killed server is started again.
    let killed = sandbox.processes();
    assert!(!killed.is_empty());
    for pid in &killed {
        // Some of them end with the others.
        let _gone = kill_process(Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(), Signal::KILL);
    }
    until("the server is noticed as gone", || *plugin.state().borrow() != PluginState::Ready).await;
    let page = get(port, &format!("{base}/?folder=/tmp"), &cookie).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(sandbox.processes().iter().all(|pid| !killed.contains(pid)));

    // The end leaves nothing.
    stop.cancel();
    serving.await.unwrap();
    plugin.stop().await;
    assert_eq!(sandbox.processes(), Vec::<u32>::new());
    assert_eq!(*plugin.state().borrow(), PluginState::Stopped);
    drop(std::net::TcpListener::bind(("0.0.0.0", port)).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_of_vs_code_serves_through_port_and_path() {
    serve_the_whole_life_of("openvscode-server", &[], "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_server_serves_through_port_and_path() {
    serve_the_whole_life_of("code-server", &[], "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_serve_under_the_base_path_of_the_port() {
    serve_the_whole_life_of("openvscode-server", &[("OPENVSCODE_SERVER_BASE_PATH", "deep/base/")], "/deep/base").await;
    let runtime = [("RUNTIME_URL", "https://runtime.example/abc"), ("RUNTIME_ID", "abc")];
    serve_the_whole_life_of("code-server", &runtime, "/abc/vscode").await;
}

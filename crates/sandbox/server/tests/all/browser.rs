//! The browser of a sandbox in the native interface, with a real Chromium.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test programs stop at the first broken assumption, and say what they leave out"
)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Answer, Server, request};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_executor::plugins::{DownloadPlace, FirstStart, PluginOptions, Web};
use gloveport_server::{ServerOptions, SessionKey};
use http::Request;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};

const KEY: &str = "k";
const PAGE: &str = "<!doctype html><title>Shop</title><h1>Things</h1>\
    <button onclick=\"document.title = 'Bought'\">Buy it</button>\
    <label>Name <input name=n></label><script>console.log('loaded'); localStorage.setItem('seen', 'yes')</script>";

/// Chromium needs longer than the rest, and two tests of it may run at once.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(2), work).await.unwrap()
}

fn has_chromium() -> bool {
    let found = std::path::Path::new("/usr/bin/chromium").exists();
    if !found {
        eprintln!("skipped: there is no Chromium");
    }
    found
}

async fn serve(options: ServerOptions) -> Server {
    Server::with_executor(options, |mut options| {
        let web = Web::new(FirstStart::WhenNeeded, DownloadPlace::Workspace);
        options.plugins =
            PluginOptions { all: vec![Arc::clone(&web) as _], web: Some(web), ..PluginOptions::default() };
        options
    })
    .await
}

/// A page, and the paths that were asked for.
struct Site {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    noted.lock().unwrap().push(head.split(' ').nth(1).unwrap().to_owned());
                    let length = PAGE.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nset-cookie: basket=full; Max-Age=3600\r\n\
                         content-length: {length}\r\nconnection: close\r\n\r\n{PAGE}"
                    );
                    let _gone = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, asked }
    }

    fn was_asked(&self, path: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|asked| asked == path)
    }
}

async fn put(server: &Server, path: &str, body: Value) -> Answer {
    server.connect().await.request(request("PUT", path, body.to_string())).await
}

async fn done(server: &Server, path: &str, body: Value) -> Value {
    let answer = server.post(path, body.to_string()).await;
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

fn error(answer: &Answer) -> (u16, Value) {
    (answer.status.as_u16(), answer.json()["error"]["code"].clone())
}

async fn socket(
    server: &Server,
    path: &str,
    change: impl FnOnce(&mut Request<()>),
) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    change(&mut request);
    client_async(request, stream).await.map(|(socket, _)| socket)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_opened_used_and_read() {
    if !has_chromium() {
        return;
    }
    within(async {
        let (server, site) = (serve(ServerOptions::default()).await, Site::start().await);
        assert_eq!(server.get("/v1/browser").await.json(), json!({"state": "idle", "pages": []}));
        // Asking does not start it.
        assert_eq!(server.get("/v1/browser").await.json()["state"], "idle");
        let view = done(&server, "/v1/browser/navigate", json!({"url": format!("{}/shop", site.url)})).await;
        assert_eq!((&view["title"], &view["error"]), (&json!("Shop"), &Value::Null), "{view}");
        assert!(view["tree"].as_str().unwrap().contains("button 'Buy it'"), "{view}");
        assert!(site.was_asked("/shop"));
        let har = server.get("/v1/browser/har").await.json();
        let urls: Vec<&Value> =
            har["log"]["entries"].as_array().unwrap().iter().map(|entry| &entry["request"]["url"]).collect();
        assert!(urls.contains(&&json!(format!("{}/shop", site.url))), "{urls:?}");

        let view = done(&server, "/v1/browser/act", json!({"action": "click", "target": {"text": "buy"}})).await;
        assert_eq!((&view["title"], &view["error"]), (&json!("Bought"), &Value::Null), "{view}");
        let fill = json!({"action": "fill", "target": {"role": "textbox", "name": "Name"}, "text": "Ada"});
        let view = done(&server, "/v1/browser/act", fill).await;
        assert!(view["tree"].as_str().unwrap().contains("textbox 'Name' value='Ada'"), "{view}");
        let missing = json!({"action": "click", "target": {"text": "nothing of the kind"}});
        let view = done(&server, "/v1/browser/act", missing).await;
        assert!(view["error"].is_string(), "{view}");

        let status = server.get("/v1/browser").await.json();
        let page = json!({"id": status["pages"][0]["id"], "url": format!("{}/shop", site.url), "title": "Bought", "active": true});
        assert_eq!((&status["state"], &status["pages"]), (&json!("ready"), &json!([page])));
        assert_eq!(server.get("/v1/browser/page").await.json()["title"], "Bought");

        let markdown = server.get("/v1/browser/markdown").await;
        assert_eq!(markdown.header("content-type"), Some("text/markdown; charset=utf-8"));
        assert!(markdown.text().contains("Things"), "{}", markdown.text());
        let picture = server.post("/v1/browser/screenshot", "{}").await;
        assert_eq!(picture.header("content-type"), Some("image/png"));
        assert!(picture.body.starts_with(b"\x89PNG\r\n\x1a\n"));
        let paper = server.post("/v1/browser/pdf", r#"{"landscape": true}"#).await;
        assert_eq!(paper.header("content-type"), Some("application/pdf"));
        assert!(paper.body.starts_with(b"%PDF-"));

        let console = server.get("/v1/browser/console?since=0").await.json();
        assert_eq!(console["entries"][0]["text"], "loaded", "{console}");
        let next = format!("/v1/browser/console?since={}", console["next"]);
        assert_eq!(server.get(&next).await.json(), json!({"next": console["next"], "entries": []}));
        let network = server.get("/v1/browser/network").await.json();
        assert_eq!(network["entries"][0]["url"], json!(format!("{}/shop", site.url)), "{network}");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_and_local_storage_are_carried_to_another_browser() {
    if !has_chromium() {
        return;
    }
    within(async {
        let (server, other, site) =
            (serve(ServerOptions::default()).await, serve(ServerOptions::default()).await, Site::start().await);
        done(&server, "/v1/browser/navigate", json!({"url": site.url})).await;
        let state = server.get("/v1/browser/storage").await.json();
        assert_eq!(state["cookies"][0]["name"], "basket", "{state}");
        let kept = json!([{"origin": site.url, "localStorage": [{"name": "seen", "value": "yes"}]}]);
        assert_eq!(state["origins"], kept);
        let answer = put(&other, "/v1/browser/storage", state.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        done(&other, "/v1/browser/navigate", json!({"url": format!("{}/again", site.url)})).await;
        let carried = other.get("/v1/browser/storage").await.json();
        assert_eq!((&carried["cookies"][0]["value"], &carried["origins"]), (&json!("full"), &kept));
        // Nothing of what is partly wrong is taken.
        let wrong = json!({"cookies": [{"name": "a", "value": "b", "url": site.url}, {"name": 5}]});
        assert_eq!(error(&put(&other, "/v1/browser/storage", wrong).await), (400, json!("invalid_request")));
        assert_eq!(other.get("/v1/browser/storage").await.json(), carried);
        server.stop().await;
        other.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_is_told_and_starts_nothing() {
    within(async {
        let server = serve(ServerOptions::default()).await;
        for (method, path, body, status, code) in [
            ("POST", "/v1/browser/navigate", "{}", 400, "invalid_request"),
            ("POST", "/v1/browser/navigate", r#"{"url": 5}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/navigate", r#"{"url": "http://a", "colour": 1}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/navigate", r#"{"url": "http://a", "wait": "long"}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/act", r#"{"action": "dance"}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/act", r#"{"action": "click"}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/act", "[", 400, "invalid_request"),
            ("POST", "/v1/browser/screenshot", r#"{"full_page": 1}"#, 400, "invalid_request"),
            ("POST", "/v1/browser/pdf", r#"{"scale": "big"}"#, 400, "invalid_request"),
            ("PUT", "/v1/browser/storage", r#"{"cookies": {}}"#, 400, "invalid_request"),
            ("GET", "/v1/browser/console?since=-1", "", 400, "invalid_query"),
            ("GET", "/v1/browser/network?since=x", "", 400, "invalid_query"),
            ("GET", "/v1/browser/live", "", 426, "not_a_websocket"),
            ("GET", "/v1/browser/cdp", "", 426, "not_a_websocket"),
        ] {
            let answer = server.connect().await.request(request(method, path, body)).await;
            assert_eq!(error(&answer), (status, json!(code)), "{method} {path} {body}");
        }
        assert_eq!(server.get("/v1/browser").await.json()["state"], "idle");
        server.stop().await;

        let without = Server::start().await;
        for path in ["/v1/browser", "/v1/browser/page", "/v1/browser/live", "/v1/browser/cdp", "/v1/browser/view"] {
            assert_eq!(error(&without.get(path).await), (404, json!("no_browser")), "{path}");
        }
        without.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_make_no_sense_are_refused_as_such() {
    if !has_chromium() {
        return;
    }
    within(async {
        let server = serve(ServerOptions::default()).await;
        for (path, body) in [
            ("/v1/browser/act", r#"{"action": "click", "target": {}}"#),
            ("/v1/browser/act", r#"{"action": "click", "target": {"text": "a", "bid": "1"}}"#),
            ("/v1/browser/pdf", r#"{"scale": 9}"#),
        ] {
            assert_eq!(error(&server.post(path, body).await), (400, json!("invalid_request")), "{path} {body}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_there_is_no_browser() {
    within(async {
        let options = ServerOptions { session_key: Some(SessionKey::new(KEY)), ..ServerOptions::default() };
        let server = serve(options).await;
        for path in [
            "",
            "/page",
            "/markdown",
            "/har",
            "/console",
            "/network",
            "/storage",
            "/live",
            "/view",
            "/cdp",
            "/cdp/json/version",
            "/cdp/json/version/",
        ] {
            assert_eq!(server.get(&format!("/v1/browser{path}")).await.status, 403, "{path}");
        }
        for path in ["/start", "/navigate", "/act", "/screenshot", "/pdf", "/view", "/live"] {
            assert_eq!(server.post(&format!("/v1/browser{path}"), "{}").await.status, 403, "{path}");
        }
        for (path, protocols) in [
            ("/v1/browser/live", "gloveport.browser.v1"),
            ("/v1/browser/live", "gloveport.browser.v1, gloveport.view.eA"),
            ("/v1/browser/live", "gloveport.browser.v1, gloveport.view."),
            ("/v1/browser/cdp", "gloveport.key.eA"),
        ] {
            let refused = socket(&server, path, |request| {
                request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
            });
            let Err(Error::Http(answer)) = refused.await else { panic!("{path} {protocols}") };
            assert_eq!(answer.status(), 403, "{path} {protocols}");
        }
        let mut status = request("GET", "/v1/browser", "");
        status.headers_mut().insert("x-session-api-key", KEY.parse().unwrap());
        assert_eq!(server.connect().await.request(status).await.json()["state"], "idle");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_the_view_opens_the_page_to_a_window_and_its_key_opens_the_live_view_only() {
    within(async {
        let options = ServerOptions { session_key: Some(SessionKey::new(KEY)), ..ServerOptions::default() };
        let server = serve(options).await;
        let ask = async |path: &str, headers: &[(&'static str, &str)]| {
            let mut asked = request("GET", path, "");
            for (name, value) in headers {
                asked.headers_mut().insert(*name, value.parse().unwrap());
            }
            server.connect().await.request(asked).await
        };
        let plugins = ask("/v1/plugins", &[("x-session-api-key", KEY)]).await.json();
        let plugin = &plugins["plugins"][0];
        assert_eq!((&plugin["name"], &plugin["path"]), (&json!("browser"), &json!("/v1/browser/view")));
        let token = plugin["token"].as_str().unwrap();
        let welcome = ask(&format!("/v1/browser/view?tkn={token}"), &[("sec-fetch-site", "none")]).await;
        assert_eq!((welcome.status.as_u16(), welcome.header("location")), (303, Some("./view")));
        let cookie = welcome.header("set-cookie").unwrap();
        assert!(cookie.contains("; Path=/v1/browser/; HttpOnly; SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let window = [("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let page = ask("/v1/browser/view", &[&window[..], &[("cookie", cookie)]].concat()).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(page.header("content-security-policy").unwrap().ends_with("; sandbox allow-scripts"));
        let scripts = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
        let framed = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        for (what, headers, status) in [
            ("without a cookie", window.to_vec(), 403),
            ("by a script of a plugin's page", [&scripts[..], &[("cookie", cookie)]].concat(), 403),
            ("in a frame", [&framed[..], &[("cookie", cookie)]].concat(), 403),
            ("by a browser that says nothing", vec![("accept-language", "en"), ("cookie", cookie)], 403),
            ("with the session's key", vec![("x-session-api-key", KEY)], 200),
        ] {
            assert_eq!(ask("/v1/browser/view", &headers).await.status, status, "{what}");
        }
        // The cookie opens nothing else.
        for path in ["/v1/browser", "/v1/browser/page", "/v1/browser/cdp", "/v1/browser/live"] {
            assert_eq!(ask(path, &[("cookie", cookie)]).await.status, 403, "{path}");
        }
        let text = page.text();
        let protocols = text.split("data-protocols=\"").nth(1).unwrap().split('"').next().unwrap().replace(' ', ", ");
        for (path, status) in [("/v1/browser/cdp", 403), ("/v1/terminals/a/attach", 403), ("/v1/browser/live", 503)] {
            // Where there is Chromium the live view opens.
            let opened = socket(&server, path, |request| {
                request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
                request.headers_mut().insert("origin", "null".parse().unwrap());
            });
            match opened.await {
                Ok(_) => assert_eq!(path, "/v1/browser/live"),
                Err(Error::Http(answer)) => assert_eq!(answer.status(), status, "{path}"),
                Err(other) => panic!("{path}: {other}"),
            }
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_live_view_shows_the_page_and_takes_what_a_person_does() {
    if !has_chromium() {
        return;
    }
    within(async {
        let (server, site) = (serve(ServerOptions::default()).await, Site::start().await);
        let mut live = socket(&server, "/v1/browser/live", |_| {}).await.unwrap();
        let Some(Ok(Message::Text(first))) = live.next().await else { panic!("no beginning") };
        let shown: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(shown, json!({"url": "about:blank", "width": 1280, "height": 720}));
        let Some(Ok(Message::Binary(picture))) = live.next().await else { panic!("no picture") };
        assert!(picture.starts_with(b"\xff\xd8\xff"));
        let mut say = async |message: Value| live.send(Message::Text(message.to_string().into())).await.unwrap();
        say(json!({"type": "dance"})).await;
        say(json!({"type": "navigate", "url": format!("{}/seen", site.url)})).await;
        let (mut refused, mut arrived) = (false, false);
        while !(refused && arrived) {
            match live.next().await {
                Some(Ok(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    refused |= message["error"].is_string();
                    arrived |= message["url"] == json!(format!("{}/seen", site.url));
                }
                Some(Ok(_)) => {}
                end => panic!("{end:?}"),
            }
        }
        // A person clicks on the button; where it is the page knows.
        let view = server.get("/v1/browser/page").await.json();
        assert_eq!(view["title"], "Shop");
        let (x, y) = (40, 90);
        for kind in ["move", "down", "up"] {
            let message = json!({"type": "mouse", "kind": kind, "x": x, "y": y});
            live.send(Message::Text(message.to_string().into())).await.unwrap();
        }
        loop {
            let title = server.get("/v1/browser").await.json()["pages"][0]["title"].clone();
            if title == "Bought" {
                break;
            }
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_speak_the_devtools_protocol_each_for_itself() {
    if !has_chromium() {
        return;
    }
    within(async {
        let server = serve(ServerOptions::default()).await;
        for path in ["/v1/browser/cdp/json/version", "/v1/browser/cdp/json/version/"] {
            let version = server.get(path).await.json();
            assert_eq!(version["Protocol-Version"], "1.3");
            assert!(version["Browser"].as_str().unwrap().contains('/'), "{version}");
            assert_eq!(version["webSocketDebuggerUrl"], "ws://localhost/v1/browser/cdp");
        }
        let mut other = socket(&server, "/v1/browser/cdp", |_| {}).await.unwrap();
        let mut client = socket(&server, "/v1/browser/cdp", |_| {}).await.unwrap();
        let mut call = async |message: Value| {
            client.send(Message::Text(message.to_string().into())).await.unwrap();
            loop {
                let Some(Ok(Message::Text(text))) = client.next().await else { panic!("no answer to {message}") };
                let answer: Value = serde_json::from_str(&text).unwrap();
                if answer["id"] == message["id"] {
                    return answer;
                }
            }
        };
        let version = call(json!({"id": 1, "method": "Browser.getVersion"})).await;
        assert!(version["result"]["product"].is_string(), "{version}");
        let made = call(json!({"id": 2, "method": "Target.createTarget", "params": {"url": "about:blank"}})).await;
        let target = made["result"]["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        let attached = call(json!({"id": 3, "method": "Target.attachToTarget", "params": attach})).await;
        let session = attached["result"]["sessionId"].clone();
        let evaluate = json!({"expression": "6 * 7", "returnByValue": true});
        let message = json!({"id": 4, "method": "Runtime.evaluate", "params": evaluate, "sessionId": session});
        let value = call(message).await;
        assert_eq!((&value["result"]["result"]["value"], &value["sessionId"]), (&json!(42), &session), "{value}");
        let wrong = call(json!({"id": 5, "sessionId": session})).await;
        assert_eq!(wrong["error"]["code"], -32600);
        // The session of one client is none for another one.
        let stolen =
            json!({"id": 6, "method": "Runtime.evaluate", "params": {"expression": "1"}, "sessionId": session});
        other.send(Message::Text(stolen.to_string().into())).await.unwrap();
        let Some(Ok(Message::Text(refused))) = other.next().await else { panic!("no answer") };
        let refused: Value = serde_json::from_str(&refused).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(6), &json!(-32600)), "{refused}");
        other.send(Message::Text("no JSON".into())).await.unwrap();
        let Some(Ok(Message::Close(Some(frame)))) = other.next().await else { panic!("it goes on") };
        assert_eq!(u16::from(frame.code), 1008);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_open_use_and_read_pages() {
    if !has_chromium() {
        return;
    }
    within(async {
        let (server, site) = (serve(ServerOptions::default()).await, Site::start().await);
        let say = async |message: Value, session: Option<&str>| {
            let mut post = request("POST", "/mcp", message.to_string());
            let headers = post.headers_mut();
            headers.insert("content-type", "application/json".parse().unwrap());
            headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
            if let Some(session) = session {
                headers.insert("mcp-session-id", session.parse().unwrap());
                headers.insert("mcp-protocol-version", "2025-06-18".parse().unwrap());
            }
            server.connect().await.request(post).await
        };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let greeting = say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}), None).await;
        let session = greeting.header("mcp-session-id").unwrap().to_owned();
        say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), Some(&session)).await;
        let call = async |tool: &str, arguments: Value| {
            let params = json!({"name": tool, "arguments": arguments});
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let text = say(message, Some(&session)).await.text();
            let data =
                text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| data.contains("\"id\":1"));
            let message: Value = serde_json::from_str(data.unwrap_or(&text)).unwrap_or_else(|_| panic!("{text}"));
            message["result"].clone()
        };
        let opened = call("browser_open", json!({"url": site.url.strip_prefix("http://").unwrap()})).await;
        let text = opened["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{opened}"));
        assert!(text.starts_with(&format!("Shop\n{}/\n\nRootWebArea 'Shop'", site.url)), "{text}");
        let clicked = call("browser_act", json!({"action": "click", "target": "Buy it"})).await;
        assert_eq!(clicked["structuredContent"]["title"], "Bought", "{clicked}");
        let read = call("browser_read", json!({"format": "markdown"})).await;
        assert!(read["structuredContent"]["markdown"].as_str().unwrap().contains("Things"), "{read}");
        let seen = call("browser_read", json!({"format": "screenshot"})).await;
        assert_eq!(
            (&seen["content"][1]["type"], &seen["content"][1]["mimeType"]),
            (&json!("image"), &json!("image/png"))
        );
        server.stop().await;
    })
    .await;
}

//! The file viewer over real connections.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use crate::common::{Answer, Client, Server, request, within};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gloveport_documents::choose_program;
use gloveport_executor::ExecutorOptions;
use gloveport_server::{ServerOptions, SessionKey, viewer::Viewer};
use gloveport_sys::Identity;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

pub(crate) struct Running {
    pub(crate) server: Server,
    directory: TempDir,
    pub(crate) ticket: String,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::start_as(None).await
    }

    /// A server with a key, which nobody here has.
    async fn start_as(identity: Option<&Identity>) -> Self {
        Self::start_with(identity, Some(SessionKey::new("key of the session")), |options| options).await
    }

    pub(crate) async fn start_with(
        identity: Option<&Identity>,
        session_key: Option<SessionKey>,
        change: impl FnOnce(ExecutorOptions) -> ExecutorOptions,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url_file = directory.path().join("url");
        let test = std::env::current_exe().unwrap();
        choose_program(test.parent().unwrap().parent().unwrap().join("examples/server_document_reader"));
        let announced = Viewer::announce(20_000, &url_file).unwrap();
        let url = fs::read_to_string(url_file).unwrap();
        let ticket = url.strip_prefix("http://localhost:20000/viewer/").unwrap().to_owned();
        assert_eq!(ticket.len(), 32);
        let viewer = Some(announced.serve_as(identity));
        let server =
            Server::with_executor(ServerOptions { session_key, viewer, ..ServerOptions::default() }, change).await;
        Self { server, directory, ticket }
    }

    fn port(&self) -> u16 {
        self.server.address.port()
    }

    async fn get_as(&self, host: &str, path: &str) -> Answer {
        self.get_with(&[("host", host)], path).await
    }

    /// What `path` beneath the address answers.
    async fn get_with(&self, headers: &[(&'static str, &str)], path: &str) -> Answer {
        self.get_raw(headers, &format!("/viewer/{}{path}", self.ticket)).await
    }

    async fn get_raw(&self, headers: &[(&'static str, &str)], path: &str) -> Answer {
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(async move {
            let _end = connection.await;
        });
        let mut get = request("GET", path, Bytes::new());
        for (name, value) in headers {
            get.headers_mut().insert(*name, value.parse().unwrap());
        }
        Client { sender, driver }.request(get).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_as("localhost", path).await
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// A path as a part of a query.
pub(crate) fn encoded(path: &str) -> String {
    path.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "%{byte:02X}").unwrap();
        text
    })
}

/// A PDF with a page for each text.
fn pdf(texts: &[String]) -> Vec<u8> {
    let kids: Vec<String> = (0..texts.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let kids = kids.join(" ");
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", texts.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (page, text) in texts.iter().enumerate() {
        let content = format!("BT /F1 24 Tf 20 150 Td ({text}) Tj ET 1 0 0 rg 20 20 60 60 re f");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * page
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    gloveport_testing::pdf(&objects)
}

#[tokio::test]
async fn every_request_is_answered_with_its_status_and_its_whole_body() {
    within(async {
        let running = Running::start().await;
        let directory = running.directory.path().to_str().unwrap().to_owned();
        let text = running.write("notes.key", b"text");
        let strange = running.write("<b>&\"'.key", b"text");
        let fifo = running.directory.path().join("fifo.png");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        let unsupported = "Unsupported file extension: .key. Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif. Markdown \
            (.md), tables (.csv, .tsv, .xlsx), notebooks (.ipynb) and texts with a usual extension (.txt, .py, …) are shown as \
            well.";
        let escaped = strange.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        for (path, status, body) in [
            ("a.png".to_owned(), 400, "<h1>Error: Path must be absolute</h1><p>a.png</p>".to_owned()),
            ("<i>".to_owned(), 400, "<h1>Error: Path must be absolute</h1><p>&lt;i&gt;</p>".to_owned()),
            ("/no/a.png".to_owned(), 404, "<h1>Error: File not found</h1><p>/no/a.png</p>".to_owned()),
            (directory.clone(), 400, format!("<h1>Error: Path is a directory</h1><p>{directory}</p>")),
            (text.clone(), 500, format!("<h1>Error viewing file</h1><p>{text}</p><p>{unsupported}</p>")),
            (strange.clone(), 500, format!("<h1>Error viewing file</h1><p>{escaped}</p><p>{unsupported}</p>")),
            (
                fifo.to_str().unwrap().to_owned(),
                500,
                format!("<h1>Error viewing file</h1><p>{}</p><p>Invalid argument (os error 22)</p>", fifo.display()),
            ),
        ] {
            let found = running.get(&format!("/view?path={}", encoded(&path))).await;
            assert_eq!((found.status.as_u16(), found.text()), (status, body), "{path}");
            assert_eq!(found.header("content-type"), Some("text/html; charset=utf-8"));
        }
        for path in ["/viewer/".to_owned(), format!("/viewer/{}", running.ticket)] {
            let found = running.get_raw(&[("host", "localhost")], &path).await;
            assert_eq!(
                (found.status.as_u16(), found.json()),
                (200, json!({"status": "File viewer server is running"}))
            );
        }
        let found = running.get("/view").await;
        let missing = json!({"detail": "Invalid request parameters", "errors": "the query has no `path`"});
        assert_eq!((found.status.as_u16(), found.json()), (422, missing));
        for path in ["docs", "openapi.json", "a/b/c", "a/view/"] {
            let found = running.get_raw(&[("host", "localhost")], &format!("/viewer/{path}")).await;
            assert_eq!((found.status.as_u16(), found.json()), (404, json!({"detail": "Not Found"})), "{path}");
        }
        for path in ["/", "/docs", "/view", "/viewer", "/execute_action", "//viewer/", "/./viewer/", "/VIEWER/"] {
            let found = running.get_raw(&[("host", "localhost")], path).await;
            assert_eq!((found.status.as_u16(), found.json()), (403, json!({"detail": "Invalid API Key"})), "{path}");
        }
        let found = running.get_as("example.com", "/view?path=/etc/passwd").await;
        let denied = "<h1>Access Denied</h1><p>This endpoint is only accessible from localhost</p>";
        assert_eq!((found.status.as_u16(), found.text()), (403, denied.to_owned()));
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_image_is_embedded_with_its_name() {
    within(async {
        let running = Running::start().await;
        let noise = (0..500_000_u32).map(|number| number.to_le_bytes()[1]);
        let content: Vec<u8> = b"\xff\xd8\xff\xe0".iter().copied().chain(noise).collect();
        let path = running.write("a <b>.JPG", &content);
        let found = running.get(&format!("/view?path={}", encoded(&path))).await;
        assert_eq!(found.status, 200);
        let text = found.text();
        assert!(text.contains("<title>File Viewer - a &lt;b&gt;.JPG</title>"), "{}", &text[..500]);
        let image =
            format!("<img alt=\"a &lt;b&gt;.JPG\" src=\"data:image/jpeg;base64,{}\">", STANDARD.encode(&content));
        assert_eq!(text.matches(&image).count(), 1);
        assert_eq!(text.matches("<img").count(), 1);
        assert!(!text.contains("http:") && !text.contains("https:"), "nothing comes from elsewhere");
        let policy = found.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; img-src data:; script-src 'nonce-"), "{policy}");
        running.server.stop().await;
    })
    .await;
}

/// The pictures that a page draws, with the size of their canvases.
fn pictures(text: &str) -> Vec<(String, Vec<u8>)> {
    text.split("<canvas class=\"page\" ")
        .skip(1)
        .map(|rest| {
            let size = rest.split("></canvas>").next().unwrap().to_owned();
            let data = rest.split("draw(\"").nth(1).unwrap().split('"').nth(2).unwrap();
            (size, STANDARD.decode(data).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn a_pdf_is_drawn_page_by_page() {
    within(async {
        let running = Running::start().await;
        let file = pdf(&["Hello".to_owned(), "World".to_owned()]);
        let path = running.write("two.pdf", &file);
        let text = running.get(&format!("/view?path={path}")).await.text();
        assert!(text.contains("<title>File Viewer - two.pdf</title>"));
        assert!(text.contains(&STANDARD.encode(&file)), "the file itself is in the page");
        let pictures = pictures(&text);
        let sizes: Vec<&str> = pictures.iter().map(|(size, _)| size.as_str()).collect();
        // 300 by 200 points at scale 1.5.
        assert_eq!(sizes, ["id=\"page1\" width=\"450\" height=\"300\"", "id=\"page2\" width=\"450\" height=\"300\"",]);
        for (_, png) in &pictures {
            // Size in the head of a PNG.
            assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
            assert_eq!((&png[16..20], &png[20..24]), ([0, 0, 1, 194].as_slice(), [0, 0, 1, 44].as_slice()));
        }
        assert_ne!(pictures[0].1, pictures[1].1, "the pages have different texts");
        assert!(!text.contains("http:") && !text.contains("https:"), "nothing comes from elsewhere");
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_pdf_that_can_not_be_read_says_so_in_the_page() {
    within(async {
        let running = Running::start().await;
        for (name, content, reason) in [
            ("text.pdf", b"no pdf".to_vec(), "the file is not a PDF, or is damaged"),
            ("empty.pdf", Vec::new(), "the file is not a PDF, or is damaged"),
            ("pageless.pdf", pdf(&[]), "the file has no pages"),
        ] {
            let path = running.write(name, &content);
            let found = running.get(&format!("/view?path={path}")).await;
            let text = found.text();
            assert_eq!(found.status, 200, "{name}");
            assert!(text.contains(&format!("fail(\"{reason}\");")), "{name} {text}");
            assert!(text.contains("\"Error loading file: \"+message"), "{name}");
            let is_shown = text.contains("application/pdf;base64");
            assert_eq!(is_shown, name == "pageless.pdf", "what is not a PDF is not in the page");
        }
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn pages_beyond_the_bound_are_told() {
    within(async {
        let running = Running::start().await;
        let texts: Vec<String> = (0..203).map(|number| number.to_string()).collect();
        let path = running.write("long.pdf", &pdf(&texts));
        let text = running.get(&format!("/view?path={path}")).await.text();
        let drawn = pictures(&text).len();
        assert!(drawn <= 200);
        assert!(text.contains(&format!("<p>Only the first {drawn} of 203 pages are shown")), "{drawn}");
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_address_that_cannot_be_told_is_no_viewer_and_a_server_without_one_has_no_pages() {
    assert!(Viewer::announce(1, Path::new("/nowhere/url")).is_none());
    within(async {
        let server = Server::start().await;
        let found = server.get("/viewer/").await;
        assert_eq!((found.status.as_u16(), found.json()), (404, json!({"detail": "Not Found"})));
        server.stop().await;
    })
    .await;
}

/// What a page on this machine or elsewhere can make a browser send.
#[tokio::test]
async fn nobody_without_the_ticket_and_no_foreign_page_sees_a_file() {
    within(async {
        let running = Running::start().await;
        let path = running.write("secret.png", b"\x89PNG\r\n\x1a\nsecret");
        let (port, ticket) = (running.port(), running.ticket.clone());
        let own = format!("localhost:{port}");
        let view = format!("/view?path={}", encoded(&path));
        let good = format!("/viewer/{ticket}{view}");
        assert_eq!(running.get_raw(&[("host", &own)], &good).await.status, 200);
        for guess in ["0".repeat(32), ticket[..31].to_owned(), ticket.to_uppercase(), "%2e".to_owned()].map(|guess| format!("/viewer/{guess}{view}")).into_iter().chain([format!("/viewer{view}")]) {
            if guess == good {
                continue;
            }
            let found = running.get_raw(&[("host", &own)], &guess).await;
            let denied = "<h1>Access Denied</h1><p>The address of this viewer has a ticket; /tmp/oh-server-url has the whole address.</p>";
            assert_eq!((found.status.as_u16(), found.text().as_str()), (403, denied), "{guess}");
        }
        let local = format!("http://{own}");
        for (headers, status) in [
            (vec![("host", own.as_str()), ("sec-fetch-site", "none")], 200),
            (vec![("host", own.as_str()), ("sec-fetch-site", "same-origin"), ("origin", local.as_str())], 200),
            (vec![("host", own.as_str()), ("sec-fetch-site", "cross-site")], 403),
            (vec![("host", own.as_str()), ("sec-fetch-site", "same-site")], 403),
            (vec![("host", own.as_str()), ("origin", "https://example.org")], 403),
            (vec![("host", own.as_str()), ("origin", "null")], 403),
            (vec![("host", own.as_str()), ("origin", "http://localhost:1")], 403),
            (vec![("host", "rebound.example.org")], 403),
            (vec![("host", "rebound.example.org"), ("origin", "http://rebound.example.org")], 403),
            (vec![("host", "127.0.0.1.example.org")], 403),
        ] {
            for path in [good.as_str(), "/viewer/"] {
                let found = running.get_raw(&headers, path).await;
                assert_eq!(found.status, status, "{headers:?} {path}");
                assert!(status == 200 || !found.text().contains(&STANDARD.encode("secret")));
                for (name, value) in [
                    ("x-content-type-options", "nosniff"),
                    ("referrer-policy", "no-referrer"),
                    ("cross-origin-resource-policy", "same-origin"),
                    ("cache-control", "no-store"),
                    ("x-frame-options", "DENY"),
                ] {
                    assert_eq!(found.header(name), Some(value), "{path} {name}");
                }
                let policy = found.header("content-security-policy").unwrap();
                assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"), "{policy}");
            }
        }
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn links_show_nothing_of_processes_and_no_secrets() {
    within(async {
        let running = Running::start().await;
        let place = running.directory.path();
        let secret = running.write("notes.key", b"secret");
        let environment = format!("/proc/{}/environ", std::process::id());
        for (number, target) in
            [environment.as_str(), "/proc/self/environ", "/etc/passwd", "/proc/self/mem", &secret, "/dev/zero"]
                .into_iter()
                .enumerate()
        {
            for extension in ["png", "pdf", "gif"] {
                let link = place.join(format!("{number}.{extension}"));
                std::os::unix::fs::symlink(target, &link).unwrap();
                let found = running.get(&format!("/view?path={}", link.display())).await;
                let text = found.text();
                assert_eq!(found.status, 500, "{target} {text}");
                assert!(text.starts_with("<h1>Error viewing file</h1>") && !text.contains("base64"), "{target} {text}");
            }
        }
        // Under a name of its own, it is no image.
        for name in ["hard.png", "hard.pdf"] {
            fs::hard_link(&secret, place.join(name)).unwrap();
            let text = running.get(&format!("/view?path={}", place.join(name).display())).await.text();
            assert!(!text.contains(&STANDARD.encode("secret")), "{text}");
        }
        running.server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn only_what_the_user_of_the_tools_may_read_is_shown_and_only_that_user_has_the_address() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    within(async {
        let user = Identity { uid: 65_534, gid: 65_534, groups: vec![65_534] };
        let running = Running::start_as(Some(&user)).await;
        fs::set_permissions(running.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let address = fs::metadata(running.directory.path().join("url")).unwrap();
        assert_eq!((address.uid(), address.gid(), address.mode() & 0o777), (65_534, 65_534, 0o600));
        let image = b"\x89PNG\r\n\x1a\nsecret";
        let (open, closed) = (running.write("open.png", image), running.write("closed.png", image));
        let document = running.write("closed.pdf", &pdf(&["Hello".to_owned()]));
        for path in [&closed, &document] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        std::os::unix::fs::symlink(&closed, running.directory.path().join("link.png")).unwrap();
        assert_eq!(running.get(&format!("/view?path={open}")).await.status, 200);
        let link = running.directory.path().join("link.png").display().to_string();
        for path in [&closed, &document, &link] {
            let found = running.get(&format!("/view?path={path}")).await;
            let refused = format!("<h1>Error viewing file</h1><p>{path}</p><p>Permission denied (os error 13)</p>");
            assert_eq!((found.status.as_u16(), found.text()), (500, refused));
        }
        // A document is drawn with those rights, too.
        let text =
            running.get(&format!("/view?path={}", running.write("two.pdf", &pdf(&["Hello".to_owned()])))).await.text();
        assert_eq!(pictures(&text).len(), 1, "{text}");
        running.server.stop().await;
    })
    .await;
}

/// A PDF of one page with forms that draw each other.
fn hostile(forms: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /XObject << /F 5 0 R >> >> /Contents 4 0 R >>"
            .to_owned(),
        "<< /Length 5 >>\nstream\n/F Do\nendstream".to_owned(),
    ];
    for (number, content) in (5..).zip(forms) {
        let next = if forms.len() == 1 { number } else { number + 1 };
        objects.push(format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 300 300] /Resources << /XObject << /F {next} 0 R >> >> /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in (1..).zip(&objects) {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        write!(file, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let (start, count) = (file.len(), objects.len() + 1);
    write!(file, "xref\n0 {count}\n0000000000 65535 f \n{table}trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n")
        .unwrap();
    file.into_bytes()
}

fn readers() -> usize {
    let own = std::process::id().to_string();
    let found = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)) == Some(own.as_str())
            && command.contains("read-document")
    });
    found.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_pdf_costs_the_viewer_nothing_and_its_reader_leaves_with_the_client() {
    within(async {
        let running = Running::start().await;
        let path = running.write("self.pdf", &hostile(&["/F Do".to_owned()]));
        let text = running.get(&format!("/view?path={path}")).await.text();
        assert!(text.ends_with("</div></body></html>\n"), "{text}");
        let mut forms = vec!["/F Do ".repeat(10); 10];
        forms.push("0 0 1 1 re f".to_owned());
        let path = running.write("ten.pdf", &hostile(&forms));
        let before = resident();
        // Two clients that leave while their document is drawn.
        for _ in 0..2 {
            let view = format!("/view?path={path}");
            tokio::select! {
                found = running.get(&view) => panic!("{}", found.text()),
                () = async { while readers() == 0 { tokio::task::yield_now().await } } => {}
            }
            while readers() > 0 {
                tokio::task::yield_now().await;
            }
        }
        assert!(resident() < before + 64 * 1024 * 1024, "{} {before}", resident());
        assert_eq!(running.get("").await.status, 200);
        running.server.stop().await;
    })
    .await;
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

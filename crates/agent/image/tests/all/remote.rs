//! A build service, played by a small server that answers as the published interface says.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    io::Read as _,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_image::{BuildRequest, ImageBuilder as _, ImageError, Lookup, Progress, RemoteBuilder, RemoteTimes};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A request: its first line, its head, its body.
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    head: String,
    body: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// A service that gives these answers, one after the other, and the last one again and again.
async fn service(answers: &'static [(u16, &'static str)]) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let log = Log::default();
    let seen = Arc::clone(&log);
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            let (status, text) = answers[number.min(answers.len() - 1)];
            answer(stream, status, text, &seen).await;
        }
    });
    (url, log)
}

async fn answer(mut stream: TcpStream, status: u16, text: &str, log: &Log) {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return;
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let line = String::from_utf8_lossy(&bytes).lines().next().unwrap().to_owned();
    log.lock().unwrap().push(Seen { line, head, body: bytes[end..].to_vec() });
    if status == 0 {
        // An answer that never comes.
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

fn times() -> RemoteTimes {
    let short = Duration::from_millis(20);
    RemoteTimes {
        build: Duration::from_secs(20),
        request: Duration::from_secs(10),
        upload: Duration::from_secs(10),
        poll: short,
        retry: short,
    }
}

fn builder(url: &str, times: RemoteTimes) -> RemoteBuilder {
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    RemoteBuilder::new(http, url, "the key", times).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Dockerfile"), "FROM scratch\n").unwrap();
    std::fs::create_dir(folder.path().join("code")).unwrap();
    std::fs::write(folder.path().join("code/program"), vec![7; 300_000]).unwrap();
    folder
}

async fn build(builder: &RemoteBuilder, folder: &Path) -> Result<String, ImageError> {
    let names = ["r/x:source".to_owned(), "r/x:lock".into(), "r/x:versioned".into()];
    let request = BuildRequest { folder, names: &names, platforms: &[], extra_arguments: &[] };
    builder.build(&request, &Progress::silent()).await
}

fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
}

#[tokio::test]
async fn the_folder_and_the_names_travel_as_a_form() {
    let (url, log) = service(&[
        (200, r#"{"build_id": "b 1"}"#),
        (200, r#"{"status": "QUEUED"}"#),
        (200, r#"{"status": "WORKING"}"#),
        (200, r#"{"status": "SUCCESS", "image": "elsewhere/x:1"}"#),
    ])
    .await;
    assert_eq!(build(&builder(&url, times()), folder().path()).await.unwrap(), "elsewhere/x:1");
    let status = "GET /build_status?build_id=b+1 HTTP/1.1";
    assert_eq!(lines(&log), ["POST /build HTTP/1.1", status, status, status]);
    let seen = log.lock().unwrap()[0].clone();
    assert!(seen.head.contains("x-api-key: the key\r\n"), "{}", seen.head);
    let text = String::from_utf8(seen.body).unwrap();
    let boundary = seen.head.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    let (first, last) = (parts[1], parts[5]);
    assert_eq!((parts.len(), parts[0], last), (6, "", "--\r\n"));
    for (part, expected) in parts[2..5].iter().zip([
        "\r\nContent-Disposition: form-data; name=\"target_image\"\r\n\r\nr/x:source\r\n",
        "\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\nr/x:lock\r\n",
        "\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\nr/x:versioned\r\n",
    ]) {
        assert_eq!(*part, expected);
    }
    let (head, body) = first.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("name=\"context\"; filename=\"context.tar.gz\""), "{head}");
    let packed = STANDARD.decode(body.trim_end()).unwrap();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
    let mut archive = tar::Archive::new(plain.as_slice());
    let names: Vec<String> =
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
    let names: Vec<&str> = names.iter().map(|name| name.trim_start_matches("./").trim_end_matches('/')).collect();
    assert_eq!(names, [".", "Dockerfile", "code", "code/program"]);
}

#[tokio::test]
async fn a_busy_service_is_asked_again() {
    let (url, log) = service(&[
        (429, ""),
        (429, ""),
        (429, ""),
        (200, r#"{"build_id": "1"}"#),
        (429, ""),
        (200, r#"{"status": "SUCCESS"}"#),
    ])
    .await;
    assert_eq!(build(&builder(&url, times()), folder().path()).await.unwrap(), "r/x:source");
    assert_eq!(lines(&log).len(), 6);
    let bodies: Vec<usize> = log.lock().unwrap()[..4].iter().map(|seen| seen.body.len()).collect();
    assert!(bodies[0] > 1000 && bodies.iter().all(|length| *length == bodies[0]), "{bodies:?}");

    let (url, log) = service(&[(429, "")]).await;
    let error = builder(&url, times()).image_exists("x", Lookup::Here, &Progress::silent()).await.unwrap_err();
    assert!(error.to_string().contains("429"), "{error}");
    assert_eq!(lines(&log).len(), 3);
}

#[tokio::test]
async fn a_build_that_fails_says_why() {
    for (answer, expected) in [
        (r#"{"status": "FAILURE", "error": "no space"}"#, "no space"),
        (r#"{"status": "EXPIRED"}"#, "Build failed with status: EXPIRED. Build ID: 7"),
        (r#"{"status": "CANCELLED", "error": ""}"#, "Build failed with status: CANCELLED. Build ID: 7"),
        (r#"{"no": "status"}"#, "cannot be understood"),
    ] {
        let answers = Box::leak(Box::new([(200, r#"{"build_id": "7"}"#), (200, answer)]));
        let (url, _log) = service(answers).await;
        let error = build(&builder(&url, times()), folder().path()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let (url, _log) = service(&[(403, r#"{"detail": "Invalid API key"}"#)]).await;
    let error = build(&builder(&url, times()), folder().path()).await.unwrap_err().to_string();
    assert!(error.contains("Invalid API key (status 403)") && !error.contains("the key"), "{error}");
}

#[tokio::test]
async fn timed_a_build_that_never_ends_is_given_up() {
    let (url, _log) = service(&[(200, r#"{"build_id": "7"}"#), (200, r#"{"status": "WORKING"}"#)]).await;
    let short = RemoteTimes { build: Duration::from_millis(400), ..times() };
    let began = Instant::now();
    let error = build(&builder(&url, short), folder().path()).await.unwrap_err();
    assert!(matches!(error, ImageError::TimedOut { .. }) && began.elapsed() < Duration::from_secs(5), "{error}");
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_given_up() {
    let (url, _log) = service(&[(0, "")]).await;
    let short = RemoteTimes { request: Duration::from_millis(200), ..times() };
    let error = builder(&url, short).repository().await.unwrap_err();
    assert!(matches!(error, ImageError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn the_service_tells_its_repository_and_its_images() {
    let (url, log) = service(&[
        (200, r#"{"registry_prefix": "registry.example/team/"}"#),
        (200, r#"{"exists": true, "image": {"upload_time": "now", "image_size_bytes": 5}}"#),
        (200, r#"{"exists": false}"#),
        (500, "broken"),
    ])
    .await;
    let builder = builder(&url, times());
    assert_eq!(builder.repository().await.unwrap(), "registry.example/team/runtime");
    let silent = Progress::silent();
    assert!(builder.image_exists("a/b:c", Lookup::Here, &silent).await.unwrap());
    assert!(!builder.image_exists("a/b:c", Lookup::Registry, &silent).await.unwrap());
    let error = builder.image_exists("a/b:c", Lookup::Here, &silent).await.unwrap_err().to_string();
    assert!(error.contains("broken (status 500)"), "{error}");
    assert_eq!(lines(&log)[..2], ["GET /registry_prefix HTTP/1.1", "GET /image_exists?image=a%2Fb%3Ac HTTP/1.1"]);
}

#[tokio::test]
async fn what_the_service_would_not_be_told_is_refused() {
    let (folder, names) = (folder(), ["r/x:1".to_owned()]);
    let platforms = ["linux/arm64".parse().unwrap()];
    let request = BuildRequest { folder: folder.path(), names: &names, platforms: &platforms, extra_arguments: &[] };
    let builder = builder("http://127.0.0.1:9", times());
    let error = builder.build(&request, &Progress::silent()).await.unwrap_err();
    assert!(matches!(error, ImageError::Unsupported { .. }), "{error}");
    assert!(RemoteBuilder::new(reqwest::Client::new(), "http://x", "a\nb", times()).is_err());
}

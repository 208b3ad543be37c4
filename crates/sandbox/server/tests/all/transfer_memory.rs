//! What transfers cost, in a process where nothing else runs.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::fs;

use crate::common::{Server, within};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const SIZE: u64 = 300_000_000;
const FORM: &str = "multipart/form-data; boundary=limit";

/// Sends a request whose body is made of `parts`, and `SIZE` bytes behind the first of them.
async fn send(server: &Server, head: &str, parts: [&[u8]; 2]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let length = parts[0].len() as u64 + SIZE + parts[1].len() as u64;
    stream.write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(parts[0]).await.unwrap();
    let piece = vec![b'x'; 1_000_000];
    for _ in 0..SIZE / 1_000_000 {
        stream.write_all(&piece).await.unwrap();
    }
    stream.write_all(parts[1]).await.unwrap();
    stream
}

async fn is_ok(mut stream: TcpStream) {
    let mut answer = [0; 1000];
    let length = stream.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer[..length]));
}

/// Reads an answer to its end, and counts its bytes.
async fn length_of(server: &Server, path: &str) -> u64 {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut buffer = vec![0; 1_000_000];
    let mut total = 0;
    loop {
        let length = stream.read(&mut buffer).await.unwrap();
        if length == 0 {
            return total;
        }
        total += length as u64;
    }
}

/// The most memory that this process had at once since it was asked before, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kilobytes * 1024
}

#[tokio::test]
async fn files_of_any_size_cost_little_memory() {
    within(async {
        let server = Server::start().await;
        let root = server.directory.path();
        let path = root.display();
        let head =
            format!("POST /upload_file?destination={path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {FORM}\r\n");
        let part = |name: &str| {
            format!("--limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
                .into_bytes()
        };
        peak();
        let before = peak();
        let mut costs = Vec::new();
        is_ok(send(&server, &head, [&part("large"), b"\r\n--limit--\r\n"]).await).await;
        assert_eq!(fs::metadata(root.join("large")).unwrap().len(), SIZE);
        costs.push(("upload", peak()));

        let received = length_of(&server, &format!("/download_files?path={path}")).await;
        assert!(received > SIZE && received < SIZE + 2000, "{received}");
        costs.push(("download", peak()));

        let received = length_of(&server, &format!("/v1/files/archive?path={path}")).await;
        assert!(received > SIZE, "{received}");
        costs.push(("tar out", peak()));

        // A stream with one large file, without its end.
        let mut header = tar::Header::new_gnu();
        header.set_path("again").unwrap();
        header.set_size(SIZE);
        header.set_mode(0o644);
        header.set_cksum();
        let end = vec![0; 1024 + 512 - usize::try_from(SIZE % 512).unwrap()];
        let head = format!("PUT /v1/files/archive?path={path} HTTP/1.1\r\nhost: localhost\r\n");
        is_ok(send(&server, &head, [header.as_bytes(), &end]).await).await;
        assert_eq!(fs::metadata(root.join("again")).unwrap().len(), SIZE);
        costs.push(("tar in", peak()));
        for (what, cost) in costs {
            assert!(cost.saturating_sub(before) < 64_000_000, "{what}: {before} {cost}");
        }
        server.stop().await;
    })
    .await;
}

//! A server of small pages on the loopback.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Pages by path: further headers, and the body. One with the header `X-Unfinished` lacks its end as long as somebody waits.
pub(crate) type Pages = &'static [(&'static str, &'static str, &'static str)];

/// A server.
pub(crate) struct Site {
    pub(crate) port: u16,
    /// How many have come.
    pub(crate) connections: watch::Receiver<usize>,
    /// What was asked for, with all headers.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn of(pages: Pages) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, connections) = watch::channel(0);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                tokio::spawn(serve(stream, pages, Arc::clone(&heads)));
            }
        });
        Self { port, connections, requests, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn serve(mut stream: TcpStream, pages: Pages, requests: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65_536 {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    let page = pages.iter().find(|(known, ..)| *known == path);
    let answer = match page {
        Some((_, headers, body)) => {
            let status = if headers.contains("Location:") { "302 Found" } else { "200 OK" };
            let kind =
                if headers.contains("Content-Type:") { "" } else { "Content-Type: text/html; charset=utf-8\r\n" };
            let length = body.len() + usize::from(headers.contains("X-Unfinished"));
            format!("HTTP/1.1 {status}\r\n{kind}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        }
        None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    };
    requests.lock().unwrap().push(head);
    // A browser may go away in the middle.
    if stream.write_all(answer.as_bytes()).await.is_ok() && answer.contains("X-Unfinished") {
        let _gone = stream.read_u8().await;
    }
}

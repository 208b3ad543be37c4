//! Secrets at the edge, in answers.

use std::io::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    soon,
    tls::{
        BOTH, Body, Gate, H1, H2, OTHER_VALUE, PLACEHOLDER, Seen, TlsOrigin, VALUE, World, all_of, body_of_frames,
        empty, full,
    },
};

const COMBINATIONS: [(&[&str], &[&str]); 4] = [(H1, H1), (H1, H2), (H2, H1), (H2, H2)];

fn stars(count: usize) -> String {
    "*".repeat(count)
}

#[tokio::test]
async fn values_are_overwritten_in_headers_and_bodies_in_all_spellings() {
    let world = World::new();
    let credentials = STANDARD.encode(format!("me:{VALUE}"));
    for (inside, outside) in COMBINATIONS {
        let sent = credentials.clone();
        let origin = TlsOrigin::start(&world, outside, move |_| {
            let json = serde_json::json!({ "token": VALUE, "other": OTHER_VALUE });
            let encoded = "s3cr%22t%2Fvalue%2B1 s3cr%22t%2fvalue%2b1 s3cr%22t/value%2B1 s3cr\\\"t\\/value+1";
            let body = format!("{VALUE}|{json}|{encoded}|{sent}|end {}", &VALUE[..5]);
            let answer = Response::builder().header("x-token", format!("<{VALUE}>")).header("x-other", OTHER_VALUE);
            answer.header("content-length", body.len()).body(full(body)).unwrap()
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let auth = format!("Basic {}", STANDARD.encode(format!("me:{PLACEHOLDER}")));
        let (head, body) = all_of(client.send(Request::get("/").header("authorization", auth), empty()).await).await;
        assert_eq!(head.headers["x-token"], format!("<{}>", stars(VALUE.len())).as_str(), "{inside:?} {outside:?}");
        assert_eq!(head.headers["x-other"], OTHER_VALUE);
        assert_eq!(head.headers["content-length"], body.len().to_string().as_str());
        let json = format!("{{\"token\":\"{}\",\"other\":\"{OTHER_VALUE}\"}}", stars(VALUE.len() + 1));
        let encoded = [VALUE.len() + 6, VALUE.len() + 6, VALUE.len() + 4, VALUE.len() + 2].map(stars).join(" ");
        let token = credentials.trim_end_matches('=');
        let token = format!("{}{}", stars(token.len()), &credentials[token.len()..]);
        assert_eq!(body, format!("{}|{json}|{encoded}|{token}|end {}", stars(VALUE.len()), &VALUE[..5]));
    }
}

#[tokio::test]
async fn values_are_overwritten_across_frames_and_nothing_else_waits() {
    let world = World::new();
    for (inside, outside) in [(H1, H1), (H2, H2)] {
        let (answers, bodies) = std::sync::mpsc::channel::<Body>();
        let bodies = std::sync::Mutex::new(bodies);
        let origin =
            TlsOrigin::start(&world, outside, move |_| Response::new(bodies.lock().unwrap().recv().unwrap())).await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        for split in 0..=VALUE.len() {
            let (frames, body) = body_of_frames();
            answers.send(body).unwrap();
            let mut body = client.send(Request::get("/"), empty()).await.into_body();
            let data = |text: &str| Frame::data(Bytes::copy_from_slice(text.as_bytes()));
            let mut seen = String::new();
            let (first, second) = VALUE.split_at(split);
            // The first is read before the second is sent, so that they are two frames.
            for (sent, length) in [("before ", 7), (first, 7 + split % VALUE.len()), (second, 7 + VALUE.len())] {
                frames.send(data(sent)).await.unwrap();
                // The beginning of a value waits, and nothing else does.
                let length = if sent == first && split > 0 && split < VALUE.len() { 7 } else { length };
                while seen.len() < length {
                    let frame = soon("a frame", body.frame()).await.unwrap().unwrap();
                    seen.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
                }
            }
            drop(frames);
            let rest = soon("the end", body.collect()).await.unwrap().to_bytes();
            assert_eq!(rest, "");
            assert_eq!(seen, format!("before {}", stars(VALUE.len())), "{split}");
        }
    }
}

#[tokio::test]
async fn the_beginning_of_a_value_at_the_end_of_a_body_comes_out() {
    let world = World::new();
    let origin = TlsOrigin::start(&world, BOTH, |_| Response::new(full("ends with s3cr\"t"))).await;
    let gate = Gate::start(&world, origin.port).await;
    for versions in [H1, H2] {
        let mut client = gate.client(&format!("api.test:{}", origin.port), versions).await;
        assert_eq!(client.get("/").await.1, "ends with s3cr\"t");
        assert_eq!(client.get("/").await.1, "ends with s3cr\"t");
    }
}

#[tokio::test]
async fn compressed_answers_are_decompressed_and_unknown_ones_refused() {
    let world = World::new();
    let compressed = |seen: &Seen| {
        let text = format!("{VALUE} and {}", "more ".repeat(50_000));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text.as_bytes()).unwrap();
        let (coding, body) = match seen.uri.as_str() {
            "/gzip" => ("gzip", gzip),
            "/deflate" => ("deflate", zlib.finish().unwrap()),
            "/short" => ("gzip", gzip[..gzip.len() / 2].to_vec()),
            "/nothing" => ("gzip", Vec::new()),
            "/head" => return Response::builder().header("content-encoding", "gzip").body(empty()).unwrap(),
            other => (other.trim_start_matches('/'), text.into_bytes()),
        };
        Response::builder()
            .header("content-encoding", coding)
            .header("content-length", body.len())
            .body(full(body))
            .unwrap()
    };
    for (inside, outside) in COMBINATIONS {
        let origin = TlsOrigin::start(&world, outside, compressed).await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        for path in ["/gzip", "/deflate"] {
            let (head, body) = client.get(path).await;
            assert!(body == format!("{} and {}", stars(VALUE.len()), "more ".repeat(50_000)), "{path}");
            assert!(!head.headers.contains_key("content-encoding"), "{path}");
            assert!(!head.headers.contains_key("content-length"), "{path}");
        }
        for path in ["/br", "/zstd", "/gzip,%20br"] {
            let (head, body) = client.get(path).await;
            assert_eq!(head.status, 502, "{path}");
            assert!(body.starts_with("gloveport: ") && body.contains("is encoded"), "{body}");
            assert_eq!(head.headers["proxy-status"], "gloveport; error=http_response_content_coding");
        }
        assert_eq!(client.get("/nothing").await.1, "");
        let response = client.send(Request::head("/head"), empty()).await;
        assert_eq!(all_of(response).await.1, "");
        // Its end may come before its head is read.
        let broken = client.begin(Request::get("/short").body(empty()).unwrap());
        if let Ok(broken) = soon("the answer", broken).await {
            assert!(soon("the end", broken.into_body().collect()).await.is_err(), "half of a body was taken for all");
        }
    }
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let origin = TlsOrigin::start(&world, outside, |seen| {
            let answer = Response::builder().header("x-token", VALUE);
            match seen.uri.as_str() {
                "/204" => answer.status(204).body(empty()).unwrap(),
                "/304" => answer.status(304).header("content-encoding", "br").body(empty()).unwrap(),
                _ if seen.method == http::Method::HEAD => answer.header("content-length", 12345).body(empty()).unwrap(),
                _ => answer.body(empty()).unwrap(),
            }
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        for (method, path, status, length) in [
            ("GET", "/204", 204, None),
            ("GET", "/304", 304, None),
            ("HEAD", "/", 200, Some("12345")),
            ("GET", "/", 200, Some("0")),
        ] {
            let response = client.send(Request::builder().method(method).uri(path), empty()).await;
            let (head, body) = all_of(response).await;
            assert_eq!((head.status.as_u16(), body.as_str()), (status, ""), "{method} {path} {inside:?} {outside:?}");
            assert_eq!(head.headers["x-token"], stars(VALUE.len()).as_str());
            let found = head.headers.get("content-length").map(|value| value.to_str().unwrap());
            // HTTP/2 does not need it.
            let length = if inside == H2 && length == Some("0") { found } else { length };
            assert_eq!(found, length, "{method} {path} {inside:?} {outside:?}");
        }
    }
}

#[tokio::test]
async fn trailers_pass_both_ways_and_are_overwritten_in_answers() {
    let world = World::new();
    for (inside, outside) in COMBINATIONS {
        let mut origin = TlsOrigin::streaming(&world, outside, |request, tell| {
            Box::pin(async move {
                let (parts, body) = request.into_parts();
                let collected = body.collect().await.unwrap();
                let headers = collected.trailers().cloned().unwrap_or_default();
                let te = parts.headers.get("te").map_or("", |te| te.to_str().unwrap()).to_owned();
                let (version, method, body) = (parts.version, parts.method, collected.to_bytes());
                tell.send(Seen { version, method, uri: te, headers, body }).ok();
                let (frames, body) = body_of_frames();
                tokio::spawn(async move {
                    frames.send(Frame::data(Bytes::from_static(b"body s3cr"))).await.ok();
                    let trailers: HeaderMap =
                        [("grpc-status".parse().unwrap(), VALUE.parse().unwrap())].into_iter().collect();
                    frames.send(Frame::trailers(trailers)).await.ok();
                });
                Response::builder().header("trailer", "grpc-status").body(body).unwrap()
            })
        })
        .await;
        let gate = Gate::start(&world, origin.port).await;
        let mut client = gate.client(&format!("api.test:{}", origin.port), inside).await;
        let (frames, body) = body_of_frames();
        tokio::spawn(async move {
            frames.send(Frame::data(Bytes::from_static(b"question"))).await.ok();
            let trailers: HeaderMap = [("x-sum".parse().unwrap(), PLACEHOLDER.parse().unwrap())].into_iter().collect();
            frames.send(Frame::trailers(trailers)).await.ok();
        });
        let request = Request::post("/").header("te", "trailers").header("trailer", "x-sum");
        let answer = soon("the answer", client.send(request, body).await.into_body().collect()).await.unwrap();
        let seen = origin.seen().await;
        // A value does not go out in trailers, as it does not in bodies.
        assert_eq!((seen.header("x-sum"), &seen.body[..]), (PLACEHOLDER, &b"question"[..]), "{inside:?} {outside:?}");
        assert_eq!(seen.uri, "trailers", "{inside:?} {outside:?}");
        assert_eq!(answer.trailers().unwrap()["grpc-status"], stars(VALUE.len()).as_str());
        assert_eq!(answer.to_bytes(), "body s3cr");
    }
}

/// A server of HTTP/1.1 that answers each head with this text.
async fn answering(world: &World, text: String) -> TlsOrigin {
    TlsOrigin::raw(world, H1, move |mut stream, _| {
        let text = text.clone();
        Box::pin(async move {
            let mut head = [0; 4096];
            while stream.read(&mut head).await.unwrap_or(0) > 0 {
                stream.write_all(text.as_bytes()).await.ok();
                stream.flush().await.ok();
                if text.contains("HTTP/1.0") {
                    break;
                }
            }
            stream.shutdown().await.ok();
        })
    })
    .await
}

#[tokio::test]
async fn answers_of_old_and_odd_servers_are_covered_too() {
    let world = World::new();
    let length = VALUE.len();
    for (text, status, body) in [
        (
            format!("HTTP/1.1 400 no {VALUE}\r\nContent-Length: 2\r\n\r\nno"),
            "HTTP/1.1 400 no **************\r\n",
            "no".to_owned(),
        ),
        (
            format!("HTTP/1.0 200 OK\r\n\r\nuntil the end {VALUE}"),
            "HTTP/1.1 200 OK\r\n",
            format!("until the end {}", stars(length)),
        ),
        (
            format!(
                "HTTP/1.1 103 Early Hints\r\nLink: {VALUE}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{VALUE}"
            ),
            "HTTP/1.1 200 OK\r\n",
            stars(length),
        ),
        (format!("HTTP/1.1 200 OK\r\nX-A: {VALUE}\r\nContent-Length: 0\r\n\r\n"), "HTTP/1.1 200 OK\r\n", String::new()),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "HTTP/1.1 502 Bad Gateway\r\n",
            "(`gzip, chunked`)".to_owned(),
        ),
        (
            "HTTP/1.1 101 Other\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n".to_owned(),
            "HTTP/1.1 502 Bad Gateway\r\n",
            "not asked for".to_owned(),
        ),
        (format!("SSH-2.0-{VALUE}\r\n"), "HTTP/1.1 502 Bad Gateway\r\n", "did not answer the request".to_owned()),
    ] {
        let origin = answering(&world, text).await;
        let gate = Gate::start(&world, origin.port).await;
        let target = format!("api.test:{}", origin.port);
        let mut stream = gate.connect(&target, H1).await;
        let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon("the answer", stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(status) && answer.contains(&body), "{answer}");
        assert!(!answer.contains(VALUE), "{answer}");
    }
}

//! The ports of programs in sandboxes.

use std::net::{Ipv4Addr, SocketAddr};

use axum::{
    body::Body,
    http::{Request, StatusCode, header::HOST, request::Parts},
    response::Response,
};
use hyper::{client::conn::http1, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::answers::refusal;

/// Passes a request to a port of this machine, and its answer back as it comes; and what follows, where that is a WebSocket.
pub(crate) async fn pass(mut parts: Parts, port: u16, path: &str, body: Body) -> Response {
    let from_client = parts.extensions.remove::<OnUpgrade>();
    match ask(parts, port, path, body).await {
        Ok(mut answer) => {
            let from_program = (answer.status() == StatusCode::SWITCHING_PROTOCOLS)
                .then(|| answer.extensions_mut().remove::<OnUpgrade>())
                .flatten();
            if let Some((client, program)) = from_client.zip(from_program) {
                // It ends with either of the two connections.
                tokio::spawn(async move {
                    let (Ok(client), Ok(program)) = tokio::join!(client, program) else { return };
                    let (mut client, mut program) = (TokioIo::new(client), TokioIo::new(program));
                    let _has_ended = tokio::io::copy_bidirectional(&mut client, &mut program).await;
                });
            }
            answer
        }
        Err(error) => refusal(502, &format!("no program of the sandbox answers on port {port}: {error}")),
    }
}

async fn ask(
    parts: Parts,
    port: u16,
    path: &str,
    body: Body,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(address).await?)).await?;
    // It ends with the program's end of the connection, or when the answer is dropped.
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::builder().method(parts.method).uri(path).body(body)?;
    *request.headers_mut() = parts.headers;
    request.headers_mut().insert(HOST, address.to_string().parse()?);
    Ok(sender.send_request(request).await?.map(Body::new))
}

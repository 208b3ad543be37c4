//! Servers that speak streamable HTTP.

use gloveport_mcp_client::{Client, HttpServer, Server};
use gloveport_testing::{free_port, within};
use rmcp::model::JsonObject;

use crate::support::{Listening, connect, try_everything};

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_works_over_streamable_http() {
    let Some(server) = Listening::everything("streamableHttp").await else { return };
    let client = connect(&server.streamable()).await;
    try_everything(&client).await;
    within(client.close()).await;
    assert!(client.is_closed());

    // Nobody answers any more.
    let client = connect(&server.streamable()).await;
    server.end().await;
    let error = within(client.call("echo", JsonObject::new(), None)).await.unwrap_err();
    assert!(error.to_string().contains("is lost: "), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_or_wants_a_key_is_told_without_secrets() {
    let url = format!("http://user:pw@127.0.0.1:{}/mcp?key=hidden", free_port());
    let error = within(Client::connect(&Server::Http(HttpServer::new(url)))).await.unwrap_err().to_string();
    assert!(error.contains("/mcp cannot be used: "), "{error}");
    assert!(!error.contains("hidden") && !error.contains("pw@"), "{error}");
    let server = Listening::bad("unauthorized").await;
    let http = HttpServer::new(format!("http://127.0.0.1:{}/nowhere", server.port));
    let error = within(Client::connect(&Server::Http(http))).await.unwrap_err().to_string();
    assert!(error.contains("lets nobody in without the right key"), "{error}");
}

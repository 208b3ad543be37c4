//! Connections that are kept.

use std::{sync::Arc, time::Duration};

use gloveport_mcp_client::{ErrorCollector, HttpServer, Pool, PoolLimits, Server, StdioServer, call_tool};
use gloveport_testing::{free_port, until, within};
use rmcp::model::JsonObject;
use tokio::time::{Instant, sleep};

use crate::support::{Listening, bad};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_used_again_and_made_anew_when_it_has_ended() {
    let pool = Pool::default();
    let server = Server::Stdio(bad("plain", ""));
    let both = within(pool.clients(&[server.clone(), server.clone()])).await;
    assert!(Arc::ptr_eq(&both[0], &both[1]), "whoever comes at the same time gets the same one");
    let other = Server::Stdio(StdioServer { name: "other".to_owned(), ..bad("plain", "") });
    let third = within(pool.client(&other)).await.unwrap();
    assert!(!Arc::ptr_eq(&third, &both[0]));
    assert_eq!(pool.count(), 2);
    within(both[0].close()).await;
    until("it is closed", || both[0].is_closed()).await;
    let again = within(pool.client(&server)).await.unwrap();
    assert!(!Arc::ptr_eq(&again, &both[0]) && !again.is_closed());
    within(pool.clear()).await;
    assert!(again.is_closed() && third.is_closed());
    assert_eq!(pool.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cannot_be_reached_are_left_out_and_collected() {
    let pool = Pool::default();
    let missing = StdioServer { name: "missing-1".to_owned(), command: "no-such".to_owned(), ..bad("x", "") };
    let nobody = Server::Http(HttpServer::new(format!("http://127.0.0.1:{}/mcp", free_port())));
    let servers = [Server::Stdio(missing), nobody.clone(), Server::Stdio(bad("plain", ""))];
    let clients = within(pool.clients(&servers)).await;
    assert_eq!(clients.iter().map(|client| client.server().name()).collect::<Vec<_>>(), ["plain"]);
    let errors = ErrorCollector::global().errors();
    let of = |name: &str| errors.iter().find(|error| error.server_name == name).unwrap();
    assert_eq!(of("missing-1").source.as_str(), "stdio");
    let message = &of(&nobody.name()).message;
    assert!(message.starts_with(&format!("Error connecting to {}: the MCP server", nobody.name())), "{message}");
    assert_eq!(of(&nobody.name()).source.as_str(), "shttp");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_uses_ends_and_one_in_use_stays() {
    let pool = Pool::within(PoolLimits { idle: Duration::from_millis(200), ..PoolLimits::default() });
    let (idle, used) = (Server::Stdio(bad("plain", "")), Server::Stdio(bad("slow", "")));
    let weak = Arc::downgrade(&within(pool.client(&idle)).await.unwrap());
    let client = within(pool.client(&used)).await.unwrap();
    let (none, limit) = (JsonObject::new(), Some(Duration::from_mins(10)));
    let calling = call_tool(std::slice::from_ref(&client), "t", &none, limit);
    let ended = until("the idle one ends", || weak.upgrade().is_none());
    tokio::select! {
        called = calling => panic!("{called:?}"),
        () = ended => {}
    }
    assert!(!client.is_closed());
    drop(client);
    until("the other one ends", || pool.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_an_address_is_forgotten_and_calls_in_flight_are_not() {
    let server = Listening::bad("plain").await;
    let pool = Pool::default();
    let client = within(pool.client(&server.sse())).await.unwrap();
    within(pool.forget(&format!("http://127.0.0.1:{}/sse", server.port))).await;
    let again = within(pool.client(&server.sse())).await.unwrap();
    assert!(!Arc::ptr_eq(&client, &again));
    assert!(!client.is_closed());
    within(client.tools()).await.unwrap();
    within(pool.clear()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_holds_up_one_call_and_is_asked_again_later() {
    let (connect, pause) = (Duration::from_millis(600), Duration::from_secs(3));
    let pool = Pool::within(PoolLimits { connect, pause, ..PoolLimits::default() });
    let server = Server::Stdio(bad("silent", ""));
    let mut began = Instant::now();
    let error = within(pool.client(&server)).await.unwrap_err().to_string();
    assert_eq!(error, "the MCP server silent did not answer `initialize` within 0.6 seconds");
    assert!(began.elapsed() >= connect);
    let error = within(pool.client(&server)).await.unwrap_err().to_string();
    let expected =
        "the MCP server silent did not answer `initialize` within 0.6 seconds, and is not asked again for 3 seconds";
    assert_eq!(error, expected);
    began = Instant::now();
    within(async {
        // Only a connection that is tried takes so long.
        while pool.client(&server).await.is_err() && began.elapsed() < connect {
            began = Instant::now();
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

//! The way out, with real sockets.

use std::time::Duration;

use crate::support::{Dns, LOOPBACK, Origin, options, own_address, proxy, proxy_of, run, send, soon, status, tunnel};
use gloveport_allow_list::Rules;
use gloveport_egress::{Egress, EgressLimits, EgressOptions, Policy, ProxyOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

fn get(url: &str, host: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_name_that_a_rule_names_is_reached_and_no_other_is_even_looked_up() {
    let Some(own) = own_address() else { return };
    let mut dns = Dns::start(&[("good.test", &own.to_string()), ("evil.test", &own.to_string())]).await;
    let origin = Origin::start(own).await;
    let gate = proxy(&["good.test"], &dns, EgressLimits::default()).await;
    let proxy = gate.proxy.unwrap();
    let port = origin.port();

    let evil = send(proxy, &get(&format!("http://evil.test:{port}/"), &format!("evil.test:{port}"))).await;
    assert_eq!(status(&evil), "403");
    assert!(evil.contains(&format!("may not reach evil.test:{port}")), "{evil}");
    assert!(evil.contains("only good.test") && evil.contains(&format!("add `evil.test:{port}`")), "{evil}");
    assert!(evil.contains("proxy-status: gloveport; error=http_request_denied"), "{evil}");
    let refused = tunnel(proxy, &format!("evil.test:{port}")).await.unwrap_err();
    assert_eq!(status(&refused), "403");
    assert!(dns.asked.try_recv().is_err(), "a refused name was looked up");

    let good = send(proxy, &get(&format!("http://GOOD.test.:{port}/a?b=c"), &format!("good.test:{port}"))).await;
    assert_eq!(status(&good), "200", "{good}");
    assert!(good.contains("GET /a?b=c HTTP/1.1\r\n"), "{good}");
    assert!(good.contains(&format!("host: good.test:{port}\r\n")), "{good}");
    assert_eq!(soon("a question", dns.asked.recv()).await.unwrap(), "good.test");

    let mut through = tunnel(proxy, &format!("good.test:{port}")).await.unwrap();
    through.write_all(b"GET /tunnelled HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon("the tunnel", through.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("GET /tunnelled HTTP/1.1"), "{answer}");
}

#[tokio::test]
async fn a_name_that_leads_to_loopback_is_refused_unless_the_address_is_named() {
    let origin = Origin::start(LOOPBACK).await;
    let port = origin.port();
    let dns = Dns::start(&[
        ("inside.test", "127.0.0.1"),
        ("metadata.test", "169.254.169.254"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("zero.test", "0.0.0.0"),
        ("local6.test", "::1"),
    ])
    .await;
    let gate = proxy(&["*.test", "localhost"], &dns, EgressLimits::default()).await;
    for name in ["inside.test", "metadata.test", "mapped.test", "zero.test", "local6.test", "localhost"] {
        let refused = tunnel(gate.proxy.unwrap(), &format!("{name}:{port}")).await.unwrap_err();
        assert_eq!(status(&refused), "403", "{name}: {refused}");
        assert!(refused.contains("destination_ip_prohibited"), "{name}: {refused}");
    }
    let named = proxy(&[&format!("127.0.0.1:{port}")], &dns, EgressLimits::default()).await;
    for host in ["inside.test", "mapped.test", "127.0.0.1", "[::ffff:7f00:1]", "localhost"] {
        tunnel(named.proxy.unwrap(), &format!("{host}:{port}")).await.unwrap_or_else(|head| panic!("{host}: {head}"));
    }
    let other = tunnel(named.proxy.unwrap(), "inside.test:1").await.unwrap_err();
    assert_eq!(status(&other), "403", "{other}");
}

#[tokio::test]
async fn other_spellings_of_addresses_are_no_hosts() {
    let dns = Dns::start(&[]).await;
    let gate = proxy(&["0.0.0.0/0", "::/0"], &dns, EgressLimits::default()).await;
    for host in ["2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "%6c", "a..b", "[::1%25lo]"]
    {
        let answer = send(gate.proxy.unwrap(), &format!("CONNECT {host}:80 HTTP/1.1\r\nHost: {host}:80\r\n\r\n")).await;
        assert_eq!(status(&answer), "400", "{host}: {answer}");
        let answer = send(gate.proxy.unwrap(), &get(&format!("http://{host}/"), host)).await;
        assert_eq!(status(&answer), "400", "{host}: {answer}");
    }
}

#[tokio::test]
async fn requests_that_say_two_things_are_refused() {
    let Some(own) = own_address() else { return };
    let origin = Origin::start(own).await;
    let target = origin.address;
    let dns = Dns::start(&[]).await;
    let gate = proxy(&[&own.to_string()], &dns, EgressLimits::default()).await;
    let fine = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n");
    assert_eq!(status(&send(gate.proxy.unwrap(), &format!("{fine}Connection: close\r\n\r\n")).await), "200");
    for (what, text) in [
        ("two hosts", format!("{fine}Host: {target}\r\n\r\n")),
        ("two hosts that differ", format!("{fine}Host: evil.test\r\n\r\n")),
        ("another host", format!("GET http://{target}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")),
        ("another port", format!("GET http://{target}/ HTTP/1.1\r\nHost: {own}:1\r\n\r\n")),
        ("no host", format!("GET http://{target}/ HTTP/1.1\r\n\r\n")),
        ("user info", format!("GET http://{target}@evil.test/ HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("user info before", format!("GET http://me:word@{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("a folded header", format!("{fine}X-A: b\r\n c\r\n\r\n")),
        ("a folded host", format!("GET http://{target}/ HTTP/1.1\r\nHost:\r\n {target}\r\n\r\n")),
        ("a blank before the colon", format!("{fine}X-A : b\r\n\r\n")),
        ("two lengths", format!("{fine}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")),
        ("only a path", format!("GET / HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("https without a tunnel", format!("GET https://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("another scheme", format!("GET ftp://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("a tunnel without a port", format!("CONNECT {own} HTTP/1.1\r\nHost: {own}\r\n\r\n")),
        ("a tunnel to a URL", format!("CONNECT http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("a tunnel for another host", format!("CONNECT {target} HTTP/1.1\r\nHost: evil.test\r\n\r\n")),
        ("a tunnel with a user", format!("CONNECT me@{target} HTTP/1.1\r\nHost: {target}\r\n\r\n")),
        ("port 0", format!("CONNECT {own}:0 HTTP/1.1\r\nHost: {own}:0\r\n\r\n")),
        ("no HTTP", "SSH-2.0-x\r\n\r\n".to_owned()),
    ] {
        assert_eq!(status(&send(gate.proxy.unwrap(), &text).await), "400", "{what}");
    }
    // Of two lengths of different kinds one is left, so nobody behind the gate can take the other.
    let both = format!("{fine}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    let answer = send(gate.proxy.unwrap(), &both).await;
    let (_, echoed) = answer.split_once("\r\n\r\n").unwrap();
    assert!(echoed.contains("transfer-encoding: chunked") && !echoed.contains("content-length"), "{echoed}");
}

#[tokio::test]
async fn what_is_for_one_connection_is_not_passed_on() {
    let Some(own) = own_address() else { return };
    let origin = Origin::start(own).await;
    let target = origin.address;
    let dns = Dns::start(&[]).await;
    let gate = proxy(&[&own.to_string()], &dns, EgressLimits::default()).await;
    let head = "Connection: close, X-Mine, Host, Content-Length\r\nX-Mine: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\n\
                Proxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nX-Other: 2\r\n\
                Content-Length: 4";
    let answer =
        send(gate.proxy.unwrap(), &format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\n{head}\r\n\r\nbody"))
            .await;
    let (head, echoed) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("x-kept: 1") && !head.contains("x-secret") && !head.contains("keep-alive"), "{head}");
    let (request, body) = echoed.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = request.lines().collect();
    lines.sort_unstable();
    let host = format!("host: {target}");
    assert_eq!(lines, ["POST / HTTP/1.1", "content-length: 4", &host, "via: 1.1 gloveport", "x-other: 2"]);
    assert_eq!(body, "body");
}

#[tokio::test]
async fn a_body_of_unknown_length_goes_through_in_pieces() {
    let dns = Dns::start(&[]).await;
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let target = listener.local_addr().unwrap();
    let gate = proxy(&["127.0.0.1"], &dns, EgressLimits::default()).await;
    let mut client = TcpStream::connect(gate.proxy.unwrap()).await.unwrap();
    let head = format!("PUT http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let (mut server, _) = soon("the request", listener.accept()).await.unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 1024];
    for piece in ["first", "second"] {
        client.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await.unwrap();
        // The second is sent only when the first is through, so nothing waits for the end.
        while !seen.contains(piece) {
            let count = soon(piece, server.read(&mut buffer)).await.unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
    assert!(seen.contains("transfer-encoding: chunked"), "{seen}");
}

#[tokio::test]
async fn each_end_of_a_tunnel_is_passed_on_by_itself() {
    let dns = Dns::start(&[]).await;
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let gate = proxy(&["127.0.0.1"], &dns, EgressLimits::default()).await;
    let mut client = tunnel(gate.proxy.unwrap(), &listener.local_addr().unwrap().to_string()).await.unwrap();
    let (mut server, _) = soon("the connection", listener.accept()).await.unwrap();
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    soon("the end of the question", server.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "question");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    let mut text = String::new();
    soon("the end of the answer", client.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "answer");
}

#[tokio::test]
async fn what_is_denied_is_refused_and_its_tunnels_end() {
    let dns = Dns::start(&[("here.test", "127.0.0.1")]).await;
    let rules = |texts: &[&str]| Rules::parse(texts).unwrap();
    let policy = Policy::new(rules(&["127.0.0.1", "here.test"]));
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let gate = proxy_of(policy.clone(), &dns, EgressLimits::default()).await;
    let (proxy, port) = (gate.proxy.unwrap(), listener.local_addr().unwrap().port());
    let (by_name, by_address) = (format!("here.test:{port}"), format!("127.0.0.1:{port}"));
    let mut named = tunnel(proxy, &by_name).await.unwrap();
    let mut addressed = tunnel(proxy, &by_address).await.unwrap();
    policy.change(&Rules::default(), &rules(&["here.test"])).unwrap();
    let mut byte = [0];
    let ended = soon("the end of the tunnel by the name", named.read(&mut byte)).await;
    assert!(ended.is_err() || ended.is_ok_and(|count| count == 0));
    let refused = tunnel(proxy, &by_name).await.unwrap_err();
    assert_eq!(status(&refused), "403");
    let told = send(proxy, &get(&format!("http://{by_name}/"), &by_name)).await;
    assert!(told.contains(&format!("may not reach {by_name} any more")), "{told}");
    addressed.write_all(b"it goes on").await.unwrap();
    // Whatever name leads there.
    policy.change(&rules(&["here.test"]), &rules(&["127.0.0.0/8"])).unwrap();
    let ended = soon("the end of the tunnel by the address", addressed.read(&mut byte)).await;
    assert!(ended.is_err() || ended.is_ok_and(|count| count == 0));
    tunnel(proxy, &by_name).await.unwrap_err();
    let told: Vec<_> =
        policy.state().asked.iter().map(|one| (one.target.to_string(), one.times, one.allowed)).collect();
    assert_eq!(told, [(by_address, 1, true), (by_name, 4, false)]);
}

#[tokio::test]
async fn what_is_not_there_is_told() {
    let dns = Dns::start(&[("here.test", "127.0.0.1")]).await;
    let gate = proxy(&["*.test", "127.0.0.1"], &dns, EgressLimits::default()).await;
    let free = TcpListener::bind((LOOPBACK, 0)).await.unwrap().local_addr().unwrap();
    let refused = send(gate.proxy.unwrap(), &get(&format!("http://{free}/"), &free.to_string())).await;
    assert_eq!(status(&refused), "502");
    assert!(refused.contains("Connection refused"), "{refused}");
    let unknown = send(gate.proxy.unwrap(), &get("http://none.test/", "none.test")).await;
    assert_eq!(status(&unknown), "502");
    assert!(unknown.contains("there is no address for the name in none.test:80"), "{unknown}");
}

#[tokio::test]
async fn slow_clients_and_idle_tunnels_end() {
    let dns = Dns::start(&[]).await;
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let limits = EgressLimits {
        header_time: Duration::from_millis(200),
        idle: Duration::from_millis(400),
        ..EgressLimits::default()
    };
    let gate = proxy(&["127.0.0.1"], &dns, limits).await;
    let mut slow = TcpStream::connect(gate.proxy.unwrap()).await.unwrap();
    slow.write_all(b"GET http://127.0.0.1/ HTT").await.unwrap();
    let mut rest = Vec::new();
    soon("the end of the slow client", slow.read_to_end(&mut rest)).await.ok();

    let mut idle = tunnel(gate.proxy.unwrap(), &listener.local_addr().unwrap().to_string()).await.unwrap();
    let (mut server, _) = soon("the connection", listener.accept()).await.unwrap();
    soon("the end of the idle tunnel", idle.read_to_end(&mut rest)).await.ok();
    soon("its other end", server.read_to_end(&mut rest)).await.ok();
}

#[tokio::test]
async fn heads_and_connections_have_bounds() {
    let dns = Dns::start(&[]).await;
    let limits = EgressLimits { connections: 1, header_bytes: 8192, ..EgressLimits::default() };
    let gate = proxy(&["127.0.0.1"], &dns, limits).await;
    let long = format!("GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: {}\r\n\r\n", "a".repeat(20_000));
    assert_eq!(status(&send(gate.proxy.unwrap(), &long).await), "431");

    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    // The place of the first connection is given back when the gate has seen its end.
    let held = soon("a place", async {
        loop {
            if let Ok(held) = tunnel(gate.proxy.unwrap(), &target).await {
                break held;
            }
        }
    })
    .await;
    let turned_away = tunnel(gate.proxy.unwrap(), &target).await.unwrap_err();
    assert_eq!(status(&turned_away), "503", "{turned_away}");
    drop(held);
}

#[tokio::test]
async fn the_proxy_is_for_the_sandbox_alone() {
    let dns = Dns::start(&[]).await;
    let of_sandbox = ProxyOptions {
        listen: (LOOPBACK, 0).into(),
        policy: Policy::new(Rules::parse(["127.0.0.1"]).unwrap()),
        edge: None,
        lost: Rules::default(),
    };
    let sandbox = Some("127.0.0.9".parse().unwrap());
    let gate = run(EgressOptions { proxy: Some(of_sandbox), dns: Some(dns.address), sandbox, ..options() }).await;
    let mut other = TcpStream::connect(gate.proxy.unwrap()).await.unwrap();
    let mut text = String::new();
    assert_eq!(soon("the end", other.read_to_string(&mut text)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_gate_that_is_stopped_ends_with_its_connections_and_frees_its_ports() {
    let dns = Dns::start(&[]).await;
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let mut gate = proxy(&["127.0.0.1"], &dns, EgressLimits::default()).await;
    let mut client = tunnel(gate.proxy.unwrap(), &listener.local_addr().unwrap().to_string()).await.unwrap();
    gate.stop.cancel();
    soon("the gate", &mut gate.task).await.unwrap();
    let mut rest = Vec::new();
    soon("the tunnel", client.read_to_end(&mut rest)).await.ok();
    let again = ProxyOptions {
        listen: gate.proxy.unwrap(),
        policy: Policy::new(Rules::default()),
        edge: None,
        lost: Rules::default(),
    };
    Egress::open(EgressOptions { proxy: Some(again), dns: Some(dns.address), ..options() }).await.unwrap();
}

#[tokio::test]
async fn nothing_goes_to_whom_lost_secrets_are_for_and_everything_else_goes_on() {
    let dns = Dns::start(&[]).await;
    let (bound, other) = (Origin::start(LOOPBACK).await, Origin::start(LOOPBACK).await);
    let (bound, other) = (bound.address.to_string(), other.address.to_string());
    let lost = ProxyOptions {
        listen: (LOOPBACK, 0).into(),
        policy: Policy::new(Rules::parse(["127.0.0.1"]).unwrap()),
        edge: None,
        lost: Rules::parse([&bound]).unwrap(),
    };
    let gate = run(EgressOptions { proxy: Some(lost), dns: Some(dns.address), ..options() }).await;
    let proxy = gate.proxy.unwrap();
    let plain = |host: &str| get(&format!("http://{host}/"), host);
    for request in [format!("CONNECT {bound} HTTP/1.1\r\nHost: {bound}\r\n\r\n"), plain(&bound)] {
        let refused = send(proxy, &request).await;
        assert_eq!(status(&refused), "500", "{refused}");
        let words = format!("the secrets for {bound} cannot be put in: the gate of this sandbox was started again");
        assert!(refused.contains(&words) && refused.contains("start the sandbox anew"), "{refused}");
        assert!(refused.contains("proxy-status: gloveport; error=proxy_internal_error"), "{refused}");
    }
    assert!(tunnel(proxy, &other).await.is_ok());
    let answer = send(proxy, &plain(&other)).await;
    assert_eq!(status(&answer), "200", "{answer}");
}

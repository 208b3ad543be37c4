//! A gateway that has its certificate made by an authority: Pebble, the test server of ACME (scripts/setup installs it), with a DNS of
//! its own.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use gloveport_gateway::TlsFiles;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    gateway::{KEY, Program},
    gateway_ways::certificate,
    support::gloveport,
};

/// Time for a certificate.
const LIMIT: Duration = Duration::from_mins(2);
const NAME: &str = "sandboxes.example.test";

/// A port that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Pebble, and the server that answers it for the DNS.
struct Authority {
    _pebble: Running,
    _names: Running,
    files: TlsFiles,
    address: String,
    /// Where it tells its root.
    management: u16,
    /// Where records are set.
    records: u16,
    /// Where it asks for TLS.
    tls: u16,
    home: TempDir,
}

impl Authority {
    async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let files = certificate(home.path(), "2");
        let [listen, management, names, records, tls] = [(); 5].map(|()| free_port());
        let at = |port: u16| format!("127.0.0.1:{port}");
        let config = home.path().join("pebble.json");
        let text = json!({"pebble": {
            "listenAddress": at(listen), "managementListenAddress": at(management), "certificate": files.certificate,
            "privateKey": files.key, "httpPort": 1, "tlsPort": tls,
        }});
        fs::write(&config, text.to_string()).unwrap();
        let started = |program: &str, words: &[&str]| {
            let mut command = Command::new(program);
            let log = fs::File::create(home.path().join(program)).unwrap();
            command.args(words).env("PEBBLE_VA_NOSLEEP", "1").stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log);
            Running(command.spawn().unwrap())
        };
        let (dns, managing) = (at(names), at(records));
        let off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
        let names = started("pebble-challtestsrv", &[&["-dns01", &dns, "-management", &managing], &off[..]].concat());
        let pebble = started("pebble", &["-config", config.to_str().unwrap(), "-dnsserver", &dns]);
        let up = async {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, listen)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, up).await.unwrap();
        let address = format!("https://localhost:{listen}/dir");
        Self { _pebble: pebble, _names: names, files, address, management, records, tls, home }
    }

    /// A client that trusts what it signs.
    async fn client(&self, gateway: SocketAddr) -> reqwest::Client {
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let own = reqwest::Certificate::from_pem(&fs::read(&self.files.certificate).unwrap()).unwrap();
        let asking = reqwest::Client::builder().tls_certs_only([own]).no_proxy().build().unwrap();
        let url = format!("https://localhost:{}/roots/0", self.management);
        let root = loop {
            if let Ok(answer) = asking.get(&url).send().await {
                break answer.bytes().await.unwrap();
            }
            sleep(Duration::from_millis(50)).await;
        };
        let root = reqwest::Certificate::from_pem(&root).unwrap();
        let builder = reqwest::Client::builder().tls_certs_only([root]).no_proxy().pool_max_idle_per_host(0);
        builder.resolve(NAME, gateway).resolve(&format!("a.{NAME}"), gateway).build().unwrap()
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("store")
    }

    fn gateway(&self, words: &[&str]) -> Program {
        let key = self.home.path().join("the key");
        fs::write(&key, KEY).unwrap();
        let mut command = gloveport(self.home.path());
        command.args(["gateway", "--port", &self.tls.to_string(), "--key-file"]).arg(key);
        command.args(["--acme", "--acme-email", "me@example.test", "--acme-directory", &self.address, "--acme-root"]);
        command.arg(&self.files.certificate).arg("--acme-store").arg(self.store()).args(words);
        Program::start(command)
    }
}

/// The status of a request, as soon as there is a certificate that the client takes.
async fn answered(client: &reqwest::Client, url: &str) -> u16 {
    let asking = async {
        loop {
            if let Ok(answer) = client.get(url).send().await {
                break answer.status().as_u16();
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LIMIT, asking).await.unwrap()
}

/// The files of a directory, without those whose names begin with `lock`.
fn listed(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_has_its_certificate_made_and_keeps_it() {
    let authority = Authority::start().await;
    let url = format!("https://{NAME}:{}", authority.tls);
    let program = authority.gateway(&["--public-url", &url]);
    let client = authority.client(program.url.strip_prefix("https://").unwrap().parse().unwrap()).await;
    assert_eq!(answered(&client, &format!("{url}/healthz")).await, 200);
    assert_eq!(listed(&authority.store()), ["account.json", "certificate.pem"]);
    let kept = fs::read(authority.store().join("certificate.pem")).unwrap();
    let mode = fs::metadata(authority.store().join("certificate.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The protocol of the challenge leads nowhere else.
    let openssl = |name: &str| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-alpn", "acme-tls/1", "-servername", name, "-connect"]);
        command.arg(format!("127.0.0.1:{}", authority.tls)).stdin(Stdio::null());
        command.output().unwrap().status.success()
    };
    assert!(!openssl(NAME) && !openssl("../account") && !openssl("other.example"));
    let log = program.end();
    assert!(!log.contains("PRIVATE KEY"), "{log}");
    // The next one has the same, at once.
    let program = authority.gateway(&["--public-url", &url]);
    assert_eq!(answered(&client, &format!("{url}/healthz")).await, 200);
    program.end();
    assert_eq!(fs::read(authority.store().join("certificate.pem")).unwrap(), kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn sub_domains_have_a_certificate_where_a_program_changes_the_dns() {
    let authority = Authority::start().await;
    let hook = authority.home.path().join("hook");
    let text = format!(
        r#"#!/usr/bin/env python3
import json, sys, urllib.request
verb, name, value = sys.argv[1:]
path, body = ("set-txt", {{"host": name + ".", "value": value}}) if verb == "add" else ("clear-txt", {{"host": name + "."}})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
opener.open("http://127.0.0.1:{}/" + path, json.dumps(body).encode(), timeout=10).read()
open({:?}, "a").write(f"{{verb}} {{name}}\n")
"#,
        authority.records,
        authority.home.path().join("changes")
    );
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    let program = authority.gateway(&["--domain", NAME, "--acme-dns-hook", hook.to_str().unwrap()]);
    let client = authority.client(program.url.strip_prefix("https://").unwrap().parse().unwrap()).await;
    let port = authority.tls;
    assert_eq!(answered(&client, &format!("https://{NAME}:{port}/healthz")).await, 200);
    assert_eq!(answered(&client, &format!("https://a.{NAME}:{port}/alive")).await, 404);
    let changes = fs::read_to_string(authority.home.path().join("changes")).unwrap();
    let record = format!("_acme-challenge.{NAME}");
    let lines: Vec<String> = ["add", "add", "remove", "remove"].map(|verb| format!("{verb} {record}")).into();
    assert_eq!(changes.lines().collect::<Vec<_>>(), lines);
    program.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn why_there_is_no_certificate_is_told_and_the_gateway_goes_on() {
    let authority = Authority::start().await;
    // Nobody answers for this name at the port that the authority asks.
    let key = authority.home.path().join("the key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(authority.home.path());
    command.args(["gateway", "--port", "0", "--key-file"]).arg(key).args(["--public-url", &format!("https://{NAME}")]);
    command.args(["--acme", "--acme-directory", &authority.address, "--acme-root"]).arg(&authority.files.certificate);
    command.arg("--acme-store").arg(authority.store());
    let mut program = Program::start(command);
    let errors = BufReader::new(program.child.stderr.take().unwrap());
    let told = tokio::task::spawn_blocking(move || {
        errors.lines().map_while(Result::ok).find(|line| line.contains("there is no new certificate"))
    });
    let told = timeout(LIMIT, told).await.unwrap().unwrap().unwrap();
    assert!(told.contains("does not believe") && told.contains(NAME) && told.contains("again_in_seconds=60"), "{told}");
    assert!(program.child.try_wait().unwrap().is_none());
    assert_eq!(listed(&authority.store()), ["account.json"]);
}

#[test]
fn what_cannot_be_had_by_acme_is_told_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    for (words, code, expected) in [
        (&["--acme"][..], 1, "--acme needs the name"),
        (&["--acme", "--public-url", "https://127.0.0.1"], 1, "`127.0.0.1` cannot be in a certificate"),
        (&["--acme", "--domain", "example.org"], 1, "`*.example.org` needs a program that changes the DNS"),
        (&["--acme", "--public-url", "https://a.org", "--acme-directory", "http://a"], 1, "must begin with https://"),
        (&["--acme", "--public-url", "https://a.org", "--tls-cert", "a", "--tls-key", "b"], 1, "not both"),
        (&["--acme-email", "a@b"], 2, "--acme"),
    ] {
        let mut command = gloveport(home.path());
        let output = command.args(["gateway", "--port", "0", "--key-file"]).arg(&key).args(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
}

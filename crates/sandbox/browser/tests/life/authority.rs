//! Pages over TLS whose certificate an authority of somebody's own has signed.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::house::{House, words};

/// A server that is ended when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn openssl(directory: &Path, words: &[&str]) {
    let output = Command::new("openssl").args(words).current_dir(directory).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server whose certificate is signed by `ca.pem` in the directory; its port.
fn serve(directory: &Path) -> (Server, u16) {
    let name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    openssl(
        directory,
        &[&new[..], &["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=An authority of our own"]].concat(),
    );
    let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "cert.pem"];
    openssl(
        directory,
        &[&new[..], &name[..], &["-addext", "basicConstraints=critical,CA:FALSE"], &signed[..]].concat(),
    );
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::fs::write(directory.join("page.html"), "<h1>trusted</h1>").unwrap();
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-WWW", "-cert", "cert.pem", "-key", "key.pem", "-accept"])
        .arg(format!("127.0.0.1:{port}"))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server(server);
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "the server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, port)
}

#[tokio::test]
async fn a_page_is_trusted_by_an_authority_of_ones_own_only_where_it_is_named() {
    if ["certutil", "openssl"].iter().any(|program| Command::new(program).arg("-h").output().is_err()) {
        println!("skipped: certutil (package libnss3-tools) or openssl is missing");
        return;
    }
    let certificates = tempfile::tempdir().unwrap();
    let (_server, port) = serve(certificates.path());
    let goto = format!("goto('https://127.0.0.1:{port}/page.html')");
    let Some(stranger) = House::open() else { return };
    let refused = words(&stranger.step(&goto).await);
    assert!(refused.contains("ERR_CERT_AUTHORITY_INVALID"), "{refused}");
    stranger.browser.close().await;
    let authority = certificates.path().join("ca.pem");
    let trusting = House::with(|options| options.surroundings.set("GLOVEPORT_BROWSER_CA", authority)).unwrap();
    let seen = trusting.see(&goto).await;
    assert!(seen.contains("heading 'trusted'"), "{seen}");
    trusting.browser.close().await;
}

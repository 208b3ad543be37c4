//! Secrets that sandboxes use and never have, on a real engine. `tests/edge` has programs use them.

use std::time::{Duration, Instant};

use crate::{
    docker::{DEBIAN, Place, alive, refused, run, start},
    network::{Other, ask, only},
};
use gloveport_protocol::Secret;
use gloveport_provider::{
    EdgeSecret, NetworkChange, NetworkPolicy, Progress, ProviderError, SandboxSpec, SandboxState,
};

const VALUE: &str = "a value that no sandbox has";

/// With a secret for this host.
fn with(spec: SandboxSpec, host: &str) -> SandboxSpec {
    let secret = EdgeSecret { value: Secret::new(VALUE), hosts: vec![host.to_owned()] };
    SandboxSpec { edge_secrets: [("TOKEN".to_owned(), secret)].into(), ..spec }
}

#[tokio::test]
async fn a_secret_for_some_hosts_is_refused_where_no_gate_puts_it_in() {
    let place = Place::new();
    let backend = place.backend();
    let spec = |network| SandboxSpec { network, ..place.spec("refused", DEBIAN) };
    for (spec, field, part) in [
        (with(spec(NetworkPolicy::Full), "a.test"), "network", "--network HOSTS"),
        (with(spec(NetworkPolicy::None), "a.test"), "network", "there is no way"),
        (with(spec(only(&[])), "a b"), "edge_secrets.TOKEN", "says no host"),
    ] {
        let error = refused(&*backend, &spec, Duration::from_secs(5)).await;
        assert!(matches!(&error, ProviderError::Spec { field: wrong, .. } if wrong == field), "{error}");
        assert!(error.to_string().contains(part) && !error.to_string().contains(VALUE), "{error}");
    }
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_sandbox_has_what_stands_for_a_secret_and_neither_its_forks_nor_its_snapshots_have_that() {
    let place = Place::new();
    let backend = place.backend();
    let spec = SandboxSpec { network: only(&["allowed.test"]), keep_alive: true, ..place.spec("edge", DEBIAN) };
    let sandbox = start(&*backend, &with(spec, "secret.test")).await;
    let placeholder = run(&sandbox, "printf %s \"$TOKEN\"").await;
    assert!(placeholder.starts_with("gloveport-secret-"), "{placeholder}");
    let trusted =
        run(&sandbox, "grep -c BEGIN $NODE_EXTRA_CA_CERTS; cmp -s $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS; echo $?").await;
    assert!(trusted.starts_with('1'), "{trusted}");
    let gate = format!("{}-gate", sandbox.id);
    let shown = |name: &str| place.engine.docker(["inspect", name]);
    for text in [shown(sandbox.id.as_str()), shown(&gate)] {
        assert!(!text.contains(VALUE) && !text.contains(&placeholder) && !text.contains("PRIVATE KEY"), "{text}");
    }
    assert!(shown(&gate).contains("secret.test:443"));

    // Another backend finds it, and changes whom it reaches.
    let second = place.backend();
    let change = NetworkChange { allow: vec!["more.test".to_owned()], deny: Vec::new() };
    let state = second.network(&sandbox.id, &change).await.unwrap();
    assert_eq!(state.allowed, ["allowed.test", "secret.test:443", "more.test"]);

    // A fork has the files, and neither the secret nor the way to its host.
    let fork = backend.fork(&sandbox.id, &place.session("fork"), &Progress::silent()).await.unwrap();
    let fork = alive(&*backend, fork).await;
    let found =
        run(&fork, "echo \"$TOKEN.$SSL_CERT_FILE\"; ls -A /.gloveport/trust; grep -rs gloveport-secret- /workspace")
            .await;
    assert_eq!(found, ".");
    assert!(run(&fork, &ask("secret.test:443")).await.contains("may not reach secret.test:443"));
    let name = format!("{}-kept", place.prefix);
    let image = backend.snapshot(&sandbox.id, &name).await.unwrap();
    let text = shown(&image);
    assert!(!text.contains("TOKEN") && !text.contains("SSL_CERT_FILE") && !text.contains("secret.test"), "{text}");
    // Who starts from it with a secret of its own has an authority of its own.
    let spec = SandboxSpec { network: only(&[]), ..place.spec("again", &image) };
    let again = start(&*backend, &with(spec, "secret.test")).await;
    let own = run(&again, "cat $NODE_EXTRA_CA_CERTS").await;
    assert!(own.contains("BEGIN") && own != run(&sandbox, "cat $NODE_EXTRA_CA_CERTS").await, "{own}");
    backend.delete(&again.id).await.unwrap();
    backend.delete(&fork.id).await.unwrap();
    assert!(backend.delete_snapshot(&image).await.unwrap());
    backend.delete(&sandbox.id).await.unwrap();
    second.close().await;
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_gate_that_has_lost_its_secrets_lets_nothing_through_to_their_hosts() {
    let place = Place::new();
    let backend = place.backend();
    let (bound, other) = (Other::start(&place, 9003), Other::start(&place, 9004));
    let (bound_at, other_at) = (format!("{}:9003", bound.address), format!("{}:9004", other.address));
    let spec = SandboxSpec { network: only(&[&other_at]), keep_alive: true, ..place.spec("lost", DEBIAN) };
    let sandbox = start(&*backend, &with(spec, &bound_at)).await;
    let placeholder = run(&sandbox, "printf %s \"$TOKEN\"").await;
    assert_eq!(run(&sandbox, &ask(&bound_at)).await, "200 other");
    // A gate that rests keeps them, and one that was stopped does not.
    backend.pause(&sandbox.id).await.unwrap();
    backend.resume(&sandbox.id).await.unwrap();
    assert_eq!(run(&sandbox, &ask(&bound_at)).await, "200 other");

    let gate = format!("{}-gate", sandbox.id);
    place.engine.docker(["stop", "--time", "1", sandbox.id.as_str(), &gate]);
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
    let began = Instant::now();
    backend.resume(&sandbox.id).await.unwrap();
    let found = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(run(&found, "printf %s \"$TOKEN\"").await, placeholder);
    let told = run(&found, &ask(&bound_at)).await;
    assert!(
        told.starts_with("500") && told.contains("was started again") && told.contains("--secret NAME@HOST"),
        "{told}"
    );
    assert_eq!(run(&found, &ask(&other_at)).await, "200 other");
    let log = place.engine.command(["logs", &gate]).output().unwrap();
    let log = String::from_utf8_lossy(&[log.stdout, log.stderr].concat()).into_owned();
    assert!(log.contains("no secrets came on standard input") && !log.contains(VALUE), "{log}");
    backend.delete(&sandbox.id).await.unwrap();
    backend.close().await;
    drop((bound, other));
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_sandbox_whose_root_cannot_be_written_trusts_its_gate_too() {
    let mut place = Place::new();
    place.extend(&serde_json::json!({"harden": true, "read_only": true, "binary": "copy"}));
    let backend = place.backend();
    let spec = SandboxSpec { network: only(&[]), ..place.spec("read-only", DEBIAN) };
    let sandbox = start(&*backend, &with(spec, "secret.test")).await;
    let found = run(&sandbox, "printf %s \"$TOKEN\" | cut -c -17; grep -c BEGIN $NODE_EXTRA_CA_CERTS").await;
    assert_eq!(found, "gloveport-secret-\n1");
    backend.close().await;
    place.assert_nothing_left();
}

//! Sandboxes whose network is closed, on a real engine.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use crate::docker::{DEBIAN, Engine, Place, get, refused, run, start, until};
use futures_util::future::join_all;
use gloveport_provider::{
    ExposedPort, GcOptions, NetworkChange, NetworkPolicy, ProviderError, SandboxSpec, SandboxState,
};
use serde_json::{Map, json};

/// A server that answers every request with the name of its file.
const SERVER: &str = r#"$s = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 5, ReuseAddr => 1) or die;
while ($c = $s->accept) { while (<$c>) { last if /^\r\n/ } print $c "HTTP/1.0 200 OK\r\n\r\n$ARGV[1]\n"; close $c }"#;

/// Asks the proxy of the environment for a URL, and prints the status and the body.
const ASK: &str = r#"($proxy) = $ENV{http_proxy} =~ m{//(.*)}; $t = $ARGV[0];
$s = IO::Socket::INET->new(PeerAddr => $proxy, Timeout => 5) or die "no proxy: $@";
print $s "GET http://$t/ HTTP/1.1\r\nHost: $t\r\nConnection: close\r\n\r\n";
@lines = <$s>; $lines[0] =~ / (\d+)/; print "$1 $lines[-1]";"#;

/// A container that is none of ours, with a server; it ends with this.
pub(crate) struct Other {
    engine: Engine,
    name: String,
    pub(crate) address: String,
}

impl Other {
    pub(crate) fn start(place: &Place, port: u16) -> Self {
        let name = format!("{}-other-{port}", place.prefix);
        let port = port.to_string();
        place.engine.docker([
            "run",
            "--detach",
            "--name",
            &name,
            DEBIAN,
            "perl",
            "-MIO::Socket",
            "-e",
            SERVER,
            &port,
            "other",
        ]);
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
        let addresses = place.engine.docker(["inspect", "--format", format, &name]);
        let address = addresses.split_whitespace().next().unwrap().to_owned();
        Self { engine: place.engine.clone(), name, address }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.engine.try_docker(["rm", "--force", &self.name]);
    }
}

fn connects(address: &str, port: u16) -> String {
    format!("timeout 3 bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null && echo reached || echo not reached")
}

pub(crate) fn ask(target: &str) -> String {
    format!("perl -MIO::Socket -e '{ASK}' {target}")
}

pub(crate) fn only(hosts: &[&str]) -> NetworkPolicy {
    NetworkPolicy::Only(hosts.iter().map(|host| (*host).to_owned()).collect())
}

/// The address that the engine's machine has on the default network.
fn gateway(engine: &Engine) -> String {
    engine.docker(["network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", "bridge"])
}

#[tokio::test]
async fn a_sandbox_that_may_reach_nobody_reaches_nobody_and_is_reached() {
    let place = Place::new();
    let backend = place.backend();
    let other = Other::start(&place, 9000);
    let ports = vec![ExposedPort { name: "web".to_owned(), port: Some(8080) }];
    let spec = SandboxSpec { network: NetworkPolicy::None, ports, ..place.spec("none", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;

    let machine = gateway(&place.engine);
    let own_network = run(&sandbox, "ip=$(hostname -i | tr ' ' '\\n' | grep ^10.213); echo ${ip%.*}").await;
    assert!(own_network.starts_with("10.213."), "{own_network}");
    for (address, port) in [(other.address.as_str(), 9000), (&machine, 22), (&machine, 2375), ("1.1.1.1", 53)] {
        assert_eq!(run(&sandbox, &connects(address, port)).await, "not reached", "{address}:{port}");
    }
    for name in [&other.name, "example.com", "host.docker.internal"] {
        let found = run(&sandbox, &format!("getent hosts {name} || echo unknown")).await;
        assert_eq!(found, "unknown", "{name}");
    }
    assert_eq!(run(&sandbox, "env | grep -ic _proxy; cat /proc/net/if_inet6 | grep -vc ' lo$'").await, "0\n0");

    // The way in is open, for the server (which has answered all this) and for programs.
    run(&sandbox, &format!("(perl -MIO::Socket -e '{SERVER}' 8080 inside >/dev/null 2>&1 &)")).await;
    until("the program answers", || get(&format!("{}/", sandbox.urls["web"])).as_deref() == Some("inside\n")).await;
    backend.close().await;
    drop(other);
    place.assert_nothing_left();
}

#[tokio::test]
async fn the_gate_of_a_running_sandbox_is_told_of_other_rules_and_by_nobody_in_it() {
    let place = Place::new();
    let backend = place.backend();
    let other = Other::start(&place, 9002);
    let target = format!("{}:9002", other.address);
    let spec = SandboxSpec { network: only(&["allowed.test"]), ..place.spec("change", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    let change = async |allow: &[&str], deny: &[&str]| {
        let texts = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        backend.network(&sandbox.id, &NetworkChange { allow: texts(allow), deny: texts(deny) }).await
    };
    assert!(run(&sandbox, &ask(&target)).await.starts_with("403"));
    let state = change(&[&target], &[]).await.unwrap();
    assert_eq!(state.allowed, ["allowed.test", &target]);
    assert_eq!(run(&sandbox, &ask(&target)).await, "200 other");
    let state = change(&[], &[&target]).await.unwrap();
    let asked: Vec<_> = state.asked.iter().filter(|asked| asked.target == target).map(|asked| asked.times).collect();
    assert_eq!((&*state.denied, &*asked), (&[target.clone()][..], &[2][..]));
    assert!(run(&sandbox, &ask(&target)).await.starts_with("403"));
    let error = change(&["not a rule"], &[]).await.unwrap_err();
    assert!(matches!(error, ProviderError::Spec { .. }) && error.to_string().contains("not a rule"), "{error}");
    let tried =
        run(&sandbox, "$(tr '\\0' '\\n' </proc/1/cmdline | head -n 1) gate-change '{\"allow\": [\"x.test\"]}' 2>&1")
            .await;
    assert!(tried.contains("cannot talk to the gate"), "{tried}");
    assert!(!change(&[], &[]).await.unwrap().allowed.contains(&"x.test".to_owned()));
    // Where there is no way out, there is nothing to change.
    let spec = SandboxSpec { network: NetworkPolicy::None, ..place.spec("changeless", DEBIAN) };
    let closed = start(&*backend, &spec).await;
    let error = backend.network(&closed.id, &NetworkChange::default()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unsupported { .. }), "{error}");
    backend.close().await;
    drop(other);
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_sandbox_reaches_what_is_allowed_and_nothing_else() {
    let place = Place::new();
    let backend = place.backend();
    let (other, second) = (Other::start(&place, 9000), Other::start(&place, 9001));
    let allowed = format!("{}:9000", other.address);
    let spec = SandboxSpec { network: only(&[&allowed, "allowed.test"]), ..place.spec("only", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;

    assert_eq!(run(&sandbox, &ask(&allowed)).await, "200 other");
    for refused in [format!("{}:9001", second.address), format!("{}:9001", other.address), "other.test".to_owned()] {
        let answer = run(&sandbox, &ask(&refused)).await;
        assert!(answer.starts_with("403 gloveport: this sandbox may not reach"), "{refused}: {answer}");
        assert!(answer.contains(&allowed) && answer.contains("allowed.test"), "{answer}");
    }
    // Allowed, and there is none: the gate has looked it up.
    let answer = run(&sandbox, &ask("allowed.test")).await;
    assert!(answer.starts_with("50"), "{answer}");
    // There is no way around the gate.
    assert_eq!(run(&sandbox, &connects(&other.address, 9000)).await, "not reached");
    let gate = place.engine.docker(["logs", &format!("{}-gate", sandbox.id)]);
    assert!(!gate.contains(sandbox.session_key.as_ref().unwrap().expose()), "{gate}");
    backend.close().await;
    drop((other, second));
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_gate_has_no_rights_and_bounds() {
    let place = Place::new();
    let backend = place.backend();
    let spec = SandboxSpec { network: only(&["a.test"]), ..place.spec("bounds", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    let format = "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.Config.User}} \
                  {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{json .Config.Env}}";
    let gate = format!("{}-gate", sandbox.id);
    let found = place.engine.docker(["inspect", "--format", format, &gate]);
    // Podman tells all capabilities by name.
    assert!(found.starts_with("true [ALL]") || found.starts_with("true [AUDIT_WRITE CHOWN"), "{found}");
    assert!(found.contains("[no-new-privileges] 65534:65534 134217728 64 "), "{found}");
    assert!(!found.contains("SESSION_API_KEY"), "{found}");
    let dropped = place.engine.docker(["inspect", "--format", "{{.HostConfig.CapDrop}}", sandbox.id.as_str()]);
    assert!(dropped.contains("NET_RAW"), "{dropped}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_sandbox_whose_gate_has_died_says_so_and_is_resumed() {
    let place = Place::new();
    let backend = place.backend();
    let spec = SandboxSpec { network: NetworkPolicy::None, keep_alive: true, ..place.spec("gate", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "echo kept > /tmp/file").await;
    let gate = format!("{}-gate", sandbox.id);
    place.engine.docker(["kill", &gate]);
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    let SandboxState::Unknown(reason) = &found.state else { panic!("{:?}", found.state) };
    assert!(reason.contains(&gate) && reason.contains("137") && reason.contains("resume"), "{reason}");
    assert_eq!(found.url, None);

    backend.resume(&sandbox.id).await.unwrap();
    let found = crate::docker::alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&found, "cat /tmp/file").await, "kept");

    // Both rest, and both go on.
    backend.pause(&sandbox.id).await.unwrap();
    let states = || place.engine.docker(["inspect", "--format", "{{.State.Status}}", sandbox.id.as_str(), &gate]);
    assert_eq!(states(), "paused\npaused");
    backend.resume(&sandbox.id).await.unwrap();
    assert_eq!(states(), "running\nrunning");
    assert_eq!(run(&found, "cat /tmp/file").await, "kept");

    // Stopped from outside, as by a restart of the machine.
    place.engine.docker(["stop", "--time", "1", sandbox.id.as_str(), &gate]);
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
    backend.resume(&sandbox.id).await.unwrap();
    let found = crate::docker::alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&found, "cat /tmp/file").await, "kept");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    place.assert_nothing_left();
    backend.close().await;
}

#[tokio::test]
async fn gates_and_networks_without_a_sandbox_are_garbage_of_dead_backends() {
    let place = Place::new();
    let backend = place.backend();
    let spec = SandboxSpec { network: NetworkPolicy::None, ..place.spec("left", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    place.engine.docker(["rm", "--force", "--volumes", sandbox.id.as_str()]);
    let second = place.backend();
    let report = second.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(!report.removed.iter().any(|removed| removed.reason.contains(&place.prefix)), "{report:?}");
    // A new sandbox of the session takes the names over.
    let again = start(&*second, &spec).await;
    assert_eq!(run(&again, "echo here").await, "here");
    place.engine.docker(["rm", "--force", "--volumes", again.id.as_str()]);
    drop(backend);
    drop(second);
    let third = place.backend();
    let only_told = third.collect_garbage(&GcOptions { dry_run: true, ..GcOptions::default() }).await.unwrap();
    let told = only_told.removed.iter().filter(|removed| removed.reason.contains(&place.prefix)).count();
    assert_eq!(told, 2, "{only_told:?}");
    third.collect_garbage(&GcOptions::default()).await.unwrap();
    place.assert_nothing_left();
    third.close().await;
}

#[tokio::test]
async fn what_would_open_a_closed_network_is_refused_before_anything_is_made() {
    let place = Place::new();
    let with = |change: &dyn Fn(&mut Place)| {
        let mut place = Place::new();
        change(&mut place);
        place.backend()
    };
    let kwargs = |value: serde_json::Value| {
        let map: Map<String, serde_json::Value> = value.as_object().unwrap().clone();
        move |place: &mut Place| place.config.sandbox.docker_runtime_kwargs = Some(map.clone().into())
    };
    let closed = SandboxSpec { network: NetworkPolicy::None, ..place.spec("refused", DEBIAN) };
    let wrong = SandboxSpec { network: only(&["10.0.0.1/8"]), ..place.spec("refused", DEBIAN) };
    for (backend, spec, part) in [
        (place.backend(), &wrong, "write `10.0.0.0/8`"),
        (with(&|place| place.config.sandbox.use_host_network = true), &closed, "use_host_network"),
        (
            with(&|place| place.config.sandbox.additional_networks = vec!["other".to_owned()]),
            &closed,
            "additional_networks",
        ),
        (with(&kwargs(json!({"privileged": true}))), &closed, "`privileged`"),
        (with(&kwargs(json!({"network": "bridge"}))), &closed, "`network`"),
        (
            with(&kwargs(json!({"sysctls": {"net.ipv6.conf.all.disable_ipv6": "0"}}))),
            &closed,
            "`net.ipv6.conf.all.disable_ipv6`",
        ),
        (with(&kwargs(json!({"cap_add": ["NET_RAW"]}))), &closed, "`NET_RAW`"),
        (with(&|place| place.extend(&json!({"cap_add": ["NET_ADMIN"]}))), &closed, "`NET_ADMIN`"),
    ] {
        let error = refused(&*backend, spec, Duration::from_secs(5)).await;
        assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "network"), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    place.assert_nothing_left();
}

#[tokio::test]
async fn many_closed_networks_are_made_at_once_and_leave_nothing() {
    let place = Place::new();
    let backend = place.backend();
    let specs: Vec<_> = (0..6)
        .map(|at| SandboxSpec { network: NetworkPolicy::None, ..place.spec(&format!("many-{at}"), DEBIAN) })
        .collect();
    let sandboxes = join_all(specs.iter().map(|spec| start(&*backend, spec))).await;
    let addresses = join_all(sandboxes.iter().map(|sandbox| run(sandbox, "hostname -i"))).await;
    let different: std::collections::BTreeSet<_> = addresses.iter().collect();
    assert_eq!(different.len(), addresses.len(), "{addresses:?}");
    // One does not see another.
    let other = addresses[1].split(' ').next().unwrap();
    assert_eq!(run(&sandboxes[0], &connects(other, 60_000)).await, "not reached");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_gate_is_there_with_a_copied_binary() {
    let mut place = Place::new();
    place.extend(&json!({"binary": "copy"}));
    let backend = place.backend();
    let spec = SandboxSpec { network: only(&["a.test"]), ..place.spec("copied", DEBIAN) };
    let sandbox = start(&*backend, &spec).await;
    assert!(run(&sandbox, &ask("b.test")).await.starts_with("403"));
    backend.close().await;
    place.assert_nothing_left();
}

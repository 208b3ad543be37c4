//! Services with real programs: they start once, are watched, end, and come back.

use std::{
    net::TcpListener,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown},
    time::{Duration, Instant},
};

use crate::support::{Place, SERVER, get, is_alive, python, sh, spec, within};
use gloveport_plugin::{Endpoint, Health, Lease, Listens, PluginState, Service};
use gloveport_sys::Identity;

/// A service that counts its starts in the file `starts` and serves its workspace.
fn server() -> gloveport_plugin::ServiceSpec {
    spec("files", &["python3", "-u", "-c", SERVER, "{port}"])
}

#[tokio::test]
async fn fifty_uses_at_once_start_it_once_and_get_its_port() {
    let place = Place::new();
    let service = Service::new(server(), place.host());
    assert_eq!(*service.state().borrow(), PluginState::Idle);
    let uses: Vec<_> = (0..50)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { service.lease().await.unwrap() })
        })
        .collect();
    let mut leases = Vec::new();
    for using in uses {
        leases.push(using.await.unwrap());
    }
    let first = leases[0].endpoint().clone();
    assert!(leases.iter().all(|lease| *lease.endpoint() == first));
    assert_eq!(place.starts(), 1);
    assert_eq!(*service.state().borrow(), PluginState::Ready);
    assert!(get(&first, "/starts").await.ends_with('x'));
    service.stop().await;
    assert_eq!(*service.state().borrow(), PluginState::Stopped);
    assert!(service.lease().await.unwrap_err().to_string().contains("is stopped"));
}

#[tokio::test]
async fn it_is_reached_at_a_socket_that_only_its_user_can_reach_and_that_is_removed() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    let mut wanted = spec("files", &["python3", "-u", "-c", SERVER, "{socket}"]);
    wanted.listens = Listens::Socket;
    let service = Service::new(wanted, place.host());
    let lease = service.lease().await.unwrap();
    let Endpoint::Socket(path) = lease.endpoint().clone() else { panic!("{lease:?}") };
    assert!(path.metadata().unwrap().file_type().is_socket());
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    service.stop().await;
    assert!(!path.parent().unwrap().exists());
}

#[tokio::test]
async fn timed_stop_ends_a_program_that_ignores_it_and_all_that_it_started_within_two_seconds() {
    let place = Place::new();
    let script = "trap '' TERM HUP; sleep 600 & echo $! >pids; echo $$ >>pids; while :; do sleep 1; done";
    let mut wanted = spec("deaf", &["sh", "-c", script]);
    (wanted.listens, wanted.health) = (Listens::Nowhere, Health::Runs);
    let service = Service::new(wanted, place.host());
    service.start().await.unwrap();
    within("both run", || place.pids().len() == 2).await;
    let pids = place.pids();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    let begin = Instant::now();
    service.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(2).mul_f64(gloveport_testing::pace()), "{:?}", begin.elapsed());
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn one_that_dies_while_it_is_used_is_started_again_at_the_same_port() {
    let place = Place::new();
    let service = Service::new(server(), place.host());
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/die").await.is_empty());
    within("it is started again", || place.starts() == 2).await;
    let again = service.lease().await.unwrap();
    assert_eq!(again.endpoint(), lease.endpoint());
    assert!(get(lease.endpoint(), "/starts").await.ends_with("xx"));
}

#[tokio::test]
async fn pauses_between_restarts_double() {
    let place = Place::new();
    let script = "date +%s%N >>times; echo x >>starts; sleep 0.3";
    let mut wanted = spec("flapping", &["sh", "-c", script]);
    (wanted.listens, wanted.health) = (Listens::Nowhere, Health::Runs);
    wanted.eager = true;
    let service = Service::new(wanted, place.host());
    within("five starts", || place.read("times").lines().count() == 5).await;
    service.stop().await;
    let times: Vec<u64> = place.read("times").lines().map(|line| line.parse().unwrap()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    for (gap, least) in gaps.iter().zip([500, 700, 1100, 1900]) {
        assert!(*gap >= least, "{gaps:?}");
    }
}

#[tokio::test]
async fn one_that_ends_at_once_fails_after_five_starts_and_the_next_use_tries_again() {
    let place = Place::new();
    let service = Service::new(spec("broken", &sh("echo x >>starts; echo no such option >&2; exit 3")), place.host());
    let others: Vec<_> = (0..3)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { service.lease().await.map(drop) })
        })
        .collect();
    let error = service.lease().await.unwrap_err();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap_err(), error);
    }
    assert_eq!(place.starts(), 5);
    for part in [
        "5 starts in a row failed",
        "broken did not start: it ended with status 3 before it accepted",
        "\n  no such option",
    ] {
        assert!(error.reason.contains(part), "{error}");
    }
    let PluginState::Failed { reason, remedy } = service.state().borrow().clone() else { panic!("not failed") };
    assert_eq!((reason, remedy), (error.reason, error.remedy));
    std::fs::write(place.path().join("starts"), "").unwrap();
    assert!(service.lease().await.is_err());
    assert_eq!(place.starts(), 5);
}

#[tokio::test]
async fn one_that_hangs_before_it_is_healthy_is_ended_at_its_limit() {
    let place = Place::new();
    let mut wanted = spec("silent", &sh("echo $$ >>pids; echo waiting for a licence; sleep 600"));
    wanted.start_limit = Duration::from_millis(400);
    let service = Service::new(wanted, place.host());
    let error = service.lease().await.unwrap_err();
    assert!(error.reason.contains("silent did not start: 0.4 s passed before it accepted"), "{error}");
    assert!(error.reason.ends_with("\n  waiting for a licence"), "{error}");
    let pids = place.pids();
    assert!(pids.len() == 5 && !pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn one_that_listens_late_is_waited_for_and_a_use_that_is_given_up_harms_no_other() {
    let place = Place::new();
    let script = format!("sleep 1; exec python3 -u -c '{SERVER}' $0");
    let service = Service::new(spec("late", &["sh", "-c", &script, "{port}"]), place.host());
    let given_up = tokio::time::timeout(Duration::from_millis(100), service.lease()).await;
    assert!(given_up.is_err());
    assert!(matches!(*service.state().borrow(), PluginState::Starting { .. }));
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn a_stop_while_it_starts_ends_it_and_tells_those_who_wait() {
    let place = Place::new();
    let service = Service::new(spec("slow", &sh("echo $$ >pids; sleep 600")), place.host());
    let waits = tokio::spawn({
        let service = service.clone();
        async move { service.lease().await }
    });
    within("it runs", || !place.pids().is_empty()).await;
    service.stop().await;
    assert!(!is_alive(place.pids()[0]));
    assert!(waits.await.unwrap().unwrap_err().reason.contains("slow is stopped"));
}

#[tokio::test]
async fn one_that_nobody_uses_is_stopped_and_started_again_by_the_next_use() {
    let place = Place::new();
    let mut wanted = server();
    wanted.idle_stop = Some(Duration::from_millis(300));
    let service = Service::new(wanted, place.host());
    let mut state = service.state();
    let first = service.lease().await.unwrap();
    let second = service.lease().await.unwrap();
    drop(first);
    let stays = tokio::time::timeout(Duration::from_millis(600), state.wait_for(|state| *state == PluginState::Idle));
    assert!(stays.await.is_err(), "it was stopped while it was used");
    let end = Instant::now();
    drop(second);
    state.wait_for(|state| *state == PluginState::Idle).await.unwrap();
    assert!(end.elapsed() >= Duration::from_millis(300));
    assert!(service.since() > end);
    let third: Lease = service.lease().await.unwrap();
    assert!(get(third.endpoint(), "/starts").await.ends_with("xx"));
}

#[tokio::test]
async fn a_port_that_another_program_takes_in_the_last_moment_is_left_to_it() {
    let place = Place::new();
    // The first start tells its port, waits until somebody else listens there, and ends a while later as programs do then.
    let script = format!(
        "echo x >>starts.all; if [ ! -e asked ]; then echo $0 >asked.new; mv asked.new asked; \
         while [ ! -e taken ]; do sleep 0.01; done; sleep 0.5; echo address in use >&2; exit 1; fi; \
         exec python3 -u -c '{SERVER}' $0"
    );
    let service = Service::new(spec("second", &["sh", "-c", &script, "{port}"]), place.host());
    let lease = tokio::spawn({
        let service = service.clone();
        async move { service.lease().await.unwrap() }
    });
    within("it asks for a port", || place.path().join("asked").exists()).await;
    let port: u16 = place.read("asked").trim().parse().unwrap();
    let other = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::fs::write(place.path().join("taken"), "").unwrap();
    let lease = lease.await.unwrap();
    assert_ne!(*lease.endpoint(), Endpoint::Port(port));
    assert_eq!(place.read("starts.all"), "x\nx\n");
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    drop(other);
}

#[tokio::test]
async fn a_fixed_port_that_is_taken_is_never_mistaken_for_the_service() {
    let place = Place::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let mut wanted = server();
    wanted.listens = Listens::Port(port);
    let service = Service::new(wanted, place.host());
    let error = service.lease().await.unwrap_err();
    assert!(error.reason.ends_with(&format!("port {port} is taken by another program")), "{error}");
    drop(other);
    let lease = service.lease().await.unwrap();
    assert_eq!(*lease.endpoint(), Endpoint::Port(port));
}

#[tokio::test]
async fn health_by_http_waits_for_a_status_below_500() {
    let place = Place::new();
    let mut wanted = spec("files", &["python3", "-u", "-c", SERVER, "{port}"]);
    wanted.health = Health::Http("/third".into());
    let service = Service::new(wanted, place.host());
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/asked").await.ends_with("xxx"));
}

#[tokio::test]
async fn a_set_up_runs_once_before_the_first_start_and_again_only_if_it_failed() {
    let place = Place::new();
    let mut wanted = server();
    wanted.set_up = Some(python(
        "import sys, pathlib; open('set-up', 'a').write('x'); print('no network'); sys.exit(not pathlib.Path('allowed').exists())",
    ));
    let service = Service::new(wanted, place.host());
    let error = service.lease().await.unwrap_err();
    assert!(error.reason.starts_with("the set-up of files failed: it ended with status 1\n  no network"), "{error}");
    assert_eq!((place.starts(), place.read("set-up").as_str()), (0, "x"));
    std::fs::write(place.path().join("allowed"), "").unwrap();
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/die").await.is_empty());
    within("it is started again", || place.starts() == 2).await;
    assert_eq!(place.read("set-up"), "xx");
}

#[tokio::test]
async fn a_set_up_that_hangs_is_ended_at_its_limit() {
    let place = Place::new();
    let mut wanted = server();
    wanted.set_up = Some(sh("echo $$ >pids; sleep 600 & echo $! >>pids; wait").iter().map(Into::into).collect());
    wanted.set_up_limit = Duration::from_secs(1);
    let service = Service::new(wanted, place.host());
    let error = service.lease().await.unwrap_err();
    assert_eq!(error.reason, "the set-up of files failed: it did not end within 1 s");
    let pids = place.pids();
    assert!(pids.len() == 2 && !pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn a_program_that_forks_away_has_ended_and_leaves_nothing() {
    let place = Place::new();
    let service = Service::new(spec("daemon", &sh("sleep 600 & echo $! >>pids; exit 0")), place.host());
    let error = service.lease().await.unwrap_err();
    assert!(error.reason.contains("it ended with status 0 before it accepted"), "{error}");
    assert!(error.remedy.contains("foreground"), "{error}");
    let pids = place.pids();
    assert!(pids.len() == 5 && !pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_hold_up_nothing_and_the_last_of_it_is_kept() {
    let place = Place::new();
    let script = format!("yes 0123456789abcde | head -c 100000000; echo; echo done; exec python3 -u -c '{SERVER}' $0");
    let service = Service::new(spec("loud", &["sh", "-c", &script, "{port}"]), place.host());
    let lease = service.lease().await.unwrap();
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    let log = service.logs();
    assert!(log.len() <= 256 * 1024 && log.len() > 200 * 1024, "{}", log.len());
    assert!(String::from_utf8_lossy(&log).contains("0123456789abcde\n\ndone\n"));
}

#[tokio::test]
async fn two_services_know_nothing_of_each_other() {
    let (one, two) = (Place::new(), Place::new());
    let first = Service::new(server(), one.host());
    let second = Service::new(server(), two.host());
    let (kept, other) = tokio::join!(first.lease(), second.lease());
    let (kept, other) = (kept.unwrap(), other.unwrap());
    assert_ne!(kept.endpoint(), other.endpoint());
    second.stop().await;
    assert!(get(kept.endpoint(), "/starts").await.ends_with('x'));
}

#[tokio::test]
async fn timed_a_program_that_is_not_there_is_named_at_once() {
    let place = Place::new();
    let service = Service::new(spec("none", &["no-such-server", "{port}"]), place.host());
    let begin = Instant::now();
    let error = service.lease().await.unwrap_err();
    assert_eq!(error.reason, "none did not start: `no-such-server` is not installed in the sandbox");
    assert!(begin.elapsed() < Duration::from_secs(1).mul_f64(gloveport_testing::pace()));
}

#[tokio::test]
async fn a_service_that_is_dropped_leaves_nothing() {
    let place = Place::new();
    let mut wanted = spec("short", &sh("echo $$ >pids; sleep 600"));
    (wanted.listens, wanted.health) = (Listens::Nowhere, Health::Runs);
    let service = Service::new(wanted, place.host());
    service.start().await.unwrap();
    within("it runs", || !place.pids().is_empty()).await;
    drop(service);
    within("it ended", || !is_alive(place.pids()[0])).await;
}

#[tokio::test]
async fn words_and_variables_of_a_command_have_the_values_of_the_sandbox() {
    let place = Place::new();
    let mut wanted = spec("values", &["sh", "-c", "echo $AT $1 $2 >values; sleep 600", "sh", "{workspace}", "{base}"]);
    wanted.environment = [("AT".to_owned(), "<{port}>".to_owned())].into();
    (wanted.listens, wanted.health) = (Listens::Port(1), Health::Runs);
    let service = Service::new(wanted, place.host());
    service.start().await.unwrap();
    within("it runs", || place.read("values").ends_with('\n')).await;
    assert_eq!(place.read("values"), format!("<1> {} /plugins/values\n", place.path().display()));
}

#[tokio::test]
async fn a_program_of_another_user_listens_at_a_socket_of_that_user() {
    // Only root can start programs as others.
    let own = rustix::process::geteuid().as_raw();
    let uid = if own == 0 { 65534 } else { own };
    let place = Place::new();
    let mut host = place.host();
    if own == 0 {
        host.surroundings.identity = Some(Identity { uid, gid: uid, groups: Vec::new() });
        host.surroundings.set("PATH", "/usr/bin:/bin");
        chown(place.path(), Some(uid), Some(uid)).unwrap();
    }
    let mut wanted = spec("files", &["python3", "-u", "-c", SERVER, "{socket}"]);
    wanted.listens = Listens::Socket;
    let service = Service::new(wanted, host);
    let lease = service.lease().await.unwrap();
    let Endpoint::Socket(path) = lease.endpoint().clone() else { panic!("{lease:?}") };
    assert_eq!((path.metadata().unwrap().uid(), path.parent().unwrap().metadata().unwrap().uid()), (uid, uid));
    assert!(get(lease.endpoint(), "/starts").await.ends_with('x'));
    service.stop().await;
    assert!(!path.parent().unwrap().exists());
}

//! Kills of any of those who own the processes of a sandbox, at once or one after the other, from outside and by a command
//! of the sandbox: nothing lives on, and nothing is left.
//!
//! `GLOVEPORT_TEST_ROUNDS` says how many rounds are played; a few are enough to see that it works. `scripts/test --thorough`
//! plays many.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::sandboxes::{Place, alive_in, run, session, spec, try_run};
use crate::support::Server;
use gloveport_provider::{GcOptions, ListFilter, Progress, Provider, Sandbox, SandboxSpec, SandboxState};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};

/// Rounds if nothing else is said.
const ROUNDS: u64 = 12;
/// The same with `scripts/test --thorough`.
const THOROUGH_ROUNDS: u64 = 100;
/// Time after which nothing may live.
const GONE: Duration = Duration::from_secs(2);
/// Programs that do not want to be found: deaf, in sessions of their own, adopted by others, without their environment.
const HIDDEN: &str = "sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & (trap '' HUP TERM INT; sleep 1000) & \
    setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; env -i sleep 1000 & \
    (setsid nohup sh -c 'trap \"\" HUP TERM; sleep 1000' >/dev/null 2>&1 &); disown -a; sleep 0.05; echo started";

fn rounds() -> u64 {
    let usual = if std::env::var_os("GLOVEPORT_THOROUGH").is_some() { THOROUGH_ROUNDS } else { ROUNDS };
    std::env::var("GLOVEPORT_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Those who own a process of a sandbox, from the top, and the shell.
#[derive(Debug)]
struct Owners {
    server: u32,
    guard: u32,
    owner: u32,
    shell: u32,
}

impl Owners {
    fn of(server: u32) -> Self {
        let child = |parent: u32, name: &str| {
            let named = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.name == name);
            process::children(parent).into_iter().find(named).unwrap()
        };
        let guard = child(server, "gloveport-guard");
        let owner = child(guard, "gloveport-owner");
        Self { server, guard, owner, shell: child(owner, "bash") }
    }

    /// A subset that is not empty: one bit for each.
    fn chosen(&self, bits: u64) -> Vec<u32> {
        let all = [self.server, self.guard, self.owner, self.shell];
        all.into_iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1).map(|(_, pid)| pid).collect()
    }
}

/// Who is killed, in the bits of a subset.
const SERVER: u64 = 1;
const GUARD: u64 = 2;
const OWNER: u64 = 4;

/// How they are killed.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// From outside, at the same moment: none of them runs between the first and the last.
    Together,
    /// From outside, one after the other.
    InTurn,
    /// By a command of the sandbox.
    Inside,
}

const WAYS: [Way; 3] = [Way::Together, Way::InTurn, Way::Inside];

fn signal(pid: u32, signal: Signal) {
    let _gone = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal);
}

fn kill(way: Way, pids: &[u32]) {
    let signals: &[Signal] = if matches!(way, Way::Together) { &[Signal::STOP, Signal::KILL] } else { &[Signal::KILL] };
    for number in signals {
        for pid in pids {
            signal(*pid, *number);
        }
    }
}

/// The command of a sandbox that kills: it lives on when its shell is gone.
fn kill_line(pids: &[u32]) -> String {
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    format!("setsid -f sh -c 'kill -9 {}'", words.join(" "))
}

async fn all_gone(place: &Place, context: &str) {
    let began = Instant::now();
    loop {
        let alive = alive_in(place);
        if alive.is_empty() {
            return;
        }
        assert!(began.elapsed() < GONE, "{context}: these live after {GONE:?}: {alive:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn server_of(place: &Place) -> u32 {
    let ours = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.name == "gloveport");
    let state = place.state().display().to_string();
    let line = |pid: &u32| process::command_line(*pid).is_some_and(|line| line.contains(&state));
    process::children(std::process::id()).into_iter().filter(ours).find(line).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_owns_a_sandbox_is_killed_nothing_of_it_lives_on_and_nothing_is_left() {
    let mut dice = Dice(20_251_122);
    for round in 0..rounds() {
        let place = Place::new();
        let local = place.backend();
        let wanted = SandboxSpec { keep_alive: dice.roll(2) == 0, ..spec("kills") };
        let sandbox = local.create(&wanted, &Progress::silent()).await.unwrap();
        assert!(run(&sandbox, HIDDEN).await.ends_with("started"), "round {round}");
        let owners = Owners::of(server_of(&place));
        let bits = dice.roll(15) + 1;
        let way = WAYS[usize::try_from(dice.roll(3)).unwrap()];
        let context = format!("round {round}, {way:?}, subset {bits:04b} of {owners:?}");
        let before = alive_in(&place).len();
        assert!(before >= 11, "{context}: only {before} live");
        let pids = owners.chosen(bits);
        match way {
            Way::Inside => drop(try_run(&sandbox, &kill_line(&pids)).await),
            _ => kill(way, &pids),
        }
        if bits & (SERVER | GUARD) == 0 {
            lives_on(&sandbox, &context).await;
            assert!(local.delete(&sandbox.id).await.unwrap(), "{context}");
        } else {
            all_gone(&place, &context).await;
            let found = local.find_session(&session("kills")).await.unwrap();
            let told = found.as_ref().map(|sandbox| &sandbox.state);
            assert!(
                matches!(told, None | Some(SandboxState::Failed(_) | SandboxState::Stopped(_))),
                "{context}: {told:?}"
            );
            local.collect_garbage(&GcOptions::default()).await.unwrap();
        }
        all_gone(&place, &context).await;
        // The session can have another one at once.
        let again = local.create(&spec("kills"), &Progress::silent()).await.unwrap();
        assert_eq!(run(&again, "echo again").await, "again", "{context}");
        local.close().await;
        all_gone(&place, &context).await;
        assert_eq!(place.left(), Vec::<String>::new(), "{context}");
    }
}

/// A sandbox whose server and guard live has a shell, whoever else was killed.
async fn lives_on(sandbox: &Sandbox, context: &str) {
    let began = Instant::now();
    // The kill may be on its way, or be noticed by the first command.
    while !try_run(sandbox, "echo well").await.is_ok_and(|output| output == "well") {
        assert!(began.elapsed() < crate::sandboxes::LIMIT, "{context}: it does not answer");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// All three at once: whoever looks ends the rest and tells the truth.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_tells_that_a_sandbox_failed_whose_owners_were_all_killed_and_ends_what_lives() {
    let place = Place::new();
    let backend = place.backend();
    let wanted = SandboxSpec { keep_alive: true, ..spec("kills") };
    let sandbox = backend.create(&wanted, &Progress::silent()).await.unwrap();
    run(&sandbox, HIDDEN).await;
    let owners = Owners::of(server_of(&place));
    // The backend that made it looks at the same time.
    let looker = place.backend();
    let killed = owners.chosen(SERVER | GUARD | OWNER);
    kill(Way::Together, &killed);
    // A killed process is dead a moment later, and until then it is true that it runs.
    let dead = |pid: &u32| process::stat(*pid).is_none_or(|stat| stat.state == 'Z');
    crate::sandboxes::until("the killed are dead", || killed.iter().all(dead)).await;
    let listed = looker.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap();
    assert!(matches!(listed[..], [Sandbox { state: SandboxState::Failed(_), .. }]), "{listed:?}");
    all_gone(&place, "listed").await;
    backend.close().await;
    crate::sandboxes::until("the backend is gone", || alive_in(&place).is_empty()).await;
    looker.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(place.left(), Vec::<String>::new());
}

/// What lives in a directory.
fn living_in(home: &Path) -> Vec<u32> {
    let here = |pid: &u32| process::working_directory(*pid).is_some_and(|path| path.starts_with(home));
    let lives = |pid: &u32| process::stat(*pid).is_some_and(|stat| stat.state != 'Z');
    process::all().into_iter().filter(here).filter(lives).collect()
}

/// A server that nobody watches: what lives on is ended by the next start.
#[test]
fn the_next_start_ends_what_a_server_left_that_was_killed_with_all_its_owners() {
    for round in 0..rounds().div_ceil(6) {
        let mut server = Server::compat(&[], &[]);
        assert!(server.run(HIDDEN, 20.0)["content"].as_str().unwrap().ends_with("started"));
        let owners = Owners::of(server.child.id());
        // The shell, and at least one program of each kind that hides; those that end others are ended with them.
        let began = Instant::now();
        while living_in(server.home.path()).len() < 9 {
            assert!(began.elapsed() < GONE, "round {round}: {:?} began", living_in(server.home.path()));
            std::thread::sleep(Duration::from_millis(1));
        }
        kill(Way::Together, &owners.chosen(SERVER | GUARD | OWNER));
        server.child.wait().unwrap();
        let left = living_in(server.home.path());
        assert!(!left.is_empty(), "round {round}: nothing was left for the next start");
        let elsewhere = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut next = crate::support::gloveport(server.home.path())
            .args(["action-execution-server", &port.to_string(), "--username", "root", "--user-id", "0"])
            .arg("--no-enable-browser")
            .arg("--working-dir")
            .arg(elsewhere.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !living_in(server.home.path()).is_empty() {
            let lives = living_in(server.home.path());
            assert!(began.elapsed() < GONE, "round {round}: {lives:?} live");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(next.id(), Signal::TERM);
        next.wait().unwrap();
        let notes = server.home.path().join(".gloveport-0/sandboxes");
        let names = std::fs::read_dir(notes).into_iter().flatten().count();
        assert_eq!(names, 0, "round {round}");
    }
}

/// A server whose guard and owner are killed by its own programs ends, and says why.
#[test]
fn a_server_whose_guard_is_killed_with_an_owner_ends_everything_and_itself() {
    let mut server = Server::compat(&[], &[]);
    assert!(server.run(HIDDEN, 20.0)["content"].as_str().unwrap().ends_with("started"));
    let owners = Owners::of(server.child.id());
    let _connection = server.send(
        "POST",
        "/execute_action",
        "",
        &crate::support::run_body(&kill_line(&owners.chosen(GUARD | OWNER)), 20.0),
    );
    let began = Instant::now();
    while !living_in(server.home.path()).is_empty() {
        assert!(began.elapsed() < GONE, "{:?} live", living_in(server.home.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
}

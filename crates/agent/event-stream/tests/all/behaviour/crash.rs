//! What is left of a history when its writer is killed.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::behaviour::common::{local, open, said, within};
use gloveport_event_stream::{EventStore, EventStream, HistoryError, Search};

/// How often a writer is killed.
const KILLS: u32 = 50;
/// The same with `scripts/test --thorough`.
const THOROUGH_KILLS: u32 = 200;

/// The program that appends.
pub(crate) fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples/history");
    assert!(path.is_file(), "{} is not built; run cargo with --examples", path.display());
    path
}

fn writer(root: &Path, writers: u32) -> Child {
    Command::new(program())
        .args(["append", root.to_str().unwrap(), "s", &writers.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }
}

/// What a writer said was stored.
type Acknowledged = BTreeMap<i64, String>;

/// Has events appended until a number of them is acknowledged and some time has passed, and kills the writer.
fn killed_while_appending(root: &Path, dice: &mut Dice) -> Acknowledged {
    let mut child = writer(root, 1 + dice.roll(4));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    let lines = 1 + dice.roll(40);
    for _ in 0..=lines {
        output.read_line(&mut text).unwrap();
    }
    std::thread::sleep(Duration::from_micros(u64::from(dice.roll(2_000))));
    child.kill().unwrap();
    child.wait().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("open\n"), "{text}");
    // The last line may be cut.
    let end = text.rfind('\n').unwrap();
    let mut acknowledged = Acknowledged::new();
    for line in text[..end].lines().skip(1) {
        let (id, text) = line.split_once(' ').unwrap();
        assert_eq!(acknowledged.insert(id.parse().unwrap(), text.to_owned()), None, "{id} was given twice");
    }
    acknowledged
}

/// Does to event files what the loss of power does to files that are not synced, and then kills a writer that repairs
/// them.
fn killed_while_repairing(root: &Path, recent: &[i64], dice: &mut Dice) {
    for id in recent {
        let path = root.join(format!("sessions/s/events/{id}.json"));
        let text = fs::read(&path).unwrap_or_default();
        // It may be missing from the time before. What is written over an old file would be synced at once.
        drop(fs::remove_file(&path));
        match dice.roll(4) {
            0 => {}
            1 => fs::write(path, "").unwrap(),
            2 => fs::write(path, &text[..text.len() / 2]).unwrap(),
            _ => fs::write(path, [0; 200]).unwrap(),
        }
    }
    let mut child = writer(root, 1);
    std::thread::sleep(Duration::from_micros(u64::from(dice.roll(12_000))));
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn is_shown(store: &EventStore, acknowledged: &Acknowledged) {
    for (id, text) in acknowledged {
        assert_eq!(said(&store.event(*id).await.unwrap()), *text, "{id}");
    }
}

#[tokio::test]
async fn a_writer_that_is_killed_loses_nothing_that_it_acknowledged() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let store = EventStore::new(local(root), "s", None);
    let mut dice = Dice(7);
    let mut acknowledged = Acknowledged::new();
    let began = Instant::now();
    let kills = if std::env::var_os("GLOVEPORT_THOROUGH").is_some() { THOROUGH_KILLS } else { KILLS };
    for kill in 0..kills {
        if kill % 4 == 3 {
            let recent: Vec<_> = acknowledged.keys().rev().take(100).copied().collect();
            killed_while_repairing(root, &recent, &mut dice);
            continue;
        }
        let now = killed_while_appending(root, &mut dice);
        is_shown(&store, &now).await;
        for (id, text) in now {
            assert_eq!(acknowledged.insert(id, text), None, "{id} was given twice");
        }
    }
    // What the last kill left is repaired once more.
    let recent: Vec<_> = acknowledged.keys().rev().take(100).copied().collect();
    killed_while_repairing(root, &recent, &mut dice);
    let stream = open(root).await;
    is_shown(&store, &acknowledged).await;
    let mut shown = 0;
    let mut events = store.search(Search::default());
    while let Some(event) = events.next().await.unwrap() {
        // Numbers without a gap, and none twice.
        assert_eq!(event.id(), Some(shown));
        shown += 1;
    }
    assert_eq!(store.next_id().await.unwrap(), shown);
    for id in 0..shown {
        store.event(id).await.unwrap();
    }
    within(stream.close()).await;
    println!("{kills} kills in {:?}: {} events acknowledged, {shown} shown", began.elapsed(), acknowledged.len());
}

#[tokio::test]
async fn a_second_process_is_kept_out_until_the_first_is_dead() {
    let root = tempfile::tempdir().unwrap();
    let mut child = writer(root.path(), 1);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    let refused = EventStream::open_local(root.path(), None, "s", None).await;
    assert!(matches!(refused, Err(HistoryError::Locked { .. })), "{refused:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let stream = open(root.path()).await;
    within(stream.close()).await;
}

//! The log is dropped without being closed to have what a kill leaves; files are damaged as a loss of power may.

use std::{collections::BTreeMap, fs::OpenOptions, os::unix::fs::FileExt as _};

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::store::create_directories;

/// A journal that is full soon, so that it changes files often.
const SMALL: JournalLimits = JournalLimits { length: 2_000, count: 12 };

fn entry(id: i64, filler: usize) -> Entry {
    Entry { id, text: Bytes::from(format!("{{\"id\": {id}, \"text\": \"{}\"}}", "x".repeat(filler))) }
}

fn open(root: &Path) -> (LocalLog, i64) {
    LocalLog::open(&root.join("c"), SMALL).unwrap()
}

fn append(log: &mut LocalLog, entries: &[Entry]) {
    let (count, error) = log.append(entries);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(count, entries.len());
}

fn stored(root: &Path, id: i64) -> Vec<u8> {
    fs::read(root.join(format!("c/events/{id}.json"))).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_closed_log_leaves_events_and_pages_only() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, next) = open(root.path());
    assert_eq!(next, 0);
    for id in 0..60 {
        append(&mut log, &[entry(id, 10)]);
        let size: u64 = log.journals.iter().map(JournalFile::length).sum();
        assert!(size <= 2 * (SMALL.length + 100), "{size}");
    }
    log.close().unwrap();
    assert_eq!(names(&root.path().join("c")), ["event_cache", "events"]);
    assert_eq!(names(&root.path().join("c/event_cache")), ["0-25.json", "25-50.json"]);
    assert_eq!(names(&root.path().join("c/events")).len(), 60);
}

#[test]
fn events_are_synced_one_by_one_where_they_must_be() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open(root.path());
    append(&mut log, &(0..30).map(|id| entry(id, 10)).collect::<Vec<_>>());
    // One that somebody has removed is none that fails.
    fs::remove_file(root.path().join("c/events/3.json")).unwrap();
    log.files.sync_each(&(0..30).collect::<Vec<_>>()).unwrap();
    fs::remove_dir_all(root.path().join("c/event_cache")).unwrap();
    let error = log.files.sync_each(&[0]).unwrap_err();
    assert_eq!((error.operation, error.path), ("sync", root.path().join("c/event_cache")));
}

#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open(root.path());
    append(&mut log, &(0..25).map(|id| entry(id, 10)).collect::<Vec<_>>());
    let mode = |path: &str| fs::metadata(root.path().join(path)).unwrap().permissions().mode() & 0o777;
    for path in ["c/events/0.json", "c/event_cache/0-25.json", "c/events.journal", "c/events.journal.1"] {
        assert_eq!(mode(path), 0o600, "{path}");
    }
    for path in ["c", "c/events", "c/event_cache"] {
        assert_eq!(mode(path), 0o700, "{path}");
    }
}

#[test]
fn what_another_program_has_stored_after_a_crash_stays() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open(root.path());
    append(&mut log, &[entry(0, 1), entry(1, 1)]);
    drop(log);
    let place = root.path().join("c/events/1.json");
    let other = "{\"id\": 1, \"by\": \"somebody else\"}";
    fs::write(&place, other).unwrap();
    fs::write(root.path().join("c/events/2.json"), "{\"id\": 2}").unwrap();
    let (log, next) = open(root.path());
    assert_eq!(next, 3);
    assert_eq!(fs::read_to_string(&place).unwrap(), other);
    log.close().unwrap();
}

#[test]
fn a_page_that_a_crash_has_torn_is_removed() {
    for damage in ["", "[", "null"] {
        let root = tempfile::tempdir().unwrap();
        let (mut log, _) = LocalLog::open(&root.path().join("c"), JournalLimits::default()).unwrap();
        append(&mut log, &(0..60).map(|id| entry(id, 1)).collect::<Vec<_>>());
        drop(log);
        fs::write(root.path().join("c/event_cache/25-50.json"), damage).unwrap();
        let (log, _) = open(root.path());
        assert_eq!(names(&root.path().join("c/event_cache")), ["0-25.json"]);
        log.close().unwrap();
    }
}

#[test]
fn an_event_that_cannot_be_shown_is_not_in_the_journal_either() {
    let root = tempfile::tempdir().unwrap();
    let events = root.path().join("c/events");
    let away = root.path().join("away");
    let (mut log, _) = open(root.path());
    append(&mut log, &[entry(0, 1)]);
    append(&mut log, &[entry(1, 1)]);
    fs::rename(&events, &away).unwrap();
    let (count, error) = log.append(&[entry(2, 2)]);
    let text = format!("cannot write '{}': No such file or directory (os error 2)", events.join("2.json").display());
    assert!(matches!(error, Some(AppendError::Failed(error)) if error.to_string() == text));
    assert_eq!(count, 0);
    fs::rename(&away, &events).unwrap();
    append(&mut log, &[entry(2, 3)]);
    drop(log);
    for id in 0..3 {
        fs::remove_file(events.join(format!("{id}.json"))).unwrap();
    }
    let (log, next) = open(root.path());
    assert_eq!(next, 3);
    for (id, filler) in [(0, 1), (1, 1), (2, 3)] {
        assert_eq!(stored(root.path(), id), entry(id, filler).text);
    }
    log.close().unwrap();
}

#[test]
fn an_event_that_another_program_adds_meanwhile_is_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let (mut log, _) = open(root.path());
    append(&mut log, &[entry(0, 1)]);
    let other = "{\"id\": 2, \"by\": \"somebody else\"}";
    fs::write(root.path().join("c/events/2.json"), other).unwrap();
    let (count, error) = log.append(&[entry(1, 1), entry(2, 1), entry(3, 1)]);
    assert!(matches!(error, Some(AppendError::Taken { next: 3 })), "{error:?}");
    assert_eq!(count, 1);
    append(&mut log, &[entry(3, 2), entry(4, 2)]);
    drop(log);
    for id in [0, 1, 3, 4] {
        fs::remove_file(root.path().join(format!("c/events/{id}.json"))).unwrap();
    }
    let (log, next) = open(root.path());
    assert_eq!(next, 5);
    assert_eq!(stored(root.path(), 2), other.as_bytes());
    for (id, filler) in [(0, 1), (1, 1), (3, 2), (4, 2)] {
        assert_eq!(stored(root.path(), id), entry(id, filler).text);
    }
    log.close().unwrap();
}

#[test]
fn a_log_is_open_once() {
    let root = tempfile::tempdir().unwrap();
    let (log, _) = open(root.path());
    assert!(matches!(LocalLog::open(&root.path().join("c"), SMALL), Err(HistoryError::Locked { .. })));
    log.close().unwrap();
    open(root.path()).0.close().unwrap();
}

#[test]
fn the_lock_is_never_on_a_file_that_was_removed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_owned();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            thread::spawn(move || {
                let mut count = 0;
                while count < 25 {
                    match LocalLog::open(&path.join("c"), SMALL) {
                        Ok((mut log, next)) => {
                            append(&mut log, &[entry(next, 1)]);
                            log.close().unwrap();
                            count += 1;
                        }
                        Err(HistoryError::Locked { .. }) => thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(names(&root.path().join("c/events")).len(), 100);
}

#[test]
fn names_that_are_no_numbers_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let events = root.path().join("c/events");
    create_directories(&events).unwrap();
    for name in ["7.json", "x.json", "-3.json", ".json", "notes"] {
        fs::write(events.join(name), "{}").unwrap();
    }
    let (log, next) = open(root.path());
    assert_eq!(next, 8);
    log.close().unwrap();
}

/// What happens between two openings.
#[derive(Clone, Debug)]
struct Life {
    /// Lengths of the batches, with how long their texts are.
    batches: Vec<(usize, usize)>,
    /// Which events of the journal lose what.
    damage: Vec<(Index, Damage)>,
    /// What stands behind the journal.
    tail: Vec<u8>,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Missing,
    Empty,
    Torn,
    Zeros,
}

fn life() -> impl Strategy<Value = Life> {
    let damage = prop_oneof![Just(Damage::Missing), Just(Damage::Empty), Just(Damage::Torn), Just(Damage::Zeros)];
    (
        prop::collection::vec((1_usize..9, 0_usize..300), 0..12),
        prop::collection::vec((any::<Index>(), damage), 0..12),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(batches, damage, tail, is_closed)| Life { batches, damage, tail, is_closed })
}

fn damage(place: &Path, damage: Damage) {
    let content = fs::read(place).unwrap_or_default();
    match damage {
        Damage::Missing => drop(fs::remove_file(place)),
        Damage::Empty => fs::write(place, "").unwrap(),
        Damage::Torn => fs::write(place, &content[..content.len() / 2]).unwrap(),
        Damage::Zeros => fs::write(place, vec![0; content.len()]).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_was_appended_is_lost(lives in prop::collection::vec(life(), 1..6)) {
        let root = tempfile::tempdir().unwrap();
        let mut expected = BTreeMap::new();
        for life in lives {
            let (mut log, mut next) = open(root.path());
            prop_assert_eq!(next, i64::try_from(expected.len()).unwrap());
            for (count, filler) in life.batches {
                let entries: Vec<_> = (next..).take(count).map(|id| entry(id, filler)).collect();
                append(&mut log, &entries);
                next += i64::try_from(count).unwrap();
                expected.extend(entries.into_iter().map(|entry| (entry.id, entry.text)));
            }
            if life.is_closed {
                log.close().unwrap();
                continue;
            }
            let journalled: Vec<_> = log.journals.iter().flat_map(|journal| journal.ids().to_vec()).collect();
            let active = root.path().join("c").join(JOURNALS[log.active]);
            let end = log.journals[log.active].length();
            drop(log);
            if !journalled.is_empty() {
                for (at, kind) in life.damage {
                    damage(&root.path().join(format!("c/events/{}.json", at.get(&journalled))), kind);
                }
            }
            let file = OpenOptions::new().write(true).open(active).unwrap();
            file.write_all_at(&life.tail, end).unwrap();
        }
        let (log, next) = open(root.path());
        prop_assert_eq!(next, i64::try_from(expected.len()).unwrap());
        for (id, text) in &expected {
            prop_assert_eq!(&stored(root.path(), *id), text);
        }
        for page in names(&root.path().join("c/event_cache")) {
            let start: i64 = page.split('-').next().unwrap().parse().unwrap();
            let content = fs::read(root.path().join("c/event_cache").join(page)).unwrap();
            prop_assert!(log.files.is_page(&content, start));
        }
        log.close().unwrap();
    }
}

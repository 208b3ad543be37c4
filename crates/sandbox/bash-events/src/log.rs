//! All events, a file each: kept within bounds, found, cleared.
//!
//! The names of the files say all that is needed to find an event, so that nothing has to be read when a server starts. The
//! directory may be one that programs of the sandbox write to: what is no file of ours is passed over, and none is read that
//! is larger than an event can be.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::OFlags;
use serde::Deserialize;
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    event::{self, Event, Key, Kind, Output},
    search::{Page, Search},
};

/// Most events that are kept; the oldest go first.
pub const MOST_EVENTS: usize = 100_000;
/// Most bytes of them on the disk.
pub const MOST_BYTES: u64 = 4 << 30;
/// Largest event: two chunks, each character written as six.
const LARGEST: u64 = 32 * 1024 * 1024;

/// All events.
#[derive(Debug)]
pub struct Log {
    directory: PathBuf,
    /// Held while an event is added, so that they appear in the order of their times.
    adding: Mutex<()>,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    all: BTreeMap<Key, Entry>,
    ids: HashMap<Uuid, Key>,
    outputs: HashMap<Uuid, Vec<Key>>,
    bytes: u64,
    last: i64,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Whose output it is.
    command: Option<Uuid>,
    order: u64,
    bytes: u64,
    /// Its JSON, if the disk did not take it.
    kept: Option<Arc<[u8]>>,
}

impl State {
    fn insert(&mut self, key: Key, entry: Entry) {
        if let Some(command) = entry.command {
            self.outputs.entry(command).or_default().push(key);
        }
        self.bytes += entry.bytes;
        self.last = self.last.max(key.micros);
        self.ids.insert(key.id, key);
        self.all.insert(key, entry);
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.all.remove(&key)?;
        self.ids.remove(&key.id);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if let Some(command) = entry.command
            && let Some(keys) = self.outputs.get_mut(&command)
        {
            keys.retain(|known| *known != key);
            if keys.is_empty() {
                self.outputs.remove(&command);
            }
        }
        Some(entry)
    }
}

impl Log {
    /// The log in this directory, which is made when there is something to keep. What is there already belongs to it.
    pub fn open(directory: PathBuf) -> Self {
        let mut found: Vec<(Key, Entry)> = fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter_map(|file| {
                let (key, command, order) = parsed(file.file_name().to_str()?)?;
                let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
                (metadata.len() <= LARGEST)
                    .then_some((key, Entry { command, order, bytes: metadata.len(), kept: None }))
            })
            .take(2 * MOST_EVENTS)
            .collect();
        found.sort_by_key(|(key, _)| *key);
        let mut state = State::default();
        // A time in the future, from a clock that was wrong, would hold all others up.
        let now = event::now();
        for (key, entry) in found {
            if key.micros <= now {
                state.insert(key, entry);
            }
        }
        Self { directory, adding: Mutex::default(), state: Mutex::new(state), changes: watch::Sender::new(0) }
    }

    /// Is changed with each event that is added.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds an event, and answers with its key and its JSON. It blocks.
    ///
    /// # Errors
    ///
    /// A command cannot be kept. Output that cannot be kept is an event that says so.
    pub fn add(&self, id: Uuid, event: &Event) -> io::Result<(Key, Vec<u8>)> {
        let _turn = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let micros = event::now().max(self.state().last + 1);
        let key = Key { micros, kind: event.kind(), id };
        let (command, order) = match event {
            Event::Command(_) => (None, 0),
            Event::Output(output) => (Some(output.command), output.order),
        };
        let mut json = event.json(key);
        let mut kept = None;
        if let Err(error) = self.write(&name(key, command, order), &json) {
            let Event::Output(output) = event else { return Err(error) };
            tracing::error!(%error, directory = %self.directory.display(), "output of a command cannot be kept");
            let stderr = format!("the output cannot be kept in {}: {error}\n", self.directory.display());
            let short = Output { stdout: String::new(), stderr, ..output.clone() };
            json = Event::Output(short).json(key);
            kept = Some(json.as_slice().into());
        }
        let gone = {
            let mut state = self.state();
            state.insert(key, Entry { command, order, bytes: json.len() as u64, kept });
            let mut gone = Vec::new();
            while state.all.len() > MOST_EVENTS || state.bytes > MOST_BYTES {
                let Some(oldest) = state.all.keys().next().copied().filter(|oldest| *oldest != key) else { break };
                gone.extend(state.remove(oldest).map(|entry| (oldest, entry)));
            }
            gone
        };
        self.unlink(gone);
        self.changes.send_modify(|count| *count += 1);
        Ok((key, json))
    }

    fn write(&self, name: &str, json: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let opened = options.open(&path).or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            fs::create_dir_all(&self.directory)?;
            options.open(&path)
        });
        let mut file = opened?;
        file.write_all(json).inspect_err(|_| {
            let _gone = fs::remove_file(&path);
        })
    }

    /// The JSON of an event; `None` if it is no more, or if somebody changed its file. It blocks.
    pub fn read(&self, key: Key) -> Option<Vec<u8>> {
        let entry = self.state().all.get(&key).cloned()?;
        if let Some(kept) = entry.kept {
            return Some(kept.to_vec());
        }
        let path = self.directory.join(name(key, entry.command, entry.order));
        let json =
            read_file(&path).inspect_err(|error| tracing::debug!(%error, path = %path.display(), "an event is lost"));
        json.ok().filter(|json| is_event(json, key.id))
    }

    /// The key of the event of this id.
    pub fn find(&self, id: Uuid) -> Option<Key> {
        self.state().ids.get(&id).copied()
    }

    /// Whether a command has left something.
    pub fn knows(&self, command: Uuid) -> bool {
        let state = self.state();
        state.outputs.contains_key(&command) || state.ids.get(&command).is_some_and(|key| key.kind == Kind::BashCommand)
    }

    /// The event behind this one; the first of all for `None`.
    pub fn after(&self, key: Option<Key>) -> Option<Key> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = key.map_or(Unbounded, Excluded);
        self.state().all.range((from, Unbounded)).next().map(|(key, _)| *key)
    }

    /// The newest event.
    pub fn last(&self) -> Option<Key> {
        self.state().all.keys().next_back().copied()
    }

    /// A page of what somebody looks for.
    pub fn search(&self, search: &Search) -> Page {
        let state = self.state();
        let wanted = |key: &Key| {
            let entry = state.all.get(key)?;
            search.wants(key, entry.command, entry.order).then_some((*key, entry.bytes))
        };
        let mut found: Vec<(Key, u64)> = match search.command {
            Some(command) => state.outputs.get(&command).into_iter().flatten().filter_map(wanted).collect(),
            None => state.all.keys().filter_map(wanted).collect(),
        };
        if search.descending {
            found.reverse();
        }
        let start = search.page.and_then(|page| found.iter().position(|(key, _)| key.id == page)).unwrap_or(0);
        let mut rest = found.into_iter().skip(start);
        let page: Vec<(Key, u64)> = rest.by_ref().take(search.limit).collect();
        Page {
            bytes: page.iter().map(|(_, bytes)| bytes).sum(),
            keys: page.into_iter().map(|(key, _)| key).collect(),
            next: rest.next().map(|(key, _)| key.id),
        }
    }

    /// Writes a page as JSON, an event at a time. It blocks.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_page(&self, page: &Page, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(b"{\"items\":[")?;
        let mut is_first = true;
        for json in page.keys.iter().filter_map(|key| self.read(*key)) {
            if !std::mem::take(&mut is_first) {
                to.write_all(b",")?;
            }
            to.write_all(&json)?;
        }
        to.write_all(b"],\"next_page_id\":")?;
        match page.next {
            Some(id) => write!(to, "\"{}\"}}", id.simple()),
            None => to.write_all(b"null}"),
        }
    }

    /// Bytes of all that a command wrote, as JSON.
    pub fn bytes_of(&self, command: Uuid) -> u64 {
        let state = self.state();
        let keys = state.outputs.get(&command).into_iter().flatten();
        keys.filter_map(|key| state.all.get(key)).map(|entry| entry.bytes).sum()
    }

    /// Writes all output of a command as one event, a chunk at a time. It blocks.
    ///
    /// # Errors
    ///
    /// Those of the writer; and there is no output.
    pub fn write_joined(&self, command: Uuid, to: &mut dyn Write) -> io::Result<()> {
        let keys: Vec<Key> = self.state().outputs.get(&command).cloned().unwrap_or_default();
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the output of the command was cleared");
        let last_key = *keys.last().ok_or_else(gone)?;
        let parts = |key: Key| -> Option<Parts> { serde_json::from_slice(&self.read(key)?).ok() };
        let mut last = parts(last_key).ok_or_else(gone)?;
        write!(
            to,
            "{{\"id\":\"{}\",\"timestamp\":\"{}\",\"command_id\":\"{}\",\"order\":{},\"exit_code\":{}",
            last_key.id.simple(),
            event::stamp(last_key.micros),
            command.simple(),
            last.order,
            last.exit_code.unwrap_or(-1)
        )?;
        let streams: [(&str, TakePart); 2] =
            [("stdout", |parts| parts.stdout.take()), ("stderr", |parts| parts.stderr.take())];
        for (name, take) in streams {
            write!(to, ",\"{name}\":")?;
            let mut is_open = false;
            for key in &keys {
                // Most commands have one event, which is read already.
                let text =
                    if *key == last_key { take(&mut last) } else { parts(*key).and_then(|mut parts| take(&mut parts)) };
                let Some(text) = text else { continue };
                if !std::mem::replace(&mut is_open, true) {
                    to.write_all(b"\"")?;
                }
                let quoted = serde_json::to_vec(&text)?;
                to.write_all(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())?;
            }
            to.write_all(if is_open { b"\"" } else { b"null" })?;
        }
        to.write_all(b",\"kind\":\"BashOutput\"}")
    }

    /// Removes everything, and says how much there was. It blocks.
    pub fn clear(&self) -> usize {
        self.remove_before(i64::MAX)
    }

    /// Removes what is older than this, in microseconds since 1970, and says how much there was. It blocks.
    pub fn remove_before(&self, micros: i64) -> usize {
        let _turn = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<(Key, Entry)> = {
            let mut state = self.state();
            let old: Vec<Key> = state.all.keys().copied().take_while(|key| key.micros < micros).collect();
            old.into_iter().filter_map(|key| state.remove(key).map(|entry| (key, entry))).collect()
        };
        let count = gone.len();
        self.unlink(gone);
        count
    }

    fn unlink(&self, gone: Vec<(Key, Entry)>) {
        for (key, entry) in gone.into_iter().filter(|(_, entry)| entry.kept.is_none()) {
            let path = self.directory.join(name(key, entry.command, entry.order));
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(%error, path = %path.display(), "the file of an event is gone already");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes one of the texts of an output.
type TakePart = fn(&mut Parts) -> Option<String>;

/// What of an output is joined.
#[derive(Deserialize)]
struct Parts {
    order: u64,
    exit_code: Option<i32>,
    stdout: Option<String>,
    stderr: Option<String>,
}

fn name(key: Key, command: Option<Uuid>, order: u64) -> String {
    let (micros, id) = (key.micros, key.id.simple());
    match command {
        None => format!("{micros:016}-command-{id}.json"),
        Some(command) => format!("{micros:016}-output-{}-{order}-{id}.json", command.simple()),
    }
}

/// What the name of a file says, if it is one of ours.
fn parsed(file: &str) -> Option<(Key, Option<Uuid>, u64)> {
    let mut words = file.strip_suffix(".json")?.split('-');
    let micros: i64 = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    let id = |word: Option<&str>| Uuid::parse_str(word?).ok();
    let found = match words.next()? {
        "command" => (Key { micros, kind: Kind::BashCommand, id: id(words.next())? }, None, 0),
        "output" => {
            let command = id(words.next())?;
            let order = words.next()?.parse().ok()?;
            (Key { micros, kind: Kind::BashOutput, id: id(words.next())? }, Some(command), order)
        }
        _ => return None,
    };
    words.next().is_none().then_some(found).filter(|(key, command, order)| name(*key, *command, *order) == file)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no event"));
    }
    let mut json = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(LARGEST).read_to_end(&mut json)?;
    Ok(json)
}

/// Whether this is JSON, and that of the event.
fn is_event(json: &[u8], id: Uuid) -> bool {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    serde_json::from_slice(json).is_ok_and(|named: Named| Uuid::parse_str(&named.id) == Ok(id))
}

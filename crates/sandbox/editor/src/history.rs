//! What files were before they were edited: the newest 10 states of each, within a bound over all (file-editor 3.6).

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::encoding::TextEncoding;

/// States kept of one file.
const PER_FILE: usize = 10;

/// Bytes of the newest states of all files, which are kept beyond the bound of the rest.
const NEWEST_BYTES: usize = 256 * 1024 * 1024;

/// What a state costs beside its text.
const OVERHEAD: usize = 128;

/// A file as it was.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Its text.
    pub(crate) text: Arc<String>,
    /// Its encoding; that of the file can change with its text.
    pub(crate) encoding: TextEncoding,
    /// Grows with each state.
    serial: u64,
}

/// The states of all files. Over the bound, the oldest go first, and the newest of each file last.
#[derive(Debug)]
pub(crate) struct History {
    bound: usize,
    states: Mutex<States>,
}

#[derive(Debug, Default)]
struct States {
    files: HashMap<Arc<str>, VecDeque<State>>,
    /// The newest state of each file, and all others; the oldest is first.
    newest: BTreeMap<u64, Arc<str>>,
    older: BTreeMap<u64, Arc<str>>,
    bytes: usize,
    serial: u64,
}

impl History {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, states: Mutex::default() }
    }

    /// Adds the newest state of a file.
    pub(crate) fn push(&self, path: &str, text: Arc<String>, encoding: TextEncoding) {
        let mut states = self.lock();
        states.push(path, text, encoding);
        while states.bytes > self.bound
            && let Some((serial, path)) = states.older.pop_first()
        {
            states.remove(&path, serial);
        }
        while states.bytes > self.bound.max(NEWEST_BYTES)
            && states.newest.len() > 1
            && let Some((serial, path)) = states.newest.pop_first()
        {
            states.remove(&path, serial);
        }
    }

    /// The newest state of a file.
    pub(crate) fn newest(&self, path: &str) -> Option<State> {
        self.lock().files.get(path)?.back().cloned()
    }

    /// Forgets a state that [`Self::newest`] gave.
    pub(crate) fn forget(&self, path: &str, state: &State) {
        self.lock().forget(path, state.serial);
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn push(&mut self, path: &str, text: Arc<String>, encoding: TextEncoding) {
        self.serial += 1;
        let serial = self.serial;
        let path = self.files.get_key_value(path).map_or_else(|| Arc::from(path), |(path, _)| Arc::clone(path));
        self.bytes += cost(&text);
        let file = self.files.entry(Arc::clone(&path)).or_default();
        if let Some(previous) = file.back() {
            self.newest.remove(&previous.serial);
            self.older.insert(previous.serial, Arc::clone(&path));
        }
        file.push_back(State { text, encoding, serial });
        let excess = if file.len() > PER_FILE { file.front().map(|state| state.serial) } else { None };
        self.newest.insert(serial, Arc::clone(&path));
        if let Some(serial) = excess {
            self.older.remove(&serial);
            self.remove(&path, serial);
        }
    }

    /// Removes a state that is in neither order any more.
    fn remove(&mut self, path: &str, serial: u64) {
        let Some(file) = self.files.get_mut(path) else { return };
        if let Some(index) = file.iter().position(|state| state.serial == serial)
            && let Some(state) = file.remove(index)
        {
            self.bytes -= cost(&state.text);
        }
        if file.is_empty() {
            self.files.remove(path);
        }
    }

    fn forget(&mut self, path: &str, serial: u64) {
        self.newest.remove(&serial);
        self.older.remove(&serial);
        self.remove(path, serial);
        if let Some((path, file)) = self.files.get_key_value(path)
            && let Some(state) = file.back()
        {
            self.older.remove(&state.serial);
            self.newest.insert(state.serial, Arc::clone(path));
        }
    }
}

fn cost(text: &str) -> usize {
    text.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(history: &History, path: &str, text: &str) {
        history.push(path, Arc::new(text.to_owned()), TextEncoding::Utf8);
    }

    /// Takes all states of a file, the newest first.
    fn pop_all(history: &History, path: &str) -> Vec<String> {
        std::iter::from_fn(|| {
            let state = history.newest(path)?;
            history.forget(path, &state);
            Some(state.text.to_string())
        })
        .collect()
    }

    #[test]
    fn ten_states_of_a_file_are_kept() {
        let history = History::new(usize::MAX);
        (0..12).for_each(|number| push(&history, "/a", &number.to_string()));
        assert_eq!(pop_all(&history, "/a"), ["11", "10", "9", "8", "7", "6", "5", "4", "3", "2"]);
        let states = history.lock();
        assert_eq!((states.bytes, states.files.len(), states.newest.len(), states.older.len()), (0, 0, 0, 0));
    }

    #[test]
    fn over_the_bound_the_oldest_go_and_the_newest_of_each_file_stay() {
        let history = History::new(4 * OVERHEAD);
        push(&history, "/a", "a1");
        push(&history, "/a", "a2");
        push(&history, "/b", "b1");
        push(&history, "/a", "a3");
        push(&history, "/b", "b2");
        assert_eq!(pop_all(&history, "/a"), ["a3"]);
        assert_eq!(pop_all(&history, "/b"), ["b2", "b1"]);
    }

    #[test]
    fn one_state_of_each_file_is_kept_even_without_room() {
        let history = History::new(0);
        for text in ["1", "2"] {
            push(&history, "/a", text);
            push(&history, "/b", text);
        }
        assert_eq!([pop_all(&history, "/a"), pop_all(&history, "/b")], [["2"], ["2"]]);
    }

    #[test]
    fn the_newest_states_of_all_files_have_a_bound_too() {
        let history = History::new(0);
        let text = Arc::new("x".repeat(10 * 1024 * 1024));
        (0..30).for_each(|file| history.push(&format!("/{file}"), Arc::clone(&text), TextEncoding::Utf8));
        assert!(history.lock().bytes <= NEWEST_BYTES);
        assert!(history.newest("/0").is_none() && history.newest("/29").is_some());
    }
}

//! Contents in the memory of this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{BoxFuture, FileStore, StoreError, path};

/// Contents in memory: gone when the store is dropped.
///
/// It grows with what is written. With a limit, a write that would pass it is refused and changes nothing; paths count
/// with their length.
#[derive(Default)]
pub struct MemoryStore {
    limit: Option<u64>,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    by_key: BTreeMap<String, Bytes>,
    /// Bytes of all keys and contents.
    size: u64,
}

impl MemoryStore {
    /// A store that takes at most this many bytes.
    pub fn with_limit(bytes: u64) -> Self {
        Self { limit: Some(bytes), contents: Mutex::default() }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Nothing panics while it is locked; and no change is visible before it is whole.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        let key = path::content_key(path)?;
        let mut contents = self.contents();
        let needed = size(&key, &content);
        let replaced = contents.by_key.get(&key).map_or(0, |content| size(&key, content));
        let others = contents.size - replaced;
        if let Some(limit) = self.limit
            && needed > limit.saturating_sub(others)
        {
            return Err(StoreError::Full { path: path.to_owned(), needed, free: limit.saturating_sub(others), limit });
        }
        contents.size = others + needed;
        contents.by_key.insert(key, content);
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let key = path::content_key(path)?;
        let found = self.contents().by_key.get(&key).cloned();
        found.ok_or_else(|| StoreError::NotFound { path: path.to_owned(), detail: None })
    }

    fn children(&self, path: &str) -> Result<Vec<String>, StoreError> {
        let below = path::below(&path::key(path)?);
        let prefix = path::list_prefix(path);
        let contents = self.contents();
        let keys = contents.by_key.range(below.clone()..).map_while(|(key, _)| key.strip_prefix(&below));
        let names: BTreeSet<String> = keys
            .map(|rest| match rest.split_once('/') {
                Some((directory, _)) => format!("{prefix}{directory}/"),
                None => format!("{prefix}{rest}"),
            })
            .collect();
        Ok(names.into_iter().collect())
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        let key = path::key(path)?;
        let below = path::below(&key);
        let mut contents = self.contents();
        let keys = contents.by_key.range(below.clone()..).map(|(key, _)| key);
        let mut removed: Vec<String> = keys.take_while(|key| key.starts_with(&below)).cloned().collect();
        removed.push(key);
        for key in removed {
            if let Some(content) = contents.by_key.remove(&key) {
                contents.size -= size(&key, &content);
            }
        }
        Ok(())
    }
}

impl FileStore for MemoryStore {
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.put(path, content) })
    }

    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        Box::pin(async move { self.get(path) })
    }

    /// A path below which there is nothing has an empty list; it is no error.
    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move { self.children(path) })
    }

    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.remove(path) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Bytes that a content takes.
fn size(key: &str, content: &Bytes) -> u64 {
    u64::try_from(key.len() + content.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_over_the_limit_is_refused_and_changes_nothing() {
        let store = MemoryStore::with_limit(10);
        store.write("abc", Bytes::from("12345")).await.unwrap();
        let error = store.write("d", Bytes::from("12")).await.unwrap_err();
        let text = "'d' does not fit into the file store in memory: it needs 3 bytes, and 2 of 10 are free";
        assert_eq!(error.to_string(), text);
        assert_eq!(store.list("").await.unwrap(), ["abc"]);
        // What is replaced makes room, and so does what is deleted.
        store.write("abc", Bytes::from("1234567")).await.unwrap();
        store.write("abc", Bytes::from("12345678")).await.unwrap_err();
        assert_eq!(store.read("abc").await.unwrap(), "1234567");
        store.delete("abc").await.unwrap();
        store.write("d", Bytes::from("123456789")).await.unwrap();
    }

    #[tokio::test]
    async fn names_that_begin_as_the_path_does_are_not_below_it() {
        let store = MemoryStore::default();
        for path in ["foo/a", "foobar/b", "foo.txt", "foo"] {
            store.write(path, Bytes::from("x")).await.unwrap();
        }
        assert_eq!(store.list("foo").await.unwrap(), ["foo/a"]);
        assert_eq!(store.list("").await.unwrap(), ["foo", "foo.txt", "foo/", "foobar/"]);
        store.delete("foo").await.unwrap();
        assert_eq!(store.list("").await.unwrap(), ["foo.txt", "foobar/"]);
    }
}

//! The file of tokens, which the processes of one user share.

use std::{
    collections::BTreeMap,
    fs::{self, File, Metadata, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_platform::{
    data_directory, mode, open_regular, owner, private_directory, private_file, sync_directory, user_id,
};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::{StoreError, record::Record};

/// Most servers whose tokens are kept.
pub const MOST_SERVERS: usize = 256;
/// Most bytes of the file.
pub const MOST_BYTES: usize = 1024 * 1024;
/// How long another process is waited for: longer than a refresh may take.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether a lock is free. The system tells nobody, and a thread that waits cannot be ended.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Refreshes of servers that share one of these locks wait for each other, so that there are not files without end.
const REFRESH_LOCKS: u32 = 16;
/// The form of the file.
const VERSION: u32 = 1;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Those of them that let others put files into a directory.
const OTHERS_WRITE: u32 = 0o022;

/// Tokens of MCP servers in a file that only its owner may use.
///
/// Any number of processes may use it at the same time. It has at most [`MOST_SERVERS`] servers and [`MOST_BYTES`]; at
/// the bound, logins fail until there is a logout. Beside it are empty files that locks are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStore {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    servers: BTreeMap<String, Record>,
}

/// A lock that other processes see. It ends with this.
#[derive(Debug)]
#[must_use]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file ends the lock")] File);

/// What tokens are kept under: a server's address without user, query and fragment, which name no resource and may be
/// secret. A slash at its end makes no difference.
pub(crate) fn key(server: &Url) -> String {
    format!("{}{}", server.origin().ascii_serialization(), server.path().trim_end_matches('/'))
}

impl TokenStore {
    /// The store in this file, such as `~/.local/share/gloveport/mcp-tokens.json`. It and its directory are made when
    /// there is something to keep.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// That of the user whose environment this is: `gloveport/mcp-tokens.json` in the directory for data. `None` if the
    /// environment names no such directory.
    pub fn of_user(environment: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self::new(data_directory(environment)?.join("gloveport").join("mcp-tokens.json")))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The addresses of the servers for which there are tokens.
    pub async fn servers(&self) -> Result<Vec<String>, StoreError> {
        self.blocking(|store| Ok(store.read()?.into_keys().collect())).await
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let key = key.to_owned();
        self.blocking(move |store| Ok(store.read()?.remove(&key))).await
    }

    pub(crate) async fn put(&self, key: &str, record: Record) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.change(move |servers| servers.insert(key, record)).await?;
        Ok(())
    }

    pub(crate) async fn remove(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let key = key.to_owned();
        self.change(move |servers| servers.remove(&key)).await
    }

    /// Keeps all others from changing the tokens of this server.
    pub(crate) async fn lock_server(&self, key: &str) -> Result<Lock, StoreError> {
        self.lock(&format!("{}.lock", crc32fast::hash(key.as_bytes()) % REFRESH_LOCKS)).await
    }

    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Record>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let lock = self.lock("lock").await?;
        self.blocking(move |store| {
            // It goes on when nobody waits for it any more.
            let _lock = lock;
            let mut servers = store.read()?;
            let before = servers.clone();
            let changed = change(&mut servers);
            if servers != before {
                store.write(servers)?;
            }
            Ok(changed)
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|error| Err(self.failed("read")(io::Error::other(error))))
    }

    async fn lock(&self, extension: &str) -> Result<Lock, StoreError> {
        self.lock_within(extension, LOCK_LIMIT).await
    }

    async fn lock_within(&self, extension: &str, limit: Duration) -> Result<Lock, StoreError> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        let file = self
            .blocking(move |store| {
                store.make_directory()?;
                let mut options = private_file();
                let opened = options.read(true).write(true).create(true).truncate(false).open(name);
                opened.map_err(store.failed("locked"))
            })
            .await?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::Error(error)) => return Err(self.failed("locked")(error)),
                Err(TryLockError::WouldBlock) if began.elapsed() > limit => {
                    return Err(StoreError::Locked { path: self.path.clone(), limit });
                }
                Err(TryLockError::WouldBlock) => sleep(LOCK_PAUSE).await,
            }
        }
    }

    fn read(&self) -> Result<BTreeMap<String, Record>, StoreError> {
        let file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.failed("read")(error)),
        };
        check(&self.path, &file.metadata().map_err(self.failed("read"))?, OTHERS)?;
        self.check_directory()?;
        let mut text = Vec::new();
        let limit = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        file.take(limit).read_to_end(&mut text).map_err(self.failed("read"))?;
        if text.len() > MOST_BYTES {
            return Err(self.full());
        }
        let damaged = |reason| StoreError::Damaged { path: self.path.clone(), reason };
        // What else serde says has parts of the content in it.
        let content: Content = serde_json::from_slice(&text)
            .map_err(|error| damaged(format!("line {}, column {}", error.line(), error.column())))?;
        if content.version != VERSION {
            return Err(damaged(format!("it has version {} instead of {VERSION}", content.version)));
        }
        Ok(content.servers)
    }

    fn write(&self, servers: BTreeMap<String, Record>) -> Result<(), StoreError> {
        if servers.len() > MOST_SERVERS {
            return Err(StoreError::Full { path: self.path.clone(), limit: format!("{MOST_SERVERS} servers") });
        }
        let text = serde_json::to_vec(&Content { version: VERSION, servers }).map_err(io::Error::other);
        let text = text.map_err(self.failed("written"))?;
        if text.len() > MOST_BYTES {
            return Err(self.full());
        }
        // Whoever writes has the lock. A file that is there is what a process left that was killed.
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let _left_over = fs::remove_file(&new);
        let written = (|| {
            let mut file = private_file().write(true).create_new(true).open(&new)?;
            file.write_all(&text)?;
            // After a crash there are the old tokens or the new ones, of which a server may know only the latter.
            file.sync_all()?;
            drop(file);
            fs::rename(&new, &self.path)?;
            sync_directory(self.directory())
        })();
        if written.is_err() {
            let _gone = fs::remove_file(&new);
        }
        written.map_err(self.failed("written"))
    }

    fn directory(&self) -> &Path {
        self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn make_directory(&self) -> Result<(), StoreError> {
        private_directory().recursive(true).create(self.directory()).map_err(self.failed("written"))?;
        self.check_directory()
    }

    fn check_directory(&self) -> Result<(), StoreError> {
        let metadata = fs::metadata(self.directory()).map_err(self.failed("read"))?;
        check(self.directory(), &metadata, OTHERS_WRITE)
    }

    fn failed(&self, deed: &'static str) -> impl Fn(io::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::File { path: path.clone(), deed, source }
    }

    fn full(&self) -> StoreError {
        StoreError::Full { path: self.path.clone(), limit: format!("{} MiB", MOST_BYTES / 1024 / 1024) }
    }
}

/// Whether only this user may use a file as far as its permissions tell, which they do not on Windows.
fn check(path: &Path, metadata: &Metadata, forbidden: u32) -> Result<(), StoreError> {
    let Some(user) = user_id() else { return Ok(()) };
    let (owner, _) = owner(metadata);
    if owner != user {
        return Err(StoreError::Foreign { path: path.to_owned(), owner, user });
    }
    let mode = mode(metadata) & 0o777;
    if mode & forbidden != 0 {
        return Err(StoreError::NotPrivate { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gloveport_platform::set_mode;

    use super::{super::record::tests::record, *};

    fn store() -> (tempfile::TempDir, TokenStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = TokenStore::new(directory.path().join("share/gloveport/mcp-tokens.json"));
        (directory, store)
    }

    #[test]
    fn addresses_of_one_resource_have_one_key() {
        for (url, expected) in [
            ("https://Host:443/mcp/?key=hidden#x", "https://host/mcp"),
            ("https://user:pw@host/mcp", "https://host/mcp"),
            ("http://127.0.0.1:80/", "http://127.0.0.1"),
            ("https://host:8443/MCP", "https://host:8443/MCP"),
        ] {
            assert_eq!(key(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_read_again_and_is_for_its_owner_alone() {
        let (_directory, store) = store();
        assert_eq!(store.get("a").await.unwrap(), None);
        assert!(!store.path().exists(), "reading makes nothing");
        store.put("a", record()).await.unwrap();
        store.put("b", record()).await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), Some(record()));
        assert_eq!(store.servers().await.unwrap(), ["a", "b"]);
        assert_eq!(mode(&fs::metadata(store.path()).unwrap()) & 0o777, 0o600);
        assert_eq!(mode(&fs::metadata(store.directory()).unwrap()) & 0o777, 0o700);
        assert_eq!(store.remove("a").await.unwrap(), Some(record()));
        assert_eq!(store.remove("a").await.unwrap(), None);
        assert_eq!(store.servers().await.unwrap(), ["b"]);
    }

    #[tokio::test]
    async fn a_file_that_others_can_use_is_refused() {
        let (_directory, store) = store();
        store.put("a", record()).await.unwrap();
        for bits in [0o640, 0o604, 0o660, 0o666] {
            set_mode(store.path(), bits).unwrap();
            let path = store.path().display();
            let expected = format!(
                "others than its owner may use {path}, which is for tokens (mode {bits:03o}); run `chmod go-rwx {path}`"
            );
            assert_eq!(store.get("a").await.unwrap_err().to_string(), expected);
            assert_eq!(store.put("b", record()).await.unwrap_err().to_string(), expected);
        }
        set_mode(store.path(), 0o600).unwrap();
        set_mode(store.directory(), 0o770).unwrap();
        assert!(matches!(store.get("a").await, Err(StoreError::NotPrivate { mode: 0o770, .. })));
        set_mode(store.directory(), 0o755).unwrap();
        assert!(store.get("a").await.unwrap().is_some());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_of_somebody_else_is_refused() {
        let (_directory, store) = store();
        store.put("a", record()).await.unwrap();
        // Only root can give files away.
        if std::os::unix::fs::chown(store.path(), Some(65_534), None).is_ok() {
            assert!(matches!(store.get("a").await, Err(StoreError::Foreign { owner: 65_534, .. })));
        }
    }

    #[tokio::test]
    async fn a_damaged_file_is_told_without_its_content() {
        let (_directory, store) = store();
        store.put("a", record()).await.unwrap();
        for (text, expected) in [
            ("{\"version\": 1, \"servers\": {\"a\": \"hidden-9\"}}", "line 1, column 42"),
            ("hidden-9", "line 1, column 1"),
            ("{\"version\": 2, \"servers\": {}}", "it has version 2 instead of 1"),
        ] {
            fs::write(store.path(), text).unwrap();
            let error = store.get("a").await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_file_has_bounds() {
        let (_directory, store) = store();
        store.put("a", record()).await.unwrap();
        let servers: BTreeMap<_, _> = (0..MOST_SERVERS).map(|number| (number.to_string(), record())).collect();
        store.write(servers).unwrap();
        let error = store.put("one more", record()).await.unwrap_err();
        assert!(matches!(&error, StoreError::Full { limit, .. } if limit == "256 servers"), "{error}");
        store.remove("0").await.unwrap();
        let mut large = record();
        large.resource = "x".repeat(MOST_BYTES);
        assert!(matches!(store.put("large", large).await, Err(StoreError::Full { .. })));
        store.put("one more", record()).await.unwrap();
        fs::write(store.path(), " ".repeat(MOST_BYTES + 1)).unwrap();
        assert!(matches!(store.get("a").await, Err(StoreError::Full { .. })));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn changes_at_the_same_time_are_all_kept_and_leave_no_other_file() {
        let (_directory, store) = store();
        let puts = (0..20).map(|number| {
            let store = store.clone();
            async move { store.put(&number.to_string(), record()).await.unwrap() }
        });
        futures_util::future::join_all(puts).await;
        assert_eq!(store.servers().await.unwrap().len(), 20);
        let names: std::collections::BTreeSet<_> =
            fs::read_dir(store.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["mcp-tokens.json", "mcp-tokens.json.lock"].map(Into::into).into());
    }

    #[tokio::test]
    async fn a_lock_that_nobody_lets_go_of_is_told() {
        let (_directory, store) = store();
        let held = store.lock("lock").await.unwrap();
        let error = store.lock_within("lock", Duration::from_millis(50)).await.unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        drop(held);
        let _free = store.lock("lock").await.unwrap();
    }
}

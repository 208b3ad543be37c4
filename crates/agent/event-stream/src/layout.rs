//! Where the parts of a conversation stand in a store (event-stream 2).

use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// The directory that holds the conversations of nobody in particular.
pub const CONVERSATIONS: &str = "sessions";

/// The directory of one conversation, and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPaths {
    directory: String,
}

impl ConversationPaths {
    /// `sessions/{sid}/`, or `users/{user}/conversations/{sid}/` for a known user. An empty user is none.
    pub fn new(sid: &str, user_id: Option<&str>) -> Self {
        let directory = match user_id.filter(|user| !user.is_empty()) {
            Some(user) => format!("users/{user}/conversations/{sid}/"),
            None => format!("{CONVERSATIONS}/{sid}/"),
        };
        Self { directory }
    }

    /// The directory, with a slash at its end.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The directory on this machine, for a store that is one.
    pub(crate) fn below(&self, root: &Path) -> Result<PathBuf, StoreError> {
        let path = &self.directory;
        if path.split('/').any(|part| part == ".." || part.contains('\0')) {
            let reason = "the name of a conversation or a user leads out of the store";
            return Err(StoreError::Path { path: path.clone(), reason });
        }
        Ok(root.join(path.split('/').filter(|part| !part.is_empty()).collect::<PathBuf>()))
    }

    /// The directory of the events, with a slash at its end.
    pub fn events(&self) -> String {
        format!("{}events/", self.directory)
    }

    /// The file of one event.
    pub fn event(&self, id: i64) -> String {
        format!("{}events/{id}.json", self.directory)
    }

    /// The directory of the pages, with a slash at its end.
    pub fn pages(&self) -> String {
        format!("{}event_cache/", self.directory)
    }

    /// The file of a page of events; `end` is the number after the last one.
    pub fn page(&self, start: i64, end: i64) -> String {
        format!("{}event_cache/{start}-{end}.json", self.directory)
    }

    /// The list of tasks.
    pub fn tasks(&self) -> String {
        format!("{}TASKS.md", self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_conversation_are_where_the_reference_has_them() {
        for (user, directory) in
            [(None, "sessions/s/"), (Some(""), "sessions/s/"), (Some("u"), "users/u/conversations/s/")]
        {
            let paths = ConversationPaths::new("s", user);
            let parts = [
                (paths.directory().to_owned(), ""),
                (paths.events(), "events/"),
                (paths.event(7), "events/7.json"),
                (paths.pages(), "event_cache/"),
                (paths.page(25, 50), "event_cache/25-50.json"),
                (paths.tasks(), "TASKS.md"),
            ];
            for (path, name) in parts {
                assert_eq!(path, format!("{directory}{name}"));
            }
        }
    }
}

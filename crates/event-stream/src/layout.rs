//! Where the parts of a conversation stand in a store (event-stream 2).

/// The directory of one conversation, and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPaths {
    directory: String,
}

impl ConversationPaths {
    /// `sessions/{sid}/`, or `users/{user}/conversations/{sid}/` for a known user.
    pub fn new(sid: &str, user_id: Option<&str>) -> Self {
        let directory = match user_id {
            Some(user) => format!("users/{user}/conversations/{sid}/"),
            None => format!("sessions/{sid}/"),
        };
        Self { directory }
    }

    /// The directory, with a slash at its end.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The directory of the events, with a slash at its end.
    pub fn events(&self) -> String {
        format!("{}events/", self.directory)
    }

    /// The file of one event.
    pub fn event(&self, id: i64) -> String {
        format!("{}events/{id}.json", self.directory)
    }

    /// The file of a page of events; `end` is the number after the last one.
    pub fn page(&self, start: i64, end: i64) -> String {
        format!("{}event_cache/{start}-{end}.json", self.directory)
    }

    /// The list of tasks.
    pub fn tasks(&self) -> String {
        format!("{}TASKS.md", self.directory)
    }

    /// What is known about the conversation.
    pub fn metadata(&self) -> String {
        format!("{}metadata.json", self.directory)
    }
}

//! Which servers there are, and which of them a name belongs to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_protocol::McpServerEntry;
use gloveport_sys::Surroundings;
use rmcp::model::{
    PromptListChangedNotification, ResourceListChangedNotification, ServerNotification, ToolListChangedNotification,
};

use crate::{
    audience::Audience,
    names,
    server::{Gone, Live, Server, ServerStatus},
};

/// Most servers at a time.
const SERVERS: usize = 256;

/// How long clients wait for servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// Time for a server to answer `initialize`. Its program may be downloaded first.
    pub(crate) start: Duration,
    /// Time that a list waits for each server. What has not started by then is not in it; callers wait for 30 s.
    pub(crate) list: Duration,
    /// Time for calls that are on their way when their server is not wanted any more.
    pub(crate) drain: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { start: Duration::from_mins(2), list: Duration::from_secs(20), drain: Duration::from_mins(2) }
    }
}

/// The MCP servers of a sandbox.
#[derive(Debug)]
pub struct Proxy {
    surroundings: Surroundings,
    servers: Mutex<Vec<Arc<Server>>>,
    pub(crate) audience: Audience,
    pub(crate) waits: Waits,
}

/// A server, and what it calls something itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) server: Arc<Server>,
    pub(crate) own: String,
}

impl Proxy {
    /// A proxy without servers, for a sandbox with this user and directory.
    pub fn new(surroundings: Surroundings) -> Arc<Self> {
        Self::with_waits(surroundings, Waits::default())
    }

    /// The same with other time limits.
    pub(crate) fn with_waits(surroundings: Surroundings, waits: Waits) -> Arc<Self> {
        Arc::new(Self { surroundings, servers: Mutex::default(), audience: Audience::default(), waits })
    }

    /// Sets which servers there are; of two with one name the last one counts. None of them is started by this.
    ///
    /// Servers that stay as they are go on. The others finish the calls that they work on, and end. What is returned
    /// tells, a line each, what will not work.
    pub fn update(&self, entries: Vec<McpServerEntry>) -> Vec<String> {
        let mut wanted: BTreeMap<String, McpServerEntry> = BTreeMap::new();
        for entry in entries {
            wanted.insert(entry.name.clone(), entry);
        }
        let mut problems = Vec::new();
        if wanted.len() > SERVERS {
            problems.push(format!("{} servers are more than {SERVERS}; the last ones are left out", wanted.len()));
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *servers);
        for entry in wanted.into_values().take(SERVERS) {
            if self.surroundings.find(&entry.command).is_none() && !entry.env.contains_key("PATH") {
                problems.push(format!("{}: `{}` is not installed in the sandbox", entry.name, entry.command));
            }
            let known = before.iter().find(|server| server.entry == entry).map(Arc::clone);
            servers.push(
                known.unwrap_or_else(|| Server::new(entry, &self.surroundings, self.audience.clone(), self.waits)),
            );
        }
        self.audience.set_prefixes(servers.len() > 1);
        let mut changed = before.len() != servers.len();
        for server in &before {
            if !servers.iter().any(|new| Arc::ptr_eq(new, server)) {
                changed = true;
                server.retire();
            }
        }
        drop(servers);
        if changed {
            self.tell_changed();
        }
        problems
    }

    fn tell_changed(&self) {
        for told in [
            ServerNotification::from(ToolListChangedNotification::default()),
            ServerNotification::from(PromptListChangedNotification::default()),
            ServerNotification::from(ResourceListChangedNotification::default()),
        ] {
            self.audience.tell("", told);
        }
    }

    /// Whether no server is configured.
    pub fn is_empty(&self) -> bool {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// How each server stands, by name.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers().iter().map(|server| server.status()).collect()
    }

    /// Ends all servers, and returns when nothing of them is left.
    pub async fn stop(&self) {
        let servers = std::mem::take(&mut *self.servers.lock().unwrap_or_else(PoisonError::into_inner));
        futures_util::future::join_all(servers.iter().map(|server| server.stop())).await;
    }

    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All servers that can be used now, each started if it has to be. Of one that cannot, why.
    pub(crate) async fn all(&self) -> Vec<(Arc<Server>, Result<Arc<Live>, Gone>)> {
        let servers = self.servers();
        let limit = self.waits.list;
        let starts = servers.into_iter().map(|server| async move {
            let live = server.live(limit).await;
            (server, live)
        });
        futures_util::future::join_all(starts).await
    }

    /// Where a tool is: of several servers whose names begin it, the one that listed it, or the one with the longest name.
    pub(crate) fn of_tool(&self, name: &str) -> Option<Place> {
        let mut places = self.of_name(name);
        let listed = places.iter().position(|place| place.server.knows_tool(&place.own));
        match listed {
            Some(listed) => Some(places.swap_remove(listed)),
            None => places.into_iter().max_by_key(|place| place.server.name().len()),
        }
    }

    /// Where a prompt is.
    pub(crate) fn of_prompt(&self, name: &str) -> Option<Place> {
        self.of_name(name).into_iter().max_by_key(|place| place.server.name().len())
    }

    /// Where a resource is.
    pub(crate) fn of_uri(&self, uri: &str) -> Option<Place> {
        let servers = self.servers();
        if let [server] = &*servers {
            return Some(Place { server: Arc::clone(server), own: uri.to_owned() });
        }
        servers.into_iter().find_map(|server| {
            let own = names::uri_of_server(server.name(), uri)?;
            Some(Place { server, own })
        })
    }

    fn of_name(&self, name: &str) -> Vec<Place> {
        let servers = self.servers();
        if let [server] = &*servers {
            return vec![Place { server: Arc::clone(server), own: name.to_owned() }];
        }
        let own = |server: Arc<Server>| {
            let own = names::of_server(server.name(), name)?.to_owned();
            Some(Place { server, own })
        };
        servers.into_iter().filter_map(own).collect()
    }
}

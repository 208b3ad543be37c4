//! A frame and its document.

use std::{collections::HashSet, sync::Arc};

use crate::cdp::SessionId;

/// What names a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(Arc<str>);

impl From<&str> for FrameId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl FrameId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What names a world of scripts within a session.
pub(crate) type ContextId = i64;

/// A frame of a page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: FrameId,
    pub(crate) parent: Option<FrameId>,
    pub(crate) children: Vec<FrameId>,
    /// Whom to ask about it: the page, or a process of its own.
    pub(crate) session: SessionId,
    pub(crate) url: String,
    /// What loaded its document.
    pub(crate) loader: String,
    /// Documents that it has shown, the last ones.
    pub(crate) loaders: Vec<String>,
    /// What has happened to its document: `DOMContentLoaded`, `load` and others.
    pub(crate) lifecycle: HashSet<String>,
    /// The world of the page's scripts.
    pub(crate) main: Option<ContextId>,
    /// The world of ours.
    pub(crate) ours: Option<ContextId>,
    /// A navigation was asked for and has neither replaced the document nor been given up.
    pub(crate) navigating: bool,
}

/// Documents of a frame that are remembered.
const LOADERS: usize = 16;

impl Frame {
    pub(super) fn new(id: FrameId, parent: Option<FrameId>, session: SessionId) -> Self {
        Self {
            id,
            parent,
            children: Vec::new(),
            session,
            url: String::new(),
            loader: String::new(),
            loaders: Vec::new(),
            lifecycle: HashSet::new(),
            main: None,
            ours: None,
            navigating: false,
        }
    }

    /// It shows another document.
    pub(super) fn navigated(&mut self, url: String, loader: String) {
        self.url = url;
        self.navigating = false;
        if self.loader != loader {
            self.lifecycle.clear();
            self.loaders.push(loader.clone());
            if self.loaders.len() > LOADERS {
                self.loaders.remove(0);
            }
            self.loader = loader;
        }
    }

    /// Its document is there, and nothing is about to replace it.
    pub(crate) fn is_parsed(&self) -> bool {
        !self.navigating && self.lifecycle.contains("DOMContentLoaded")
    }
}

//! How events change what is known.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Download, DownloadState, Frame, FrameId, MOST_DOWNLOADS, MOST_PAGES, NetworkEntry, PAGE_HEIGHT, PAGE_WIDTH, Page,
    Shared, TargetId, World,
    log::bounded,
    prepare::{self, ACTIVITY, DIALOG, Kind, WORLD},
};
use crate::cdp::{Answered, Command, Listener, SessionId, Tag};

/// Requests of a page that are followed at once.
const MOST_REQUESTS: usize = 4096;
/// Frames of a page.
const MOST_FRAMES: usize = 2000;
/// Largest side of a page that another one opens, in pixels.
const LARGEST: u32 = 4096;

impl Listener for Shared {
    fn event(&mut self, session: Option<&SessionId>, method: &str, parameters: Value, commands: &mut Vec<Command>) {
        self.with(|world| world.event(session, method, &parameters, commands));
        self.changed();
    }

    fn answered(&mut self, Answered { session, tag, result }: Answered, _commands: &mut Vec<Command>) {
        let Some(session) = session else { return };
        self.with(|world| match (tag, result) {
            (Tag::Frames, Ok(tree)) => world.frame_tree(&session, tree.get("frameTree").unwrap_or(&Value::Null)),
            // One that cannot be prepared is gone, which an event tells.
            (Tag::Frames, Err(_)) => {}
            (Tag::Prepared, _) => {
                if let Some(page) = world.page_of(&session)
                    && page.session == session
                {
                    page.prepared = true;
                }
            }
        });
        self.changed();
    }

    fn closed(&mut self) {
        self.with(|world| world.closed = true);
        self.changed();
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, name: &str) -> Option<f64> {
    value.get(name).and_then(Value::as_f64)
}

impl World {
    fn event(&mut self, session: Option<&SessionId>, method: &str, event: &Value, commands: &mut Vec<Command>) {
        match (method, session) {
            ("Target.attachedToTarget", _) => self.attached(session, event, commands),
            ("Target.detachedFromTarget", _) => self.detached(&SessionId::from(text(event, "sessionId"))),
            ("Browser.downloadWillBegin", _) => self.download_begins(event),
            ("Browser.downloadProgress", _) => self.download_goes_on(event),
            (_, Some(session)) => match method.split_once('.') {
                Some(("Page", name)) => self.page_event(session, name, event, commands),
                Some(("Runtime", name)) => self.runtime_event(session, name, event),
                Some(("Network", name)) => self.network_event(session, name, event),
                Some(("Inspector", "targetCrashed")) => self.crashed(session),
                // Only pages that must fetch nothing have requests paused: they get an empty document.
                Some(("Fetch", "requestPaused")) => commands.push(empty_answer(session, event)),
                Some(("Input", "dragIntercepted")) => {
                    if let Some(page) = self.page_of(session) {
                        page.drag = event.get("data").cloned();
                    }
                }
                Some(("Log", "entryAdded")) => {
                    let entry = event.get("entry").unwrap_or(&Value::Null);
                    self.log.write(text(entry, "level"), text(entry, "text"), text(entry, "url"));
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn attached(&mut self, parent: Option<&SessionId>, event: &Value, commands: &mut Vec<Command>) {
        let session = SessionId::from(text(event, "sessionId"));
        let info = event.get("targetInfo").unwrap_or(&Value::Null);
        let target = TargetId::from(text(info, "targetId"));
        match (text(info, "type"), parent) {
            ("page", None) if self.pages.len() >= MOST_PAGES => {
                self.refused_pages += 1;
                // One that waits to begin does not end.
                commands.push(go_on(session));
                let parameters = json!({ "targetId": target.as_str() });
                commands.push(Command { session: None, method: "Target.closeTarget", parameters, tag: None });
            }
            ("page", None) => {
                let main = FrameId::from(target.as_str());
                let mut frame = Frame::new(main.clone(), None, session.clone());
                text(info, "url").clone_into(&mut frame.url);
                self.sessions.insert(session.clone(), target.clone());
                self.pages.push(Page {
                    target: target.clone(),
                    session: session.clone(),
                    prepared: false,
                    crashed: false,
                    frames: [(main.clone(), frame)].into(),
                    main,
                    requests: std::collections::HashMap::new(),
                    chooser: None,
                    drag: None,
                    mouse: (0.0, 0.0),
                });
                // One that is opened may come to the front.
                self.front = None;
                self.activate(&target);
                let size = self.wanted_size.take().unwrap_or((PAGE_WIDTH, PAGE_HEIGHT));
                prepare::commands(&session, Kind::Page, size, commands);
            }
            ("iframe", Some(parent)) => {
                let Some(page) = self.sessions.get(parent).cloned() else { return };
                self.sessions.insert(session.clone(), page.clone());
                if let Some(page) = self.page_mut(&page) {
                    let id = FrameId::from(target.as_str());
                    // Its frames are those of its own process from now on.
                    remove_children(page, &id);
                    if let Some(frame) = page.frames.get_mut(&id) {
                        frame.session = session.clone();
                        (frame.main, frame.ours) = (None, None);
                    }
                }
                prepare::commands(&session, Kind::Frame, (PAGE_WIDTH, PAGE_HEIGHT), commands);
            }
            // The browser itself, for a client of its own.
            ("browser" | "tab", _) => {}
            // Workers run on their own.
            _ => commands.push(go_on(session)),
        }
    }

    fn detached(&mut self, session: &SessionId) {
        let Some(target) = self.sessions.remove(session) else { return };
        if self.page(&target).is_some_and(|page| page.session == *session) {
            self.remove_page(&target);
        }
    }

    fn crashed(&mut self, session: &SessionId) {
        let Some(page) = self.page_of(session) else { return };
        if page.session == *session {
            page.crashed = true;
            page.requests.clear();
            let main = page.main.clone();
            remove_children(page, &main);
        } else {
            let lost = page
                .frames
                .values()
                .find(|frame| frame.session == *session && !page.renders(frame.parent.as_ref(), session));
            if let Some(id) = lost.map(|frame| frame.id.clone()) {
                remove_frame(page, &id);
            }
        }
        forget_contexts(self.page_of(session), session, |_| true);
    }

    /// The frames of a session as they are now.
    fn frame_tree(&mut self, session: &SessionId, tree: &Value) {
        let Some(page) = self.page_of(session) else { return };
        let mut waiting = vec![tree];
        while let Some(tree) = waiting.pop() {
            let frame = tree.get("frame").unwrap_or(&Value::Null);
            navigated(page, session, frame);
            waiting.extend(tree.get("childFrames").and_then(Value::as_array).into_iter().flatten().rev());
        }
    }

    fn page_event(&mut self, session: &SessionId, name: &str, event: &Value, commands: &mut Vec<Command>) {
        if name == "javascriptDialogOpening" {
            let kind = text(event, "type");
            self.log.dialog(kind, text(event, "message"), text(event, "url"));
            // Nobody is there to ask: a page may be left, and everything else is declined.
            let parameters = json!({ "accept": kind == "beforeunload" });
            let session = Some(session.clone());
            commands.push(Command { session, method: "Page.handleJavaScriptDialog", parameters, tag: None });
            return;
        }
        if name == "windowOpen" {
            self.wanted_size = wanted_size(event);
            return;
        }
        let Some(page) = self.page_of(session) else { return };
        let id = FrameId::from(text(event, "frameId"));
        match name {
            "frameAttached" => attach(page, session, &id, &FrameId::from(text(event, "parentFrameId"))),
            "frameDetached" if text(event, "reason") == "swap" => {}
            "frameDetached" => remove_frame(page, &id),
            "frameNavigated" => navigated(page, session, event.get("frame").unwrap_or(&Value::Null)),
            "navigatedWithinDocument" => {
                if let Some(frame) = page.frames.get_mut(&id) {
                    text(event, "url").clone_into(&mut frame.url);
                }
            }
            "frameRequestedNavigation" if text(event, "disposition") == "currentTab" => {
                if let Some(frame) = page.frames.get_mut(&id) {
                    frame.navigating = true;
                }
            }
            "frameStoppedLoading" | "frameClearedScheduledNavigation" => {
                if let Some(frame) = page.frames.get_mut(&id) {
                    frame.navigating = false;
                }
            }
            "lifecycleEvent" => {
                let (loader, name) = (text(event, "loaderId"), text(event, "name"));
                if name == "init" {
                    remove_children_of_other_documents(page, &id, loader);
                }
                if let Some(frame) = page.frames.get_mut(&id).filter(|frame| frame.session == *session) {
                    if name == "init" {
                        let url = frame.url.clone();
                        let navigating = frame.navigating;
                        frame.navigated(url, loader.to_owned());
                        frame.navigating = navigating;
                    }
                    if frame.loader == loader {
                        frame.lifecycle.insert(name.to_owned());
                    }
                }
            }
            "fileChooserOpened" => {
                let several = text(event, "mode") == "selectMultiple";
                page.chooser = event.get("backendNodeId").map(|node| (node.clone(), several));
            }
            _ => {}
        }
    }

    fn runtime_event(&mut self, session: &SessionId, name: &str, event: &Value) {
        match name {
            "bindingCalled" if text(event, "name") == ACTIVITY => {
                if let Some(target) = self.sessions.get(session).cloned() {
                    self.activate(&target);
                }
            }
            "bindingCalled" if text(event, "name") == DIALOG => {
                let mut lines = text(event, "payload").splitn(3, '\n');
                let mut next = || lines.next().unwrap_or_default();
                let (kind, url, message) = (next(), next(), next());
                self.log.dialog(kind, message, url);
            }
            "consoleAPICalled" => {
                let arguments = event.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let words: Vec<String> = arguments.iter().take(100).map(shown).collect();
                let url = event.pointer("/stackTrace/callFrames/0/url").and_then(Value::as_str).unwrap_or_default();
                self.log.write(text(event, "type"), &words.join(" "), url);
            }
            "exceptionThrown" => {
                let details = event.get("exceptionDetails").unwrap_or(&Value::Null);
                let what = details.pointer("/exception/description").and_then(Value::as_str);
                self.log.write("exception", what.unwrap_or_else(|| text(details, "text")), text(details, "url"));
            }
            "executionContextCreated" => {
                let context = event.get("context").unwrap_or(&Value::Null);
                let id = context.get("id").and_then(Value::as_i64);
                let data = context.get("auxData").unwrap_or(&Value::Null);
                let frame = FrameId::from(text(data, "frameId"));
                let frame = self.page_of(session).and_then(|page| page.frames.get_mut(&frame));
                let Some(frame) = frame.filter(|frame| frame.session == *session) else { return };
                if data.get("isDefault").and_then(Value::as_bool) == Some(true) {
                    frame.main = id;
                } else if text(context, "name") == WORLD {
                    frame.ours = id;
                }
            }
            "executionContextDestroyed" => {
                let id = event.get("executionContextId").and_then(Value::as_i64);
                forget_contexts(self.page_of(session), session, |context| *context == id);
            }
            "executionContextsCleared" => forget_contexts(self.page_of(session), session, |_| true),
            _ => {}
        }
    }

    fn network_event(&mut self, session: &SessionId, name: &str, event: &Value) {
        let id = text(event, "requestId");
        match name {
            "requestWillBeSent" => {
                let kind = text(event, "type");
                let entry = asked(event);
                // What is asked for next after a redirect has the same id.
                if let (Some(response), Some(before)) = (event.get("redirectResponse"), self.log.request(id)) {
                    answered(before, response);
                    before.encoded_bytes = number(response, "encodedDataLength");
                    before.took = seconds_since(before.started);
                }
                if matches!(kind, "Document" | "Stylesheet" | "Script" | "XHR" | "Fetch")
                    && !entry.url.starts_with("data:")
                    && let Some(page) = self.page_of(session)
                    && page.requests.len() < MOST_REQUESTS
                {
                    page.requests.insert(id.to_owned(), Instant::now());
                }
                self.log.asked(entry);
            }
            "responseReceived" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                if let Some(entry) = self.log.request(id) {
                    answered(entry, response);
                }
                // A stream has no end to wait for.
                if text(response, "mimeType") == "text/event-stream"
                    && let Some(page) = self.page_of(session)
                {
                    page.requests.remove(id);
                }
            }
            "loadingFinished" | "loadingFailed" => {
                if let Some(page) = self.page_of(session) {
                    page.requests.remove(id);
                }
                if let Some(entry) = self.log.request(id) {
                    entry.encoded_bytes = number(event, "encodedDataLength");
                    entry.took = seconds_since(entry.started);
                    if name == "loadingFailed" {
                        entry.error = Some(text(event, "errorText").to_owned());
                    }
                }
            }
            _ => {}
        }
    }

    fn download_begins(&mut self, event: &Value) {
        self.downloads.push_back(Download {
            guid: text(event, "guid").to_owned(),
            url: bounded(text(event, "url")),
            suggested_name: bounded(text(event, "suggestedFilename")),
            state: DownloadState::Running,
        });
        if self.downloads.len() > MOST_DOWNLOADS {
            self.downloads.pop_front();
        }
    }

    fn download_goes_on(&mut self, event: &Value) {
        let state = match text(event, "state") {
            "completed" => DownloadState::Completed,
            "canceled" => DownloadState::Canceled,
            _ => return,
        };
        if let Some(download) = self.downloads.iter_mut().rev().find(|download| download.guid == text(event, "guid")) {
            download.state = state;
        }
    }
}

/// Has a target begin that waits for us.
fn go_on(session: SessionId) -> Command {
    Command { session: Some(session), method: "Runtime.runIfWaitingForDebugger", parameters: json!({}), tag: None }
}

/// The answer to a request that must not leave the browser.
fn empty_answer(session: &SessionId, event: &Value) -> Command {
    // `<!doctype html><link rel=icon href="data:,">`: nothing more is fetched.
    const DOCUMENT: &str = "PCFkb2N0eXBlIGh0bWw+PGxpbmsgcmVsPWljb24gaHJlZj0iZGF0YTosIj4=";
    let headers = json!([{ "name": "Content-Type", "value": "text/html" }]);
    let parameters = json!({
        "requestId": text(event, "requestId"), "responseCode": 200, "responseHeaders": headers, "body": DOCUMENT,
    });
    Command { session: Some(session.clone()), method: "Fetch.fulfillRequest", parameters, tag: None }
}

/// The size that a page wants for one that it opens.
fn wanted_size(event: &Value) -> Option<(u32, u32)> {
    let features = event.get("windowFeatures")?.as_array()?;
    let feature = |wanted: &str| {
        features.iter().filter_map(Value::as_str).find_map(|feature| {
            let (name, value) = feature.split_once('=')?;
            (name == wanted).then(|| value.parse::<u32>().ok()).flatten()
        })
    };
    Some((feature("width")?.clamp(1, LARGEST), feature("height")?.clamp(1, LARGEST)))
}

/// A request, as the log keeps it.
fn asked(event: &Value) -> NetworkEntry {
    let request = event.get("request").unwrap_or(&Value::Null);
    NetworkEntry {
        request_id: text(event, "requestId").to_owned(),
        method: text(request, "method").to_owned(),
        url: bounded(text(request, "url")),
        kind: text(event, "type").to_owned(),
        started: number(event, "wallTime").unwrap_or_default(),
        request_headers: request.get("headers").cloned().unwrap_or_default(),
        request_body: request.get("postData").and_then(Value::as_str).map(bounded),
        status: None,
        status_text: String::new(),
        response_headers: Value::Null,
        mime_type: String::new(),
        protocol: String::new(),
        encoded_bytes: None,
        took: None,
        error: None,
    }
}

/// What a server answered, into the log.
fn answered(entry: &mut NetworkEntry, response: &Value) {
    entry.status = response.get("status").and_then(Value::as_i64);
    text(response, "statusText").clone_into(&mut entry.status_text);
    text(response, "mimeType").clone_into(&mut entry.mime_type);
    text(response, "protocol").clone_into(&mut entry.protocol);
    entry.response_headers = response.get("headers").cloned().unwrap_or_default();
}

fn seconds_since(started: f64) -> Option<f64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64();
    Some((now - started).max(0.0))
}

/// A value that a page wrote to its console.
fn shown(value: &Value) -> String {
    match value.get("value") {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => {
            let description = text(value, "description");
            if description.is_empty() { text(value, "type").to_owned() } else { description.to_owned() }
        }
    }
}

fn attach(page: &mut Page, session: &SessionId, id: &FrameId, parent: &FrameId) {
    if page.frames.contains_key(id) || page.frames.len() >= MOST_FRAMES {
        return;
    }
    if let Some(parent) = page.frames.get_mut(parent) {
        parent.children.push(id.clone());
    }
    page.frames.insert(id.clone(), Frame::new(id.clone(), Some(parent.clone()), session.clone()));
}

fn navigated(page: &mut Page, session: &SessionId, frame: &Value) {
    let id = FrameId::from(text(frame, "id"));
    if id.as_str().is_empty() {
        return;
    }
    if !page.frames.contains_key(&id) {
        if let Some(parent) = frame.get("parentId").and_then(Value::as_str) {
            attach(page, session, &id, &FrameId::from(parent));
        } else {
            // The main frame has another process, and with it another id.
            page.frames.clear();
            page.frames.insert(id.clone(), Frame::new(id.clone(), None, session.clone()));
            page.main = id.clone();
        }
    }
    let (url, fragment) = (text(frame, "url"), text(frame, "urlFragment"));
    remove_children_of_other_documents(page, &id, text(frame, "loaderId"));
    if let Some(known) = page.frames.get_mut(&id)
        && known.session == *session
    {
        known.navigated(format!("{url}{fragment}"), text(frame, "loaderId").to_owned());
    }
}

fn remove_children_of_other_documents(page: &mut Page, id: &FrameId, loader: &str) {
    if page.frames.get(id).is_some_and(|frame| !frame.loader.is_empty() && frame.loader != loader) {
        remove_children(page, id);
    }
}

fn remove_children(page: &mut Page, id: &FrameId) {
    let children = page.frames.get_mut(id).map(|frame| std::mem::take(&mut frame.children)).unwrap_or_default();
    let mut waiting = children;
    while let Some(child) = waiting.pop() {
        if let Some(frame) = page.frames.remove(&child) {
            waiting.extend(frame.children);
        }
    }
}

fn remove_frame(page: &mut Page, id: &FrameId) {
    remove_children(page, id);
    let Some(frame) = page.frames.remove(id) else { return };
    if let Some(parent) = frame.parent.and_then(|parent| page.frames.get_mut(&parent)) {
        parent.children.retain(|child| child != id);
    }
}

fn forget_contexts(page: Option<&mut Page>, session: &SessionId, which: impl Fn(&Option<i64>) -> bool) {
    for frame in page.into_iter().flat_map(|page| page.frames.values_mut()) {
        if frame.session == *session {
            if which(&frame.main) {
                frame.main = None;
            }
            if which(&frame.ours) {
                frame.ours = None;
            }
        }
    }
}

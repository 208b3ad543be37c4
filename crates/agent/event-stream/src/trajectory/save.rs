//! A history written into one file (event-stream 6.1).

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use gloveport_protocol::{Event, python::json};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::TrajectoryError;
use crate::history::{EventFilter, EventType, Events};

/// Parts of what a browser shows that are not worth their room.
const DROPPED: [&str; 7] = [
    "dom_object",
    "axtree_object",
    "active_page_index",
    "last_browser_action",
    "last_browser_action_error",
    "focused_element_bid",
    "extra_element_properties",
];
const PICTURES: [&str; 2] = ["screenshot", "set_of_marks"];
/// Bytes of text that are collected before they are written.
const PIECE: usize = 1 << 20;

/// What becomes of the pictures that a browser took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screenshots {
    /// They are left out.
    #[default]
    Drop,
    /// They are saved.
    Keep,
}

/// Which events the reference puts into a trajectory: those that its agent sees.
pub fn filter() -> EventFilter {
    let exclude_types = vec![
        EventType::action("null"),
        EventType::observation("null"),
        EventType::action("change_agent_state"),
        EventType::observation("agent_state_changed"),
    ];
    EventFilter { exclude_types, exclude_hidden: true, ..EventFilter::default() }
}

/// An event as it stands in a trajectory.
pub fn to_value(event: &Event, screenshots: Screenshots) -> Value {
    let mut value = event.to_value();
    if let Some(extras) = value.get_mut("extras") {
        strip(extras, screenshots);
    }
    value
}

fn strip(value: &mut Value, screenshots: Screenshots) {
    match value {
        Value::Object(members) => {
            let pictures: &[&str] = if screenshots == Screenshots::Keep { &[] } else { &PICTURES };
            for key in DROPPED.iter().chain(pictures) {
                members.shift_remove(*key);
            }
            members.values_mut().for_each(|member| strip(member, screenshots));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| strip(element, screenshots)),
        _ => {}
    }
}

/// Saves events into a file, whose place is the result: the path, or `{sid}.json` in it if it is a directory.
///
/// The file takes its place whole, and with the permissions of other files that the user makes. The events are read
/// and written piece by piece.
pub async fn save(
    path: &Path,
    sid: &str,
    events: &mut Events,
    screenshots: Screenshots,
) -> Result<PathBuf, TrajectoryError> {
    let (path, sid) = (path.to_owned(), sid.to_owned());
    let mut output = blocking("create", path.clone(), move || Output::create(&path, &sid)).await?;
    let mut text = String::from("[");
    let mut is_empty = true;
    while let Some(event) = events.next().await? {
        text.push_str(if is_empty { "\n    " } else { ",\n    " });
        text.push_str(&json::element(&to_value(&event, screenshots)));
        is_empty = false;
        if text.len() >= PIECE {
            let piece = std::mem::take(&mut text);
            output = blocking("write", output.place.clone(), move || output.write(&piece)).await?;
        }
    }
    text.push_str(if is_empty { "]" } else { "\n]" });
    blocking("write", output.place.clone(), move || output.write(&text)?.finish()).await
}

/// A file that is being written.
struct Output {
    place: PathBuf,
    kind: Kind,
}

enum Kind {
    /// Takes its place when it is whole.
    File(NamedTempFile),
    /// A pipe or a device, which stays what it is.
    Special(File),
}

impl Output {
    fn create(path: &Path, sid: &str) -> io::Result<Self> {
        let mut place = if path.is_dir() { path.join(format!("{sid}.json")) } else { path.to_owned() };
        let directory = match place.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        fs::create_dir_all(directory)?;
        if let Ok(target) = place.canonicalize() {
            // What a link leads to is replaced, not the link.
            place = target;
            if !place.is_file() {
                let file = fs::OpenOptions::new().write(true).open(&place)?;
                return Ok(Self { place, kind: Kind::Special(file) });
            }
        }
        let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".trajectory-");
        if let Some(permissions) = gloveport_platform::usual_permissions() {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(directory)?;
        Ok(Self { place, kind: Kind::File(file) })
    }

    fn write(mut self, text: &str) -> io::Result<Self> {
        match &mut self.kind {
            Kind::File(file) => file.write_all(text.as_bytes())?,
            Kind::Special(file) => file.write_all(text.as_bytes())?,
        }
        Ok(self)
    }

    fn finish(self) -> io::Result<PathBuf> {
        if let Kind::File(file) = self.kind {
            file.as_file().sync_data()?;
            file.persist(&self.place).map_err(|error| error.error)?;
        }
        Ok(self.place)
    }
}

async fn blocking<T: Send + 'static>(
    operation: &'static str,
    path: PathBuf,
    action: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TrajectoryError> {
    let result = tokio::task::spawn_blocking(action).await.unwrap_or_else(|error| Err(error.into()));
    result.map_err(|source| TrajectoryError::Io { operation, path, source })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_browser_shows_is_left_out_at_every_depth() {
        let extras = json!({
            "url": "u", "screenshot": "s", "set_of_marks": "m", "dom_object": {}, "axtree_object": {},
            "active_page_index": [0], "last_browser_action": "a", "last_browser_action_error": "e",
            "focused_element_bid": "1", "extra_element_properties": {},
            "more": [{"screenshot": "s", "dom_object": 1, "kept": true}],
        });
        for (screenshots, expected) in [
            (Screenshots::Drop, json!({"url": "u", "more": [{"kept": true}]})),
            (
                Screenshots::Keep,
                json!({
                    "url": "u", "screenshot": "s", "set_of_marks": "m", "more": [{"screenshot": "s", "kept": true}],
                }),
            ),
        ] {
            let mut value = extras.clone();
            strip(&mut value, screenshots);
            assert_eq!(value, expected);
        }
    }

    #[test]
    fn what_the_agent_does_not_see_is_not_saved() {
        for (event, is_saved) in [
            (json!({"action": "null", "args": {}}), false),
            (json!({"observation": "null", "content": ""}), false),
            (json!({"action": "change_agent_state", "args": {"agent_state": "running"}}), false),
            (json!({"observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}}), false),
            (json!({"action": "run", "args": {"command": "x", "hidden": true}}), false),
            (json!({"action": "run", "args": {"command": "x"}}), true),
            (json!({"action": "system", "args": {"content": "x"}}), true),
        ] {
            assert_eq!(filter().includes(&Event::from_value(event.clone()).unwrap()), is_saved, "{event}");
        }
    }

    #[test]
    fn what_stands_outside_of_the_extras_is_kept() {
        let event = json!({"action": "call_tool_mcp", "args": {"name": "n", "arguments": {"screenshot": "s"}}});
        let value = to_value(&Event::from_value(event).unwrap(), Screenshots::Drop);
        assert_eq!(value["args"]["arguments"], json!({"screenshot": "s"}));
    }
}

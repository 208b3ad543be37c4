//! Files as resources.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_protocol::files::{FileKind, GlobRequest};
use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};
use serde_json::json;

use crate::{
    computer::{Computer, Failure},
    media, uri,
};

/// Files of the workspace that can be listed; those behind them are read by their URI all the same.
const MOST_LISTED: usize = 10_000;
/// Files of one page.
const PAGE: usize = 500;
/// Most bytes of a file that is read as a resource.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes that are read at once.
const PIECE: u64 = 1024 * 1024;
/// Most entries of a directory that is read as a resource.
const MOST_ENTRIES: usize = 1000;

/// The files of the workspace behind a cursor: the last path of the page before.
pub(crate) async fn list(computer: &dyn Computer, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let request = GlobRequest {
        path: Some(computer.directory().to_owned()),
        globs: vec!["**/*".to_owned()],
        hidden: false,
        respect_ignore: true,
        limit: Some(MOST_LISTED),
    };
    let found = computer.glob(request).await.map_err(told)?;
    let root = computer.directory().trim_end_matches('/');
    let is_listed = |entry: &&gloveport_protocol::files::FileEntry| {
        let is_file = entry.kind == FileKind::File || entry.target_kind == Some(FileKind::File);
        is_file && entry.path_base64.is_none() && cursor.is_none_or(|cursor| entry.path.as_str() > cursor)
    };
    let mut files = found.entries.iter().filter(is_listed);
    let page: Vec<_> = files.by_ref().take(PAGE).collect();
    let next = files.next().and(page.last()).map(|last| last.path.clone());
    let resource = |entry: &&gloveport_protocol::files::FileEntry| {
        Resource::new(uri::of(&format!("{root}/{}", entry.path)), entry.path.clone()).with_size(entry.size)
    };
    let mut result = ListResourcesResult::with_all_items(page.iter().map(resource).collect());
    result.next_cursor = next;
    Ok(result)
}

/// How to make the URI of any file.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(uri::TEMPLATE, "file")
        .with_title("A file of the sandbox")
        .with_description("`path` is absolute. A directory is read as the list of its entries.");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// What a resource contains.
pub(crate) async fn read(computer: &dyn Computer, resource: &str) -> Result<ReadResourceResult, ErrorData> {
    let path = known(resource)?;
    let entry = computer.stat(&path).await.map_err(told)?;
    if entry.kind == FileKind::Directory {
        let list = computer.list(&path, MOST_ENTRIES).await.map_err(told)?;
        let name = |entry: &gloveport_protocol::files::FileEntry| {
            let slash = if entry.kind == FileKind::Directory { "/" } else { "" };
            format!("{}{slash}\n", entry.path)
        };
        let text: String = list.entries.iter().map(name).collect();
        return Ok(ReadResourceResult::new(vec![ResourceContents::text(text, resource)]));
    }
    let mut bytes = Vec::new();
    loop {
        let piece = computer.read(&path, bytes.len() as u64, PIECE).await.map_err(told)?;
        bytes.extend(piece.bytes);
        if bytes.len() as u64 > MOST_BYTES {
            return Err(told(Failure::new(format!(
                "{path} has more than {MOST_BYTES} bytes, which is too much for a resource; read_file reads a part of it"
            ))));
        }
        if piece.is_end {
            break;
        }
    }
    let media_type = media::type_of(&bytes);
    let contents = match String::from_utf8(bytes) {
        Ok(text) if media_type == "text/plain" => ResourceContents::text(text, resource),
        Ok(text) => ResourceContents::blob(STANDARD.encode(text), resource),
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), resource),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(media_type)]))
}

/// The path of a resource.
pub(crate) fn known(resource: &str) -> Result<String, ErrorData> {
    uri::path(resource).ok_or_else(|| {
        let told = format!("{resource:?} is no file of the sandbox; its URI is sandbox:// with an absolute path");
        ErrorData::resource_not_found(told, Some(json!({"uri": resource})))
    })
}

/// A failure as an error of the protocol.
fn told(failure: Failure) -> ErrorData {
    if failure.is_missing {
        ErrorData::resource_not_found(failure.text, None)
    } else {
        ErrorData::internal_error(failure.text, None)
    }
}

//! The result of a tool as the reference writes it into an observation: the fields of its types in their order, also
//! those without a value (runtime-interface 14.4).

use reqwest::Url;
use rmcp::model::{Annotations, CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents};
use serde::Serialize;
use serde_json::{Value, json};

/// The result as JSON: `meta`, `content`, `structuredContent`, `isError`.
pub fn dump(result: &CallToolResult) -> Value {
    json!({
        "meta": meta(result.meta.as_ref()),
        "content": result.content.iter().map(block).collect::<Vec<_>>(),
        "structuredContent": result.structured_content,
        "isError": result.is_error.unwrap_or(false),
    })
}

fn block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({
            "type": "text",
            "text": text.text,
            "annotations": annotations(text.annotations.as_ref()),
            "meta": meta(text.meta.as_ref()),
        }),
        ContentBlock::Image(image) => json!({
            "type": "image",
            "data": image.data,
            "mimeType": image.mime_type,
            "annotations": annotations(image.annotations.as_ref()),
            "meta": meta(image.meta.as_ref()),
        }),
        ContentBlock::Audio(audio) => json!({
            "type": "audio",
            "data": audio.data,
            "mimeType": audio.mime_type,
            "annotations": annotations(audio.annotations.as_ref()),
            "meta": meta(audio.meta.as_ref()),
        }),
        ContentBlock::Resource(embedded) => json!({
            "type": "resource",
            "resource": contents(&embedded.resource),
            "annotations": annotations(embedded.annotations.as_ref()),
            "meta": meta(embedded.meta.as_ref()),
        }),
        ContentBlock::ResourceLink(resource) => link(resource),
        // The SDK may come to know more.
        other => plain(other),
    }
}

fn link(resource: &Resource) -> Value {
    let icons = resource.icons.as_ref().map(|icons| icons.iter().map(icon).collect::<Vec<_>>());
    json!({
        "name": resource.name,
        "title": resource.title,
        "uri": uri(&resource.uri),
        "description": resource.description,
        "mimeType": resource.mime_type,
        "size": resource.size,
        "icons": icons,
        "annotations": annotations(resource.annotations.as_ref()),
        "meta": meta(resource.meta.as_ref()),
        "type": "resource_link",
    })
}

fn icon(icon: &rmcp::model::Icon) -> Value {
    let mut value = json!({"src": icon.src, "mimeType": icon.mime_type, "sizes": icon.sizes});
    if let (Some(theme), Some(members)) = (&icon.theme, value.as_object_mut()) {
        members.insert("theme".to_owned(), plain(theme));
    }
    value
}

fn contents(contents: &ResourceContents) -> Value {
    match contents {
        ResourceContents::TextResourceContents { uri: address, mime_type, text, meta: about } => {
            json!({"uri": uri(address), "mimeType": mime_type, "meta": meta(about.as_ref()), "text": text})
        }
        ResourceContents::BlobResourceContents { uri: address, mime_type, blob, meta: about } => {
            json!({"uri": uri(address), "mimeType": mime_type, "meta": meta(about.as_ref()), "blob": blob})
        }
        other => plain(other),
    }
}

fn annotations(annotations: Option<&Annotations>) -> Value {
    let Some(annotations) = annotations else { return Value::Null };
    // As the text that the server sent, and not as the nearest number of twice the precision.
    let priority = annotations.priority.and_then(|priority| priority.to_string().parse::<f64>().ok());
    let mut value = json!({"audience": annotations.audience, "priority": priority});
    // The reference's version of MCP does not know it, and keeps it behind what it knows.
    if let (Some(time), Some(members)) = (&annotations.last_modified, value.as_object_mut()) {
        members.insert("lastModified".to_owned(), json!(time));
    }
    value
}

/// The address as the reference's types write it: `http://host` becomes `http://host/`.
fn uri(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), |url| url.to_string())
}

fn meta(meta: Option<&MetaObject>) -> Value {
    meta.map_or(Value::Null, plain)
}

fn plain(value: &impl Serialize) -> Value {
    // The SDK's types are JSON objects and texts, which cannot fail.
    serde_json::to_value(value).unwrap_or_default()
}

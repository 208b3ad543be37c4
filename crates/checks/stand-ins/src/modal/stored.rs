//! Apps, images, mounts and blobs.

use axum::{body::Bytes, http::HeaderMap, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, stream};
use md5::{Digest as _, Md5};
use sha2::Sha256;

use super::{
    grpc::{done, refused, streamed, told},
    header,
    proto::Message,
    state::{Call, Image, Modal},
};
use crate::{Shared, World, answers, lock};

/// Files from this size on are to be blobs.
const INLINE: usize = 4 * 1024 * 1024;
/// The version of what builds images, if a test says no other one.
const BUILDER: &str = "2025.06";

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A file that is brought to where the service has said.
pub(super) fn upload(world: &Shared<Modal>, id: &str, headers: &HeaderMap, body: &Bytes) -> Response {
    let mut world = lock(world);
    if header(headers, "content-type") != "application/octet-stream"
        || !header(headers, "x-modal-token-secret").is_empty()
    {
        return answers::refusal(400, "the headers are not those that were signed");
    }
    let Some(blob) = world.face.blobs.get_mut(id) else { return answers::refusal(403, "the signature is wrong") };
    *blob = body.clone();
    let mut answer = answers::empty(200);
    answer.headers_mut().insert("etag", format!("\"{}\"", hex(&Md5::digest(body))).parse().unwrap());
    answer
}

pub(super) fn answer(call: &Call) -> Response {
    match call.method.as_str() {
        "AppGetOrCreate" => app(call),
        "EnvironmentGetOrCreate" => environment(call),
        "ImageGetOrCreate" => image(call),
        "ImageJoinStreaming" => join(call),
        "ImageFromId" => {
            let id = call.wish().text(1);
            if !lock(&call.world).face.images.contains_key(&id) {
                return refused(5, &format!("Image {id} not found"));
            }
            told(&Message::default().with(1, &id))
        }
        "MountBatchedCheckExistence" => {
            let (digests, world) = (call.wish().texts(1), lock(&call.world));
            let missing = digests.into_iter().filter(|digest| !world.face.files.contains_key(digest));
            told(&missing.fold(Message::default(), |message, digest| message.with(1, &digest)))
        }
        "MountPutFile" => put(call),
        "MountGetOrCreate" => mount(call),
        "BlobCreate" => blob(call),
        "SecretGetOrCreate" => secret(call),
        "ImageDelete" => match lock(&call.world).face.images.remove(&call.wish().text(1)) {
            Some(_) => done(),
            None => refused(5, "Image not found"),
        },
        method => refused(12, &format!("Method {method} is not implemented")),
    }
}

fn app(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    let (name, environment, kind) = (wish.text(1), wish.text(2), wish.number(3));
    if name.is_empty() {
        return refused(3, "App name is missing");
    }
    let place = (environment, name);
    if kind != 1 && !world.face.apps.contains_key(&place) {
        return refused(5, "App not found");
    }
    let id = world.face.apps.entry(place).or_insert_with(|| World::<Modal>::next("ap-")).clone();
    told(&Message::default().with(1, &id))
}

fn environment(call: &Call) -> Response {
    let builder = lock(&call.world).face.builder.clone();
    let settings = Message::default().with(1, if builder.is_empty() { BUILDER } else { &builder });
    let metadata = Message::default().with(1, "main").with_message(2, &settings);
    told(&Message::default().with(1, "en-1").with_message(2, &metadata))
}

fn has_app(world: &World<Modal>, id: &str) -> bool {
    world.face.apps.values().any(|app| app == id)
}

fn image(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    if !has_app(&world, &wish.text(4)) {
        return refused(5, "App not found");
    }
    if wish.text(9).is_empty() {
        return refused(3, "Builder version is missing");
    }
    let commands = wish.message(2).texts(6);
    if !commands.first().is_some_and(|first| first.starts_with("FROM ")) {
        return refused(3, "An image begins with FROM");
    }
    let known = world.face.images.iter().find(|(_, image)| image.layer.is_none() && image.commands == commands);
    let known = known.map(|(id, image)| (id.clone(), image.is_built));
    let (id, is_built) = known.unwrap_or_else(|| {
        let id = World::<Modal>::next("im-");
        world.face.images.insert(id.clone(), Image { commands, is_built: false, layer: None });
        (id, false)
    });
    let result = Message::default().with_number(1, u64::from(is_built));
    told(&Message::default().with(1, &id).with_message(2, &result))
}

/// How far an image is, in three steps. Registries have no image that is called `nobody`.
fn join(call: &Call) -> Response {
    let id = call.wish().text(1);
    let (slow, commands) = {
        let world = lock(&call.world);
        let Some(image) = world.face.images.get(&id) else { return refused(5, "Image not found") };
        (world.slow, image.commands.clone())
    };
    let (world, fails) = (std::sync::Arc::clone(&call.world), commands.join(" ").contains("nobody"));
    let log = Message::default().with(1, &format!("Step 0: {}\n", commands.join("; ")));
    let first = Message::default().with_message(2, &log).with(3, "1-0");
    let last = stream::once(async move {
        tokio::time::sleep(slow).await;
        let result = if fails {
            lock(&world).face.images.remove(&id);
            Message::default().with_number(1, 2).with(2, "the registry has no such image")
        } else {
            if let Some(image) = lock(&world).face.images.get_mut(&id) {
                image.is_built = true;
            }
            Message::default().with_number(1, 1)
        };
        Message::default().with_message(1, &result).with(3, "1-1").with_number(4, 1)
    });
    streamed(stream::iter([first]).chain(last))
}

fn put(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    let digest = wish.text(2);
    let content = match (wish.bytes(3), wish.bytes(5)) {
        (Some(data), None) if data.len() < INLINE => Some(Bytes::copy_from_slice(data)),
        (Some(_), None) => return refused(3, "The file is too large for a message"),
        (None, Some(blob)) => world.face.blobs.get(&*String::from_utf8_lossy(blob)).cloned(),
        _ => None,
    };
    if let Some(content) = content {
        if hex(&Sha256::digest(&content)) != digest {
            return refused(3, "The digest is that of something else");
        }
        world.face.files.insert(digest.clone(), content);
    }
    let exists = world.face.files.contains_key(&digest);
    told(&Message::default().with_number(2, u64::from(exists)))
}

fn blob(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    let is_digest = |text: String, length| STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == length);
    if !is_digest(wish.text(1), 16) || !is_digest(wish.text(2), 32) || wish.number(3) == 0 {
        return refused(3, "A blob needs its digests and its length");
    }
    let id = World::<Modal>::next("bl-");
    world.face.blobs.insert(id.clone(), Bytes::new());
    let url = format!("{}/blobs/{id}?signature=1", world.url);
    told(&Message::default().with(1, &url).with(2, &id))
}

/// Variables without a name, which is all that is known here.
fn secret(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    if wish.number(4) != 4 {
        return refused(12, "Only secrets without a name are made here");
    }
    if !has_app(&world, &wish.text(6)) {
        return refused(5, "App not found");
    }
    let id = World::<Modal>::next("st-");
    world.face.secrets.insert(id.clone(), wish.pairs(5).into_iter().collect());
    told(&Message::default().with(1, &id))
}

fn mount(call: &Call) -> Response {
    let (wish, mut world) = (call.wish(), lock(&call.world));
    let mut files = Vec::new();
    for file in wish.messages(5) {
        let (path, digest, mode) = (file.text(1), file.text(3), file.number(5));
        if !path.starts_with('/') || !world.face.files.contains_key(&digest) {
            return refused(3, "A file of a mount is missing, or its path is not absolute");
        }
        files.push((path, digest, u32::try_from(mode).unwrap_or_default()));
    }
    let id = World::<Modal>::next("mo-");
    world.face.mounts.insert(id.clone(), files);
    told(&Message::default().with(1, &id))
}

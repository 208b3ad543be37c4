//! Sandboxes: made, told, ended.

#![expect(clippy::result_large_err, reason = "an answer is what is wanted")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::response::Response;

use super::{
    grpc::{done, refused, told},
    life,
    proto::Message,
    state::{Call, Made, Modal, More, sandbox, seconds, token},
};
use crate::{Machine, Sandbox, World, lock};

/// Longest life of a sandbox, in seconds.
const LONGEST: u64 = 86_400;
/// Longest name.
const NAME: usize = 63;

/// How a sandbox has ended, as a message; that it runs is one without fields.
fn result(made: &Made) -> Message {
    let Some((status, code, words)) = &made.more.result else { return Message::default() };
    let code = u64::from_ne_bytes(i64::from(*code).to_ne_bytes());
    Message::default().with_number(1, *status).with(2, words).with_number(3, code)
}

/// Where the ports of a sandbox are.
fn tunnels(made: &Made, field: u32, message: Message) -> Message {
    let ports = made.more.definition.message(20).messages(1);
    ports.iter().fold(message, |message, port| {
        let (number, here) = (port.number(1), "127.0.0.1");
        let tunnel = Message::default().with(1, here).with_number(2, number).with_number(5, number);
        let tunnel = if port.number(2) == 1 { tunnel.with(3, here).with_number(4, number) } else { tunnel };
        message.with_message(field, &tunnel)
    })
}

/// What the SDK keeps of a sandbox.
fn metadata(made: &Made) -> Message {
    Message::default().with_message(1, &result(made)).with(2, &made.more.app)
}

fn tags(made: &Made, field: u32, message: Message) -> Message {
    made.labels.iter().fold(message, |message, (name, value)| {
        message.with_message(field, &Message::default().with(1, name).with(2, value))
    })
}

pub(super) async fn answer(call: &Call) -> Response {
    let wish = call.wish();
    let id = wish.text(1);
    match call.method.as_str() {
        "SandboxCreate" | "SandboxCreateV2" => create(call),
        "SandboxWait" | "SandboxWaitV2" => wait(call, &id, wish.seconds(2)).await,
        "SandboxListV2" => list(call, &wish),
        "SandboxGetFromNameV2" => by_name(call, &wish),
        "SandboxTerminate" | "SandboxTerminateV2" => terminate(call, &id).await,
        "SandboxGetTunnels" | "SandboxGetTunnelsV2" => with(call, &id, |made| {
            let message = Message::default().with_message(1, &result(made));
            Ok(if made.machine.is_some() { tunnels(made, 2, message) } else { message })
        }),
        "SandboxGetTaskIdV2" => with(call, &id, |made| {
            let message = Message::default().with_message(2, &result(made));
            Ok(if made.machine.is_some() { message.with(1, &made.more.task) } else { message })
        }),
        "SandboxTagsGetV2" => with(call, &id, |made| Ok(tags(made, 1, Message::default()))),
        "SandboxTagsSetV2" => with(call, &wish.text(2), |made| {
            made.labels = wish.pairs(3).into_iter().collect();
            Ok(Message::default())
        }),
        "SandboxGetCommandRouterAccess" => access(call, &id),
        "SandboxCreateConnectTokenV2" => with(call, &id, |made| {
            let port = Some(call.wish().number(3)).filter(|port| *port > 0).unwrap_or(8080);
            let url = format!("http://127.0.0.1:{port}");
            Ok(Message::default().with(1, &url).with(2, &format!("connect-{}", made.more.task)))
        }),
        "AppFetchLogs" => logs(call, &wish.text(9), &wish.text(8)),
        // Those of the first generation have no names here, where the service's SDK looks then.
        "SandboxGetFromName" => refused(5, "Sandbox not found"),
        method => refused(12, &format!("Method {method} is not implemented")),
    }
}

/// Answers about a sandbox that is there, whether it has ended or not.
fn with(call: &Call, id: &str, work: impl FnOnce(&mut Made) -> Result<Message, Response>) -> Response {
    let mut world = lock(&call.world);
    match sandbox(&mut world, id).and_then(work) {
        Ok(message) => told(&message),
        Err(answer) => answer,
    }
}

/// Why no sandbox is made of this, if none is.
fn why_not(world: &World<Modal>, wish: &Message) -> Option<Response> {
    let (app, definition) = (wish.text(1), wish.message(2));
    if !world.face.apps.values().any(|id| *id == app) {
        return Some(refused(5, &format!("App {app} not found")));
    }
    if !world.face.images.get(&definition.text(3)).is_some_and(|image| image.is_built || image.layer.is_some()) {
        return Some(refused(5, &format!("Image {} not found", definition.text(3))));
    }
    if !definition.texts(2).iter().all(|mount| world.face.mounts.contains_key(mount)) {
        return Some(refused(5, "Mount not found"));
    }
    if !definition.texts(4).iter().all(|secret| world.face.secrets.contains_key(secret)) {
        return Some(refused(5, "Secret not found"));
    }
    if !(1..=LONGEST).contains(&definition.number(7)) {
        return Some(refused(3, "timeout must be between 1 second and 24 hours"));
    }
    let ports = definition.message(20).messages(1);
    let network = definition.message(22);
    if network.number(1) == 2 && !ports.is_empty() {
        return Some(refused(3, "A sandbox whose network is blocked has no open ports"));
    }
    if network.number(1) == 3 && network.texts(2).is_empty() && network.texts(3).is_empty() {
        return Some(refused(3, "An allow list must allow something"));
    }
    let resources = definition.message(5);
    let is_less = |least, most| resources.number(most) != 0 && resources.number(most) < resources.number(least);
    if is_less(2, 5) || is_less(3, 7) {
        return Some(refused(3, "A limit is below what was asked for"));
    }
    let name = definition.text(30);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name.len() > NAME || !name.bytes().all(allowed) {
        return Some(refused(3, &format!("Invalid sandbox name: '{name}'")));
    }
    let is_taken = |made: &Made| made.machine.is_some() && made.more.app == app && made.more.name == name;
    if !name.is_empty() && world.sandboxes.values().any(is_taken) {
        return Some(refused(6, &format!("Sandbox with name '{name}' already exists")));
    }
    None
}

fn create(call: &Call) -> Response {
    let wish = call.wish();
    // Ids of the first generation have 22 characters.
    let beginning = if call.method == "SandboxCreate" { "sb-0000000000" } else { "sb-" };
    let (id, message) = {
        let mut world = lock(&call.world);
        if let Some(answer) = why_not(&world, &wish) {
            return answer;
        }
        let (id, task, definition) = (World::<Modal>::next(beginning), World::<Modal>::next("ta-"), wish.message(2));
        let layer = world.face.images.get(&definition.text(3)).and_then(|image| image.layer.clone());
        let machine = Machine::new(world.kind, world.root.join(&id), layer.as_deref());
        let own = wish.messages(6).into_iter().flat_map(|source| source.message(2).pairs(1));
        let kept = definition.texts(4).into_iter().filter_map(|secret| world.face.secrets.get(&secret).cloned());
        let environment: BTreeMap<_, _> = kept.flatten().chain(own).collect();
        let more = More {
            app: wish.text(1),
            name: definition.text(30),
            task: task.clone(),
            definition,
            environment,
            ..More::default()
        };
        let labels = wish.pairs(4).into_iter().collect();
        let made = Sandbox {
            machine: Some(Arc::new(machine)),
            labels,
            state: "running".to_owned(),
            created: world.now(),
            more,
        };
        let access = Message::default().with(1, &token(&mut world, &id)).with(2, &world.url);
        let message = tunnels(&made, 2, Message::default().with(1, &id)).with(3, &task);
        let message = message.with_message(4, &metadata(&made)).with_message(5, &access);
        world.sandboxes.insert(id.clone(), made);
        if !call.key.is_empty() {
            world.face.wishes.insert(call.key.clone(), message.clone());
        }
        (id, message)
    };
    tokio::spawn(life::boot(Arc::clone(&call.world), id));
    told(&message)
}

async fn wait(call: &Call, id: &str, within: f64) -> Response {
    let until = tokio::time::Instant::now() + Duration::try_from_secs_f64(within).unwrap_or_default();
    let mut changes = lock(&call.world).changes();
    loop {
        {
            let mut world = lock(&call.world);
            <Modal as crate::Face>::turn(&mut world);
            let made = match sandbox(&mut world, id) {
                Ok(made) => made,
                Err(answer) => return answer,
            };
            if made.more.result.is_some() || tokio::time::Instant::now() >= until {
                return told(&Message::default().with_message(1, &result(made)).with_message(2, &metadata(made)));
            }
        }
        let _either = tokio::time::timeout_at(until, changes.changed()).await;
    }
}

async fn terminate(call: &Call, id: &str) -> Response {
    let slow = lock(&call.world).slow;
    tokio::time::sleep(slow).await;
    let mut world = lock(&call.world);
    let answer = match sandbox(&mut world, id) {
        Ok(made) => {
            let before = Message::default().with_message(1, &result(made));
            made.end(3, 0, "");
            told(&before)
        }
        Err(answer) => answer,
    };
    world.changed();
    answer
}

fn by_name(call: &Call, wish: &Message) -> Response {
    let world = lock(&call.world);
    let (name, environment, app) = (wish.text(1), wish.text(2), wish.text(3));
    let Some(app) = world.face.apps.get(&(environment, app)) else { return refused(5, "App not found") };
    let has_name = |made: &Made| made.more.app == *app && made.more.name == name;
    let mut found: Vec<_> = world.sandboxes.iter().filter(|(_, made)| has_name(made)).collect();
    found.retain(|(_, made)| made.machine.is_some() || wish.number(4) == 1);
    let newest = found.into_iter().max_by_key(|(_, made)| (made.machine.is_some(), made.created));
    match newest {
        Some((id, made)) => told(&Message::default().with(1, id).with_message(2, &metadata(made))),
        None => refused(5, &format!("Sandbox with name '{name}' not found in App")),
    }
}

fn list(call: &Call, wish: &Message) -> Response {
    let world = lock(&call.world);
    let (app, before, tagged) = (wish.text(1), wish.seconds(2), wish.pairs(5));
    let is_listed = |made: &Made| {
        (app.is_empty() || made.more.app == app)
            && (made.machine.is_some() || wish.number(4) == 1)
            && (before <= 0.0 || seconds(made.created) < before)
            && tagged.iter().all(|(name, value)| made.labels.get(name) == Some(value))
    };
    let mut all: Vec<_> = world.sandboxes.iter().filter(|(_, made)| is_listed(made)).collect();
    all.sort_by_key(|(_, made)| std::cmp::Reverse(made.created));
    let listed = all.into_iter().take(world.page).fold(Message::default(), |message, (id, made)| {
        let task = Message::default().with(1, &made.more.task).with_message(4, &result(made));
        let info = Message::default().with(1, id).with_seconds(3, seconds(made.created)).with_message(4, &task);
        let info = tags(made, 6, info.with(5, &made.more.app)).with(7, &made.more.name);
        let info = info.with(8, &made.more.definition.text(3)).with_number(11, made.more.definition.number(7));
        let info = if made.machine.is_some() { tunnels(made, 15, info) } else { info };
        message.with_message(1, &info)
    });
    told(&listed)
}

fn access(call: &Call, id: &str) -> Response {
    let mut world = lock(&call.world);
    // Either id will do.
    let of_task = call.wish().text(2);
    let found = world.sandboxes.iter().find(|(name, made)| *name == id || made.more.task == of_task);
    match found.map(|(name, made)| (name.clone(), made.machine.is_some())) {
        None => refused(5, &format!("Sandbox with ID {id} not found")),
        Some((_, false)) => refused(9, "The sandbox has ended"),
        Some((name, true)) => {
            let url = world.url.clone();
            told(&Message::default().with(1, &token(&mut world, &name)).with(2, &url))
        }
    }
}

/// What is kept of the output of a sandbox, by its id or by that of its task.
fn logs(call: &Call, id: &str, task: &str) -> Response {
    let world = lock(&call.world);
    let found = world.sandboxes.iter().find(|(name, made)| *name == id || (id.is_empty() && made.more.task == task));
    let Some((_, made)) = found else { return refused(5, "There is no such sandbox") };
    let Some(entry) = &made.more.entry else { return done() };
    let output = entry.output();
    let log = |text: &[u8], descriptor| {
        Message::default()
            .with(1, &String::from_utf8_lossy(text))
            .with_seconds(7, seconds(made.created))
            .with_number(8, descriptor)
    };
    let batch = Message::default().with(1, &made.more.task).with_message(2, &log(&output.stdout, 1));
    let batch = if output.stderr.is_empty() { batch } else { batch.with_message(2, &log(&output.stderr, 2)) };
    told(&Message::default().with_message(1, &batch))
}

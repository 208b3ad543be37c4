//! The router of a sandbox: programs in it, their output, its files as an image.

#![expect(clippy::result_large_err, reason = "an answer is what is wanted")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::{net::TcpStream, sync::watch, time::Instant};

use super::{
    grpc::{done, refused, streamed, told},
    proto::Message,
    state::{Call, Exec, Image, Made, Modal, seconds},
};
use crate::{Execution, Machine, Output, Program, World, lock};

/// The program of the service with which its SDK reads and writes files.
const FILES: &str = "/__modal/.bin/modal-sandbox-fs-tools";
/// How often it is looked whether a port is open.
const LOOK: Duration = Duration::from_millis(20);
/// Largest piece of output.
const PIECE: usize = 64 * 1024;

/// What a program has written to one of its two outputs.
type Of = fn(&Output) -> &Vec<u8>;

pub(super) async fn answer(call: Call) -> Response {
    let wish = call.wish();
    match call.method.as_str() {
        "SandboxWaitUntilReady" => ready(&call, &wish).await,
        "SandboxStdioReadV2" => {
            // What it has written stays for whoever was let in.
            let entry = {
                let world = lock(&call.world);
                let of_task = world.sandboxes.values().find(|made| made.more.task == wish.text(1));
                of_task.map(|made| made.more.entry.as_ref().map(|entry| entry.follow()))
            };
            let found = entry.ok_or_else(|| refused(5, "There is no such task"));
            let found = found.and_then(|entry| entry.ok_or_else(|| refused(14, "It has not begun")));
            match found {
                Ok(output) => read(output, of(wish.number(3)), wish.number(2), true),
                Err(answer) => answer,
            }
        }
        "SandboxStdinWriteV2" => {
            let found = with(&call, &wish.text(1), |made, _| Ok(made.more.entry.clone()));
            match found {
                Ok(Some(entry)) => {
                    entry.tell(wish.bytes(3).unwrap_or_default());
                    if wish.number(4) == 1 {
                        entry.close_input();
                    }
                    done()
                }
                Ok(None) => refused(14, "It has not begun"),
                Err(answer) => answer,
            }
        }
        "TaskExecStart" => start(&call, &wish).await,
        "TaskExecStdioRead" => match exec(&call, &wish) {
            Ok(exec) => read(exec.execution.follow(), of(wish.number(4)), wish.number(3), false),
            Err(answer) => answer,
        },
        "TaskExecStdinWriteStream" => write_all(&call),
        "TaskExecStdinWrite" => match exec(&call, &wish) {
            Ok(exec) => write(&exec, wish.number(3), wish.bytes(4).unwrap_or_default(), wish.number(5) == 1),
            Err(answer) => answer,
        },
        "TaskExecStdinStatus" => match exec(&call, &wish) {
            Ok(exec) => told(&Message::default().with_number(1, exec.written.load(Ordering::SeqCst))),
            Err(answer) => answer,
        },
        "TaskExecPoll" => match exec(&call, &wish) {
            Ok(exec) => told(&exec.execution.output().exit.map_or_else(Message::default, ended)),
            Err(answer) => answer,
        },
        "TaskExecWait" => match exec(&call, &wish) {
            Ok(exec) => {
                let mut output = exec.execution.follow();
                let code = output.wait_for(|output| output.exit.is_some()).await.ok().and_then(|output| output.exit);
                told(&code.map_or_else(Message::default, ended))
            }
            Err(answer) => answer,
        },
        "TaskSnapshotFilesystem" => snapshot(&call, &wish).await,
        method => refused(12, &format!("Method {method} is not implemented")),
    }
}

/// How a program has ended. A code of 0 is a field, too.
fn ended(code: i32) -> Message {
    let code = u64::from_ne_bytes(i64::from(code).to_ne_bytes());
    let message = Message::default().with_number(1, code);
    if code == 0 { Message::read(&[8, 0]).unwrap_or_default() } else { message }
}

fn of(descriptor: u64) -> Of {
    if descriptor == 1 { |output| &output.stderr } else { |output| &output.stdout }
}

/// Something of the sandbox with this task, if it runs.
fn with<T>(
    call: &Call,
    task: &str,
    work: impl FnOnce(&mut Made, Arc<Machine>) -> Result<T, Response>,
) -> Result<T, Response> {
    let mut world = lock(&call.world);
    let found = world.sandboxes.values_mut().find(|made| made.more.task == task);
    match found.and_then(|made| Some((made.machine.clone()?, made))) {
        Some((machine, made)) => work(made, machine),
        None => Err(refused(5, "The task does not run")),
    }
}

fn exec(call: &Call, wish: &Message) -> Result<Arc<Exec>, Response> {
    with(call, &wish.text(1), |made, _| {
        made.more.execs.get(&wish.text(2)).cloned().ok_or_else(|| refused(5, "There is no such exec"))
    })
}

/// Waits until the port of the probe takes connections.
async fn ready(call: &Call, wish: &Message) -> Response {
    let until = Instant::now() + Duration::try_from_secs_f64(wish.seconds(2)).unwrap_or_default();
    loop {
        let probe =
            with(call, &wish.text(1), |made, _| Ok((made.more.definition.message(38), made.more.entry.is_some())));
        let (probe, has_begun) = match probe {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        let port = u16::try_from(probe.number(1)).unwrap_or_default();
        if port == 0 {
            return refused(9, "The sandbox has no readiness probe");
        }
        if has_begun && TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return told(&Message::default().with_seconds(1, seconds(lock(&call.world).now())));
        }
        if Instant::now() >= until {
            return refused(4, "The sandbox is not ready");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What comes of an output from this byte on, to the end of its program.
fn read(output: watch::Receiver<Output>, of: Of, offset: u64, with_offset: bool) -> Response {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    streamed(stream::unfold((output, begin), move |(mut output, begin)| async move {
        let piece = {
            let has_more = |output: &Output| of(output).len() > begin || output.exit.is_some();
            let seen = output.wait_for(has_more).await.ok()?;
            of(&seen).get(begin..).map(|rest| rest.get(..PIECE.min(rest.len())).unwrap_or_default().to_vec())
        };
        let piece = piece.filter(|piece| !piece.is_empty())?;
        let message = Message::default().with_bytes(1, &piece);
        let message = if with_offset { message.with_number(2, begin.try_into().unwrap()) } else { message };
        Some((message, (output, begin + piece.len())))
    }))
}

fn write(exec: &Exec, offset: u64, data: &[u8], is_end: bool) -> Response {
    let written = exec.written.load(Ordering::SeqCst);
    // What comes again is known.
    let known = usize::try_from(written.saturating_sub(offset)).unwrap_or(usize::MAX);
    let new = data.get(known.min(data.len())..).unwrap_or_default();
    if offset > written {
        return refused(9, "There is a gap before these bytes");
    }
    exec.execution.tell(new);
    exec.written.fetch_add(new.len().try_into().unwrap(), Ordering::SeqCst);
    if is_end {
        exec.execution.close_input();
    }
    done()
}

fn write_all(call: &Call) -> Response {
    let start = call.wish().message(1);
    let exec = match exec(call, &start) {
        Ok(exec) => exec,
        Err(answer) => return answer,
    };
    let data: Vec<u8> =
        call.messages.iter().filter_map(|message| message.bytes(2)).flat_map(<[u8]>::iter).copied().collect();
    let is_end = call.messages.last().is_some_and(|last| last.bytes(3).is_some());
    write(&exec, start.number(3), &data, is_end)
}

/// A request for files as a program of the shell.
fn on_files(request: &str) -> Option<Vec<String>> {
    let request: Value = serde_json::from_str(request).ok()?;
    let (name, wish) = request.as_object()?.iter().next()?;
    let path = wish["path"].as_str()?;
    let missing =
        r#"test -e "$1" || { echo '{"error_kind":"NotFound","message":"no such file","detail":null}' >&2; exit 1; }; "#;
    let script = match name.as_str() {
        "WriteFile" => r#"mkdir -p "$(dirname "$1")" && cat >"$1""#.to_owned(),
        "ReadFile" => format!(r#"{missing}cat "$1""#),
        "MakeDirectory" => r#"mkdir -p "$1""#.to_owned(),
        "Remove" => format!(r#"{missing}rm -r "$1""#),
        _ => return None,
    };
    Some(["sh", "-c", &script, "sh", path].map(str::to_owned).into())
}

async fn start(call: &Call, wish: &Message) -> Response {
    let (task, id) = (wish.text(1), wish.text(2));
    let mut words = wish.texts(3);
    if words.first().is_some_and(|word| word == FILES) {
        let Some(of_shell) = words.get(1).and_then(|request| on_files(request)) else {
            return refused(12, "The stand-in does not do this with files");
        };
        words = of_shell;
    }
    if wish.number(5) == 2 {
        words = ["sh", "-c", r#"exec "$@" 2>&1"#, "sh"].into_iter().map(str::to_owned).chain(words).collect();
    }
    let found = with(call, &task, |made, machine| {
        let mut environment = made.more.environment.clone();
        environment.extend(wish.pairs(12));
        environment.extend(wish.messages(13).iter().flat_map(|source| source.message(2).pairs(1)));
        Ok((machine, environment, made.more.execs.contains_key(&id)))
    });
    let (machine, environment) = match found {
        // It was started by an earlier try.
        Ok((.., true)) => return done(),
        Ok((machine, environment, false)) => (machine, environment),
        Err(answer) => return answer,
    };
    let cwd = Some(wish.text(7)).filter(|path| !path.is_empty());
    let program = Program { words, environment, cwd, stdin: true };
    let started = tokio::task::spawn_blocking(move || Execution::start(&machine, &program)).await.unwrap();
    let execution = match started {
        Ok(execution) => execution,
        Err(said) => return refused(3, &said),
    };
    let exec = Arc::new(Exec { execution, written: AtomicU64::new(0) });
    let limit = wish.number(6);
    if limit > 0 {
        let exec = Arc::clone(&exec);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(limit)).await;
            if exec.execution.output().exit.is_none() {
                exec.execution.kill();
            }
        });
    }
    let kept = with(call, &task, |made, _| {
        made.more.execs.insert(id, exec);
        Ok(())
    });
    match kept {
        Ok(()) => done(),
        Err(answer) => answer,
    }
}

/// Keeps what a sandbox has as an image. One name is one image.
async fn snapshot(call: &Call, wish: &Message) -> Response {
    let name = format!("snapshot {}", wish.text(2));
    if let Some(made) = lock(&call.world).face.wishes.get(&name).cloned() {
        return told(&made);
    }
    let machine = match with(call, &wish.text(1), |_, machine| Ok(machine)) {
        Ok(machine) => machine,
        Err(answer) => return answer,
    };
    let (id, root, slow) = {
        let world = lock(&call.world);
        (World::<Modal>::next("im-"), world.root.clone(), world.slow)
    };
    tokio::time::sleep(slow).await;
    let layer = root.join(&id);
    let to = layer.clone();
    tokio::task::spawn_blocking(move || machine.keep(&to)).await.unwrap();
    let mut world = lock(&call.world);
    world.face.images.insert(id.clone(), Image { layer: Some(layer), ..Image::default() });
    let made = Message::default().with(1, &id);
    world.face.wishes.insert(name, made.clone());
    told(&made)
}

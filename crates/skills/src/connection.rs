//! One kernel, with an editor of its own that has the rights of the kernel's user.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use gloveport_editor::{Editor, EditorError, EditorOptions, Linter, lint::PythonLinter};
use gloveport_sys::{Identity, file_identity, os_error};
use rustix::io::Errno;

use crate::message::{Answer, Request};

/// Bytes of the longest request. The largest file has 10 MiB, and a byte can take six in JSON.
pub(crate) const REQUEST: u64 = 64 * 1024 * 1024;

/// How long a request may take to arrive once it has begun, and an answer to be taken, for each part of it.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Bytes of a buffer that is kept between requests.
const KEPT: usize = 1024 * 1024;

/// As whom the editor works, and what judges its edits.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) identity: Option<Identity>,
    pub(crate) linter: PythonLinter,
}

/// Answers the requests of a kernel until it hangs up. Takes the rights of the current thread away, for good.
pub(crate) fn serve(stream: &UnixStream, rights: &Rights) -> io::Result<()> {
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    if let Some(user) = &rights.identity
        && let Err(error) = file_identity::take_on(user)
    {
        tracing::warn!(%error, user = user.uid, "the editor can not work as the user of the kernel");
        return send(stream, &Answer::refused(format!("it can not work as the user {}: {error}", user.uid)));
    }
    let editor = Editor::new(EditorOptions::without_workspace());
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        match read_line(&mut reader, stream, &mut line) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(refusal) => return send(stream, &Answer::Refused { refused: refusal }),
        }
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => return send(stream, &Answer::refused(format!("it is not understood: {error}"))),
        };
        let linter = request.enable_linting.then_some(&rights.linter as &dyn Linter);
        let result = if concerns_this_process(Path::new(&request.path)) {
            Err(not_permitted(&request.path))
        } else {
            editor.run_judged(&request.edit(), linter)
        };
        send(stream, &request.answer(&result))?;
        line.clear();
        line.shrink_to(KEPT);
    }
}

/// The next line; none at the end. An error is the reason for the kernel.
fn read_line(reader: &mut BufReader<&UnixStream>, stream: &UnixStream, line: &mut Vec<u8>) -> Result<bool, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => format!("it did not arrive within {} s", TIME_LIMIT.as_secs()),
        _ => format!("it can not be read: {error}"),
    };
    // A kernel may be silent for as long as it likes.
    stream.set_read_timeout(None).map_err(failed)?;
    loop {
        match reader.fill_buf() {
            Ok([]) => return Ok(false),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    stream.set_read_timeout(Some(TIME_LIMIT)).map_err(failed)?;
    reader.take(REQUEST + 1).read_until(b'\n', line).map_err(failed)?;
    if line.len() as u64 > REQUEST {
        return Err(format!("it is larger than {} MiB", REQUEST / 1024 / 1024));
    }
    // Without its end, the kernel went away within it.
    Ok(line.ends_with(b"\n"))
}

fn send(mut stream: &UnixStream, answer: &Answer<'_>) -> io::Result<()> {
    stream.write_all(&answer.line()?)
}

/// Whether the path leads into what the system tells of this process. It would tell it to each of its threads, whatever
/// rights they have, and it is nothing that the user's own programs could see.
fn concerns_this_process(path: &Path) -> bool {
    let own = Path::new("/proc").join(std::process::id().to_string());
    path.ancestors().any(|part| fs::canonicalize(part).is_ok_and(|real| real.starts_with(&own)))
}

fn not_permitted(path: &str) -> EditorError {
    let reason = os_error::described(&Errno::ACCESS.into(), path);
    EditorError::Read { path: path.to_owned(), reason }
}

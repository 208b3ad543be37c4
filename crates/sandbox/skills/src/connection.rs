//! One kernel, with an editor of its own that has the rights of the kernel's user.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use gloveport_editor::{Editor, EditorError, EditorOptions, Linter, documents::Reader, lint::PythonLinter};
use gloveport_sys::{Identity, file_identity, os_error};
use rustix::io::Errno;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::message::{Answer, Request};

/// Bytes of the longest request. The largest file has 10 MiB, and a byte can take six in JSON.
const REQUEST: usize = 64 * 1024 * 1024;

/// Bytes of a request that is large. The buffer of others is kept.
const LARGE: usize = 1024 * 1024;

/// Large requests of all kernels at a time.
const LARGE_AT_ONCE: usize = 8;

/// Bytes of former states of files for one kernel.
const HISTORY: usize = 16 * 1024 * 1024;

/// How long a request may take to arrive once it has begun, and each part of an answer to be taken.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// What all connections have in common.
#[derive(Debug)]
pub(crate) struct Service {
    /// As whom editors work.
    pub(crate) identity: Option<Identity>,
    /// What judges their edits.
    pub(crate) linter: PythonLinter,
    large: Semaphore,
}

impl Service {
    pub(crate) fn new(identity: Option<Identity>, linter: PythonLinter) -> Self {
        Self { identity, linter, large: Semaphore::new(LARGE_AT_ONCE) }
    }
}

/// Answers the requests of a kernel until it hangs up. Takes the rights of the current thread away, for good.
pub(crate) fn serve(stream: &UnixStream, service: &Service) -> io::Result<()> {
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    if let Some(user) = &service.identity
        && let Err(error) = file_identity::take_on(user)
    {
        tracing::warn!(%error, user = user.uid, "the editor cannot work as the user of the kernel");
        return send(stream, &Answer::refused(format!("it cannot work as the user {}: {error}", user.uid)));
    }
    let editor = Editor::new(EditorOptions {
        history_bytes: HISTORY,
        documents: Reader::new(service.identity.clone()),
        ..EditorOptions::without_workspace()
    });
    let mut requests = Requests::new(stream, &service.large);
    loop {
        let request: Request = match requests.next() {
            Ok(None) => return Ok(()),
            Ok(Some(line)) => match serde_json::from_slice(line) {
                Ok(request) => request,
                Err(error) => return send(stream, &Answer::refused(format!("it is not understood: {error}"))),
            },
            Err(reason) => return send(stream, &Answer::refused(reason)),
        };
        let linter = request.enable_linting.then_some(&service.linter as &dyn Linter);
        let result = if concerns_this_process(Path::new(&request.path)) {
            Err(not_permitted(&request.path))
        } else {
            editor.run_judged(&request.edit(), linter)
        };
        send(stream, &request.answer(&result))?;
    }
}

fn send(mut stream: &UnixStream, answer: &Answer<'_>) -> io::Result<()> {
    stream.write_all(&answer.line()?)
}

/// The requests of a kernel, as lines.
struct Requests<'a> {
    stream: &'a UnixStream,
    reader: BufReader<&'a UnixStream>,
    line: Vec<u8>,
    large: &'a Semaphore,
    /// The right to a large line, as long as that is held.
    permit: Option<SemaphorePermit<'a>>,
}

impl<'a> Requests<'a> {
    fn new(stream: &'a UnixStream, large: &'a Semaphore) -> Self {
        let reader = BufReader::with_capacity(64 * 1024, stream);
        Self { stream, reader, line: Vec::new(), large, permit: None }
    }

    /// The next line; none at the end. An error is the reason for the kernel.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        self.line.shrink_to(LARGE);
        self.permit = None;
        // A kernel may be silent for as long as it likes, but not within a request.
        let mut deadline = None;
        loop {
            let left = deadline.map(|deadline: Instant| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(too_slow());
            }
            self.stream.set_read_timeout(left).map_err(|error| unreadable(&error))?;
            let piece = match self.reader.fill_buf() {
                // Without its end, the kernel went away within it.
                Ok([]) => return Ok(None),
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&error)),
            };
            deadline.get_or_insert_with(|| Instant::now() + TIME_LIMIT);
            let end = piece.iter().position(|byte| *byte == b'\n');
            self.line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
            let taken = end.map_or(piece.len(), |end| end + 1);
            self.reader.consume(taken);
            self.check_length()?;
            if end.is_some() {
                return Ok(Some(&self.line));
            }
        }
    }

    fn check_length(&mut self) -> Result<(), String> {
        if self.line.len() > REQUEST {
            return Err(format!("it is larger than {} MiB", REQUEST / 1024 / 1024));
        }
        if self.line.len() > LARGE && self.permit.is_none() {
            let permit = self.large.try_acquire().map_err(|_| "there are too many large requests at a time")?;
            self.permit = Some(permit);
        }
        Ok(())
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => too_slow(),
        _ => format!("it cannot be read: {error}"),
    }
}

fn too_slow() -> String {
    format!("it did not arrive within {} s", TIME_LIMIT.as_secs())
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

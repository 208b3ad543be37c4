//! The terminal, or the pipes, of whoever started us.
//!
//! Standard input and output are read and written by threads of their own: they may stand still for ever, and nobody
//! waits for them then. (Setting them to non-blocking would change them for our parent, too.)

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_protocol::terminals::TerminalSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::{mpsc, oneshot};

/// Pieces that wait between a thread and us.
const PIECES: usize = 16;
/// Most bytes read at once.
const PIECE: usize = 16 * 1024;
/// Time for the last output.
const FAREWELL: Duration = Duration::from_secs(2);

/// Our terminal in raw mode: every key is a byte for the program. Dropping it brings the modes back, in whatever way
/// it is dropped.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
    raw: Termios,
}

impl RawMode {
    /// Sets it; `None` if standard input is no terminal.
    pub(super) fn set() -> anyhow::Result<Option<Self>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(io::stdin()).context("cannot read the modes of the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        let mode = Self { before, raw };
        tcsetattr(io::stdin(), OptionalActions::Now, &mode.raw).context("cannot set the terminal to raw mode")?;
        Ok(Some(mode))
    }

    /// Sets it once more: a shell that continues us may have changed it.
    pub(super) fn again(&self) {
        if let Err(error) = tcsetattr(io::stdin(), OptionalActions::Now, &self.raw) {
            tracing::debug!(%error, "the terminal can not be set to raw mode again");
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no modes.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Size of our terminal, if there is one that tells it.
pub(super) fn size() -> Option<TerminalSize> {
    let sizes = [tcgetwinsize(io::stdin()), tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr())];
    let size = sizes.into_iter().flatten().find(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some(TerminalSize { columns: size.ws_col, rows: size.ws_row })
}

/// What is typed, piece by piece, to its end.
pub(super) fn input() -> anyhow::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    let read = move || {
        let mut buffer = vec![0; PIECE];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(count) if count > 0 => {
                    if sender.blocking_send(buffer.get(..count).unwrap_or_default().to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("standard-input".into()).spawn(read).context("cannot start a thread")?;
    Ok(receiver)
}

/// Standard output.
#[derive(Debug)]
pub(super) struct Output {
    pieces: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<io::Result<()>>,
}

impl Output {
    pub(super) fn start() -> anyhow::Result<Self> {
        let (pieces, mut receiver) = mpsc::channel::<Vec<u8>>(PIECES);
        let (done, written) = oneshot::channel();
        let write = move || {
            let result = (|| {
                let mut output = io::stdout().lock();
                while let Some(piece) = receiver.blocking_recv() {
                    output.write_all(&piece)?;
                    output.flush()?;
                }
                Ok(())
            })();
            // Whoever waits may have lost patience.
            let _waiting = done.send(result);
        };
        thread::Builder::new().name("standard-output".into()).spawn(write).context("cannot start a thread")?;
        Ok(Self { pieces, written })
    }

    /// A place for the next piece. None if standard output is broken.
    pub(super) async fn place(&self) -> Option<mpsc::Permit<'_, Vec<u8>>> {
        self.pieces.reserve().await.ok()
    }

    /// Writes the last piece, and waits until everything is written, or for as long as that may take.
    pub(super) async fn finish(self, last: Vec<u8>) -> anyhow::Result<()> {
        let Self { pieces, written } = self;
        let write = async {
            // An error is told by the thread.
            let _broken = pieces.send(last).await;
            drop(pieces);
            written.await
        };
        match tokio::time::timeout(FAREWELL, write).await {
            Ok(Ok(result)) => result.context("cannot write to standard output"),
            // It stands still, and the rest is still kept by the server.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}

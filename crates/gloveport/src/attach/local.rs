//! The terminal, or the pipes, of whoever started us.
//!
//! Standard input and output are read and written by threads of their own: they may stand still for ever, and nobody
//! waits for them then. (Setting them to non-blocking would change them for our parent, too.)

use std::{
    io::{self, Read as _},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot};

use crate::terminal::{self, EMPTY_READ};

/// Pieces that wait between a thread and us.
const PIECES: usize = 16;
/// Most bytes read at once.
const PIECE: usize = 16 * 1024;
/// Time for the last output.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is typed, piece by piece, to its end; with `is_raw` on a terminal in raw mode.
pub(super) fn input(is_raw: bool) -> anyhow::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    let read = move || {
        let mut buffer = vec![0; PIECE];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(count) => {
                    let piece = buffer.get(..count).filter(|piece| !piece.is_empty()).map(<[u8]>::to_vec);
                    let Some(piece) = piece.or_else(|| EMPTY_READ.filter(|_| is_raw).map(|key| vec![key])) else {
                        return;
                    };
                    if sender.blocking_send(piece).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
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
                while let Some(piece) = receiver.blocking_recv() {
                    terminal::show(&piece)?;
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

//! What a program printed: the last of it in memory, and its lines for the log of the sandbox.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver};

use crate::text::printable;

/// Bytes that are kept.
const KEPT: usize = 256 * 1024;
/// Bytes and lines that an error shows.
const SHOWN_BYTES: usize = 2000;
const SHOWN_LINES: usize = 12;
/// Lines that go to the log of the sandbox within one period; the others are counted.
const LINES: u32 = 200;
const PERIOD: Duration = Duration::from_secs(10);
/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// Longest piece of a line in the log of the sandbox.
const LINE: usize = 1000;

/// The last bytes that a program printed.
#[derive(Debug)]
pub struct ProgramLog {
    name: String,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// How many bytes were ever printed.
    total: u64,
}

impl ProgramLog {
    /// An empty one for the program of this name.
    pub fn new(name: String) -> Self {
        Self { name, kept: Mutex::default() }
    }

    /// Name of the service.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Keeps what was printed.
    pub fn add(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.total += bytes.len() as u64;
        let bytes = bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or_default();
        let too_many = (kept.bytes.len() + bytes.len()).saturating_sub(KEPT);
        kept.bytes.drain(..too_many);
        kept.bytes.extend(bytes);
    }

    /// Reads what a program prints until the end of it. Whole lines go to the log of the sandbox as well.
    pub async fn read(self: Arc<Self>, output: OwnedFd) {
        let mut output = match Receiver::from_owned_fd(output) {
            Ok(output) => output,
            Err(error) => return tracing::warn!(service = self.name, "cannot read what it prints: {error}"),
        };
        let mut lines = ProgramLines::new(&self.name);
        let mut buffer = vec![0; PIECE];
        while let Ok(count @ 1..) = output.read(&mut buffer).await {
            let bytes = buffer.get(..count).unwrap_or_default();
            self.add(bytes);
            lines.add(bytes);
        }
        lines.finish();
    }

    /// All that is kept.
    pub fn bytes(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes.iter().copied().collect()
    }

    /// How many bytes were ever printed.
    pub fn total(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// The last lines that were printed since there were `total` bytes, as an error shows them.
    pub fn last_lines(&self, total: u64) -> String {
        let (bytes, new) = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let new = usize::try_from(kept.total - total).unwrap_or(usize::MAX).min(SHOWN_BYTES);
            let start = kept.bytes.len().saturating_sub(new);
            (kept.bytes.range(start..).copied().collect::<Vec<u8>>(), new)
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        // What is cut at its beginning says little, unless there is nothing else.
        let cut = usize::from(new == SHOWN_BYTES && lines.len() > 1);
        let first = lines.len().saturating_sub(SHOWN_LINES).max(cut);
        lines.iter().skip(first).flat_map(|line| ["\n  ".to_owned(), printable(line)]).collect()
    }
}

/// Passes lines on to the log of the sandbox, and no more of them than people can read.
#[derive(Debug)]
struct ProgramLines {
    name: String,
    pending: Vec<u8>,
    period: Instant,
    told: u32,
    left_out: u64,
}

impl ProgramLines {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), pending: Vec::new(), period: Instant::now(), told: 0, left_out: 0 }
    }

    /// Passes on the whole lines of what was printed.
    fn add(&mut self, bytes: &[u8]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.pending.len()).min(piece.len());
            self.pending.extend_from_slice(piece.get(..room).unwrap_or_default());
            if piece.ends_with(b"\n") {
                self.tell();
            }
        }
    }

    /// Passes on what is left of a last line.
    fn finish(&mut self) {
        if !self.pending.is_empty() {
            self.tell();
        }
        self.tell_left_out();
    }

    fn tell(&mut self) {
        if self.period.elapsed() >= PERIOD {
            self.tell_left_out();
            (self.period, self.told) = (Instant::now(), 0);
        }
        if self.told < LINES {
            self.told += 1;
            let line = String::from_utf8_lossy(&self.pending);
            tracing::debug!(service = self.name, "{}", printable(line.trim_end()));
        } else {
            self.left_out += 1;
        }
        self.pending.clear();
    }

    fn tell_left_out(&mut self) {
        if self.left_out > 0 {
            tracing::debug!(service = self.name, "{} lines more", self.left_out);
            self.left_out = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::{filter::LevelFilter, fmt};

    use super::*;

    /// What a subscriber writes.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What goes to a log of this level for pieces that were printed.
    fn logged(level: LevelFilter, pieces: &[&str]) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = fmt().with_max_level(level).without_time().with_ansi(false).with_target(false);
        tracing::subscriber::with_default(subscriber.with_writer(move || writer.clone()).finish(), || {
            let mut lines = ProgramLines::new("loud");
            for piece in pieces {
                lines.add(piece.as_bytes());
            }
            lines.finish();
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_log_of_the_sandbox_gets_whole_lines_at_level_debug_and_no_flood() {
        let pieces = ["one\ntw", "o\r\n", "\x1b[2Jthree"];
        let expected =
            "DEBUG one service=\"loud\"\nDEBUG two service=\"loud\"\nDEBUG \\u{1b}[2Jthree service=\"loud\"\n";
        assert_eq!(logged(LevelFilter::DEBUG, &pieces), expected);
        assert_eq!(logged(LevelFilter::INFO, &pieces), "");
        let flood = logged(LevelFilter::DEBUG, &vec!["x\n"; 100_000]);
        assert_eq!((flood.lines().count(), flood.ends_with("DEBUG 99800 lines more service=\"loud\"\n")), (201, true));
        let long = logged(LevelFilter::DEBUG, &[&"y".repeat(5_000_000), "\n"]);
        assert_eq!((long.lines().count(), long.matches('y').count()), (1, LINE));
    }

    #[test]
    fn the_last_bytes_are_kept_and_no_more() {
        let log = ProgramLog::new("x".into());
        for number in 0..100_000 {
            log.add(format!("{number}\n").as_bytes());
        }
        let bytes = log.bytes();
        assert_eq!((bytes.len(), bytes.ends_with(b"99999\n")), (KEPT, true));
        log.add(&vec![b'x'; 3 * KEPT]);
        assert_eq!(log.bytes(), vec![b'x'; KEPT]);
        assert_eq!(log.total(), 588_890 + 3 * KEPT as u64);
    }

    #[test]
    fn an_error_shows_whole_last_lines_that_do_nothing_to_a_terminal() {
        let log = ProgramLog::new("x".into());
        log.add(b"before\n");
        let total = log.total();
        assert_eq!(log.last_lines(total), "");
        log.add(b"a\r\n\x1b[31mred\n\nlast");
        assert_eq!(log.last_lines(total), "\n  a\n  \\u{1b}[31mred\n  last");
        for number in 0..1000 {
            log.add(format!("line {number}\n").as_bytes());
        }
        let shown = log.last_lines(total);
        assert_eq!((shown.lines().count(), shown.starts_with("\n  line 988\n")), (SHOWN_LINES + 1, true), "{shown}");
    }
}

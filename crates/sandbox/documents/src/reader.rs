//! Who wants to see a document.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, OnceLock},
    time::{Duration, Instant},
};

use gloveport_sys::{
    Identity,
    apart::{Apart, End, Interrupt},
    turns::{NoTurn, Turns},
};

use crate::{
    Format, View,
    child::{Job, Order, SECONDS, UNCONFINED},
    convert::NO_TRANSCRIPT,
    frames::{self, Head, Kind},
    limits::{PAGES, SIDE},
};

/// Documents of this process that are read at once.
const AT_ONCE: usize = 2;
/// Documents that wait to be read.
const WAITING: usize = 32;
/// How long one waits.
const WAIT: Duration = Duration::from_secs(30);

/// Signals of the system by which a child ends.
const ABORTED: i32 = 6;
const KILLED: i32 = 9;
const FAULTED: i32 = 11;
const OUT_OF_TIME: i32 = 24;

static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| Arc::new(Turns::new(AT_ONCE, WAITING)));
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says which program all readers of this process start: one that calls [`run_if_asked`](crate::run_if_asked) first.
/// For a program that does so itself that is `/proc/self/exe`. What was said first holds.
pub fn choose_program(program: impl Into<PathBuf>) {
    // Said twice, it is the same program.
    let _first = PROGRAM.set(program.into());
}

/// Why a document is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What its reader says: it is empty, damaged, too large or too complex.
    #[error("{0}")]
    Refused(String),
    /// Reading it took too long.
    #[error("it took longer than {} seconds to read", .0.as_secs_f64())]
    Slow(Duration),
    /// Others that take long left no room for this one.
    #[error("other documents were not read within {} seconds", .0.as_secs_f64())]
    Busy(Duration),
    /// Too many others wait.
    #[error("too many documents are to be read at once; try again later")]
    Crowded,
    /// Reading it takes too much memory.
    #[error("it takes more than {} MB of memory to read", .0 / (1024 * 1024))]
    Memory(u64),
    /// What is in it is nested without an end.
    #[error("it is nested too deep to be read")]
    Deep,
    /// It ended its reader.
    #[error("its reader ended without an answer ({0})")]
    Ended(String),
    /// Its reader said what is no answer.
    #[error("its reader gave no answer that could be understood")]
    Nonsense,
    /// Nobody waits for it any more.
    #[error("the request for it was given up")]
    Left,
    /// There is no program that reads documents.
    #[error("this program has no part that reads documents apart, and reads none in any other way")]
    NoProgram,
    /// Its reader could not be started, or not without rights.
    #[error("its reader cannot be started: {0}")]
    Start(String),
}

/// Why a document is not drawn, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// It is not shown.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Whoever gets the pages does not take them.
    #[error(transparent)]
    Output(io::Error),
}

/// What is drawn.
#[derive(Debug)]
pub enum Page<'a> {
    /// A page.
    Picture(Picture<'a>),
    /// Something about pages that are not shown.
    Note(String),
}

/// The picture of a page. The child made it, so it may be anything, but of a bounded size.
#[derive(Debug)]
pub struct Picture<'a> {
    /// Of the page, counted from 1.
    pub number: u32,
    /// In dots, at most [`SIDE`].
    pub width: u16,
    /// In dots, at most [`SIDE`].
    pub height: u16,
    /// The PNG, as it comes.
    pub png: Content<'a>,
}

/// The rest of a frame.
#[derive(Debug)]
pub struct Content<'a> {
    from: &'a mut Apart,
    state: &'a mut State,
}

/// How far a frame is read.
#[derive(Debug)]
struct State {
    left: usize,
    failure: Option<io::ErrorKind>,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.state.left);
        if room == 0 {
            return Ok(0);
        }
        let read = match self.from.read(&mut buffer[..room]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            other => other,
        };
        match &read {
            Ok(length) => self.state.left -= length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.state.failure = Some(error.kind()),
        }
        read
    }
}

/// Shows documents, each read in a process apart. Blocks. All readers of a process take turns.
#[derive(Debug, Clone)]
pub struct Reader {
    identity: Option<Identity>,
    turns: Arc<Turns>,
    wait: Duration,
    work: Duration,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Reader {
    /// One whose documents are read with the rights of a user, if this process is root's, and else with none but those of
    /// the user that this process has.
    pub fn new(identity: Option<Identity>) -> Self {
        Self { identity, turns: Arc::clone(&TURNS), wait: WAIT, work: Duration::from_secs(SECONDS) }
    }

    /// The same with other limits: how long a document waits for its turn, and how long reading it may take. More than 30
    /// seconds of processor time it never gets.
    #[must_use]
    pub fn within(self, wait: Duration, work: Duration) -> Self {
        Self { wait, work, ..self }
    }

    /// The document as Markdown, cut at 4 MiB. The file is read from where it stands.
    ///
    /// # Errors
    ///
    /// It can not be read, by its own fault or another's, or not in time, or the interrupt came.
    pub fn markdown(&self, format: Format, file: File, interrupt: &Interrupt) -> Result<String, ReadError> {
        if format == Format::Audio {
            // Nothing of it is looked at.
            return match file.metadata() {
                Ok(metadata) if metadata.len() == 0 => Err(ReadError::Refused("the file is empty".to_owned())),
                _ => Ok(NO_TRANSCRIPT.to_owned()),
            };
        }
        self.text(Job::Markdown(format), Kind::Text, file, interrupt)
    }

    /// The inner part of a page of a browser that shows the file. The file is read from where it stands. There are no
    /// scripts in it unless its reader was taken over by the file, so the page that it is put into must allow none.
    ///
    /// # Errors
    ///
    /// It can not be read, by its own fault or another's, or not in time, or the interrupt came.
    pub fn web(&self, view: View, file: File, interrupt: &Interrupt) -> Result<String, ReadError> {
        self.text(Job::Web(view), Kind::Web, file, interrupt)
    }

    /// One text, in one frame.
    fn text(&self, job: Job, kind: Kind, file: File, interrupt: &Interrupt) -> Result<String, ReadError> {
        self.reading(job, file, interrupt, |from| {
            let text = match frames::begin(from)? {
                (found, length) if found == kind => frames::content(from, length)?,
                other => return Err(unwanted(from, other)),
            };
            match frames::begin(from)? {
                (Kind::Done, _) => String::from_utf8(text).map_err(|_| Trouble::Nonsense),
                other => Err(unwanted(from, other)),
            }
        })
        .map_err(|error| match error {
            DrawError::Read(error) => error,
            // A text is shown to nobody before it is whole.
            DrawError::Output(_) => ReadError::Nonsense,
        })
    }

    /// The pages of a PDF as pictures. The file is read from where it stands.
    ///
    /// # Errors
    ///
    /// It can not be read, by its own fault or another's, or not in time, or the interrupt came, or `show` fails. What was
    /// shown before stays good.
    pub fn draw(
        &self,
        file: File,
        interrupt: &Interrupt,
        mut show: impl FnMut(Page<'_>) -> io::Result<()>,
    ) -> Result<(), DrawError> {
        self.reading(Job::Draw, file, interrupt, |from| {
            // Each page is shown or told of, and one note may speak of the rest.
            for _ in 0..=PAGES {
                match frames::begin(from)? {
                    (Kind::Done, _) => return Ok(()),
                    (Kind::Note, length) => {
                        let text = String::from_utf8(frames::content(from, length)?).map_err(|_| Trouble::Nonsense)?;
                        show(Page::Note(text)).map_err(Trouble::Output)?;
                    }
                    (Kind::Picture, length) => picture(from, length, &mut show)?,
                    other => return Err(unwanted(from, other)),
                }
            }
            match frames::begin(from)? {
                (Kind::Done, _) => Ok(()),
                other => Err(unwanted(from, other)),
            }
        })
    }

    /// Starts a child, listens to it, and ends it.
    fn reading<T>(
        &self,
        job: Job,
        file: File,
        interrupt: &Interrupt,
        listen: impl FnOnce(&mut Apart) -> Result<T, Trouble>,
    ) -> Result<T, DrawError> {
        let program = PROGRAM.get().ok_or(ReadError::NoProgram)?;
        let turn = self.turns.take(Instant::now() + self.wait).map_err(|error| match error {
            NoTurn::Crowded => ReadError::Crowded,
            NoTurn::Late => ReadError::Busy(self.wait),
        })?;
        let order = Order { job, parent: std::process::id(), identity: self.identity.clone() };
        let mut apart = self.start(program, &order.arguments(), file, interrupt)?;
        let outcome = listen(&mut apart);
        let explained = match outcome {
            Ok(shown) => Ok(shown),
            Err(Trouble::Output(error)) => Err(DrawError::Output(error)),
            Err(Trouble::Refused(reason)) => Err(ReadError::Refused(reason).into()),
            Err(Trouble::Nonsense | Trouble::Input(io::ErrorKind::InvalidData)) => Err(ReadError::Nonsense.into()),
            Err(Trouble::Input(io::ErrorKind::TimedOut)) => Err(ReadError::Slow(self.work).into()),
            // It ended, or its pipe is broken, which is its end.
            Err(Trouble::Input(_)) => {
                let end = apart.end().map_err(|error| ReadError::Ended(error.to_string()))?;
                return Err(explain(&end, job, interrupt).into());
            }
        };
        // The next one begins when this child is gone.
        drop(apart);
        drop(turn);
        explained
    }

    fn start(
        &self,
        program: &Path,
        arguments: &[OsString],
        file: File,
        interrupt: &Interrupt,
    ) -> Result<Apart, ReadError> {
        Apart::start(program, arguments, file, self.work, interrupt).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => ReadError::Left,
            _ => ReadError::Start(format!("{}: {error}", program.display())),
        })
    }
}

/// Why a child's answer does not come to its end.
enum Trouble {
    /// The child can not be read.
    Input(io::ErrorKind),
    /// Nobody takes what it says.
    Output(io::Error),
    /// It says why there is nothing to be shown.
    Refused(String),
    /// It says what it should not.
    Nonsense,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Input(error.kind())
    }
}

/// What it means that a frame comes at the wrong time.
fn unwanted(from: &mut Apart, (kind, length): (Kind, usize)) -> Trouble {
    if kind != Kind::Failure {
        return Trouble::Nonsense;
    }
    match frames::content(from, length) {
        Ok(reason) => Trouble::Refused(String::from_utf8_lossy(&reason).into_owned()),
        Err(error) => error.into(),
    }
}

fn picture(from: &mut Apart, length: usize, show: &mut impl FnMut(Page<'_>) -> io::Result<()>) -> Result<(), Trouble> {
    let mut head = [0; Head::LENGTH];
    let Some(left) = length.checked_sub(head.len()) else { return Err(Trouble::Nonsense) };
    from.read_exact(&mut head)?;
    let Head { number, width, height } = Head::of(head);
    if !(1..=PAGES).contains(&number) || !(1..=SIDE).contains(&width) || !(1..=SIDE).contains(&height) {
        return Err(Trouble::Nonsense);
    }
    let mut state = State { left, failure: None };
    let shown =
        show(Page::Picture(Picture { number, width, height, png: Content { from: &mut *from, state: &mut state } }));
    if let Some(failure) = state.failure {
        return Err(Trouble::Input(failure));
    }
    shown.map_err(Trouble::Output)?;
    // What was not wanted of it.
    let mut rest = Content { from, state: &mut state };
    io::copy(&mut rest, &mut io::sink())?;
    Ok(())
}

/// What the end of a child says about the document.
fn explain(end: &End, job: Job, interrupt: &Interrupt) -> ReadError {
    if interrupt.is_set() {
        return ReadError::Left;
    }
    let complaint = end.complaint.trim();
    match (end.code, end.signal) {
        (Some(code), _) if code == i32::from(UNCONFINED) => ReadError::Start(complaint.to_owned()),
        (_, Some(ABORTED | FAULTED)) if complaint.contains("memory allocation of") => ReadError::Memory(job.memory()),
        (_, Some(ABORTED)) if complaint.contains("overflowed its stack") => ReadError::Deep,
        // Memory outside of the stack is used by safe code only, so the stack is at its end.
        (_, Some(FAULTED)) => ReadError::Deep,
        (_, Some(OUT_OF_TIME)) => ReadError::Slow(Duration::from_secs(SECONDS)),
        (_, Some(KILLED)) => ReadError::Ended("it was killed, which the system does when memory runs out".to_owned()),
        (_, Some(signal)) => ReadError::Ended(format!("signal {signal}")),
        (Some(code), None) => ReadError::Ended(format!("exit code {code}")),
        (None, None) => ReadError::Ended("no exit code".to_owned()),
    }
}

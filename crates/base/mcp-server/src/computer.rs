//! What is asked of a sandbox.

use gloveport_protocol::{
    Action, BoxFuture, Observation,
    browser::{BrowserAct, NavigateRequest, PageInfo, PageView, ScreenshotRequest},
    exec::{ExecEvent, ExecRequest, ExecStatus},
    files::{FileEntry, FileEvent, FileList, GlobRequest, GrepMatches, GrepRequest},
    kernels::{CellRequest, CellResult},
};

/// Why something could not be done, for a model to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed, on what, and why.
    pub text: String,
    /// What was asked for is not there.
    pub is_missing: bool,
}

impl Failure {
    /// A failure that is told in these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_missing: false }
    }

    /// Something that is not there.
    pub fn missing(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_missing: true }
    }
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytes {
    /// The bytes from the offset that was asked for, as many as were asked for or as there are.
    pub bytes: Vec<u8>,
    /// Whether the file ends with them.
    pub is_end: bool,
}

/// What is asked of the browser.
#[derive(Debug, Clone, PartialEq)]
pub enum BrowserRequest {
    /// Lead the active page somewhere; a [`BrowserAnswer::Page`].
    Navigate(NavigateRequest),
    /// Do something in the active page; a [`BrowserAnswer::Page`].
    Act(BrowserAct),
    /// Look at the active page; a [`BrowserAnswer::Page`].
    Page,
    /// Tell which pages there are; [`BrowserAnswer::Pages`].
    Pages,
    /// The active page as text; a [`BrowserAnswer::Text`].
    Markdown,
    /// What is to be seen; a [`BrowserAnswer::Picture`].
    Screenshot(ScreenshotRequest),
}

/// What a browser answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserAnswer {
    /// What the active page is like.
    Page(Box<PageView>),
    /// The open pages.
    Pages(Vec<PageInfo>),
    /// A text in Markdown.
    Text(String),
    /// A picture, as PNG.
    Picture(Vec<u8>),
}

/// A command that is followed. Dropping it does not end the command.
pub trait Follow: Send {
    /// What it does next; none behind its end. Nothing is lost if this is given up and asked again.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<ExecEvent>, Failure>>;
}

/// What happens to files. Dropping it ends the watch.
pub trait Changes: Send {
    /// The next change; none if what was watched is gone. Nothing is lost if this is given up and asked again.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<FileEvent>, Failure>>;
}

/// A sandbox, as the tools use it. Paths are absolute.
pub trait Computer: Send + Sync + 'static {
    /// Waits until it can be used. Nothing but what needs no waiting is asked before.
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The directory that holds the work; empty as long as it is not known.
    fn directory(&self) -> &str;

    /// It is the user's own machine, with nothing in between.
    fn is_the_users(&self) -> bool {
        false
    }

    /// Whether it has a browser. One that is not known to have none counts as one that has.
    fn has_browser(&self) -> bool {
        false
    }

    /// Asks the browser for something.
    fn browse(&self, request: BrowserRequest) -> BoxFuture<'_, Result<BrowserAnswer, Failure>> {
        drop(request);
        Box::pin(std::future::ready(Err(Failure::new("the sandbox has no browser"))))
    }

    /// Starts a command that has an id, and follows it.
    fn run(&self, request: ExecRequest) -> BoxFuture<'_, Result<Box<dyn Follow>, Failure>>;

    /// Follows a command from an offset of its output on.
    fn follow<'a>(&'a self, id: &'a str, offset: u64) -> BoxFuture<'a, Result<Box<dyn Follow>, Failure>>;

    /// The commands that are known, in the order of their start.
    fn commands(&self) -> BoxFuture<'_, Result<Vec<ExecStatus>, Failure>>;

    /// Types a line into a command, or presses a key such as `C-c`.
    fn type_in<'a>(&'a self, id: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), Failure>>;

    /// Gives a command up: one that waits for its turn never begins; one that runs is interrupted, and then quit.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Failure>>;

    /// Has an action on files executed.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<Observation, Failure>>;

    /// Runs a cell in the kernel of agents.
    fn cell(&self, request: CellRequest) -> BoxFuture<'_, Result<CellResult, Failure>>;

    /// Interrupts the cell that runs.
    fn interrupt_cell(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// What is at a path; what a link leads to, and not the link.
    fn stat<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<FileEntry, Failure>>;

    /// The entries of a directory, hidden ones too, of which there are at most so many.
    fn list<'a>(&'a self, path: &'a str, most: usize) -> BoxFuture<'a, Result<FileList, Failure>>;

    /// At most so many bytes of a file from an offset on. It is an operation of its own only where the offset is 0.
    fn read<'a>(&'a self, path: &'a str, offset: u64, most: u64) -> BoxFuture<'a, Result<FileBytes, Failure>>;

    /// Stores a file, as a whole or not at all. Missing parent directories are made.
    fn write<'a>(&'a self, path: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), Failure>>;

    /// Names that match patterns.
    fn glob(&self, request: GlobRequest) -> BoxFuture<'_, Result<FileList, Failure>>;

    /// Lines that match a pattern.
    fn grep(&self, request: GrepRequest) -> BoxFuture<'_, Result<GrepMatches, Failure>>;

    /// Tells what happens at a path, and below it if it is recursive, from now on.
    fn watch<'a>(&'a self, path: &'a str, recursive: bool) -> BoxFuture<'a, Result<Box<dyn Changes>, Failure>>;
}

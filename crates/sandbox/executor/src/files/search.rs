//! Searching: names by pattern, and lines by regular expression.
//!
//! Patterns come from callers, files and what they leave out from whoever filled the directory. So all of them have bounds,
//! and few searches run at once.

mod ignores;

use std::{
    io,
    path::Path,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gloveport_protocol::files::{FileList, GlobRequest, GrepLine, GrepMatches, GrepRequest};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::{
    DirEntry, Walk, WalkBuilder,
    overrides::{Override, OverrideBuilder},
};

use gloveport_sys::turns::{NoTurn, Turn, Turns};

use super::{FileError, entries, paths::shown};
use ignores::{Ignores, Verdict};

/// Matching lines when the request names no limit.
const DEFAULT_LINES: usize = 1_000;
/// Most matching lines.
const MOST_LINES: usize = 10_000;
/// Most lines around a match.
const MOST_CONTEXT: usize = 100;
/// Characters of a line that are shown.
const LINE_LIMIT: usize = 4_096;
/// Bytes of a line that are held at most; a file with a longer one is skipped.
const HEAP_LIMIT: usize = 8 * 1024 * 1024;
/// Files that could not be read and are named.
const MOST_SKIPPED: usize = 100;
/// Bytes of all lines of an answer.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
/// Bytes of a regular expression.
const PATTERN_LIMIT: usize = 16 * 1024;
/// Bytes that a regular expression is compiled to. It has a second form of the same size.
const COMPILED_LIMIT: usize = 2 * 1024 * 1024;
/// Bytes of the states that a search makes while it runs, for each of the two forms.
const STATES_LIMIT: usize = 1024 * 1024;
/// Groups within each other.
const NESTING: u32 = 100;
/// Patterns of names.
const GLOBS: usize = 100;
/// Bytes of all of them.
const GLOB_LIMIT: usize = 8 * 1024;
/// Searches that run at once, and those that wait.
const AT_ONCE: usize = 4;
const WAITING: usize = 64;
/// How long one waits.
const WAIT: Duration = Duration::from_secs(30);
/// Time after which a search ends with what it has.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// The entries below `root` whose names match.
///
/// # Errors
///
/// `root` is no directory, or a pattern is not valid.
pub fn glob(root: &Path, request: &GlobRequest) -> Result<FileList, FileError> {
    if request.globs.is_empty() {
        return Err(FileError::Invalid("globs must not be empty".to_owned()));
    }
    std::fs::read_dir(root).map_err(FileError::os(root))?;
    let _turn = turn()?;
    let patterns = overrides(root, &request.globs)?;
    let deadline = Instant::now() + TIME_LIMIT;
    let ignores = request.respect_ignore.then(|| shared(root));
    let walk = walk(root, request.hidden, ignores, patterns.clone());
    let mut out_of_time = false;
    let matching = walk
        .take_while(|_| {
            out_of_time = Instant::now() > deadline;
            !out_of_time
        })
        .filter_map(Result::ok)
        .filter(|entry| entry.depth() > 0)
        .filter(|entry| is_selected(&patterns, entry))
        .map(ignore::DirEntry::into_path);
    let list = entries::collect(root, matching, request.limit);
    Ok(FileList { truncated: list.truncated || out_of_time, ..list })
}

static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| Arc::new(Turns::new(AT_ONCE, WAITING)));
/// Held while patterns are compiled: that takes a multiple of the memory of what comes out of it.
static COMPILING: Mutex<()> = Mutex::new(());

/// The right to search.
fn turn() -> Result<Turn, FileError> {
    TURNS.take(Instant::now() + WAIT).map_err(|error| match error {
        NoTurn::Crowded => FileError::Busy("too many searches wait".to_owned()),
        NoTurn::Late => FileError::Busy(format!("other searches did not end within {} seconds", WAIT.as_secs())),
    })
}

fn overrides(root: &Path, patterns: &[String]) -> Result<Override, FileError> {
    if patterns.len() > GLOBS {
        return Err(FileError::Invalid(format!(
            "there are {} patterns, and at most {GLOBS} are possible",
            patterns.len()
        )));
    }
    let length: usize = patterns.iter().map(String::len).sum();
    if length > GLOB_LIMIT {
        let reason = format!("the patterns have {length} bytes, and at most {GLOB_LIMIT} are possible");
        return Err(FileError::Invalid(reason));
    }
    let _alone = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = OverrideBuilder::new(root);
    for pattern in patterns {
        // A pattern with a leading slash or `./` is meant from the root on.
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        builder
            .add(pattern)
            .map_err(|error| FileError::Invalid(format!("the pattern {pattern:?} is not valid: {error}")))?;
    }
    builder.build().map_err(|error| FileError::Invalid(format!("the patterns are not valid: {error}")))
}

/// Whether the patterns name an entry. Without one that includes, everything is named that is not excluded.
fn is_selected(patterns: &Override, entry: &DirEntry) -> bool {
    let found = patterns.matched(entry.path(), entry.file_type().is_some_and(|kind| kind.is_dir()));
    if patterns.num_whitelists() == 0 { !found.is_ignore() } else { found.is_whitelist() }
}

/// The rules that a walk asks, and that others ask what it could not use.
type Shared = Arc<Mutex<Ignores>>;

fn shared(root: &Path) -> Shared {
    Arc::new(Mutex::new(Ignores::new(root)))
}

/// Everything below `root` but what is excluded. The walker's own overrides would bring hidden names back, and its own
/// rules wait for FIFOs and read without a bound.
fn walk(root: &Path, hidden: bool, ignores: Option<Shared>, patterns: Override) -> Walk {
    let mut builder = WalkBuilder::new(root);
    builder.standard_filters(false);
    builder.sort_by_file_path(|a, b| a.as_os_str().cmp(b.as_os_str()));
    builder.filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let verdict = match &ignores {
            Some(ignores) => ignores.lock().unwrap_or_else(PoisonError::into_inner).verdict(entry.path(), is_directory),
            None => Verdict::Open,
        };
        let is_there = match verdict {
            Verdict::Ignored => false,
            Verdict::Wanted => true,
            Verdict::Open => hidden || !entry.file_name().as_encoded_bytes().starts_with(b"."),
        };
        is_there && !(is_directory && patterns.matched(entry.path(), true).is_ignore())
    });
    builder.build()
}

/// A regular expression of a bounded size.
fn matcher(request: &GrepRequest) -> Result<RegexMatcher, FileError> {
    let invalid = |reason: String| FileError::Invalid(format!("the pattern is not valid: {reason}"));
    if request.pattern.len() > PATTERN_LIMIT {
        let length = request.pattern.len();
        return Err(invalid(format!("it has {length} bytes, and at most {PATTERN_LIMIT} are possible")));
    }
    let _alone = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    RegexMatcherBuilder::new()
        .case_insensitive(request.ignore_case)
        .fixed_strings(request.literal)
        .line_terminator(Some(b'\n'))
        .size_limit(COMPILED_LIMIT)
        .dfa_size_limit(STATES_LIMIT)
        .nest_limit(NESTING)
        .build(&request.pattern)
        .map_err(|error| invalid(error.to_string()))
}

/// The lines of files at or below `root` that match.
///
/// # Errors
///
/// `root` does not exist, or a pattern is not valid.
pub fn grep(root: &Path, request: &GrepRequest) -> Result<GrepMatches, FileError> {
    let metadata = std::fs::metadata(root).map_err(FileError::os(root))?;
    let _turn = turn()?;
    let matcher = matcher(request)?;
    let context = request.context.min(MOST_CONTEXT);
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(HEAP_LIMIT))
        .build();
    let mut found = Found {
        matches: GrepMatches { lines: Vec::new(), truncated: false, skipped: Vec::new() },
        left: request.limit.unwrap_or(DEFAULT_LINES).min(MOST_LINES),
        deadline: Instant::now() + TIME_LIMIT,
        room: ANSWER_LIMIT,
        path: String::new(),
    };
    let base = if metadata.is_dir() { root } else { root.parent().unwrap_or(root) };
    let globs = overrides(base, &request.globs)?;
    let ignores = request.respect_ignore.then(|| shared(root));
    for entry in walk(root, request.hidden, ignores.clone(), globs.clone()) {
        if found.matches.truncated || found.is_late() {
            break;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                found.skip(error.to_string());
                continue;
            }
        };
        // A FIFO or a device would have no end.
        let is_file = match entry.file_type() {
            Some(kind) => kind.is_file() || (entry.depth() == 0 && metadata.is_file()),
            None => false,
        };
        if !is_file || !(request.globs.is_empty() || is_selected(&globs, &entry)) {
            continue;
        }
        found.path = shown(entry.path().strip_prefix(base).unwrap_or(entry.path())).0;
        let outcome = gloveport_sys::replace::open_to_read(entry.path())
            .and_then(|file| searcher.search_file(&matcher, &file, &mut found));
        if let Err(error) = outcome {
            found.skip(format!("{}: {error}", entry.path().display()));
        }
    }
    if let Some(ignores) = ignores {
        let unused = ignores.lock().unwrap_or_else(PoisonError::into_inner).take_unused();
        for reason in unused {
            found.skip(reason);
        }
    }
    Ok(found.matches)
}

struct Found {
    matches: GrepMatches,
    /// Matching lines that still fit.
    left: usize,
    deadline: Instant,
    /// Bytes that still fit.
    room: usize,
    path: String,
}

impl Found {
    fn skip(&mut self, reason: String) {
        if self.matches.skipped.len() < MOST_SKIPPED {
            self.matches.skipped.push(reason);
        }
    }

    /// Whether the time is over, which the answer then tells.
    fn is_late(&mut self) -> bool {
        self.matches.truncated |= Instant::now() > self.deadline;
        self.matches.truncated
    }

    fn push(&mut self, line: Option<u64>, bytes: &[u8], is_match: bool) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let text: String =
            String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LINE_LIMIT)]).chars().take(LINE_LIMIT).collect();
        let Some(room) = self.room.checked_sub(self.path.len() + text.len()) else {
            self.matches.truncated = true;
            return;
        };
        self.room = room;
        self.matches.lines.push(GrepLine { path: self.path.clone(), line: line.unwrap_or(0), text, is_match });
    }
}

impl Sink for Found {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.left == 0 {
            self.matches.truncated = true;
            return Ok(false);
        }
        self.left -= 1;
        self.push(found.line_number(), found.bytes(), true);
        Ok(!self.is_late())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.line_number(), context.bytes(), false);
        Ok(!self.matches.truncated)
    }
}

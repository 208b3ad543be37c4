//! What the `.gitignore` and `.ignore` files of a tree leave out.
//!
//! These files are a repository's, and so anybody's: one may be a FIFO, a link to a device or of any size. Each is read
//! here as a regular file that is no link, as git does, and those that hold at one place have a bound together.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open},
    io::Errno,
};

/// Bytes of one file.
const BYTES: u64 = 256 * 1024;
/// Lines of all files that hold at one place.
const LINES: usize = 20_000;

/// The rules that hold where a walk is. It is told of each entry in the order of the walk: a directory before what is in
/// it, and all of that before the next.
#[derive(Debug)]
pub(super) struct Ignores {
    /// Where the walk begins, as the caller names it, and without links.
    root: PathBuf,
    real: PathBuf,
    levels: Vec<Level>,
    /// What could not be used, until somebody asks.
    unused: Vec<String>,
}

/// The rules of one directory.
#[derive(Debug)]
struct Level {
    directory: PathBuf,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// It is the root of a repository: the rules of git from above do not hold here.
    has_git: bool,
    lines: usize,
}

/// What the rules say about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Open,
    /// It is left out.
    Ignored,
    /// It is there, even if it is hidden.
    Wanted,
}

impl Ignores {
    /// The rules of the root and of all directories above.
    pub(super) fn new(root: &Path) -> Self {
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let mut ignores = Self { root: root.to_owned(), real, levels: Vec::new(), unused: Vec::new() };
        let above: Vec<PathBuf> = ignores.real.ancestors().skip(1).map(Path::to_owned).collect();
        above.into_iter().rev().for_each(|directory| ignores.enter(directory));
        ignores
    }

    /// What the rules say about an entry that is not the root.
    pub(super) fn verdict(&mut self, entry: &Path, is_directory: bool) -> Verdict {
        let Ok(name) = entry.strip_prefix(&self.root) else { return Verdict::Open };
        let path = self.real.join(name);
        let Some(parent) = path.parent() else { return Verdict::Open };
        while self.levels.last().is_some_and(|level| !parent.starts_with(&level.directory)) {
            self.levels.pop();
        }
        if self.levels.last().is_none_or(|level| level.directory != parent) {
            self.enter(parent.to_owned());
        }
        let (mut own, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let mut within = true;
        for level in self.levels.iter().rev() {
            own = own.or(level.ignore.matched(&path, is_directory).map(drop));
            if within {
                git = git.or(level.git.matched(&path, is_directory).map(drop));
                exclude = exclude.or(level.exclude.matched(&path, is_directory).map(drop));
            }
            within &= !level.has_git;
        }
        match own.or(git).or(exclude) {
            Match::None => Verdict::Open,
            Match::Ignore(()) => Verdict::Ignored,
            Match::Whitelist(()) => Verdict::Wanted,
        }
    }

    /// The files that could not be used, with the reasons, once.
    pub(super) fn take_unused(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unused)
    }

    fn enter(&mut self, directory: PathBuf) {
        let mut lines = self.levels.last().map_or(0, |level| level.lines);
        let ignore = self.rules(&directory, ".ignore", &mut lines);
        let git = self.rules(&directory, ".gitignore", &mut lines);
        let has_git = fs::symlink_metadata(directory.join(".git")).is_ok();
        let exclude =
            if has_git { self.rules(&directory, ".git/info/exclude", &mut lines) } else { Gitignore::empty() };
        self.levels.push(Level { directory, ignore, git, exclude, has_git, lines });
    }

    fn rules(&mut self, directory: &Path, name: &str, lines: &mut usize) -> Gitignore {
        let file = directory.join(name);
        match rules(directory, &file, lines) {
            Ok(rules) => rules,
            Err(reason) => {
                self.unused.push(format!("{}: its rules are not used: {reason}", file.display()));
                Gitignore::empty()
            }
        }
    }
}

/// The rules of one file; none if there is none.
fn rules(directory: &Path, file: &Path, lines: &mut usize) -> Result<Gitignore, String> {
    let Some(text) = text(file).map_err(|error| error.to_string())? else { return Ok(Gitignore::empty()) };
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{feff}').lines() {
        if *lines == LINES {
            return Err(format!("there are more than {LINES} lines of rules"));
        }
        *lines += 1;
        // As for git, a line that is no rule is none.
        let _wrong = builder.add_line(None, line);
    }
    builder.build().map_err(|error| error.to_string())
}

fn text(file: &Path) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match open(file, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Err(io::Error::other("it is a link")),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::from(opened).take(BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES {
        return Err(io::Error::other(format!("it is larger than {} KiB", BYTES / 1024)));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

//! What is left out of an archive.

use std::ffi::{OsStr, OsString};

use globset::{GlobBuilder, GlobMatcher};

/// What is left out if nothing else is said.
pub const DEFAULT_EXCLUDES: [&str; 13] = [
    ".git/",
    "node_modules/",
    ".venv/",
    "venv/",
    "__pycache__/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "dist/",
    "build/",
    ".next/",
    "target/",
    "*.pyc",
];

/// Patterns of what is left out.
#[derive(Debug)]
pub(super) struct Excludes {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    /// One for each component of a path.
    parts: Vec<Part>,
    directories_only: bool,
    /// Whether it begins at the root; else it is of any one component.
    from_root: bool,
}

#[derive(Debug)]
enum Part {
    Glob(GlobMatcher),
    /// A text that is no pattern.
    Text(String),
}

impl Part {
    fn new(text: &str) -> Self {
        // Braces are letters here.
        let escaped = text.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(false).build();
        glob.map_or_else(|_| Self::Text(text.to_owned()), |glob| Self::Glob(glob.compile_matcher()))
    }

    fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(name),
            Self::Text(text) => name == OsStr::new(text),
        }
    }
}

impl Pattern {
    fn new(text: String) -> Option<Self> {
        let bare = text.trim_matches('/').to_owned();
        let parts: Vec<Part> = bare.split('/').filter(|part| !part.is_empty()).map(Part::new).collect();
        let (directories_only, from_root) = (text.ends_with('/'), parts.len() > 1);
        (!parts.is_empty()).then_some(Self { text, parts, directories_only, from_root })
    }

    /// Whether this is left out. What is below a directory that is left out is never asked for.
    fn matches(&self, path: &[OsString], is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        if self.from_root {
            return self.parts.len() == path.len()
                && self.parts.iter().zip(path).all(|(part, name)| part.matches(name));
        }
        path.last().is_some_and(|name| self.parts.iter().all(|part| part.matches(name)))
    }

    /// The same for git.
    fn pathspecs(&self) -> Vec<String> {
        let bare = self.text.trim_matches('/').replace('\\', "\\\\");
        let place = if self.from_root { "" } else { "**/" };
        let below = format!(":(exclude,glob){place}{bare}/**");
        if self.directories_only { vec![below] } else { vec![format!(":(exclude,glob){place}{bare}"), below] }
    }
}

impl Excludes {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self { patterns: patterns.into_iter().filter_map(Pattern::new).collect() }
    }

    /// Whether this is left out: the names from the root to it.
    pub(super) fn matches(&self, path: &[OsString], is_directory: bool) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(path, is_directory))
    }

    /// The same for git.
    pub(super) fn pathspecs(&self) -> Vec<String> {
        self.patterns.iter().flat_map(Pattern::pathspecs).collect()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_a_name_a_directory_or_a_place() {
        for (pattern, path, is_directory, expected) in [
            ("*.pyc", "a/b.pyc", false, true),
            ("*.pyc", "a/b.py", false, false),
            ("build/", "a/build", true, true),
            ("build/", "build", false, false),
            ("docs/*", "docs/x", true, true),
            ("docs/*", "docs/x/y", false, false),
            ("docs/*", "a/docs/x", false, false),
            ("docs/*/z", "docs/x/z", false, true),
            ("/top", "a/top", false, true),
            ("[", "[", false, true),
            ("{a,b}", "{a,b}", false, true),
            ("{a,b}", "a", false, false),
            ("a?c", "abc", false, true),
            ("", "a", false, false),
            ("/", "a", true, false),
        ] {
            let excludes = Excludes::new(vec![pattern.to_owned()]);
            let path: Vec<OsString> = path.split('/').map(OsString::from).collect();
            assert_eq!(excludes.matches(&path, is_directory), expected, "{pattern} {path:?}");
        }
    }

    #[test]
    fn git_is_told_the_same() {
        let excludes = Excludes::new(["build/", "*.pyc", "a/b", r"x\y"].map(str::to_owned).to_vec());
        let expected = ["**/build/**", "**/*.pyc", "**/*.pyc/**", "a/b", "a/b/**", r"**/x\\y", r"**/x\\y/**"];
        assert_eq!(excludes.pathspecs(), expected.map(|pattern| format!(":(exclude,glob){pattern}")));
    }
}

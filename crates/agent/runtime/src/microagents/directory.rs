//! All microagents of a directory (runtime-interface 13.4).

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{Microagent, MicroagentError, MicroagentKind};

/// Most bytes of a file.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Most files of a directory.
pub const MAX_FILES: usize = 1_000;
/// Most bytes of all files of a directory together.
pub const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;
/// Most entries looked at, and how deep they may be.
const MAX_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// The microagents of a directory by name.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Microagents {
    /// Those that are always used.
    pub repo: BTreeMap<String, Microagent>,
    /// Those that are used on a trigger, tasks among them.
    pub knowledge: BTreeMap<String, Microagent>,
}

impl Microagents {
    /// All of them, those that are always used first.
    pub fn into_values(self) -> impl Iterator<Item = Microagent> {
        self.repo.into_values().chain(self.knowledge.into_values())
    }

    fn insert(&mut self, microagent: Microagent) {
        let map = match microagent.kind {
            MicroagentKind::Repo => &mut self.repo,
            MicroagentKind::Knowledge | MicroagentKind::Task => &mut self.knowledge,
        };
        map.insert(microagent.name.clone(), microagent);
    }
}

/// Loads the Markdown files below a directory but for `README.md`, and what stands in the root of its repository, which
/// is the directory's grandparent: `.cursorrules`, and the first of `AGENTS.md`, `agents.md`, `AGENT.md` and `agent.md`.
///
/// A directory that does not exist has no files. The first failure ends it. Files come in the order of their paths; of
/// two with the same name, the later one stays. Links to files are followed, links to directories are not.
pub fn load_directory(directory: &Path) -> Result<Microagents, MicroagentError> {
    let mut files = special_files(&grandparent(directory));
    files.extend(markdown_files(directory)?);
    let mut microagents = Microagents::default();
    let mut left = MAX_TOTAL_BYTES;
    for file in files {
        let text = read(&file).map_err(|error| loading(&file, error))?;
        left = left.checked_sub(text.len()).ok_or_else(|| MicroagentError::TooMuch {
            directory: directory.to_owned(),
            what: "bytes of microagents",
            limit: MAX_TOTAL_BYTES,
        })?;
        microagents.insert(Microagent::parse(&text, &file, Some(directory)).map_err(|error| loading(&file, error))?);
    }
    Ok(microagents)
}

fn loading(file: &Path, error: MicroagentError) -> MicroagentError {
    MicroagentError::Load { file: file.to_owned(), source: Box::new(error) }
}

/// The parent of the parent, as a path of its own for short relative ones.
fn grandparent(directory: &Path) -> PathBuf {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    };
    parent(&parent(directory))
}

fn special_files(root: &Path) -> Vec<PathBuf> {
    let there = |name: &str| Some(root.join(name)).filter(|path| path.is_file());
    let agents = ["AGENTS.md", "agents.md", "AGENT.md", "agent.md"].into_iter().find_map(there);
    there(".cursorrules").into_iter().chain(agents).collect()
}

fn markdown_files(directory: &Path) -> Result<Vec<PathBuf>, MicroagentError> {
    let too_much = |what, limit| MicroagentError::TooMuch { directory: directory.to_owned(), what, limit };
    let mut files = Vec::new();
    let mut seen = 0;
    let mut open = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        let failed = |source| MicroagentError::Read { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if depth == 0 && is_no_directory(&error) => break,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(too_much("entries", MAX_ENTRIES));
            }
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().map_err(failed)?.is_dir() {
                if depth == MAX_DEPTH {
                    return Err(too_much("levels of directories", MAX_DEPTH));
                }
                open.push((path, depth + 1));
            } else if name.as_encoded_bytes().ends_with(b".md") && name != "README.md" && path.is_file() {
                files.push(path);
            }
        }
        if files.len() > MAX_FILES {
            return Err(too_much("files of microagents", MAX_FILES));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The text of a file, with lines that end at LF as Python reads them.
fn read(path: &Path) -> Result<String, MicroagentError> {
    let failed = |source| MicroagentError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(MicroagentError::FileTooLarge { path: path.to_owned(), limit: MAX_FILE_BYTES });
    }
    let text = String::from_utf8(bytes).map_err(|_| MicroagentError::NotUtf8 { path: path.to_owned() })?;
    Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A repository with these files.
    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let directory = root.path().join(".openhands/microagents");
        (root, directory)
    }

    fn names(microagents: &Microagents) -> (Vec<&str>, Vec<&str>) {
        (
            microagents.repo.keys().map(String::as_str).collect(),
            microagents.knowledge.keys().map(String::as_str).collect(),
        )
    }

    #[test]
    fn all_markdown_files_but_readmes_are_loaded() {
        let (_root, directory) = repository(&[
            (".openhands/microagents/repo.md", "r"),
            (".openhands/microagents/README.md", "---\n[\n---\n"),
            (".openhands/microagents/readme.md", "not the same name"),
            (".openhands/microagents/knowledge/git.md", "---\ntriggers: [git]\n---\nk"),
            (".openhands/microagents/knowledge/deep/.hidden.md", "h"),
            (".openhands/microagents/tasks/t.md", "---\ninputs: [{name: a, description: b}]\n---\nt"),
            (".openhands/microagents/other.txt", "---\n[\n---\n"),
            (".openhands/microagents/upper.MD", "---\n[\n---\n"),
            (".openhands/microagents/directory.md/inner.md", "i"),
        ]);
        let microagents = load_directory(&directory).unwrap();
        let expected =
            (vec!["directory.md/inner", "knowledge/deep/.hidden", "readme", "repo"], vec!["knowledge/git", "tasks/t"]);
        assert_eq!(names(&microagents), expected);
        let order: Vec<_> = microagents.into_values().map(|microagent| microagent.name).collect();
        let expected = ["directory.md/inner", "knowledge/deep/.hidden", "readme", "repo", "knowledge/git", "tasks/t"];
        assert_eq!(order, expected);
    }

    #[test]
    fn files_for_other_agents_stand_in_the_root_of_the_repository() {
        for (files, source) in [
            (vec!["AGENTS.md", "agents.md", "AGENT.md", "agent.md"], "AGENTS.md"),
            (vec!["agent.md", "AGENT.md", "agents.md"], "agents.md"),
            (vec!["agent.md", "AGENT.md"], "AGENT.md"),
            (vec!["agent.md"], "agent.md"),
        ] {
            let files: Vec<_> = files.into_iter().chain([".cursorrules"]).map(|name| (name, "\r\n text\r")).collect();
            let (root, directory) = repository(&files);
            let microagents = load_directory(&directory).unwrap();
            assert_eq!(names(&microagents), (vec!["agents", "cursorrules"], vec![]));
            assert_eq!(microagents.repo["agents"].source, root.path().join(source));
            assert_eq!(microagents.repo["cursorrules"].content, "\n text\n");
        }
    }

    #[test]
    fn the_later_of_two_with_one_name_stays() {
        let (_root, directory) = repository(&[
            ("AGENTS.md", "root"),
            (".openhands/microagents/a/agents.md", "first"),
            (".openhands/microagents/b/agent.md", "second"),
        ]);
        assert_eq!(load_directory(&directory).unwrap().repo["agents"].content, "second");
    }

    #[test]
    fn what_is_not_there_has_nothing() {
        let (root, directory) = repository(&[("file", "")]);
        assert_eq!(load_directory(&directory).unwrap(), Microagents::default());
        assert_eq!(load_directory(&root.path().join("file")).unwrap(), Microagents::default());
    }

    #[test]
    fn the_first_failure_ends_it_and_names_the_file() {
        let (_root, directory) = repository(&[
            (".openhands/microagents/a.md", "fine"),
            (".openhands/microagents/b.md", "---\ntype: x\n---\n"),
            (".openhands/microagents/c.md", "---\n[\n---\n"),
        ]);
        let error = load_directory(&directory).unwrap_err();
        assert!(error.is_validation());
        let expected = format!(
            "Error loading microagent from {0}/b.md: Error validating microagent metadata in b.md: `type` names no type. \
             Invalid \"type\" value: \"x\". Valid types are: \"knowledge\", \"repo\", \"task\"",
            directory.display()
        );
        assert_eq!(error.to_string(), expected);
        fs::remove_file(directory.join("b.md")).unwrap();
        let error = load_directory(&directory).unwrap_err();
        assert!(!error.is_validation());
        let start =
            format!("Error loading microagent from {}/c.md: the front matter is not valid YAML: ", directory.display());
        assert!(error.to_string().starts_with(&start), "{error}");
    }

    #[test]
    fn files_that_are_no_text_or_too_large_are_refused() {
        let (_root, directory) = repository(&[(".openhands/microagents/a.md", "")]);
        let file = directory.join("a.md");
        for (bytes, expected) in [
            (b"caf\xe9".to_vec(), "is not UTF-8".to_owned()),
            (vec![b'x'; MAX_FILE_BYTES + 1], format!("has more than {MAX_FILE_BYTES} bytes")),
        ] {
            fs::write(&file, bytes).unwrap();
            let path = file.display();
            let expected = format!("Error loading microagent from {path}: {path} {expected}");
            assert_eq!(load_directory(&directory).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_directory_has_a_limit_in_all() {
        let (_root, directory) = repository(&[(".openhands/microagents/a.md", "")]);
        for number in 0..=MAX_TOTAL_BYTES / MAX_FILE_BYTES {
            fs::write(directory.join(format!("{number}.md")), "x".repeat(MAX_FILE_BYTES)).unwrap();
        }
        let error = load_directory(&directory).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} has more than {MAX_TOTAL_BYTES} bytes of microagents", directory.display())
        );
    }

    #[test]
    fn links_to_files_are_followed_and_loops_are_not() {
        let (root, directory) = repository(&[("shared.md", "text"), (".openhands/microagents/a.md", "a")]);
        symlink(root.path().join("shared.md"), directory.join("link.md")).unwrap();
        symlink(&directory, directory.join("loop")).unwrap();
        symlink("/nowhere", directory.join("dangling.md")).unwrap();
        assert_eq!(names(&load_directory(&directory).unwrap()), (vec!["a", "link"], vec![]));
    }

    #[test]
    fn the_root_of_a_short_path_is_found() {
        for (path, root) in [("/a/b/c", "/a"), ("/a", "/"), ("/", "/"), ("a/b", "."), ("a", "."), ("a/b/c", "a")] {
            assert_eq!(grandparent(Path::new(path)), Path::new(root), "{path}");
        }
    }
}

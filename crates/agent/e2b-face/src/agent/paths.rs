//! Paths as clients write them.

use crate::{connect::ConnectError, place::Facts};

/// An absolute path: `~` and relative ones begin in the directory where the tools of the sandbox start.
pub(super) fn absolute(path: &str, facts: &Facts) -> Result<String, ConnectError> {
    if path.contains('\0') {
        return Err(ConnectError::wrong("the path has a NUL character"));
    }
    let base = facts.directory.trim_end_matches('/');
    let inner = match path {
        path if path.starts_with('/') => return Ok(path.to_owned()),
        "~" | "" | "." => return Ok(facts.directory.clone()),
        path => path.strip_prefix("~/").or_else(|| path.strip_prefix("./")).unwrap_or(path),
    };
    Ok(format!("{base}/{inner}"))
}

/// The last part of a path.
pub(super) fn name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_begin_where_the_tools_start() {
        let facts = Facts { user: "user".to_owned(), directory: "/workspace".to_owned() };
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("a/b", "/workspace/a/b"),
            ("./a", "/workspace/a"),
            ("~/a", "/workspace/a"),
            ("~", "/workspace"),
            ("", "/workspace"),
            ("../a", "/workspace/../a"),
        ] {
            assert_eq!(absolute(path, &facts).unwrap(), expected, "{path}");
        }
        assert!(absolute("a\0b", &facts).is_err());
        assert_eq!((name("/a/b/"), name("b"), name("/")), ("b", "b", ""));
    }
}

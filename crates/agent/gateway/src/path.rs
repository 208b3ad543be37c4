//! Which sandbox a path means, and what in it (remote-runtime-api 4, path form): `/{runtime_id}/…`.

use gloveport_provider::SandboxId;

use crate::fault::Fault;

/// The path of the server's own that begins like the name of a port.
const TOKEN: &str = "/vscode/connection_token";

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Aim<'a> {
    pub(crate) id: SandboxId,
    /// The path in the sandbox, with the slash that it begins with; empty for `/{runtime_id}` itself.
    pub(crate) rest: &'a str,
}

/// Takes a path apart. Paths with `.` and `..`, however they are written, are refused: who comes after us could
/// understand them otherwise, and leave the sandbox.
pub(crate) fn aim(path: &str) -> Result<Aim<'_>, Fault> {
    let missing = || Fault::missing("path; sandboxes are under /{runtime_id}/");
    let inner = path.strip_prefix('/').ok_or_else(missing)?;
    let (id, rest) = inner.split_at(inner.find('/').unwrap_or(inner.len()));
    let id = SandboxId::new(id).map_err(|_| missing())?;
    check(rest)?;
    Ok(Aim { id, rest })
}

/// Refuses a path in a sandbox with `.` and `..`.
pub(crate) fn check(rest: &str) -> Result<(), Fault> {
    if rest.contains('\\') || rest.split('/').any(is_dots) {
        return Err(Fault::wrong("a path must not have `.` or `..` as a part, nor a backslash"));
    }
    Ok(())
}

fn is_dots(part: &str) -> bool {
    let plain = part.replace("%2e", ".").replace("%2E", ".");
    plain == "." || plain == ".."
}

/// The port that a path in a sandbox is for, if its first part is the name of one, and the rest.
pub(crate) fn port(rest: &str, is_port: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let inner = rest.strip_prefix('/')?;
    let (name, rest_of_it) = inner.split_at(inner.find('/').unwrap_or(inner.len()));
    (is_port(name) && rest != TOKEN).then_some((name, rest_of_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_sandbox_and_what_is_in_it() {
        for (path, expected) in [
            ("/abc", Some(("abc", ""))),
            ("/abc/", Some(("abc", "/"))),
            ("/a-b.c/execute_action", Some(("a-b.c", "/execute_action"))),
            ("/a/b//c/...", Some(("a", "/b//c/..."))),
            ("/", None),
            ("//a", None),
            ("/..", None),
            ("/%61", None),
            ("/a/../b", None),
            ("/a/./b", None),
            ("/a/%2e%2E/b", None),
            ("/a/.%2e", None),
            ("/a/..\\b", None),
        ] {
            let found = aim(path).ok();
            assert_eq!(found.as_ref().map(|aim| (aim.id.as_str(), aim.rest)), expected, "{path}");
        }
    }

    #[test]
    fn ports_with_a_name_are_under_it() {
        let port = |rest| port(rest, |name| name == "work-1" || name == "vscode");
        assert_eq!(port("/work-1/a/b"), Some(("work-1", "/a/b")));
        assert_eq!(port("/work-1"), Some(("work-1", "")));
        assert_eq!(port("/work-2/a"), None);
        assert_eq!(port("/vscode/?tkn=a"), Some(("vscode", "/?tkn=a")));
        assert_eq!(port("/vscode/connection_token"), None);
        assert_eq!(port(""), None);
    }
}

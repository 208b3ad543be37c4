//! Paths as the editor's messages and its history name them (file-editor 3.1).

/// A path as the editor names it: repeated slashes, `.` parts and a slash at the end go; `..` stays. Nothing at all is
/// `.`.
pub fn normalised(path: &str) -> String {
    let mut normal = String::with_capacity(path.len());
    if path.starts_with('/') {
        normal.push('/');
    }
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if !normal.is_empty() && !normal.ends_with('/') {
            normal.push('/');
        }
        normal.push_str(part);
    }
    if normal.is_empty() {
        normal.push('.');
    }
    normal
}

/// The extension with its dot, as written: `.PDF`. A name that only begins with a dot has none.
pub fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rfind('.') {
        Some(at) if at > 0 && at + 1 < name.len() => &name[at..],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalised_without_a_look_at_the_file_system() {
        for (path, expected) in [
            ("/w/d/", "/w/d"),
            ("/w//./d", "/w/d"),
            ("//w", "/w"),
            ("/", "/"),
            ("///", "/"),
            ("/a/../b", "/a/../b"),
            ("", "."),
            ("./a/", "a"),
            ("a", "a"),
            ("/a b/ ", "/a b/ "),
        ] {
            assert_eq!(normalised(path), expected, "{path:?}");
        }
    }

    #[test]
    fn an_extension_has_a_name_before_it() {
        for (path, expected) in
            [("/a.PDF", ".PDF"), ("/.pdf", ""), ("/a.", ""), ("/a.b/c", ""), ("/a.tar.docx", ".docx"), ("/", "")]
        {
            assert_eq!(extension(path), expected, "{path:?}");
        }
    }
}

//! What stands in braces in the words of a command and in variables: `{port}`, `{socket}`, `{workspace}`, `{base}`.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
};

/// The values for the braces; a name without a value stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Values<'a>(pub(crate) Vec<(&'static str, &'a OsStr)>);

/// A value that a shell would take for more than a text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the shell command has `{{{name}}}` in it, and the value {value:?} has characters that a shell interprets; write \
     the command as a list of words"
)]
pub(crate) struct UnsafeValue {
    name: &'static str,
    value: String,
}

impl Values<'_> {
    /// A text with the values in it. `${…}` is the shell's and stays.
    pub(crate) fn replace(&self, text: &OsStr) -> OsString {
        let bytes = text.as_bytes();
        let mut replaced = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let found = (bytes.get(at.wrapping_sub(1)) != Some(&b'$')).then(|| self.at(rest)).flatten();
            if let Some((name, value)) = found {
                replaced.extend_from_slice(value.as_bytes());
                at += name.len() + 2;
            } else {
                replaced.extend(rest.first());
                at += 1;
            }
        }
        OsString::from_vec(replaced)
    }

    /// The value whose name in braces a text begins with.
    fn at(&self, text: &[u8]) -> Option<(&'static str, &OsStr)> {
        let rest = text.strip_prefix(b"{")?;
        let named = |name: &str| rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"}"));
        self.0.iter().find(|(name, _)| named(name)).copied()
    }

    /// The words of a command with the values in them. In a text for `sh -c` only values that are one plain word to a
    /// shell are replaced, so that no value becomes code.
    pub(crate) fn command(&self, words: &[OsString]) -> Result<Vec<OsString>, UnsafeValue> {
        if is_shell(words)
            && let Some(code) = words.get(2)
        {
            for (name, value) in &self.0 {
                let alone = Values(vec![(*name, *value)]);
                if !is_plain(value) && alone.replace(code) != *code {
                    return Err(UnsafeValue { name, value: value.to_string_lossy().into_owned() });
                }
            }
        }
        Ok(words.iter().map(|word| self.replace(word)).collect())
    }
}

/// Whether a command is a text for a shell.
fn is_shell(words: &[OsString]) -> bool {
    let Some((shell, option)) = words.first().zip(words.get(1)) else { return false };
    let shell = Path::new(shell).file_name().unwrap_or_default();
    ["sh", "bash", "dash"].iter().any(|name| shell == *name) && option.as_bytes().starts_with(b"-")
}

/// Whether a value is one word to a shell, with and without quotes.
fn is_plain(value: &OsStr) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/_.,:@%+=-".contains(byte);
    !value.is_empty() && value.as_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(workspace: &str) -> Values<'_> {
        Values(vec![("port", OsStr::new("4000")), ("workspace", OsStr::new(workspace))])
    }

    #[test]
    fn names_in_braces_are_replaced_and_all_else_stays() {
        for (text, expected) in [
            ("--bind=127.0.0.1:{port}", "--bind=127.0.0.1:4000"),
            ("{port}{port}/{workspace}", "40004000//a b"),
            ("${port} {\"port\": 1} {socket} {port", "${port} {\"port\": 1} {socket} {port"),
            ("{{port}}", "{4000}"),
            ("", ""),
            ("{}", "{}"),
        ] {
            assert_eq!(values("/a b").replace(OsStr::new(text)), expected, "{text}");
        }
    }

    #[test]
    fn no_value_becomes_code_of_a_shell() {
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let code = command(&["sh", "-c", "serve {workspace} {port}"]);
        assert_eq!(values("/work").command(&code), Ok(command(&["sh", "-c", "serve /work 4000"])));
        for workspace in ["/a b", "/$(reboot)", "/a'b", "/a;b", "/a\nb", ""] {
            let error = values(workspace).command(&code).unwrap_err();
            assert_eq!(error.name, "workspace");
            let plain = values(workspace).command(&command(&["serve", "{workspace}"]));
            assert_eq!(plain, Ok(command(&["serve", workspace])));
            assert!(values(workspace).command(&command(&["bash", "-lc", "x {port}"])).is_ok());
        }
    }
}

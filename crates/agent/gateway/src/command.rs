//! Commands that mean our own server.
//!
//! Clients of OpenHands name the server that they want by its command. Ours does the same work and comes into a sandbox by
//! itself, so that the command of theirs is understood instead of run (action-execution-api 1.1, 1.2).

/// The module of the server of OpenHands.
const MODULE: &str = "openhands.runtime.action_execution_server";
/// The flag after which plugins stand.
const PLUGINS: &str = "--plugins";

/// The plugins that the command asks for, if it means our server.
pub(crate) fn own_server(words: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.windows(2).position(|pair| pair == ["-m", MODULE])?;
    let plugins = words.iter().skip_while(|word| **word != PLUGINS).skip(1);
    Some(plugins.take_while(|word| !word.starts_with("--")).map(|word| (*word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_openhands_is_ours_whatever_starts_it() {
        let own = |line: &str| own_server(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let plugins = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let launcher = "/openhands/micromamba/bin/micromamba run -n openhands poetry run";
        let server = format!("{launcher} python -u -m {MODULE} 60000 --working-dir /workspace");
        for (line, expected) in [
            (format!("{server} --plugins agent_skills jupyter --username root"), plugins(&["agent_skills", "jupyter"])),
            (format!("{server} --plugins"), plugins(&[])),
            (server, plugins(&[])),
            ("python -m http.server".to_owned(), None),
            (MODULE.to_owned(), None),
            (format!("echo {MODULE}"), None),
        ] {
            assert_eq!(own(&line), expected, "{line}");
        }
        assert_eq!(own_server(&[]), None);
    }
}

//! Finds what was probably meant.

use strsim::{damerau_levenshtein, jaro_winkler};

/// Texts of which at least so much is alike are near.
const ALIKE: f64 = 0.88;

/// The nearest of the names, if one is near.
pub(crate) fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase().replace('-', "_");
    // Longer names are nobody's slip, and comparing takes time that grows with the length.
    if written.len() > 64 {
        return None;
    }
    let near = |name: &&str| {
        let name = name.to_lowercase();
        let distance = damerau_levenshtein(&written, &name);
        distance <= 2 && distance * 2 < name.len() || jaro_winkler(&written, &name) >= ALIKE
    };
    names.into_iter().filter(near).min_by_key(|name| damerau_levenshtein(&written, &name.to_lowercase()))
}

/// "did you mean …?" for the nearest of the names.
pub(crate) fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, names).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["timeout", "platform", "volumes", "vscode_port", "use_host_network", "user_id"];
        for (written, expected) in [
            ("timeot", Some("timeout")),
            ("tiemout", Some("timeout")),
            ("Timeout", Some("timeout")),
            ("vscode-port", Some("vscode_port")),
            ("volume", Some("volumes")),
            ("use_host_netwrok", Some("use_host_network")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names), expected, "{written:?}");
        }
    }
}

//! Finds what was probably meant.

use strsim::damerau_levenshtein;

/// `did you mean …?` for the nearest of the names, if one is near.
pub(crate) fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // Longer names are nobody's slip, and comparing takes time that grows with the length.
    if written.len() > 64 {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let written = plain(written);
    let distance = |name: &&str| damerau_levenshtein(&written, &plain(name));
    let nearest = names.into_iter().min_by_key(distance)?;
    let near = distance(&nearest);
    (near <= 2 && near * 2 < nearest.len()).then(|| format!("did you mean `{nearest}`?"))
}

/// A list for people: `a, b or c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", rest.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["command", "idle-stop", "health", "listens"];
        for (written, expected) in [
            ("comand", Some("did you mean `command`?")),
            ("idle_stop", Some("did you mean `idle-stop`?")),
            ("Health", Some("did you mean `health`?")),
            ("listen", Some("did you mean `listens`?")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(written, names).as_deref(), expected, "{written:?}");
        }
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}

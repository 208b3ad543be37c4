//! Real shells print hostile secrets in all their ways, and nothing of them is left.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use gloveport_event_stream::{Masker, mask::HIDDEN};
use gloveport_protocol::Secret;
use proptest::prelude::*;

/// What stands between two printed forms.
const BETWEEN: &str = "\n=====\n";

/// Prints `$S` in every form that bash has.
const BASH: &str = r#"
between() { printf '\n=====\n'; }
printf %q "$S"; between
printf %s "${S@Q}"; between
printf %s "${S@A}"; between
declare -p S; between
export -p | { found=; while IFS= read -r line; do case $line in 'declare -x S='*) found=1 ;; 'declare -x '*) found= ;; esac; [ "$found" ] && printf '%s\n' "$line"; done; }; between
T=$S
set | { found=; while IFS= read -r line; do case $line in T=*) found=1 ;; [A-Za-z_]*) found= ;; esac; [ "$found" ] && printf '%s\n' "$line"; done; }; between
exec 2>&1
set -x; : "$S"; { set +x; } 2> /dev/null; between
printf '%s\n' "$S"; between
declare -a A=("$S"); declare -p A; between
alias a="$S"; alias -p; between
"#;

/// Prints `$S` in every form that a POSIX shell has.
const POSIX: &str = r#"
export -p | { found=; while IFS= read -r line; do case $line in 'export S='*) found=1 ;; 'export '*) found= ;; esac; [ "$found" ] && printf '%s\n' "$line"; done; }
"#;

/// What the programs write into a pipe or a file.
const PROGRAMS: &str = r#"
between() { printf '\n=====\n'; }
printf %s "$S" | base64; between
printf %s "$S" | base64 -w 0; between
printf 'u%s' "$S" | base64; between
printf 'user:%s' "$S" | base64 -w 0; between
printf %s "$S" | od -An -v -tx1; between
"#;

fn masker(secret: &str) -> Masker {
    let mut masker = Masker::default();
    masker.set(BTreeMap::from([("S".to_owned(), Secret::from(secret))]));
    masker
}

/// What a script prints, in parts.
fn printed(shell: &str, locale: &str, script: &str, secret: &str) -> Vec<String> {
    let output = Command::new(shell)
        .args(if shell == "bash" { ["--norc", "-c"] } else { ["-e", "-c"] })
        .arg(script)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", locale)
        .env("S", secret)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts: Vec<String> = text.split(BETWEEN).map(String::from).collect();
    if parts.len() > 1 {
        parts.pop();
    }
    parts
}

/// A masked form without what the shell puts around it.
fn unframed(masked: &str) -> String {
    let mut text = masked.trim_end_matches('\n');
    for start in ["+ : ", "declare -x ", "declare -- ", "declare -a A=([0]=", "export ", "alias a="] {
        text = text.strip_prefix(start).unwrap_or(text);
    }
    text = text.strip_prefix("S=").or_else(|| text.strip_prefix("T=")).unwrap_or(text);
    text.trim_end_matches(')').chars().filter(|char| !"$'\"".contains(*char)).collect()
}

/// A secret with characters that shells treat in their own ways.
fn hostile() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        3 => proptest::char::range('a', 'z'),
        3 => proptest::sample::select("'\"\\$`!#&*()[]{}|;<>?~^%=+,.:/@- \t\n\r\u{1b}\u{7}\u{1}\u{7f}".chars().collect::<Vec<_>>()),
        1 => proptest::sample::select("é€😀ü\u{200b}\u{a0}\u{301}漢".chars().collect::<Vec<_>>()),
    ];
    // Six letters keep the shortest form at the length that counts.
    (proptest::collection::vec(char, 1..24), "[a-z]{6}", 0..3_usize).prop_map(|(chars, letters, place)| {
        let text = String::from_iter(chars);
        match place {
            0 => letters + &text,
            1 => text + &letters,
            _ => format!("{text}{letters}{text}"),
        }
    })
}

fn config() -> ProptestConfig {
    // Each case starts shells; a failure is reported with its secret and need not be kept in a file.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_is_left_of_what_bash_prints(secret in hostile()) {
        let masker = masker(&secret);
        for locale in ["C", "C.UTF-8"] {
            let parts = printed("bash", locale, BASH, &secret);
            prop_assert_eq!(parts.len(), 10, "{:?}", parts);
            for part in parts {
                let masked = masker.mask(&part);
                prop_assert_eq!(unframed(&masked), HIDDEN, "{} in {}", part, locale);
            }
        }
    }

    #[test]
    fn nothing_is_left_of_what_a_posix_shell_prints(secret in hostile()) {
        let masker = masker(&secret);
        for part in printed("sh", "C.UTF-8", POSIX, &secret) {
            prop_assert_eq!(unframed(&masker.mask(&part)), HIDDEN, "{}", part);
        }
    }

    #[test]
    fn nothing_is_left_of_what_programs_code(secret in hostile()) {
        let masker = masker(&secret);
        let parts = printed("bash", "C", PROGRAMS, &secret);
        prop_assert_eq!(parts.len(), 5, "{:?}", parts);
        for (part, before) in parts.iter().zip([0, 0, 2, 7, 0]) {
            let masked = masker.mask(part);
            let (start, end) = masked.split_once(HIDDEN).unwrap_or((part, ""));
            prop_assert!(start.trim_start().len() <= before && end.trim_end_matches('\n').trim_end_matches('=').is_empty(), "{}", masked);
        }
    }
}

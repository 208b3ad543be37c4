//! How long it takes to mask text: prints a table.
//!
//! `cargo run --release -p gloveport-event-stream --example mask_speed`
#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

use gloveport_event_stream::Masker;
use gloveport_protocol::Secret;

/// Runs of each row; the median is shown.
const RUNS: usize = 21;
/// Bytes of each text.
const SIZE: usize = 1_000_000;

/// Tokens as the usual services give them out, and key files.
fn secrets(count: usize) -> BTreeMap<String, Secret> {
    let prefixes = ["ghp_", "glpat-", "sk-ant-", "AKIA", "xoxb-", "npm_", "eyJhbGciOi", "pa$$ w'\"rd "];
    let mut state = 1_u64;
    let mut letters = |len: usize| -> String {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let letters = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            alphabet.get(usize::try_from(state >> 33).unwrap_or(0) % alphabet.len()).copied().map_or('a', char::from)
        });
        letters.take(len).collect()
    };
    let named = (0..count).zip(prefixes.iter().cycle()).map(|(index, prefix)| {
        let secret = if index % 10 == 9 {
            let lines: Vec<String> = (0..26).map(|_| letters(64)).collect();
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
        } else {
            format!("{prefix}{}", letters(36))
        };
        (format!("SECRET_{index}"), Secret::from(secret))
    });
    named.collect()
}

/// Output of the given kind.
fn text(kind: &str, secrets: &BTreeMap<String, Secret>) -> String {
    let mut text = String::with_capacity(SIZE + 4096);
    let mut tokens = secrets.values().cycle();
    for line in 0_u64.. {
        if text.len() >= SIZE {
            break;
        }
        let number = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _infallible = match kind {
            "build log" => writeln!(
                text,
                "[{line:>6}] Compiling example-crate-{} v1.{}.0 (/workspace/crates/{line})",
                number % 977,
                line % 50
            ),
            "hexadecimal" => writeln!(text, "{number:016x}{:016x}", number.rotate_left(17)),
            "dashes" => writeln!(text, "{}", "-".repeat(79)),
            "backslashes" => writeln!(text, "{}", "\\".repeat(79)),
            _ => {
                let secret = tokens.next().map(Secret::expose).unwrap_or_default();
                writeln!(text, "export TOKEN_{line}={secret} # a line with a secret, {line}")
            }
        };
    }
    text
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(RUNS / 2).copied().unwrap_or_default()
}

fn main() {
    println!("{:<12} {:>8} {:>12} {:>14} {:>14}", "1 MB of", "secrets", "whole", "chunks 4 KiB", "chunks 64 B");
    for count in [1, 20, 100] {
        let secrets = secrets(count);
        let mut masker = Masker::default();
        let made = median(|| masker.set(secrets.clone()));
        for kind in ["build log", "hexadecimal", "dashes", "backslashes", "secrets"] {
            let text = text(kind, &secrets);
            let whole = median(|| drop(black_box(masker.mask(&text))));
            let chunks = [4096, 64].map(|size| {
                median(|| {
                    let mut stream = masker.stream();
                    for chunk in text.as_bytes().chunks(size) {
                        black_box(stream.push_bytes(chunk));
                    }
                    black_box(stream.finish_bytes());
                })
            });
            let [large, small] = chunks;
            println!("{kind:<12} {count:>8} {whole:>12.2?} {large:>14.2?} {small:>14.2?}");
        }
        println!("making the forms of {count} secrets: {made:.2?}");
    }
}

//! Test programs without a harness: a guard must be started before any thread, and a harness starts threads.

use gloveport_sys::Guard;

/// A case, by its name.
pub type GuardedCase = (&'static str, fn(Guard));

/// The `main` of a test program whose cases get a guard of their own each. It understands what test runners ask for.
/// With the argument `--victim` it does that instead, for a case that kills the whole program.
///
/// # Panics
///
/// No guard can be started, or a case fails.
#[expect(clippy::print_stdout, reason = "test runners read the names of the cases there")]
pub fn run_guarded(cases: &[GuardedCase], victim: fn()) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--victim") {
        return victim();
    }
    if has("--list") {
        for (name, _) in cases.iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return;
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let asked = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|word| if has("--exact") { *word == name } else { name.contains(*word) })
    };
    for (name, case) in cases.iter().filter(|(name, _)| asked(name)) {
        case(Guard::start().unwrap());
        println!("test {name} ... ok");
    }
}

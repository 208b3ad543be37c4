//! Any command or cell: the rules judge it in bounded time and memory, and neither panic nor recurse without end.
#![no_main]

use std::{path::Path, sync::LazyLock};

use gloveport_protocol::{Action, RunAction, RunIpythonAction};
use gloveport_security::analyzers::Rules;
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(Path::new("/workspace")));

fuzz_target!(|text: &str| {
    let command = RULES.rate(&Action::Run(RunAction::new(text)), None);
    let cell = RULES.rate(&Action::RunIpython(RunIpythonAction::new(text)), None);
    // What is found is quoted, and quotations are short.
    let quoted: usize = command.rules.iter().chain(&cell.rules).map(|found| found.explanation.len()).sum();
    assert!(quoted < 256 * 1024, "{quoted}");
});

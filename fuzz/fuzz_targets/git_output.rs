//! Any bytes that `git` may print: a list of changes, with statuses that the wire knows.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let changes = gloveport_executor::fuzz_changes(data);
    assert!(changes <= data.len());
});

//! Any stream of events of a server, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cut, data)) = data.split_first() else { return };
    let (first, second) = data.split_at(usize::from(*cut).min(data.len()));
    gloveport_client::fuzz_events(first, second);
});

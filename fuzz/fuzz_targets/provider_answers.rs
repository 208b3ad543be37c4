//! Any JSON of a provider's program: an answer of each kind, or an error, and never a URL that is none of a server.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| gloveport_provider_exec::fuzz_answer(data));

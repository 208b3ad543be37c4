//! Any text of a browser action: reading and binding neither panic nor overflow the stack, a call that is found reads
//! back as itself, and keys that go down go up.
#![no_main]

use gloveport_browsergym::{
    keys::KeyCombination,
    language::{Call, parse},
    operation::Operation,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for call in parse(text).unwrap_or_default() {
        // What is too large for a float is shown as a name.
        let has_infinity =
            call.positional.iter().chain(call.named.iter().map(|(_, value)| value)).any(|value| value.is_infinite());
        if !has_infinity {
            assert_eq!(parse(&call.to_string()).as_deref(), Ok([call.clone()].as_slice()));
        }
        bind(&call);
    }
});

fn bind(call: &Call) {
    if let Ok(Operation::Press { key_comb, .. }) = call.bind()
        && let Ok(keys) = KeyCombination::parse(&key_comb)
    {
        assert_eq!(keys.events().last().map(|event| event.modifiers.bits()), Some(0));
    }
}

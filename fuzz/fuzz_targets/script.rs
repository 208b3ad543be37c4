//! Any text: splitting into commands neither panics nor overflows the stack, and its pieces are parts of the text.
#![no_main]

use gloveport_terminal::split::{Script, classify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Script::Several(pieces) = classify(text) {
        assert!(pieces.len() > 1);
        assert!(pieces.iter().all(|piece| text.contains(piece.as_str())));
    }
});

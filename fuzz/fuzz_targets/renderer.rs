//! Any bytes: the renderer shows text without control characters, in bounded memory, however the bytes are cut.
#![no_main]

use gloveport_screen::{Renderer, Size};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let size = Size { columns: 20, rows: 8, history: 30 };
    let mut whole = Renderer::new(size);
    whole.feed(data);
    let mut cut = Renderer::new(size);
    let step = usize::from(data.first().copied().unwrap_or(1) % 7) + 1;
    data.chunks(step).for_each(|chunk| cut.feed(chunk));
    let text = whole.text();
    assert_eq!(text, cut.text());
    assert!(text.chars().all(|character| character == '\n' || !character.is_control()));
    assert!(whole.heap_bytes() < 4 * 1024 * 1024);
});

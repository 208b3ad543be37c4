//! Any bytes: text that is decoded gives back the same bytes, and the same bytes are always the same text.
#![no_main]

use gloveport_editor::{
    binary,
    encoding::{decode, encode},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = binary::is_binary(bytes);
    let Ok((text, encoding)) = decode(bytes.to_vec(), None) else { return };
    assert_eq!(encode(&text, encoding).expect("what was decoded can be encoded"), bytes);
    assert_eq!(decode(bytes.to_vec(), None), Ok((text.clone(), encoding)));
    assert_eq!(decode(bytes.to_vec(), Some(encoding)), Ok((text.clone(), encoding)));
    // What one part of a text is has no influence on the bytes of another.
    if let Some((at, _)) = text.char_indices().nth(text.chars().count() / 2) {
        let (head, tail) = (encode(&text[..at], encoding), encode(&text[at..], encoding));
        let (head, tail) = (head.expect("a part can be encoded"), tail.expect("a part can be encoded"));
        let mark = encode("", encoding).map_or(0, |mark| mark.len());
        assert_eq!([&head, &tail[mark..]].concat(), bytes);
    }
});

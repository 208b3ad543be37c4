//! The keys of a US keyboard: what each is called, what it prints, and its number on Windows.
//!
//! Names are those of the UI Events specification, the numbers those of Windows' virtual keys.

/// A physical key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Where it is: `KeyboardEvent.code`.
    pub(super) code: &'static str,
    /// What it means: `KeyboardEvent.key`.
    pub(super) meaning: &'static str,
    /// What it means with Shift, if that differs.
    pub(super) shifted: Option<&'static str>,
    /// Its number on Windows, which does not tell left from right.
    pub(super) number: u16,
    /// `KeyboardEvent.location`.
    pub(super) location: u8,
    /// Whether the browser is told a text, if the key prints none.
    text: Option<&'static str>,
}

const LEFT: u8 = 1;
const RIGHT: u8 = 2;
pub(super) const KEYPAD: u8 = 3;

impl Key {
    /// The text that the key types where it has the meaning.
    pub(super) fn text_of(&self, meaning: &'static str) -> Option<&'static str> {
        if meaning.len() == 1 { Some(meaning) } else { self.text }
    }
}

const fn named(code: &'static str, number: u16) -> Key {
    Key { code, meaning: code, shifted: None, number, location: 0, text: None }
}

const fn printed(code: &'static str, meaning: &'static str, shifted: &'static str, number: u16) -> Key {
    Key { meaning, shifted: Some(shifted), ..named(code, number) }
}

const fn at(location: u8, code: &'static str, meaning: &'static str, number: u16) -> Key {
    Key { meaning, location, ..named(code, number) }
}

/// A key of the keypad that prints a digit or a point with Shift.
const fn keypad(code: &'static str, meaning: &'static str, shifted: &'static str, number: u16) -> Key {
    Key { shifted: Some(shifted), ..at(KEYPAD, code, meaning, number) }
}

const fn with_text(key: Key, text: &'static str) -> Key {
    Key { text: Some(text), ..key }
}

/// Names that are no codes, and keys that they stand for.
pub(super) const ALIASES: [(&str, &str); 7] = [
    ("Shift", "ShiftLeft"),
    ("Control", "ControlLeft"),
    ("ControlOrMeta", "ControlLeft"),
    ("Alt", "AltLeft"),
    ("Meta", "MetaLeft"),
    ("\n", "Enter"),
    ("\r", "Enter"),
];

pub(super) static KEYS: [Key; 105] = [
    named("Escape", 27),
    named("F1", 112),
    named("F2", 113),
    named("F3", 114),
    named("F4", 115),
    named("F5", 116),
    named("F6", 117),
    named("F7", 118),
    named("F8", 119),
    named("F9", 120),
    named("F10", 121),
    named("F11", 122),
    named("F12", 123),
    printed("Backquote", "`", "~", 192),
    printed("Digit1", "1", "!", 49),
    printed("Digit2", "2", "@", 50),
    printed("Digit3", "3", "#", 51),
    printed("Digit4", "4", "$", 52),
    printed("Digit5", "5", "%", 53),
    printed("Digit6", "6", "^", 54),
    printed("Digit7", "7", "&", 55),
    printed("Digit8", "8", "*", 56),
    printed("Digit9", "9", "(", 57),
    printed("Digit0", "0", ")", 48),
    printed("Minus", "-", "_", 189),
    printed("Equal", "=", "+", 187),
    printed("Backslash", "\\", "|", 220),
    named("Backspace", 8),
    named("Tab", 9),
    printed("KeyA", "a", "A", 65),
    printed("KeyB", "b", "B", 66),
    printed("KeyC", "c", "C", 67),
    printed("KeyD", "d", "D", 68),
    printed("KeyE", "e", "E", 69),
    printed("KeyF", "f", "F", 70),
    printed("KeyG", "g", "G", 71),
    printed("KeyH", "h", "H", 72),
    printed("KeyI", "i", "I", 73),
    printed("KeyJ", "j", "J", 74),
    printed("KeyK", "k", "K", 75),
    printed("KeyL", "l", "L", 76),
    printed("KeyM", "m", "M", 77),
    printed("KeyN", "n", "N", 78),
    printed("KeyO", "o", "O", 79),
    printed("KeyP", "p", "P", 80),
    printed("KeyQ", "q", "Q", 81),
    printed("KeyR", "r", "R", 82),
    printed("KeyS", "s", "S", 83),
    printed("KeyT", "t", "T", 84),
    printed("KeyU", "u", "U", 85),
    printed("KeyV", "v", "V", 86),
    printed("KeyW", "w", "W", 87),
    printed("KeyX", "x", "X", 88),
    printed("KeyY", "y", "Y", 89),
    printed("KeyZ", "z", "Z", 90),
    printed("BracketLeft", "[", "{", 219),
    printed("BracketRight", "]", "}", 221),
    named("CapsLock", 20),
    printed("Semicolon", ";", ":", 186),
    printed("Quote", "'", "\"", 222),
    with_text(named("Enter", 13), "\r"),
    printed("Comma", ",", "<", 188),
    printed("Period", ".", ">", 190),
    printed("Slash", "/", "?", 191),
    Key { meaning: " ", ..named("Space", 32) },
    at(LEFT, "ShiftLeft", "Shift", 16),
    at(RIGHT, "ShiftRight", "Shift", 16),
    at(LEFT, "ControlLeft", "Control", 17),
    at(RIGHT, "ControlRight", "Control", 17),
    at(LEFT, "AltLeft", "Alt", 18),
    at(RIGHT, "AltRight", "Alt", 18),
    at(LEFT, "MetaLeft", "Meta", 91),
    at(RIGHT, "MetaRight", "Meta", 92),
    named("AltGraph", 225),
    named("ContextMenu", 93),
    named("PrintScreen", 44),
    named("ScrollLock", 145),
    named("Pause", 19),
    named("PageUp", 33),
    named("PageDown", 34),
    named("Insert", 45),
    named("Delete", 46),
    named("Home", 36),
    named("End", 35),
    named("ArrowLeft", 37),
    named("ArrowUp", 38),
    named("ArrowRight", 39),
    named("ArrowDown", 40),
    named("NumLock", 144),
    at(KEYPAD, "NumpadDivide", "/", 111),
    at(KEYPAD, "NumpadMultiply", "*", 106),
    at(KEYPAD, "NumpadSubtract", "-", 109),
    at(KEYPAD, "NumpadAdd", "+", 107),
    with_text(at(KEYPAD, "NumpadEnter", "Enter", 13), "\r"),
    keypad("Numpad0", "Insert", "0", 45),
    keypad("Numpad1", "End", "1", 35),
    keypad("Numpad2", "ArrowDown", "2", 40),
    keypad("Numpad3", "PageDown", "3", 34),
    keypad("Numpad4", "ArrowLeft", "4", 37),
    keypad("Numpad5", "Clear", "5", 12),
    keypad("Numpad6", "ArrowRight", "6", 39),
    keypad("Numpad7", "Home", "7", 36),
    keypad("Numpad8", "ArrowUp", "8", 38),
    keypad("Numpad9", "PageUp", "9", 33),
    keypad("NumpadDecimal", "\0", ".", 46),
];

//! Keys by their names, and the events that pressing them is (spec/browser.md 4.3).

mod layout;
mod modifiers;

use std::collections::BTreeSet;

use serde::Serialize;

use self::layout::{ALIASES, KEYPAD, KEYS, Key};
pub use self::modifiers::Modifiers;
use crate::error::ActionError;

/// Keys to press together, as `press` names them: `Control+Shift+t`.
///
/// A name is a code, which has its other meaning while Shift is held (`Shift+KeyA` types `A`), or a character, which
/// means itself (`Shift+a` types `a`).
#[derive(Debug, Clone)]
pub struct KeyCombination(Vec<Stroke>);

impl KeyCombination {
    /// Reads names with `+` between them. All of them are checked before any key is pressed.
    pub fn parse(text: &str) -> Result<Self, ActionError> {
        split(text)
            .map(|name| {
                Stroke::named(name)
                    .ok_or_else(|| ActionError::driver(format!("Locator.press: Unknown key: \"{name}\"")))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The keys go down in order and up in the opposite order.
    pub fn events(&self) -> impl Iterator<Item = KeyEvent> {
        let mut keyboard = Keyboard::default();
        let down = self.0.iter().map(|stroke| (stroke, true));
        let up = self.0.iter().rev().map(|stroke| (stroke, false));
        down.chain(up).map(
            move |(stroke, goes_down)| {
                if goes_down { keyboard.down(*stroke) } else { keyboard.up(*stroke) }
            },
        )
    }
}

/// A `+` stands for itself where a name begins.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.char_indices().skip(1).find(|(_, c)| *c == '+').map(|(at, _)| at);
        rest = end.and_then(|end| text.get(end + 1..));
        text.get(..end.unwrap_or(text.len()))
    })
}

impl Modifiers {
    /// The events that press the keys of these modifiers, to hold them during a click.
    pub fn press(self) -> Vec<KeyEvent> {
        let mut keyboard = Keyboard::default();
        self.names().filter_map(Stroke::named).map(|stroke| keyboard.down(stroke)).collect()
    }

    /// The events that release what [`press`](Self::press) presses.
    pub fn release(self) -> Vec<KeyEvent> {
        let mut keyboard = Keyboard { held: self, ..Keyboard::default() };
        self.names().filter_map(Stroke::named).map(|stroke| keyboard.up(stroke)).collect()
    }
}

/// The steps of typing a text: characters of the layout as keys, others as they are.
pub fn typing(text: &str) -> impl Iterator<Item = TypingStep> {
    text.char_indices().flat_map(|(at, c)| {
        let character = text.get(at..at + c.len_utf8()).unwrap_or_default();
        match Stroke::named(character) {
            Some(stroke) => {
                let mut keyboard = Keyboard::default();
                vec![TypingStep::Key(keyboard.down(stroke)), TypingStep::Key(keyboard.up(stroke))]
            }
            None => vec![TypingStep::Insert(c)],
        }
    })
}

/// A step of typing a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypingStep {
    /// For `Input.dispatchKeyEvent`.
    Key(KeyEvent),
    /// For `Input.insertText`.
    Insert(char),
}

/// An event of a key. Serializes as the parameters of `Input.dispatchKeyEvent` of the DevTools protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyEvent {
    /// What happens.
    #[serde(rename = "type")]
    pub kind: KeyEventKind,
    /// The modifiers that are held.
    pub modifiers: Modifiers,
    /// What the key means: `KeyboardEvent.key`.
    pub key: &'static str,
    /// Which key it is: `KeyboardEvent.code`.
    pub code: &'static str,
    /// The key's number on Windows.
    pub windows_virtual_key_code: u16,
    /// The text that it types, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'static str>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmodified_text: Option<&'static str>,
    /// 0, or 1 on the left, 2 on the right, 3 on the keypad.
    pub location: u8,
    /// Whether a key of the keypad goes down.
    pub is_keypad: bool,
    /// Whether the key was down already.
    pub auto_repeat: bool,
}

/// What happens to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyEventKind {
    /// It goes down and types a text.
    KeyDown,
    /// It goes down and types nothing.
    RawKeyDown,
    /// It goes up.
    KeyUp,
}

/// A key, and what it means.
#[derive(Debug, Clone, Copy)]
struct Stroke {
    key: &'static Key,
    meaning: Meaning,
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Plain,
    Shifted,
    /// The one or the other, depending on Shift.
    ByShift,
}

impl Stroke {
    /// By a code, another name, or a character.
    fn named(name: &str) -> Option<Self> {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, code)| code);
        if let Some(key) = KEYS.iter().find(|key| key.code == name) {
            return Some(Self { key, meaning: Meaning::ByShift });
        }
        // Characters are those of the main block.
        KEYS.iter().filter(|key| key.location == 0 && name.len() == 1).find_map(|key| {
            if key.meaning == name {
                Some(Self { key, meaning: Meaning::Plain })
            } else if key.shifted == Some(name) {
                Some(Self { key, meaning: Meaning::Shifted })
            } else {
                None
            }
        })
    }

    fn key(self, held: Modifiers) -> &'static str {
        let is_shifted = match self.meaning {
            Meaning::Plain => false,
            Meaning::Shifted => true,
            Meaning::ByShift => held.contains(Modifiers::SHIFT),
        };
        self.key.shifted.filter(|_| is_shifted).unwrap_or(self.key.meaning)
    }
}

/// What is held.
#[derive(Default)]
struct Keyboard {
    held: Modifiers,
    down: BTreeSet<&'static str>,
}

impl Keyboard {
    fn down(&mut self, stroke: Stroke) -> KeyEvent {
        let Key { code, number, location, .. } = *stroke.key;
        let key = stroke.key(self.held);
        // With a modifier other than Shift a key gives a command.
        let types = self.held.without(Modifiers::SHIFT) == Modifiers::NONE;
        let text = stroke.key.text_of(key).filter(|_| types);
        let auto_repeat = !self.down.insert(code);
        self.held = self.held | Modifiers::of_key(key).unwrap_or_default();
        KeyEvent {
            kind: if text.is_some() { KeyEventKind::KeyDown } else { KeyEventKind::RawKeyDown },
            modifiers: self.held,
            key,
            code,
            windows_virtual_key_code: number,
            text,
            unmodified_text: text,
            location,
            is_keypad: location == KEYPAD,
            auto_repeat,
        }
    }

    fn up(&mut self, stroke: Stroke) -> KeyEvent {
        let Key { code, number, location, .. } = *stroke.key;
        let key = stroke.key(self.held);
        self.held = self.held.without(Modifiers::of_key(key).unwrap_or_default());
        self.down.remove(code);
        KeyEvent {
            kind: KeyEventKind::KeyUp,
            modifiers: self.held,
            key,
            code,
            windows_virtual_key_code: number,
            text: None,
            unmodified_text: None,
            location,
            is_keypad: false,
            auto_repeat: false,
        }
    }
}

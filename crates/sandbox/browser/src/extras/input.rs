//! What a person who watches a page does in it.

use gloveport_browsergym::{keys::KeyCombination, operation::MouseButton};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{input::bit, live::Live, world::TargetId};

/// Modifiers with which a key gives a command and types nothing: Alt, Control and Meta.
const COMMANDS: u8 = 1 | 2 | 4;

/// What a person does in a page that is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum LiveInput {
    /// Something with the mouse.
    Mouse {
        /// What.
        kind: MouseChange,
        /// Pixels from the left of what is in view.
        x: f64,
        /// Pixels from the top of what is in view.
        y: f64,
        /// The button that goes down or up.
        #[serde(default)]
        button: Held,
        /// Pixels by which the wheel scrolls to the right.
        #[serde(default)]
        delta_x: f64,
        /// Pixels by which the wheel scrolls down.
        #[serde(default)]
        delta_y: f64,
        /// Which click in a row it is.
        #[serde(default = "one")]
        clicks: u8,
    },
    /// Something with a key.
    Key {
        /// What.
        kind: KeyChange,
        /// What the key means: `KeyboardEvent.key`.
        key: String,
        /// Which key it is: `KeyboardEvent.code`.
        #[serde(default)]
        code: String,
        /// What it types; without it, what a key of this meaning types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What is held: the sum of Alt 1, Control 2, Meta 4 and Shift 8.
        #[serde(default)]
        modifiers: u8,
    },
    /// A text at once, as from a clipboard.
    Text {
        /// The text.
        text: String,
    },
    /// Go to an address.
    Navigate {
        /// The address.
        url: String,
    },
}

/// What happens to a mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MouseChange {
    /// It is moved.
    Move,
    /// A button goes down.
    Down,
    /// A button goes up.
    Up,
    /// The wheel is turned.
    Wheel,
}

/// A button of the mouse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// The left one.
    #[default]
    Left,
    /// The middle one.
    Middle,
    /// The right one.
    Right,
    /// None, which is the left one where one is needed.
    None,
}

impl Held {
    const fn button(self) -> MouseButton {
        match self {
            Self::Left | Self::None => MouseButton::Left,
            Self::Middle => MouseButton::Middle,
            Self::Right => MouseButton::Right,
        }
    }
}

/// What happens to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyChange {
    /// It goes down.
    Down,
    /// It goes up.
    Up,
}

const fn one() -> u8 {
    1
}

/// The mouse and the keyboard of a person.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// Buttons that are held, bit by bit.
    buttons: u8,
    /// Keys that are held stay with the mouse.
    modifiers: u8,
}

impl Hands {
    /// Does it in a page. A page that is gone is not told.
    pub(super) fn apply(&mut self, live: &Live, page: &TargetId, input: LiveInput) {
        let Ok(session) = live.page_session(page) else { return };
        match input {
            LiveInput::Mouse { kind, x, y, button, delta_x, delta_y, clicks } => {
                live.shared.with(|world| {
                    if let Some(page) = world.page_mut(page) {
                        page.mouse = (x, y);
                    }
                });
                let mut event = self.mouse(kind, button.button());
                if let Some(event) = event.as_object_mut() {
                    event.extend([("x".to_owned(), json!(x)), ("y".to_owned(), json!(y))]);
                    let more = match kind {
                        MouseChange::Wheel => vec![("deltaX", json!(delta_x)), ("deltaY", json!(delta_y))],
                        MouseChange::Down | MouseChange::Up => vec![("clickCount", json!(clicks))],
                        MouseChange::Move => Vec::new(),
                    };
                    event.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
                }
                session.tell("Input.dispatchMouseEvent", event);
            }
            LiveInput::Key { kind, key, code, text, modifiers } => {
                self.modifiers = modifiers & (COMMANDS | 8);
                session.tell("Input.dispatchKeyEvent", key_event(kind, &key, &code, text, self.modifiers));
            }
            LiveInput::Text { text } => session.tell("Input.insertText", json!({ "text": text })),
            LiveInput::Navigate { url } => session.tell("Page.navigate", json!({ "url": url })),
        }
    }

    fn mouse(&mut self, kind: MouseChange, button: MouseButton) -> Value {
        let (kind, button) = match kind {
            MouseChange::Move => ("mouseMoved", self.held()),
            MouseChange::Wheel => ("mouseWheel", "none"),
            MouseChange::Down => {
                self.buttons |= bit(button);
                ("mousePressed", button.as_str())
            }
            MouseChange::Up => {
                self.buttons &= !bit(button);
                ("mouseReleased", button.as_str())
            }
        };
        json!({ "type": kind, "button": button, "buttons": self.buttons, "modifiers": self.modifiers })
    }

    fn held(&self) -> &'static str {
        let all = [MouseButton::Left, MouseButton::Right, MouseButton::Middle];
        all.into_iter().find(|button| self.buttons & bit(*button) != 0).map_or("none", MouseButton::as_str)
    }
}

fn key_event(kind: KeyChange, key: &str, code: &str, text: Option<String>, modifiers: u8) -> Value {
    // Commands of an editor hang on the number of a key.
    let name = if code.is_empty() { key } else { code };
    let known = KeyCombination::parse(name).ok().and_then(|keys| keys.events().next());
    let text = match kind {
        KeyChange::Up => String::new(),
        KeyChange::Down => text.unwrap_or_else(|| typed(key, modifiers)),
    };
    let what = match kind {
        KeyChange::Up => "keyUp",
        KeyChange::Down if text.is_empty() => "rawKeyDown",
        KeyChange::Down => "keyDown",
    };
    let mut event = json!({
        "type": what, "key": key, "code": code, "modifiers": modifiers,
        "windowsVirtualKeyCode": known.as_ref().map_or(0, |known| known.windows_virtual_key_code),
        "location": known.as_ref().map_or(0, |known| known.location),
    });
    if !text.is_empty()
        && let Some(event) = event.as_object_mut()
    {
        event.insert("unmodifiedText".to_owned(), json!(text));
        event.insert("text".to_owned(), json!(text));
    }
    event
}

/// What a key of this meaning types.
fn typed(key: &str, modifiers: u8) -> String {
    match key {
        _ if modifiers & COMMANDS != 0 => String::new(),
        "Enter" => "\r".to_owned(),
        key if key.chars().count() == 1 => key.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Held, KeyChange, LiveInput, MouseChange, key_event};

    #[test]
    fn inputs_are_read_with_what_is_left_out() {
        let read = |text| serde_json::from_value::<LiveInput>(text).unwrap();
        assert_eq!(
            read(json!({ "type": "mouse", "kind": "wheel", "x": 1, "y": 2, "delta_y": -3 })),
            LiveInput::Mouse {
                kind: MouseChange::Wheel,
                x: 1.0,
                y: 2.0,
                button: Held::Left,
                delta_x: 0.0,
                delta_y: -3.0,
                clicks: 1,
            },
        );
        assert_eq!(
            read(json!({ "type": "key", "kind": "down", "key": "a" })),
            LiveInput::Key {
                kind: KeyChange::Down,
                key: "a".to_owned(),
                code: String::new(),
                text: None,
                modifiers: 0
            },
        );
        assert_eq!(read(json!({ "type": "text", "text": "x" })), LiveInput::Text { text: "x".to_owned() });
        assert_eq!(read(json!({ "type": "navigate", "url": "x:" })), LiveInput::Navigate { url: "x:".to_owned() });
        assert!(serde_json::from_value::<LiveInput>(json!({ "type": "text", "text": "x", "more": 1 })).is_err());
    }

    #[test]
    fn keys_type_and_have_their_numbers() {
        let down = |key, code, modifiers| key_event(KeyChange::Down, key, code, None, modifiers);
        assert_eq!(
            down("a", "KeyA", 0),
            json!({ "type": "keyDown", "key": "a", "code": "KeyA", "modifiers": 0, "windowsVirtualKeyCode": 65,
                "location": 0, "text": "a", "unmodifiedText": "a" }),
        );
        assert_eq!(
            down("a", "KeyA", 2),
            json!({ "type": "rawKeyDown", "key": "a", "code": "KeyA", "modifiers": 2, "windowsVirtualKeyCode": 65,
                "location": 0 }),
        );
        assert_eq!(
            down("Enter", "Enter", 0),
            json!({ "type": "keyDown", "key": "Enter", "code": "Enter", "modifiers": 0, "windowsVirtualKeyCode": 13,
                "location": 0, "text": "\r", "unmodifiedText": "\r" }),
        );
        assert_eq!(
            key_event(KeyChange::Up, "é", "", Some("é".to_owned()), 0),
            json!({ "type": "keyUp", "key": "é", "code": "", "modifiers": 0, "windowsVirtualKeyCode": 0, "location": 0 }),
        );
    }
}

//! Key combinations, as Playwright 1.56 presses them.

#![expect(clippy::unwrap_used, reason = "functions that tests share stop at the first broken assumption, too")]

use gloveport_browsergym::keys::{KeyCombination, KeyEvent, Modifiers, TypingStep, typing};
use serde_json::json;

/// Events in short: the kind, the modifiers, the key, and the text.
fn shown(events: &[KeyEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let repeats = if event.auto_repeat { " again" } else { "" };
            format!(
                "{:?} {} {} {:?}{repeats}",
                event.kind,
                event.modifiers.bits(),
                event.key,
                event.text.unwrap_or_default()
            )
        })
        .collect()
}

fn pressed(keys: &str) -> Vec<KeyEvent> {
    KeyCombination::parse(keys).unwrap().events().collect()
}

#[test]
fn keys_go_down_in_order_and_up_in_the_opposite_order() {
    let table: [(&str, &[&str]); 19] = [
        ("a", &["KeyDown 0 a \"a\"", "KeyUp 0 a \"\""]),
        ("A", &["KeyDown 0 A \"A\"", "KeyUp 0 A \"\""]),
        ("KeyA", &["KeyDown 0 a \"a\"", "KeyUp 0 a \"\""]),
        ("Shift+a", &["RawKeyDown 8 Shift \"\"", "KeyDown 8 a \"a\"", "KeyUp 8 a \"\"", "KeyUp 0 Shift \"\""]),
        ("Shift+KeyA", &["RawKeyDown 8 Shift \"\"", "KeyDown 8 A \"A\"", "KeyUp 8 A \"\"", "KeyUp 0 Shift \"\""]),
        (
            "ShiftRight+Digit1",
            &["RawKeyDown 8 Shift \"\"", "KeyDown 8 ! \"!\"", "KeyUp 8 ! \"\"", "KeyUp 0 Shift \"\""],
        ),
        ("Control+a", &["RawKeyDown 2 Control \"\"", "RawKeyDown 2 a \"\"", "KeyUp 2 a \"\"", "KeyUp 0 Control \"\""]),
        (
            "ControlOrMeta+a",
            &["RawKeyDown 2 Control \"\"", "RawKeyDown 2 a \"\"", "KeyUp 2 a \"\"", "KeyUp 0 Control \"\""],
        ),
        (
            "Shift+Alt+a",
            &[
                "RawKeyDown 8 Shift \"\"",
                "RawKeyDown 9 Alt \"\"",
                "RawKeyDown 9 a \"\"",
                "KeyUp 9 a \"\"",
                "KeyUp 8 Alt \"\"",
                "KeyUp 0 Shift \"\"",
            ],
        ),
        (
            "Meta+Enter",
            &["RawKeyDown 4 Meta \"\"", "RawKeyDown 4 Enter \"\"", "KeyUp 4 Enter \"\"", "KeyUp 0 Meta \"\""],
        ),
        ("Enter", &["KeyDown 0 Enter \"\\r\"", "KeyUp 0 Enter \"\""]),
        ("\n", &["KeyDown 0 Enter \"\\r\"", "KeyUp 0 Enter \"\""]),
        ("Backspace", &["RawKeyDown 0 Backspace \"\"", "KeyUp 0 Backspace \"\""]),
        ("F12", &["RawKeyDown 0 F12 \"\"", "KeyUp 0 F12 \"\""]),
        ("+", &["KeyDown 0 + \"+\"", "KeyUp 0 + \"\""]),
        ("Shift++", &["RawKeyDown 8 Shift \"\"", "KeyDown 8 + \"+\"", "KeyUp 8 + \"\"", "KeyUp 0 Shift \"\""]),
        ("+++", &["KeyDown 0 + \"+\"", "KeyDown 0 + \"+\" again", "KeyUp 0 + \"\"", "KeyUp 0 + \"\""]),
        ("a+b", &["KeyDown 0 a \"a\"", "KeyDown 0 b \"b\"", "KeyUp 0 b \"\"", "KeyUp 0 a \"\""]),
        ("Numpad1", &["RawKeyDown 0 End \"\"", "KeyUp 0 End \"\""]),
    ];
    for (keys, events) in table {
        assert_eq!(shown(&pressed(keys)), events, "{keys:?}");
    }
}

#[test]
fn unknown_keys_have_the_error_of_the_reference() {
    let table = [
        ("", ""),
        ("Foo", "Foo"),
        ("a+Foo", "Foo"),
        ("Foo+a", "Foo"),
        ("enter", "enter"),
        ("shift+a", "shift"),
        ("++", ""),
        ("+a", "+a"),
        ("a+", ""),
        ("Control+", ""),
        ("+Control", "+Control"),
        ("Control + a", "Control "),
        (" a", " a"),
        ("ab", "ab"),
        ("é", "é"),
        ("日", "日"),
        ("é+a", "é"),
        ("F13", "F13"),
        ("Esc", "Esc"),
        ("Clear", "Clear"),
        ("IntlBackslash", "IntlBackslash"),
    ];
    for (keys, unknown) in table {
        let error = KeyCombination::parse(keys).unwrap_err();
        assert_eq!(error.to_string(), format!("Error: Locator.press: Unknown key: \"{unknown}\""), "{keys:?}");
    }
}

#[test]
fn an_event_has_the_form_of_the_protocol() {
    let [down, up] = pressed("NumpadEnter").try_into().unwrap();
    assert_eq!(
        json!([down, up]),
        json!([
            {
                "type": "keyDown", "modifiers": 0, "key": "Enter", "code": "NumpadEnter", "windowsVirtualKeyCode": 13, "text": "\r",
                "unmodifiedText": "\r", "location": 3, "isKeypad": true, "autoRepeat": false,
            },
            {
                "type": "keyUp", "modifiers": 0, "key": "Enter", "code": "NumpadEnter", "windowsVirtualKeyCode": 13, "location": 3,
                "isKeypad": false, "autoRepeat": false,
            },
        ])
    );
    let [down, _, _, _] = pressed("Control+KeyA").try_into().unwrap();
    assert_eq!(
        json!(down),
        json!({
            "type": "rawKeyDown", "modifiers": 2, "key": "Control", "code": "ControlLeft", "windowsVirtualKeyCode": 17,
            "location": 1, "isKeypad": false, "autoRepeat": false,
        })
    );
}

#[test]
fn modifiers_are_held_and_released_in_one_order() {
    let modifiers = Modifiers::SHIFT | Modifiers::ALT;
    assert_eq!(shown(&modifiers.press()), ["RawKeyDown 1 Alt \"\"", "RawKeyDown 9 Shift \"\""]);
    assert_eq!(shown(&modifiers.release()), ["KeyUp 8 Alt \"\"", "KeyUp 0 Shift \"\""]);
}

#[test]
fn a_text_is_typed_with_keys_where_there_are_any() {
    let steps: Vec<String> = typing("aB\n é😀~")
        .map(|step| match step {
            TypingStep::Key(event) => shown(&[event]).concat(),
            TypingStep::Insert(c) => format!("insert {c}"),
        })
        .collect();
    let expected = [
        "KeyDown 0 a \"a\"",
        "KeyUp 0 a \"\"",
        "KeyDown 0 B \"B\"",
        "KeyUp 0 B \"\"",
        "KeyDown 0 Enter \"\\r\"",
        "KeyUp 0 Enter \"\"",
        "KeyDown 0   \" \"",
        "KeyUp 0   \"\"",
        "insert é",
        "insert 😀",
        "KeyDown 0 ~ \"~\"",
        "KeyUp 0 ~ \"\"",
    ];
    assert_eq!(steps, expected);
}

#[test]
fn every_printable_ascii_character_is_typed_by_a_key_as_itself() {
    for c in ' '..='~' {
        let text = c.to_string();
        assert_eq!(
            pressed(&text).iter().map(|event| event.text).collect::<Vec<_>>(),
            [Some(text.as_str()), None],
            "{c}"
        );
    }
}

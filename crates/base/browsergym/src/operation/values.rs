//! The values of arguments: what the reference and its driver accept, and what they answer to others.

use super::{Arguments, MouseButton};
use crate::{error::ActionError, keys::Modifiers, language::Literal};

/// The longest time that a timer of JavaScript takes, in milliseconds; a longer one fires at once.
const LONGEST_TIMER: f64 = 2_147_483_647.0;

pub(super) fn wait(value: Option<&Literal>) -> Result<f64, ActionError> {
    let Some(value) = value else { return Ok(1000.0) };
    let wait_ms = number(Some(value), "Page.wait_for_timeout: wait_timeout")?;
    Ok(if wait_ms > LONGEST_TIMER { 1.0 } else { wait_ms.max(0.0) })
}

/// A number for the driver's parameter; the nearest finite one.
pub(super) fn number(value: Option<&Literal>, parameter: &str) -> Result<f64, ActionError> {
    match value {
        Some(Literal::Float(number)) => Ok(*number),
        Some(Literal::Int(number)) => Ok(number.to_f64().clamp(f64::MIN, f64::MAX)),
        other => Err(ActionError::driver(format!("{parameter}: expected float, got {}", js_type(other)))),
    }
}

/// What JavaScript calls the type; Python's `None` and what is left out do not reach the driver.
fn js_type(value: Option<&Literal>) -> &'static str {
    value.map_or("undefined", Literal::js_type)
}

pub(super) fn message(value: Option<&Literal>) -> Result<String, ActionError> {
    match value {
        Some(Literal::Str(text)) => Ok(text.clone()),
        other => Err(ActionError::value(format!("Forbidden value: {} is not a string", shown(other)))),
    }
}

fn shown(value: Option<&Literal>) -> String {
    value.unwrap_or(&Literal::None).to_string()
}

pub(super) fn bid(value: Option<&Literal>) -> Result<String, ActionError> {
    match value {
        Some(Literal::Str(text)) => Ok(text.clone()),
        other => Err(ActionError::value(format!("expected a string, got {}", shown(other)))),
    }
}

/// A text for a parameter of a method of the driver.
pub(super) fn text(
    value: Option<&Literal>,
    method: &str,
    object: &str,
    parameter: &str,
) -> Result<String, ActionError> {
    match value {
        Some(Literal::Str(text)) => Ok(text.clone()),
        None | Some(Literal::None) => {
            Err(ActionError::r#type(format!("Frame.{method}() missing 1 required positional argument: '{parameter}'")))
        }
        other => {
            Err(ActionError::driver(format!("{object}.{method}: {parameter}: expected string, got {}", js_type(other))))
        }
    }
}

/// Options: a text or several; a dict gives its keys, as it does when Python iterates over it.
pub(super) fn options(value: Option<&Literal>) -> Result<Vec<String>, ActionError> {
    match value {
        None | Some(Literal::None) => Ok(Vec::new()),
        Some(Literal::Str(text)) => Ok(vec![text.clone()]),
        Some(Literal::Dict(members)) => Ok(members.iter().map(|(key, _)| key.clone()).collect()),
        Some(Literal::List(values) | Literal::Tuple(values)) => {
            values.iter().enumerate().map(|(place, value)| option(place, value)).collect()
        }
        Some(other) => Err(ActionError::r#type(format!("'{}' object is not iterable", other.class()))),
    }
}

fn option(place: usize, value: &Literal) -> Result<String, ActionError> {
    let found = match value {
        Literal::Str(text) => return Ok(text.clone()),
        // Within another value, `None` reaches the driver, as `null`.
        Literal::None => "object",
        other => other.js_type(),
    };
    Err(ActionError::driver(format!(
        "Locator.select_option: options[{place}].valueOrLabel: expected string, got {found}"
    )))
}

/// The element, the button and the modifiers of a click. The driver looks at the modifiers first.
pub(super) fn click(arguments: &Arguments<'_>) -> Result<(String, MouseButton, Modifiers), ActionError> {
    let bid = bid(arguments.get(0))?;
    let modifiers = modifiers(arguments.get(2))?;
    Ok((bid, button(arguments.get(1))?, modifiers))
}

fn button(value: Option<&Literal>) -> Result<MouseButton, ActionError> {
    let name = match value {
        None | Some(Literal::None) => "left",
        Some(Literal::Str(name)) => name,
        Some(_) => "",
    };
    [MouseButton::Left, MouseButton::Right, MouseButton::Middle]
        .into_iter()
        .find(|button| button.as_str() == name)
        .ok_or_else(|| ActionError::driver("Locator.click: button: expected one of (left|right|middle)"))
}

fn modifiers(value: Option<&Literal>) -> Result<Modifiers, ActionError> {
    let values = match value {
        None | Some(Literal::None) => return Ok(Modifiers::NONE),
        Some(Literal::List(values) | Literal::Tuple(values)) => values,
        other => {
            return Err(ActionError::driver(format!(
                "Locator.click: modifiers: expected array, got {}",
                js_type(other)
            )));
        }
    };
    let mut modifiers = Modifiers::NONE;
    for (place, value) in values.iter().enumerate() {
        let modifier = match value {
            Literal::Str(name) => Modifiers::named(name),
            _ => None,
        };
        modifiers = modifiers
            | modifier.ok_or_else(|| {
                ActionError::driver(format!(
                    "Locator.click: modifiers[{place}]: expected one of (Alt|Control|ControlOrMeta|Meta|Shift)"
                ))
            })?;
    }
    Ok(modifiers)
}

pub(super) fn index(value: Option<&Literal>) -> Result<i64, ActionError> {
    match value {
        Some(Literal::Bool(is_one)) => Ok(i64::from(*is_one)),
        Some(Literal::Int(number)) => number
            .to_i64()
            .ok_or_else(|| ActionError::new("IndexError", "cannot fit 'int' into an index-sized integer")),
        other => {
            let class = other.unwrap_or(&Literal::None).class();
            Err(ActionError::r#type(format!("list indices must be integers or slices, not {class}")))
        }
    }
}

/// Paths: a text or several. What is no path is taken for the content of a file, which no literal can be.
pub(super) fn files(value: Option<&Literal>) -> Result<Vec<String>, ActionError> {
    let values = match value {
        Some(Literal::List(values) | Literal::Tuple(values)) => values.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => &[Literal::None],
    };
    let paths: Vec<String> = values
        .iter()
        .filter_map(|value| match value {
            Literal::Str(path) => Some(path.clone()),
            _ => None,
        })
        .collect();
    // What is no dict is answered to before dicts that lack a member.
    let odd = values.iter().find(|value| !matches!(value, Literal::Dict(_))).or(values.first());
    match odd {
        Some(value) if paths.is_empty() => Err(no_file(value)),
        _ if paths.len() < values.len() => Err(ActionError::driver("File paths cannot be mixed with buffers")),
        _ => Ok(paths),
    }
}

fn no_file(value: &Literal) -> ActionError {
    let Literal::Dict(members) = value else {
        return ActionError::new("AttributeError", format!("'{}' object has no attribute 'get'", value.class()));
    };
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    for name in ["name", "mimeType"] {
        if member(name).is_none() {
            return ActionError::new("KeyError", format!("'{name}'"));
        }
    }
    match member("buffer") {
        None => ActionError::new("KeyError", "'buffer'"),
        Some(buffer) => ActionError::r#type(format!("a bytes-like object is required, not '{}'", buffer.class())),
    }
}

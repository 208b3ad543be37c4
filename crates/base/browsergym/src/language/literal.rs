//! The values that a call may have, with their Python `repr`.

use std::fmt;

use gloveport_protocol::python;
use serde_json::Value;

/// A Python literal. Shown as Python's `repr` shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A text.
    Str(String),
    /// A whole number of any size.
    Int(Integer),
    /// A number with a point or an exponent; infinite if it is too large.
    Float(f64),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// Values in square brackets.
    List(Vec<Literal>),
    /// Values in parentheses; a single one needs no comma, other than in Python.
    Tuple(Vec<Literal>),
    /// Values with text keys, in the order of their first mention.
    Dict(Vec<(String, Literal)>),
}

impl Literal {
    /// What JavaScript's `typeof` says of the value once it has reached the driver of the browser.
    pub fn js_type(&self) -> &'static str {
        match self {
            Self::Str(_) => "string",
            Self::Int(_) | Self::Float(_) => "number",
            Self::Bool(_) => "boolean",
            Self::None => "undefined",
            Self::List(_) | Self::Tuple(_) | Self::Dict(_) => "object",
        }
    }

    /// The name of the Python class.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Str(_) => "str",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
            Self::None => "NoneType",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
        }
    }

    /// Whether the value is, or contains, a number that is too large to be finite.
    pub fn is_infinite(&self) -> bool {
        match self {
            Self::Float(number) => number.is_infinite(),
            Self::List(values) | Self::Tuple(values) => values.iter().any(Self::is_infinite),
            Self::Dict(members) => members.iter().any(|(_, value)| value.is_infinite()),
            Self::Str(_) | Self::Int(_) | Self::Bool(_) | Self::None => false,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Str(text) => write_text(f, text),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => f.write_str(&python::float_text(*number)),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::None => f.write_str("None"),
            Self::List(values) => {
                f.write_str("[")?;
                write_separated(f, values)?;
                f.write_str("]")
            }
            Self::Tuple(values) => {
                f.write_str("(")?;
                write_separated(f, values)?;
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
            Self::Dict(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    write_text(f, key)?;
                    write!(f, ": {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&python::repr(&Value::from(text)))
}

fn write_separated(f: &mut fmt::Formatter<'_>, values: &[Literal]) -> fmt::Result {
    values.iter().enumerate().try_for_each(|(index, value)| {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{value}")
    })
}

/// A whole number, kept as its decimal digits, since Python's have no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integer(String);

impl Integer {
    /// Reads decimal digits with or without a sign.
    pub(super) fn from_digits(is_negative: bool, digits: &str) -> Self {
        let digits = digits.trim_start_matches('0');
        Self(match (digits, is_negative) {
            ("", _) => "0".to_owned(),
            (digits, true) => format!("-{digits}"),
            (digits, false) => digits.to_owned(),
        })
    }

    /// The number, if it has at most 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The nearest float; infinite if there is none.
    pub fn to_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::INFINITY)
    }
}

impl From<i64> for Integer {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

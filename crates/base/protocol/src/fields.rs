//! One description of a wire object gives its struct, its constructor, its parser and its JSON form.

use serde_json::{Map, Value};

use crate::error::{FieldError, describe};

/// A type of one field on the wire.
///
/// Parsing does not coerce: the caller constructs its own objects without coercion, too (actions-and-observations
/// 2.4).
pub(crate) trait WireField: Sized {
    /// What the field holds, for an error: "a string".
    fn expected() -> String;

    /// Reads the value, or says what was found instead.
    fn from_wire(value: &Value) -> Result<Self, String>;

    /// The value's JSON form.
    fn to_wire(&self) -> Value;
}

/// A struct whose fields travel as one JSON object.
pub(crate) trait WireStruct: Sized {
    /// Name of the class in error texts.
    const CLASS: &'static str;

    /// Builds the struct as the class would be built from named arguments.
    fn from_map(map: &Map<String, Value>) -> Result<Self, FieldError>;

    /// All fields, in the order of the class.
    fn to_map(&self) -> Map<String, Value>;
}

impl WireField for String {
    fn expected() -> String {
        "a string".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| describe(value))
    }

    fn to_wire(&self) -> Value {
        Value::String(self.clone())
    }
}

impl WireField for bool {
    fn expected() -> String {
        "a boolean".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| describe(value))
    }

    fn to_wire(&self) -> Value {
        Value::Bool(*self)
    }
}

impl WireField for i64 {
    fn expected() -> String {
        "an integer".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        value.as_i64().ok_or_else(|| describe(value))
    }

    fn to_wire(&self) -> Value {
        Value::from(*self)
    }
}

impl WireField for Value {
    fn expected() -> String {
        "any value".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        Ok(value.clone())
    }

    fn to_wire(&self) -> Value {
        self.clone()
    }
}

impl WireField for Map<String, Value> {
    fn expected() -> String {
        "an object".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        value.as_object().cloned().ok_or_else(|| describe(value))
    }

    fn to_wire(&self) -> Value {
        Value::Object(self.clone())
    }
}

impl<T: WireField> WireField for Option<T> {
    fn expected() -> String {
        format!("{} or null", T::expected())
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::from_wire(value).map(Some) }
    }

    fn to_wire(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_wire)
    }
}

impl<T: WireField> WireField for Vec<T> {
    fn expected() -> String {
        format!("an array (each element {})", T::expected())
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        let elements = value.as_array().ok_or_else(|| describe(value))?;
        elements
            .iter()
            .map(|element| T::from_wire(element).map_err(|found| format!("an array that holds {found}")))
            .collect()
    }

    fn to_wire(&self) -> Value {
        Value::Array(self.iter().map(T::to_wire).collect())
    }
}

/// Named arguments on their way into one class.
pub(crate) struct Arguments<'a> {
    class: &'static str,
    map: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Checks the names only: the first unknown one is refused, then all missing ones together.
    pub(crate) fn check(
        class: &'static str,
        map: &'a Map<String, Value>,
        required: &[&'static str],
        optional: &[&'static str],
    ) -> Result<Self, FieldError> {
        let known = |key: &str| required.contains(&key) || optional.contains(&key);
        if let Some(key) = map.keys().find(|key| !known(key)) {
            return Err(FieldError::Unexpected { class, key: key.clone() });
        }
        let missing: Vec<_> = required.iter().copied().filter(|name| !map.contains_key(*name)).collect();
        if missing.is_empty() { Ok(Self { class, map }) } else { Err(FieldError::Missing { class, names: missing }) }
    }

    /// Takes the names as they are; for the classes that accept any.
    pub(crate) fn unchecked(class: &'static str, map: &'a Map<String, Value>) -> Self {
        Self { class, map }
    }

    /// The value of a field without a default.
    pub(crate) fn required<T: WireField>(&self, field: &'static str) -> Result<T, FieldError> {
        match self.map.get(field) {
            Some(value) => self.read(field, value),
            None => Err(FieldError::Missing { class: self.class, names: vec![field] }),
        }
    }

    /// The value of a field with a default.
    pub(crate) fn optional<T: WireField>(
        &self,
        field: &'static str,
        default: impl FnOnce() -> T,
    ) -> Result<T, FieldError> {
        self.map.get(field).map_or_else(|| Ok(default()), |value| self.read(field, value))
    }

    fn read<T: WireField>(&self, field: &'static str, value: &Value) -> Result<T, FieldError> {
        T::from_wire(value).map_err(|found| FieldError::WrongType {
            class: self.class,
            field,
            expected: T::expected(),
            found,
        })
    }
}

/// The name of a field on the wire: its Rust name unless another is given.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}

/// Declares a [`WireStruct`](crate::fields::WireStruct): `Name = "ReferenceClass" { required { … } optional { … } }`.
///
/// With required fields the struct gets `new`, which takes just those; without, a crate-private `wire_default`.
macro_rules! wire_struct {
    (
        $(#[$meta:meta])*
        $name:ident = $class:literal {
            required { $($(#[$required_meta:meta])* $required:ident: $required_type:ty,)* }
            optional { $($(#[$optional_meta:meta])* $optional:ident $(as $wire:literal)?: $optional_type:ty = $default:expr,)* }
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$required_meta])* pub $required: $required_type,)*
            $($(#[$optional_meta])* pub $optional: $optional_type,)*
        }

        wire_struct!(@new $name [$($required: $required_type,)*] [$($optional = $default,)*]);

        impl crate::fields::WireStruct for $name {
            const CLASS: &'static str = $class;

            fn from_map(
                map: &serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, crate::error::FieldError> {
                let arguments = crate::fields::Arguments::check(
                    Self::CLASS,
                    map,
                    &[$(stringify!($required),)*],
                    &[$(wire_name!($optional $($wire)?),)*],
                )?;
                Ok(Self {
                    $($required: arguments.required(stringify!($required))?,)*
                    $($optional: arguments.optional(wire_name!($optional $($wire)?), || $default)?,)*
                })
            }

            fn to_map(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut map = serde_json::Map::new();
                $(map.insert(stringify!($required).to_owned(), crate::fields::WireField::to_wire(&self.$required));)*
                $(map.insert(
                    wire_name!($optional $($wire)?).to_owned(),
                    crate::fields::WireField::to_wire(&self.$optional),
                );)*
                map
            }
        }
    };
    (@new $name:ident [] [$($optional:ident = $default:expr,)*]) => {
        impl $name {
            /// The object that empty named arguments give.
            pub(crate) fn wire_default() -> Self {
                Self { $($optional: $default,)* }
            }
        }
    };
    (@new $name:ident [$($required:ident: $required_type:ty,)+] [$($optional:ident = $default:expr,)*]) => {
        impl $name {
            /// Takes the fields that have no default; all others get theirs.
            pub fn new($($required: impl Into<$required_type>),+) -> Self {
                Self { $($required: $required.into(),)* $($optional: $default,)* }
            }
        }
    };
}

pub(crate) use {wire_name, wire_struct};

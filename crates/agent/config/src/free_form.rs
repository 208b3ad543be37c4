//! A table with any members.

use std::{fmt, ops::Deref};

use serde_json::{Map, Value};

use crate::mask;

/// A table whose members this crate does not know. `Debug` masks what its names tell to be secret.
#[derive(Clone, Default, PartialEq)]
pub struct FreeForm(Map<String, Value>);

impl Deref for FreeForm {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Map<String, Value>> for FreeForm {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

impl From<FreeForm> for Map<String, Value> {
    fn from(table: FreeForm) -> Self {
        table.0
    }
}

impl fmt::Debug for FreeForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Value::Object(mask::table(&self.0)), f)
    }
}

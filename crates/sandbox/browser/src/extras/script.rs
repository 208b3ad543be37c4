//! Functions of `extras.js` in documents.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cdp::understood,
    script::{Argument, LIBRARY, ObjectId, Realm, ScriptError},
};

/// What every call brings with it, beside the library.
const EXTRAS: &str = include_str!("../scripts/extras.js");
/// Time for one.
const LIMIT: Duration = Duration::from_secs(10);

fn function(name: &str) -> String {
    format!("function(...all) {{\n{LIBRARY}\n{EXTRAS}\nreturn {name}(...all);\n}}")
}

/// Calls a function, and awaits its value.
pub(super) async fn call<T: DeserializeOwned>(
    realm: &Realm,
    name: &str,
    arguments: Vec<Argument<'_>>,
) -> Result<T, ScriptError> {
    let result = realm.evaluate(&function(name), arguments, true, LIMIT).await?;
    let value = result.get("value").cloned().unwrap_or(Value::Null);
    Ok(understood("Runtime.callFunctionOn", value)?)
}

/// Calls a function whose result is an object; `None` if it is null.
pub(super) async fn object(
    realm: &Realm,
    name: &str,
    arguments: Vec<Argument<'_>>,
) -> Result<Option<ObjectId>, ScriptError> {
    let result = realm.evaluate(&function(name), arguments, false, LIMIT).await?;
    Ok(result.get("objectId").and_then(Value::as_str).map(|id| ObjectId(id.to_owned())))
}

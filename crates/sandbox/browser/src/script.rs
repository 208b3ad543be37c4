//! Functions that are called in documents.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    cdp::{CdpError, Session, understood},
    world::ContextId,
};

/// What every call brings with it.
pub(crate) const LIBRARY: &str = include_str!("scripts/library.js");
/// Time for a call that says nothing else.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a function has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScriptError {
    /// It could not be called.
    #[error(transparent)]
    Cdp(#[from] CdpError),
    /// It threw this.
    #[error("{0}")]
    Thrown(String),
}

impl ScriptError {
    /// A later try may find the document that has replaced the one that was asked.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Cdp(error) => error.is_passing(),
            Self::Thrown(_) => false,
        }
    }
}

/// An object of a document, held by its session until the document is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectId(pub(crate) String);

/// A world of a document.
#[derive(Debug, Clone)]
pub(crate) struct Realm {
    pub(crate) session: Session,
    pub(crate) context: ContextId,
}

/// An argument of a function.
pub(crate) enum Argument<'a> {
    Value(Value),
    Object(&'a ObjectId),
}

impl Argument<'_> {
    fn into_json(self) -> Value {
        match self {
            Self::Value(value) => json!({ "value": value }),
            Self::Object(id) => json!({ "objectId": id.0 }),
        }
    }
}

impl Realm {
    /// Calls a function of the library, and awaits its value.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        name: &str,
        arguments: Vec<Argument<'_>>,
    ) -> Result<T, ScriptError> {
        self.call_within(name, arguments, LIMIT).await
    }

    /// The same with another time limit.
    pub(crate) async fn call_within<T: DeserializeOwned>(
        &self,
        name: &str,
        arguments: Vec<Argument<'_>>,
        limit: Duration,
    ) -> Result<T, ScriptError> {
        let function = format!("function(...all) {{\n{LIBRARY}\nreturn {name}(...all);\n}}");
        let result = self.evaluate(&function, arguments, true, limit).await?;
        let value = result.get("value").cloned().unwrap_or(Value::Null);
        Ok(understood("Runtime.callFunctionOn", value)?)
    }

    /// Calls a function of the library whose result is an object; `None` if it is null.
    pub(crate) async fn object(
        &self,
        name: &str,
        arguments: Vec<Argument<'_>>,
    ) -> Result<Option<ObjectId>, ScriptError> {
        let function = format!("function(...all) {{\n{LIBRARY}\nreturn {name}(...all);\n}}");
        let result = self.evaluate(&function, arguments, false, LIMIT).await?;
        Ok(result.get("objectId").and_then(Value::as_str).map(|id| ObjectId(id.to_owned())))
    }

    /// Calls a function that is given as source.
    pub(crate) async fn source<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: Vec<Argument<'_>>,
    ) -> Result<T, ScriptError> {
        let result = self.evaluate(function, arguments, true, LIMIT).await?;
        let value = result.get("value").cloned().unwrap_or(Value::Null);
        Ok(understood("Runtime.callFunctionOn", value)?)
    }

    /// Calls a function that is given as source; answers with the result as the protocol has it.
    pub(crate) async fn evaluate(
        &self,
        function: &str,
        arguments: Vec<Argument<'_>>,
        by_value: bool,
        limit: Duration,
    ) -> Result<Value, ScriptError> {
        let arguments: Vec<Value> = arguments.into_iter().map(Argument::into_json).collect();
        let parameters = json!({
            "functionDeclaration": function, "executionContextId": self.context, "arguments": arguments,
            "returnByValue": by_value, "awaitPromise": true, "userGesture": true,
        });
        let mut answer = self.session.call_within("Runtime.callFunctionOn", parameters, limit).await?;
        if let Some(details) = answer.get("exceptionDetails") {
            let words = details.pointer("/exception/description").and_then(Value::as_str);
            let words = words.or_else(|| details.get("text").and_then(Value::as_str)).unwrap_or("an unknown error");
            return Err(ScriptError::Thrown(words.to_owned()));
        }
        Ok(answer.get_mut("result").map(Value::take).unwrap_or_default())
    }
}

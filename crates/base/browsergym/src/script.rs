//! An action as the calls that it is made of, all of which there are (spec/browser.md 4.1).

use std::collections::HashSet;

use crate::{
    error::ActionError,
    language::{Call, parse},
    operation,
};

/// The words that Python keeps for itself.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// The calls of an action, if it is one that may run: there is at least one, and all functions exist.
pub fn parse_script(text: &str) -> Result<Vec<Call>, ActionError> {
    let calls = parse(text)?;
    if calls.is_empty() {
        return Err(ActionError::value("Received an empty action."));
    }
    if let Some(call) = calls.iter().find(|call| !operation::exists(&call.name)) {
        return Err(ActionError::name(format!("Invalid action type '{}'.", call.name)));
    }
    // The reference makes Python of the calls, in which these names are not possible.
    for (name, _) in calls.iter().flat_map(|call| &call.named) {
        if matches!(name.as_str(), "True" | "False" | "None" | "__debug__") {
            return Err(ActionError::syntax(format!("cannot assign to {name}")));
        }
        if KEYWORDS.contains(&name.as_str()) {
            return Err(ActionError::syntax("invalid syntax"));
        }
    }
    for call in &calls {
        let mut names = HashSet::new();
        if let Some((name, _)) = call.named.iter().find(|(name, _)| !names.insert(name)) {
            return Err(ActionError::syntax(format!("keyword argument repeated: {name}")));
        }
    }
    Ok(calls)
}

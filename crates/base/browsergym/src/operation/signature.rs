//! Arguments meet parameters by Python's rules, with Python's words when they do not fit.

use crate::{
    error::ActionError,
    language::{Call, Literal},
};

/// The arguments of a call, in the order of the parameters.
pub(super) struct Arguments<'a>(Vec<Option<&'a Literal>>);

impl<'a> Arguments<'a> {
    /// The argument for a parameter; nothing if it was left out and has a default.
    pub(super) fn get(&self, place: usize) -> Option<&'a Literal> {
        self.0.get(place).copied().flatten()
    }

    pub(super) fn of(call: &'a Call, required: &[&str], optional: &[&str]) -> Result<Self, ActionError> {
        let wrong = |what: String| Err(ActionError::r#type(format!("{}() {what}", call.name)));
        let parameters: Vec<&str> = required.iter().chain(optional).copied().collect();
        let mut values: Vec<Option<&Literal>> = (0..parameters.len()).map(|place| call.positional.get(place)).collect();
        for (name, value) in &call.named {
            let place = parameters.iter().position(|parameter| parameter == name);
            match place.and_then(|place| values.get_mut(place)) {
                None => return wrong(format!("got an unexpected keyword argument '{name}'")),
                Some(Some(_)) => return wrong(format!("got multiple values for argument '{name}'")),
                Some(empty) => *empty = Some(value),
            }
        }
        if call.positional.len() > parameters.len() {
            return wrong(too_many(call.positional.len(), required.len(), parameters.len()));
        }
        let missing: Vec<String> = required
            .iter()
            .zip(&values)
            .filter(|(_, value)| value.is_none())
            .map(|(parameter, _)| format!("'{parameter}'"))
            .collect();
        if missing.is_empty() {
            return Ok(Self(values));
        }
        // No function requires more than two.
        let plural = if missing.len() == 1 { "" } else { "s" };
        wrong(format!("missing {} required positional argument{plural}: {}", missing.len(), missing.join(" and ")))
    }
}

fn too_many(given: usize, least: usize, most: usize) -> String {
    let (allowed, plural) = if least < most {
        (format!("from {least} to {most}"), "s")
    } else {
        (most.to_string(), if most == 1 { "" } else { "s" })
    };
    let were = if given == 1 { "was" } else { "were" };
    format!("takes {allowed} positional argument{plural} but {given} {were} given")
}

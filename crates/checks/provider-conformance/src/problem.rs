//! Why a check fails.

use std::{error::Error, fmt::Debug};

use gloveport_client::causes;
pub(super) use gloveport_conformance::Problem;
use gloveport_provider::ProviderError;

/// What came of a check.
pub(super) type Found = Result<(), Problem>;

/// Something that must be so.
pub(super) fn must(holds: bool, step: &str, expected: &str, got: &dyn Debug) -> Found {
    if holds { Ok(()) } else { Err(Problem::new(step, expected, format!("{got:?}"))) }
}

/// Two values that must be the same.
pub(super) fn same<T: PartialEq + Debug>(got: &T, expected: &T, step: &str) -> Found {
    must(got == expected, step, &format!("{expected:?}"), got)
}

/// What must have worked.
pub(super) trait At<T> {
    fn at(self, step: &str) -> Result<T, Problem>;
}

impl<T, E: Error + 'static> At<T> for Result<T, E> {
    fn at(self, step: &str) -> Result<T, Problem> {
        self.map_err(|error| Problem::new(step, "success", causes(&error)))
    }
}

/// What must be refused as something that the provider has no support for.
pub(super) fn unsupported<T: Debug>(result: Result<T, ProviderError>, step: &str, name: &str) -> Found {
    match result {
        Err(ProviderError::Unsupported { provider, what }) if provider == name && !what.is_empty() => Ok(()),
        Err(error) => Err(Problem::new(step, "no support for it, with the name of the provider", format!("{error:?}"))),
        Ok(made) => Err(Problem::new(step, "no support for it", format!("{made:?}"))),
    }
}

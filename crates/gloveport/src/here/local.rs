//! The runtime `local`: sandboxes as processes of this machine.

use std::sync::Arc;

use gloveport_provider::{Provider, ProviderContext, ProviderError, Registry};
use gloveport_provider_local::{Local, LocalOptions};

use super::login;
use crate::names::LOCAL;

/// The runtime of commands that name none.
pub(crate) const DEFAULT_RUNTIME: &str = LOCAL;

/// Registers the runtime.
pub(crate) fn register(registry: &mut Registry) {
    registry.register(LOCAL, provider);
}

/// Whether a runtime that is registered can have sandboxes.
pub(crate) const fn can_host(_name: &str) -> bool {
    true
}

fn provider(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(Arc::new(Local::new(options(context)?)?))
}

/// Sandboxes on this machine, which get no more of our variables than a login would give them.
pub(super) fn options(context: &ProviderContext) -> Result<LocalOptions, ProviderError> {
    let mut options = LocalOptions::new(context)?;
    // The key is for the server alone, which keeps it from the tools.
    options.environment.retain(|name, _| login::is_kept(name.as_ref()) || name == "SESSION_API_KEY");
    // What a command started ahead would end with it; the keeper does it.
    options.warm = 0;
    Ok(options)
}

/// The sessions that files of this user tell of; with `also_ended` those that have no sandbox any more, too.
pub(crate) fn sessions(context: &ProviderContext, also_ended: bool) -> Vec<String> {
    let Ok(options) = options(context) else { return Vec::new() };
    gloveport_provider_local::sessions(&options, also_ended).into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_knows_itself_by_the_name_that_is_chosen() {
        assert_eq!(Local::NAME, LOCAL);
    }
}

//! Sandboxes that are started ahead, for whoever comes next.

use crate::{NetworkPolicy, ResourceLimits, SandboxSpec, Workspace};

/// The detail of [`Phase::Creating`](crate::Phase::Creating) that tells that a sandbox is one that was started ahead.
pub const STARTED_AHEAD: &str = "one that was started ahead";

/// The plugin that needs a port of its own, which must be there when a sandbox is made.
const EDITOR: &str = "vscode";

/// Sandboxes that are made alike, and how many of them wait. What else a session wants they are told when it gets one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmKind {
    /// The image; `None` where there are none, or for the provider's default.
    pub image: Option<String>,
    /// How many times the engine's base size (`resource_factor`); `None` for the base.
    pub factor: Option<u32>,
    /// Plugins for which something must be there from the beginning: the port of `vscode`.
    pub plugins: Vec<String>,
    /// So many wait at least.
    pub least: usize,
    /// Those that wait beyond this are ended.
    pub most: usize,
}

impl WarmKind {
    /// The provider's default, of which so many wait at least.
    pub fn any(least: usize) -> Self {
        Self { image: None, factor: None, plugins: Vec::new(), least, most: usize::MAX }
    }

    /// Whether sandboxes of this kind can become what a session wants, as far as no engine is asked.
    pub fn fits(&self, spec: &SandboxSpec) -> bool {
        let ResourceLimits { cpus, memory, disk, processes, factor, gpus } = &spec.limits;
        let has_limits = cpus.is_some() || memory.is_some() || disk.is_some() || processes.is_some() || *gpus;
        let has_own_ways = spec.command.is_some()
            || spec.user.is_some()
            || spec.runtime_class.is_some()
            || spec.network != NetworkPolicy::Full
            || !spec.edge_secrets.is_empty()
            || spec.workspace != Workspace::Temporary
            || !spec.mounts.is_empty()
            || !spec.ports.is_empty();
        spec.warm
            && !has_limits
            && !has_own_ways
            && spec.image == self.image
            && factor.unwrap_or(1) == self.factor.unwrap_or(1)
            && spec.plugins.iter().any(|plugin| plugin == EDITOR) == self.has_editor()
    }

    /// Whether it is the provider's default.
    pub fn is_default(&self) -> bool {
        self.image.is_none() && self.factor.unwrap_or(1) == 1
    }

    /// Whether the editor's port is there.
    pub fn has_editor(&self) -> bool {
        self.plugins.iter().any(|plugin| plugin == EDITOR)
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::Secret;

    use super::*;
    use crate::{EdgeSecret, RunAs, SessionId};

    #[test]
    fn a_kind_fits_what_differs_only_in_what_can_be_told_later() {
        let kind = WarmKind { image: Some("a".to_owned()), ..WarmKind::any(1) };
        let spec = || SandboxSpec { image: Some("a".to_owned()), ..SandboxSpec::new(SessionId::new("s").unwrap()) };
        let limits = |factor| ResourceLimits { factor, ..ResourceLimits::default() };
        let editor = || vec!["vscode".to_owned()];
        let for_host = EdgeSecret { value: Secret::new("a secret"), hosts: vec!["a.test".to_owned()] };
        for (expected, spec) in [
            (true, spec()),
            (
                true,
                SandboxSpec {
                    limits: limits(Some(1)),
                    keep_alive: true,
                    plugins: vec!["jupyter".to_owned()],
                    ..spec()
                },
            ),
            (true, SandboxSpec { environment: [("A".to_owned(), "b".to_owned())].into(), ..spec() }),
            (false, SandboxSpec { image: Some("b".to_owned()), ..spec() }),
            (false, SandboxSpec { image: None, ..spec() }),
            (false, SandboxSpec { limits: limits(Some(2)), ..spec() }),
            (false, SandboxSpec { user: Some(RunAs { user: 1, group: None, files_group: None }), ..spec() }),
            (false, SandboxSpec { plugins: editor(), ..spec() }),
            (false, SandboxSpec { warm: false, ..spec() }),
            (false, SandboxSpec { edge_secrets: [("T".to_owned(), for_host)].into(), ..spec() }),
        ] {
            assert_eq!(kind.fits(&spec), expected, "{spec:?}");
        }
        assert!(WarmKind { plugins: editor(), ..kind }.fits(&SandboxSpec { plugins: editor(), ..spec() }));
    }
}

//! What a backend has of the service.

use gloveport_hosted::{backend::Backend, program::Program};

use crate::{RunloopOptions, control::Control};

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: RunloopOptions,
    pub(crate) control: Control,
    /// What is its own, and what goes on.
    pub(crate) backend: Backend,
    /// The file that is put into sandboxes.
    pub(crate) program: Program,
}

impl Inner {
    pub(crate) fn new(options: RunloopOptions) -> Self {
        Self {
            control: Control::new(&options),
            backend: Backend::new(options.backends.clone()),
            program: Program::new(options.program.clone()),
            options,
        }
    }
}

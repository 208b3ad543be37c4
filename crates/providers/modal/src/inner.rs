//! What a backend has of the service.

use gloveport_hosted::{backend::Backend, program::Program};
use tokio::sync::OnceCell;

use crate::{ModalOptions, control::Control};

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: ModalOptions,
    pub(crate) control: Control,
    /// What is its own, and what goes on.
    pub(crate) backend: Backend,
    /// The file that is put into sandboxes.
    pub(crate) program: Program,
    /// The id of the app, once it was asked for.
    pub(crate) app: OnceCell<String>,
}

impl Inner {
    pub(crate) fn new(options: ModalOptions) -> Self {
        Self {
            control: Control::new(&options),
            backend: Backend::new(options.backends.clone()),
            program: Program::new(options.program.clone()),
            app: OnceCell::new(),
            options,
        }
    }
}

//! How a kernel is started.

use std::path::PathBuf;

use gloveport_sys::Surroundings;

/// How a kernel is started.
#[derive(Debug, Clone)]
pub struct KernelOptions {
    /// As whom, where and with what environment the kernel runs.
    pub surroundings: Surroundings,
    /// Interpreter that the configuration names; without one it is looked for.
    pub interpreter: Option<PathBuf>,
    /// Directory with packages for the kernel, looked at after all others.
    pub packages: Option<PathBuf>,
    /// Cells that run after each start, before any other; what they print is thrown away.
    pub startup: Vec<String>,
    /// Where `ipykernel` is installed if the interpreter has none; below the user's home if nothing is said.
    pub environments: Option<PathBuf>,
    /// Where an image that OpenHands has built keeps the environments of its server, whose Python runs the cells there
    /// (`ipython-and-plugins` 2.1).
    pub image_environments: PathBuf,
    /// Most bytes of text of one cell that are kept: the first half and the last half.
    pub output_limit: usize,
    /// Most bytes of images of one cell; more are left out.
    pub image_limit: usize,
}

impl KernelOptions {
    /// The usual bounds.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            interpreter: None,
            packages: None,
            startup: Vec::new(),
            environments: None,
            image_environments: "/openhands/poetry".into(),
            output_limit: 16 * 1024 * 1024,
            image_limit: 64 * 1024 * 1024,
        }
    }
}

//! What can be set on the face.

use std::{collections::BTreeMap, time::Duration};

/// The template that the SDK takes if none is named.
const BASE: &str = "base";
/// The template of the SDK for code.
const INTERPRETER: &str = "code-interpreter-v1";

/// What can be set on the face.
#[derive(Clone, Debug)]
pub struct FaceOptions {
    /// What sandboxes are made from, by the names that clients use. Other names are those of images, where the runtime has
    /// images.
    pub templates: BTreeMap<String, Template>,
    /// The domain at whose sub-domains clients find sandboxes, if they do.
    pub domain: Option<String>,
    /// How long a sandbox runs at most without a pause.
    pub longest: Duration,
    /// What is told of the size of sandboxes whose template says nothing: processors.
    pub cpus: u32,
    /// The same: memory in MiB.
    pub memory_mib: u64,
}

/// What sandboxes are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The image; none is the default of the runtime.
    pub image: Option<String>,
    /// It has kernels for the code interpreter.
    pub code_interpreter: bool,
}

impl Default for FaceOptions {
    /// The two templates that the SDKs name by themselves, both from the default image.
    fn default() -> Self {
        let interpreter = Template { image: None, code_interpreter: true };
        Self {
            templates: [(BASE.to_owned(), Template::default()), (INTERPRETER.to_owned(), interpreter)].into(),
            domain: None,
            longest: Duration::from_hours(24),
            cpus: 1,
            memory_mib: 4096,
        }
    }
}

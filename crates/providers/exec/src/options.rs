//! Which program, with which variables.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_platform::find_program;
use gloveport_provider::{Provider, ProviderContext, ProviderError, Registry, backend};

use crate::Exec;

/// What the name of a program in `PATH` begins with.
const PREFIX: &str = "gloveport-provider-";

/// Which program, with which variables.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// The name under which the provider is known.
    pub name: String,
    /// The program. Absolute.
    pub program: PathBuf,
    /// Our own binary, which the program starts or puts into its sandboxes.
    pub server: PathBuf,
    /// The variables of the backend, of which the program gets those that it may have.
    pub environment: BTreeMap<String, String>,
    /// Where the files are that tell which backends live.
    pub backends: PathBuf,
}

impl ExecOptions {
    /// For the program at this path, or in `PATH` if it has no slash, as `exec:PROGRAM`.
    pub fn new(program: &str, context: &ProviderContext) -> Result<Self, ProviderError> {
        let found = if program.contains('/') {
            let absolute = std::path::absolute(program);
            absolute.map_err(|source| ProviderError::File { action: "find", path: program.into(), source })?
        } else {
            let missing = || ProviderError::File {
                action: "find in PATH",
                path: program.into(),
                source: std::io::ErrorKind::NotFound.into(),
            };
            in_path(program, context).ok_or_else(missing)?
        };
        Ok(Self::named(format!("exec:{}", found.display()), found, context))
    }

    fn named(name: String, program: PathBuf, context: &ProviderContext) -> Self {
        Self {
            name,
            program,
            server: context.program.clone(),
            environment: context.environment.clone(),
            backends: backend::directory(&context.environment),
        }
    }
}

fn in_path(program: &str, context: &ProviderContext) -> Option<PathBuf> {
    let path = context.environment.get("PATH")?;
    std::path::absolute(find_program(program, path, Path::new("."))?).ok()
}

/// Registers `exec:PROGRAM`, and programs called `gloveport-provider-NAME` in `PATH` as `NAME`.
pub fn register(registry: &mut Registry) {
    registry.register("exec", |context| {
        let Some(program) = context.argument.as_deref().filter(|program| !program.is_empty()) else {
            let known = vec!["exec:/path/to/program".to_owned()];
            return Err(ProviderError::UnknownProvider { name: "exec".to_owned(), known });
        };
        Ok(Arc::new(Exec::start(ExecOptions::new(program, context)?)?) as Arc<dyn Provider>)
    });
    registry.register_fallback(|name, context| {
        if name.is_empty() || name.contains('/') || context.argument.is_some() {
            return Ok(None);
        }
        let Some(program) = in_path(&format!("{PREFIX}{name}"), context) else { return Ok(None) };
        let options = ExecOptions::named(name.to_owned(), program, context);
        Ok(Some(Arc::new(Exec::start(options)?) as Arc<dyn Provider>))
    });
}

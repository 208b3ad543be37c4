//! Removes what nobody wants any more, and says who uses what.

use std::{fs, io, path::Path, time::SystemTime};

use gloveport_provider::{GcOptions, GcReport, ProviderError, Removed, SandboxId};

use crate::{
    backend, delete, fault, lock,
    provider::Inner,
    record::Record,
    state::{self, HOLDERS},
    steps::Step,
    view,
};

impl Inner {
    pub(crate) fn collect_garbage(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        for id in view::ids(&self.state)? {
            match self.collect_sandbox(&id, options) {
                Ok(removed) => report.removed.extend(removed),
                Err(error) => report.failed.push(error.to_string()),
            }
        }
        self.collect_servers(options, &mut report)?;
        for name in state::names(&self.state.old())? {
            let path = self.state.old().join(name);
            let removed = if options.dry_run { Ok(()) } else { delete::remove_old(&self.removal(), &path) };
            told(&mut report, &path, "its removal was cut off", removed);
        }
        if !options.dry_run {
            for name in state::names(&self.state.backends())? {
                if let Err(error) = backend::bury(&self.state, &name)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    report.failed.push(format!("the lock of the dead backend {name} cannot be removed: {error}"));
                }
            }
        }
        Ok(report)
    }

    fn collect_sandbox(&self, id: &SandboxId, options: &GcOptions) -> Result<Option<Removed>, ProviderError> {
        let directory = self.state.sandbox(id);
        // Nobody begins to use it from here on.
        let gate = lock::wait_lock(&directory.join(HOLDERS)).ok();
        let record = Record::read(&directory);
        let reason = match &record {
            Ok(Some(record)) => self.why_garbage(&directory, record, options),
            // It was removed meanwhile, or its removal was cut off before it lost its name.
            Ok(None) => directory.exists().then_some("nothing is known about it"),
            Err(_) if view::is_locked(&directory) => return record.map(|_| None),
            Err(_) => Some("nothing is known about it"),
        };
        let Some(reason) = reason else { return Ok(None) };
        if !options.dry_run {
            delete::end_and_remove(&self.removal(), &directory)?;
        }
        drop(gate);
        let session_id = record.ok().flatten().map(|record| record.session_id);
        Ok(Some(Removed { id: Some(id.clone()), session_id, path: Some(directory), reason: reason.to_owned() }))
    }

    fn why_garbage(&self, directory: &Path, record: &Record, options: &GcOptions) -> Option<&'static str> {
        if !record.server.is_alive() || !view::is_locked(directory) {
            return Some("it has ended");
        }
        if record.expires.is_some_and(|expires| expires <= SystemTime::now()) {
            return Some("its time is over");
        }
        if !record.keep_alive {
            return (!backend::lives(&self.state, &record.backend)).then_some("its backend has died");
        }
        let holders = view::holders(directory);
        if holders.iter().any(|holder| backend::lives(&self.state, holder)) {
            None
        } else if !holders.is_empty() {
            Some("its backend has died")
        } else {
            options.all.then_some("no living backend holds it")
        }
    }

    /// Servers of dead backends that never had a session.
    fn collect_servers(&self, options: &GcOptions, report: &mut GcReport) -> Result<(), ProviderError> {
        for name in state::names(&self.state.servers())? {
            let backend = name.split('.').next().unwrap_or_default();
            if backend::lives(&self.state, backend) {
                continue;
            }
            let path = self.state.servers().join(&name);
            let removed =
                if options.dry_run { Ok(()) } else { delete::end_and_remove(&self.removal(), &path).map(drop) };
            told(report, &path, "its backend has died", removed);
        }
        Ok(())
    }

    /// This backend uses a kept sandbox from now on.
    pub(crate) fn hold(&self, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        self.state.prepare()?;
        self.backend.appear(&self.state)?;
        let directory = self.state.sandbox(id);
        let record = Record::read(&directory)?.ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        if !record.keep_alive {
            // It belongs to the backend that made it.
            return Ok(());
        }
        let holders = directory.join(HOLDERS);
        let gate = match lock::wait_lock(&holders) {
            Ok(gate) => gate,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ProviderError::NotFound(id.clone())),
            Err(error) => return Err(fault::file("lock", &holders)(error)),
        };
        if !lock::is_at(&gate, &holders) {
            return Err(ProviderError::NotFound(id.clone()));
        }
        let holder = holders.join(self.backend.name());
        fs::write(&holder, "").map_err(fault::file("write", &holder))?;
        self.holds(id.clone());
        self.options.observer.tell(Step::Held);
        Ok(())
    }

    /// This backend no longer uses a kept sandbox.
    pub(crate) fn release(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let holder = self.state.sandbox(id).join(HOLDERS).join(self.backend.name());
        match fs::remove_file(&holder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault::file("remove", &holder)(error)),
            _ => {
                self.options.observer.tell(Step::Released);
                Ok(())
            }
        }
    }
}

fn told(report: &mut GcReport, path: &Path, reason: &str, removed: Result<(), ProviderError>) {
    match removed {
        Ok(()) => report.removed.push(Removed {
            id: None,
            session_id: None,
            path: Some(path.to_owned()),
            reason: reason.to_owned(),
        }),
        Err(error) => report.failed.push(error.to_string()),
    }
}

//! `sandbox.json`: what the operating system cannot tell about a sandbox.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use gloveport_contract::local::directory::RecordedWorkspace;
use gloveport_protocol::Secret;
use gloveport_provider::{ProviderError, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    fault,
    fault::engine,
    server::ServerProcess,
    state::{self, VERSION},
};

/// What a sandbox is. It never changes after the sandbox has its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    pub(crate) session_id: SessionId,
    /// The backend that made it.
    pub(crate) backend: String,
    pub(crate) server: ServerProcess,
    /// What all its processes have in their environment ([`mark`](gloveport_sys::mark)).
    #[serde(default)]
    pub(crate) mark: Option<String>,
    pub(crate) url: String,
    pub(crate) urls: BTreeMap<String, String>,
    /// The file is for this user alone.
    #[serde(serialize_with = "plain")]
    pub(crate) session_key: Secret,
    pub(crate) labels: BTreeMap<String, String>,
    /// Where tools work, which the server reads as well.
    #[serde(flatten)]
    pub(crate) at: RecordedWorkspace,
    pub(crate) keep_alive: bool,
    #[serde(with = "seconds")]
    pub(crate) created: SystemTime,
    #[serde(with = "optional_seconds")]
    pub(crate) expires: Option<SystemTime>,
}

impl Record {
    /// Reads the record of a directory; `None` if there is none.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, ProviderError> {
        let path = directory.join(state::RECORD);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault::file("read", &path)(error)),
        };
        let refused = |reason: String| {
            let hint = "another version of gloveport wrote it, or someone changed it; remove its directory";
            engine(format!("understand {}", path.display()), format!("{reason}; {hint}"))
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        if record.version == VERSION {
            Ok(Some(record))
        } else {
            Err(refused(format!("it has the form {}, and not {VERSION}", record.version)))
        }
    }

    /// Writes the record into a directory that nobody else looks into yet.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), ProviderError> {
        let path = directory.join(state::RECORD);
        let text = serde_json::to_vec_pretty(self).map_err(|error| engine("describe the sandbox", error))?;
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(&text)
        };
        write().map_err(fault::file("write", &path))
    }
}

fn plain<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn to_seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn from_seconds<E: serde::de::Error>(seconds: f64) -> Result<SystemTime, E> {
    let since = Duration::try_from_secs_f64(seconds).map_err(E::custom)?;
    SystemTime::UNIX_EPOCH.checked_add(since).ok_or_else(|| E::custom("the time is too far away"))
}

mod seconds {
    use super::{Deserialize as _, Deserializer, Serializer, SystemTime, from_seconds, to_seconds};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(to_seconds(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        from_seconds(f64::deserialize(deserializer)?)
    }
}

mod optional_seconds {
    use super::{Deserialize as _, Deserializer, Serialize as _, Serializer, SystemTime, from_seconds, to_seconds};

    #[expect(clippy::ref_option, reason = "the form in which serde calls it")]
    pub(super) fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(to_seconds).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SystemTime>, D::Error> {
        Option::<f64>::deserialize(deserializer)?.map(from_seconds).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `sandbox.json` was written when it got its form.
    const WRITTEN: &str = r#"{
  "version": 1,
  "session_id": "old1",
  "backend": "152adca6156f7b7659042683e1474ed5",
  "server": {
    "pid": 16251,
    "start_ticks": 5865958
  },
  "mark": "152adca6156f7b7659042683e1474ed5.0",
  "url": "http://127.0.0.1:36549",
  "urls": {
    "work-1": "http://localhost:60009",
    "work-2": "http://localhost:34021"
  },
  "session_key": "key",
  "labels": {},
  "workspace": "/tmp/openhands_workspace_old1",
  "temporary": true,
  "keep_alive": true,
  "created": 1795388250.70796,
  "expires": null
}"#;

    #[test]
    fn a_record_is_read_and_written_in_the_form_that_other_versions_know() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(state::RECORD), WRITTEN).unwrap();
        let record = Record::read(directory.path()).unwrap().unwrap();
        assert_eq!(record.at.workspace, Path::new("/tmp/openhands_workspace_old1"));
        assert!(record.at.temporary && record.keep_alive);
        let again = tempfile::tempdir().unwrap();
        record.write(again.path()).unwrap();
        assert_eq!(fs::read_to_string(again.path().join(state::RECORD)).unwrap(), WRITTEN);
        // The server of a sandbox reads its part.
        assert_eq!(RecordedWorkspace::read(again.path()).unwrap(), Some(record.at));
    }
}

//! What is known of a sandbox that was started ahead: labels of a container never change, so they are those of a volume, which is
//! named after the container and made when a session gets it.

use std::{collections::HashMap, time::SystemTime};

use bollard::models::{ContainerInspectResponse, VolumeCreateRequest};
use bollard::query_parameters::RemoveVolumeOptions;
use gloveport_docker_engine::EngineError;
use gloveport_provider::{ProviderError, SandboxSpec, Settings, container::KEY};
use serde::{Deserialize, Serialize};

use crate::{
    fault::{self, failed},
    inner::Inner,
    names::{self, CLAIM_ROLE, RECORD_PREFIX, ROLE, WARM},
};

/// The label with the record.
const RECORD: &str = "gloveport.record";

/// The record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    session: String,
    key: String,
    labels: HashMap<String, String>,
    created: f64,
    expires: Option<f64>,
    settings: String,
}

impl Record {
    pub(crate) fn new(spec: &SandboxSpec, key: &str) -> Result<Self, ProviderError> {
        let now = SystemTime::now();
        let settings =
            serde_json::to_string(&Settings::of(spec)).map_err(|error| failed("be told the labels", error))?;
        Ok(Self {
            session: spec.session_id.to_string(),
            key: key.to_owned(),
            labels: spec.labels.clone().into_iter().collect(),
            created: names::seconds(now),
            expires: spec.time_to_live.and_then(|time| now.checked_add(time)).map(names::seconds),
            settings,
        })
    }

    /// The container, as if it had been made for its session.
    fn apply(self, found: &mut ContainerInspectResponse) {
        let Some(config) = &mut found.config else { return };
        let labels = config.labels.get_or_insert_default();
        // As in images of forks, an empty one is none.
        labels.insert(ROLE.to_owned(), String::new());
        let named: Vec<&String> = self.labels.keys().collect();
        let named = serde_json::to_string(&named).unwrap_or_default();
        labels.extend([
            (names::SESSION.to_owned(), self.session),
            (names::CREATED.to_owned(), self.created.to_string()),
            (names::SETTINGS.to_owned(), self.settings),
            (names::LABELS.to_owned(), named),
            (names::RECORDED.to_owned(), true.to_string()),
        ]);
        labels.extend(self.expires.map(|expires| (names::EXPIRES.to_owned(), expires.to_string())));
        labels.extend(self.labels);
        let variables = config.env.get_or_insert_default();
        variables.retain(|variable| variable.split_once('=').is_none_or(|(name, _)| name != KEY));
        variables.push(format!("{KEY}={}", self.key));
    }
}

/// Whether a container was started ahead.
pub(crate) fn was_warm(found: &ContainerInspectResponse) -> bool {
    let labels = found.config.as_ref().and_then(|config| config.labels.as_ref());
    labels.and_then(|labels| labels.get(ROLE)).is_some_and(|role| role == WARM)
}

impl Inner {
    /// Writes what is known of a container that becomes a session's.
    pub(crate) async fn record(&self, engine_id: &str, record: &Record) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let text = serde_json::to_string(record).map_err(|error| failed("be told a record", error))?;
        let labels = [(ROLE, CLAIM_ROLE.to_owned()), (names::BACKEND, self.holders.label()?), (RECORD, text)]
            .map(|(name, value)| (name.to_owned(), value));
        let name = format!("{RECORD_PREFIX}{engine_id}");
        let wanted =
            VolumeCreateRequest { name: Some(name), labels: Some(labels.into()), ..VolumeCreateRequest::default() };
        self.engine.ask("make the record of a sandbox", docker.create_volume(wanted)).await.map(drop).map_err(fault::of)
    }

    /// Adds to a container that was started ahead what is known of it since a session has it.
    pub(crate) async fn complete(&self, found: &mut ContainerInspectResponse) -> Result<(), ProviderError> {
        if !was_warm(found) {
            return Ok(());
        }
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = format!("{RECORD_PREFIX}{}", found.id.as_deref().unwrap_or_default());
        match self.engine.ask("look at the record of a sandbox", docker.inspect_volume(&name)).await {
            Ok(volume) => {
                let record = volume.labels.get(RECORD).and_then(|text| serde_json::from_str::<Record>(text).ok());
                if let Some(record) = record {
                    record.apply(found);
                }
                Ok(())
            }
            // Nobody has it, or it is just being removed.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(fault::of(error)),
        }
    }

    /// Removes what is known of a container that is gone.
    pub(crate) async fn forget_record(&self, engine_id: &str) -> Result<(), ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let name = format!("{RECORD_PREFIX}{engine_id}");
        let removed = self
            .engine
            .ask("remove the record of a sandbox", docker.remove_volume(&name, None::<RemoveVolumeOptions>))
            .await;
        removed.or_else(|error: EngineError| if error.is_not_found() { Ok(()) } else { Err(fault::of(error)) })
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerConfig;
    use gloveport_provider::SessionId;

    use super::*;

    #[test]
    fn a_container_with_a_record_looks_as_if_it_had_been_made_for_its_session() {
        let labels = [(ROLE, WARM), (names::CREATED, "1"), (names::KEEP, "true")];
        let config = ContainerConfig {
            labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            env: Some(vec![format!("{KEY}=first"), "port=60000".to_owned()]),
            ..ContainerConfig::default()
        };
        let mut found = ContainerInspectResponse { config: Some(config), ..ContainerInspectResponse::default() };
        assert!(was_warm(&found));
        let spec = SandboxSpec {
            labels: [("a".to_owned(), "b".to_owned())].into(),
            ..SandboxSpec::new(SessionId::new("s").unwrap())
        };
        let text = serde_json::to_string(&Record::new(&spec, "second").unwrap()).unwrap();
        serde_json::from_str::<Record>(&text).unwrap().apply(&mut found);
        assert!(!was_warm(&found));
        let config = found.config.unwrap();
        assert_eq!(config.env.unwrap(), ["port=60000".to_owned(), format!("{KEY}=second")]);
        let labels = config.labels.unwrap();
        let label = |name: &str| labels.get(name).map(String::as_str);
        assert_eq!((label(names::SESSION), label("a"), label(names::LABELS)), (Some("s"), Some("b"), Some("[\"a\"]")));
        assert_ne!(label(names::CREATED), Some("1"));
    }
}

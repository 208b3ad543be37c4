//! What is made once and found by its name: our program, blueprints of images, network policies.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use gloveport_hosted::{
    fault::wrong,
    service::{Again, Request},
    settings::is_safe,
};
use gloveport_provider::{NetworkPolicy, ProviderError};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use crate::{
    control::{Control, encoded},
    inner::Inner,
    wire::{Blueprint, Blueprints, Object, Objects, Policies, Policy},
};

/// How long our program stays stored. Its sandboxes have a copy.
const STORED: Duration = Duration::from_hours(30 * 24);
/// One that is deleted sooner than this is stored again.
const SOON: Duration = Duration::from_hours(24);
/// How long the program may be on its way.
const UPLOAD: Duration = Duration::from_mins(10);
/// First and longest pause before a blueprint that is built is looked at again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The first digits of a digest, enough for a name.
fn short(text: &str) -> String {
    let digest = gloveport_ids::hex(&Sha256::digest(text));
    digest.get(..16).unwrap_or(&digest).to_owned()
}

impl Inner {
    /// The object with our program. It is stored the first time.
    pub(crate) async fn program_object(&self) -> Result<String, ProviderError> {
        let (control, action) = (&self.control, "store our program");
        let digest = self.program.digest().await?;
        let name = format!("gloveport-{digest}");
        let path = format!("/v1/objects?name={}&state=READ_ONLY&limit=100", encoded(&name));
        let found: Objects = control.ask("look for our program", &control.request(Method::GET, &path)?).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + SOON;
        let stays = |object: &Object| {
            object.state == "READ_ONLY" && object.delete_after_time_ms.is_none_or(|at| Duration::from_millis(at) > now)
        };
        if let Some(object) = found.objects.into_iter().find(stays) {
            return Ok(object.id);
        }
        let content = Bytes::from(self.program.read().await?);
        let body = json!({
            "name": name, "content_type": "binary", "metadata": {"sha256": digest},
            "ttl_ms": u64::try_from(STORED.as_millis()).unwrap_or(u64::MAX),
        });
        let made: Object = control.ask(action, &control.post(action, "/v1/objects", &body)?).await?;
        control.upload(action, &made, content).await?;
        let path = format!("/v1/objects/{}/complete", encoded(&made.id));
        control.ask::<Value>(action, &control.post(action, &path, &json!({}))?).await?;
        Ok(made.id)
    }

    /// The blueprint of an image of a registry. It is built the first time.
    pub(crate) async fn blueprint_of(&self, image: &str) -> Result<String, ProviderError> {
        let (control, action) = (&self.control, "build a blueprint");
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        if image.is_empty() || !image.bytes().all(allowed) {
            return Err(wrong("image", format!("`{image}` is no image of a registry")));
        }
        let name = format!("gloveport-image-{}", short(image));
        let path = format!("/v1/blueprints?name={name}&limit=100&include_total_count=false");
        let found: Blueprints = control.ask("look for a blueprint", &control.request(Method::GET, &path)?).await?;
        let mut ours: Vec<Blueprint> =
            found.blueprints.into_iter().filter(|one| one.name == name && one.status != "failed").collect();
        // One that is ready, else the newest that is on its way.
        ours.sort_by_key(|one| (one.status == "build_complete", one.create_time_ms));
        let mut blueprint = if let Some(blueprint) = ours.pop() {
            blueprint
        } else {
            let body = json!({"name": name, "dockerfile": format!("FROM {image}\n")});
            control.ask(action, &control.post(action, "/v1/blueprints", &body)?).await?
        };
        let (began, limit, mut pause) = (Instant::now(), self.options.build_within, PAUSES.0);
        loop {
            match blueprint.status.as_str() {
                "build_complete" => return Ok(blueprint.id),
                "failed" => {
                    let reason = blueprint.failure_reason.unwrap_or_default();
                    let hint = format!("look at the log of blueprint {} on the dashboard", blueprint.id);
                    return Err(wrong("image", format!("Runloop could not build `{image}` ({reason}); {hint}")));
                }
                _ if began.elapsed() >= limit => {
                    let action = format!("waiting for Runloop to build `{image}`");
                    return Err(ProviderError::Timeout { action, limit });
                }
                _ => sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSES.1);
            let path = format!("/v1/blueprints/{}", encoded(&blueprint.id));
            blueprint = control.ask(action, &control.request(Method::GET, &path)?).await?;
        }
    }

    /// The network policy with these rules; none for no rules. It is named after them, and made the first time.
    pub(crate) async fn policy_of(&self, network: &NetworkPolicy) -> Result<Option<String>, ProviderError> {
        let (control, action) = (&self.control, "make a network policy");
        let (hosts, networks) = match network {
            NetworkPolicy::Full => return Ok(None),
            NetworkPolicy::None => (Vec::new(), Vec::new()),
            NetworkPolicy::Only(rules) => rules_of(rules)?,
        };
        let name = format!("gloveport-network-{}", short(&format!("{hosts:?} {networks:?}")));
        let path = format!("/v1/network-policies?name={name}&limit=100&include_total_count=false");
        let found: Policies = control.ask("look for a network policy", &control.request(Method::GET, &path)?).await?;
        if let Some(policy) = found.network_policies.into_iter().find(|policy| policy.name == name) {
            return Ok(Some(policy.id));
        }
        let networks: Vec<Value> = networks.into_iter().map(|network| json!({"cidr": network})).collect();
        let body = json!({"name": name, "allow_all": false, "allowed_hostnames": hosts, "allowed_cidrs": networks});
        let made: Policy = control.ask(action, &control.post(action, "/v1/network-policies", &body)?).await?;
        Ok(Some(made.id))
    }
}

impl Control {
    /// Brings an object to where the service wants it. That is another service, which gets no key.
    async fn upload(&self, action: &str, object: &Object, content: Bytes) -> Result<(), ProviderError> {
        let no_url = || self.service.failed(action, "it does not say where to");
        let url = object.upload_url.clone().ok_or_else(no_url)?;
        // The signature of such a URL is in its query.
        if !is_safe(url.split('?').next().unwrap_or_default()) {
            return Err(self.service.failed(action, "it says so in a URL without TLS"));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in object.upload_headers.iter().flatten() {
            let name = name.parse::<HeaderName>().map_err(|error| self.service.failed(action, error))?;
            headers.insert(name, HeaderValue::from_str(value).map_err(|error| self.service.failed(action, error))?);
        }
        let request = Request { method: Method::PUT, url, headers, body: content, again: Again::Always, limit: UPLOAD };
        let answer = self.service.ask(action, &request).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(self.service.failed(action, format!("its store answers with status {}", answer.status)))
    }
}

/// Hosts and networks of rules.
fn rules_of(rules: &[String]) -> Result<(Vec<String>, Vec<String>), ProviderError> {
    let (mut hosts, mut networks) = (Vec::new(), Vec::new());
    for rule in rules {
        let (address, length) = rule.split_once('/').unwrap_or((rule, "32"));
        if address.parse::<Ipv4Addr>().is_ok() && length.parse::<u8>().is_ok_and(|length| length <= 32) {
            networks.push(format!("{address}/{length}"));
        } else if rule.contains([':', '/']) {
            let reason = format!("Runloop lets through hosts and IPv4 networks, without ports; `{rule}` is none");
            return Err(wrong("network", reason));
        } else {
            hosts.push(rule.clone());
        }
    }
    hosts.sort();
    networks.sort();
    Ok((hosts, networks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_hosts_and_networks_of_ipv4_and_ports_are_refused() {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let told = rules_of(&texts(&["pypi.org", "*.npmjs.org", "10.0.0.0/8", "1.2.3.4"])).unwrap();
        assert_eq!(told, (texts(&["*.npmjs.org", "pypi.org"]), texts(&["1.2.3.4/32", "10.0.0.0/8"])));
        for rule in ["pypi.org:443", "10.0.0.0/33", "::1", "fd00::/8", "10.0.0.0/8:443"] {
            let error = rules_of(&texts(&[rule])).unwrap_err().to_string();
            assert!(error.contains("without ports"), "{rule}: {error}");
        }
    }
}

//! Errors of the cluster as errors of a provider.

use std::{fmt::Display, time::Duration};

use gloveport_provider::ProviderError;
use kube::Error;

use crate::names::AGENT_SANDBOX;

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "kubernetes";
/// What messages call it.
pub(crate) const CLUSTER: &str = "the Kubernetes cluster";

/// How often a request is sent again that the API server has failed at.
const FAULTS: u32 = 3;

/// Most characters that are told of what the cluster says.
const LONGEST: usize = 2000;

/// An error that is not the cluster's own.
pub(crate) fn failed(action: impl Into<String>, reason: impl Display) -> ProviderError {
    ProviderError::Engine { engine: CLUSTER.to_owned(), action: action.into(), reason: cut(&reason.to_string()) }
}

pub(crate) fn wrong(field: impl Into<String>, reason: impl Display) -> ProviderError {
    ProviderError::Spec { field: field.into(), reason: reason.to_string() }
}

/// What is told when the caller gave up.
pub(crate) fn given_up() -> ProviderError {
    failed("make a sandbox", "nobody waits for it any more")
}

/// The status of the answer, if there was one.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// How long to wait before the same request may be answered; none if it never will.
pub(crate) fn retry_after(error: &Error, tries: u32) -> Option<Duration> {
    let pause = Duration::from_millis(100) * 2_u32.saturating_pow(tries.min(5));
    match error {
        Error::Api(status) => match status.code {
            // A fault of the server itself, which may be the answer to this very request.
            500 if tries >= FAULTS => None,
            429 | 500 | 502..=504 => {
                let told = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                let told = Duration::from_secs(u64::from(told.min(30)));
                Some(told.max(pause))
            }
            _ => None,
        },
        Error::Service(_) | Error::HyperError(_) | Error::ReadEvents(_) => Some(pause),
        _ => None,
    }
}

/// An error of a request, which was to do this.
pub(crate) fn of(error: Error, action: &str, place: &str) -> ProviderError {
    match error {
        Error::Api(status) => of_status(status.code, &status.reason, &status.message, action, place),
        Error::Service(source) => ProviderError::Unreachable {
            engine: format!("{CLUSTER} at {place}"),
            source: chain(&*source).into(),
            hint: "check that its API server runs, and the address in your kubeconfig (`kubectl cluster-info`)"
                .to_owned(),
        },
        Error::HyperError(source) => ProviderError::Unreachable {
            engine: format!("{CLUSTER} at {place}"),
            source: chain(&source).into(),
            hint: "the connection broke; try again".to_owned(),
        },
        Error::Auth(source) => ProviderError::Access {
            engine: format!("{CLUSTER} at {place}"),
            reason: chain(&source),
            hint: "log in again, or check the user in your kubeconfig".to_owned(),
        },
        other => failed(action, chain(&other)),
    }
}

fn of_status(code: u16, reason: &str, message: &str, action: &str, place: &str) -> ProviderError {
    let engine = || format!("{CLUSTER} at {place}");
    match code {
        401 => ProviderError::Access {
            engine: engine(),
            reason: cut(message),
            hint: "log in again, or check the user in your kubeconfig".to_owned(),
        },
        403 if message.contains("exceeded quota") || message.contains("failed quota") => {
            failed(action, format!("{message}; delete sandboxes that nobody needs, or have the quota raised"))
        }
        403 if message.contains("violates PodSecurity") => failed(
            action,
            format!(
                "{message}; set `pod_security = \"restricted\"` in [extended.kubernetes], or use another namespace"
            ),
        ),
        403 if message.contains("is being terminated") => {
            failed(action, format!("{message}; wait until the namespace is gone, or use another one"))
        }
        403 if message.contains(AGENT_SANDBOX) => ProviderError::Access {
            engine: engine(),
            reason: cut(message),
            hint: "give this user the rights of the component agent-sandbox in deploy/kubernetes".to_owned(),
        },
        403 => ProviderError::Access {
            engine: engine(),
            reason: cut(message),
            hint: "give this user the role of deploy/kubernetes; docs/kubernetes.md says what each right is for"
                .to_owned(),
        },
        404 if reason == "NotFound" && message.starts_with("namespaces ") => {
            failed(action, format!("{message}; make it (`kubectl create namespace …`), or set `kubernetes.namespace`"))
        }
        429 | 503 => ProviderError::Unreachable {
            engine: engine(),
            source: cut(message).into(),
            hint: "it has too much to do; try again later".to_owned(),
        },
        _ => failed(action, message),
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let cause = source.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = source.source();
    }
    cut(&text)
}

/// What the cluster says can be of any length, and may bring what a terminal would obey.
pub(crate) fn cut(text: &str) -> String {
    let printable = text.trim_end().chars().filter(|letter| !letter.is_control() || *letter == '\n');
    printable.take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_to_do() {
        for (code, reason, message, expected) in [
            (401, "Unauthorized", "Unauthorized", "log in again"),
            (
                403,
                "Forbidden",
                "pods is forbidden: User \"u\" cannot create",
                "docs/kubernetes.md says what each right",
            ),
            (
                403,
                "Forbidden",
                "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1",
                "have the quota raised",
            ),
            (403, "Forbidden", "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\"", "pod_security"),
            (404, "NotFound", "namespaces \"n\" not found", "kubectl create namespace"),
            (429, "TooManyRequests", "too many", "try again later"),
            (422, "Invalid", "Pod \"p\" is invalid: spec.x", "could not create the pod: Pod \"p\" is invalid"),
        ] {
            let error = of_status(code, reason, message, "create the pod", "https://c");
            let text = error.to_string();
            assert!(text.contains(expected), "{text}");
            assert_eq!(error.is_temporary(), code == 429, "{text}");
        }
    }

    #[test]
    fn what_the_cluster_says_is_cut_and_without_control_characters() {
        let text = failed("x", format!("a\u{1b}[2Jb\n{}", "c".repeat(10_000))).to_string();
        assert!(text.contains("a[2Jb\n") && text.len() < 2200, "{text}");
    }
}

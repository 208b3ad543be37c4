//! What a tenant may ask for: images, classes, sizes and times.

use std::time::Duration;

use gloveport_gateway_store::{Limits, Quota, Refusal, Tenant};
use gloveport_provider::SandboxSpec;
use http::StatusCode;

use crate::fault::Fault;

/// What a request asks for, as it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) image: Option<String>,
    pub(crate) class: Option<String>,
    /// How many times the base size it is.
    pub(crate) factor: u32,
    /// Processors in thousandths, and memory in bytes, where they are not as many times the base size.
    pub(crate) amounts: Option<(u64, u64)>,
}

fn refused(detail: String) -> Fault {
    Fault::new(StatusCode::FORBIDDEN, detail)
}

/// Refuses what the tenant may not ask for, and sets the times that it must keep.
/// Its own images a tenant may always use; whether this is one says `is_own`.
pub(crate) fn apply(
    tenant: &Tenant,
    asked: &Asked,
    (has_images, is_own): (bool, bool),
    spec: &mut SandboxSpec,
) -> Result<(), Fault> {
    let Limits { images, classes, largest_factor, longest_life, longest_idle, .. } = &tenant.limits;
    if let Some(patterns) = images {
        let is_allowed = |image: &str| patterns.iter().any(|pattern| matches(pattern, image));
        let list = || if patterns.is_empty() { "none".to_owned() } else { patterns.join(", ") };
        match asked.image.as_deref().filter(|image| !image.is_empty()) {
            Some(image) if !is_own && !is_allowed(image) => {
                let image: String = image.chars().take(256).collect();
                return Err(refused(format!("the tenant may not use the image `{image}`; it may use: {}", list())));
            }
            None if has_images => {
                return Err(refused(format!("the tenant must name an image; it may use: {}", list())));
            }
            Some(_) | None => {}
        }
    }
    if let (Some(classes), Some(class)) = (classes, asked.class.as_deref().filter(|class| !class.is_empty()))
        && !classes.iter().any(|allowed| allowed == class)
    {
        let class: String = class.chars().take(256).collect();
        let list = if classes.is_empty() { "none but the usual one".to_owned() } else { classes.join(", ") };
        return Err(refused(format!("the tenant may not use the runtime class `{class}`; it may use: {list}")));
    }
    if let Some(largest) = largest_factor
        && u64::from(asked.factor) > *largest
    {
        return Err(refused(format!(
            "the tenant may use a resource factor of {largest} at most, not {}",
            asked.factor
        )));
    }
    let shorter = |limit: &Option<u64>, set: Option<Duration>| {
        let limit = limit.map(Duration::from_secs);
        limit.into_iter().chain(set).min()
    };
    spec.time_to_live = shorter(longest_life, spec.time_to_live);
    spec.idle_stop = shorter(longest_idle, spec.idle_stop);
    Ok(())
}

/// Whether a tenant may use an image that is nobody's own.
pub(crate) fn allows(tenant: &Tenant, image: &str) -> bool {
    tenant.limits.images.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, image)))
}

/// The answer to who has used up a quota.
pub(crate) fn used_up(refusal: &Refusal) -> Fault {
    if refusal.quota == Quota::Snapshots {
        // Time alone gives no room.
        return refused(format!("a quota is used up: {refusal}; delete one first")).called("quota_exceeded");
    }
    if refusal.is_final() {
        return refused(format!("the sandbox is larger than the tenant's quota: {refusal}")).called("quota_exceeded");
    }
    Fault::new(StatusCode::TOO_MANY_REQUESTS, format!("a quota is used up: {refusal}; try it again later"))
        .called("quota_exceeded")
        .after(refusal.retry_after)
}

/// Whether a text is like a pattern, in which `*` is any text and `?` any character.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(it) if *it == '?' || *it == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, read) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use gloveport_provider::SessionId;

    use super::*;

    #[test]
    fn patterns_are_of_whole_images() {
        for (pattern, image, expected) in [
            ("*", "a", true),
            ("*", "", true),
            ("ghcr.io/x/*", "ghcr.io/x/y/z:1", true),
            ("ghcr.io/x/*", "evil.io/ghcr.io/x/y", false),
            ("ghcr.io/x/*:1.?", "ghcr.io/x/y:1.2", true),
            ("ghcr.io/x/*:1.?", "ghcr.io/x/y:1.22", false),
            ("debian:13", "debian:13", true),
            ("debian:13", "debian:13-slim", false),
            ("*a*a*a*a*a*b", &"a".repeat(2000), false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, image), expected, "{pattern} {image}");
        }
    }

    #[test]
    fn a_tenant_gets_no_more_than_it_may() {
        let limits = Limits {
            images: Some(vec!["debian:*".to_owned()]),
            classes: Some(vec!["sysbox-runc".to_owned()]),
            largest_factor: Some(2),
            longest_life: Some(60),
            longest_idle: Some(600),
            ..Limits::default()
        };
        let tenant = Tenant { name: "a".to_owned(), limits, disabled: false, created: 0 };
        let mut spec = SandboxSpec::new(SessionId::new("a").unwrap());
        spec.idle_stop = Some(Duration::from_secs(30));
        let asked = |image: &str, class: &str, factor| Asked {
            image: Some(image.to_owned()),
            class: Some(class.to_owned()),
            factor,
            amounts: None,
        };
        apply(&tenant, &asked("debian:13", "", 2), (true, false), &mut spec).unwrap();
        assert_eq!((spec.time_to_live, spec.idle_stop), (Some(Duration::from_mins(1)), Some(Duration::from_secs(30))));
        for wrong in
            [asked("alpine", "", 1), asked("debian:13", "gvisor", 1), asked("debian:13", "", 4), asked("", "", 1)]
        {
            assert!(apply(&tenant, &wrong, (true, false), &mut spec).is_err(), "{wrong:?}");
        }
        assert!(apply(&tenant, &asked("", "sysbox-runc", 1), (false, false), &mut spec).is_ok());
    }
}

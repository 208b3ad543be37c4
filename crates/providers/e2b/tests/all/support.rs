//! The provider for the service on this machine.

use std::{collections::BTreeMap, time::Duration};

use gloveport_hosted_checks::{
    Here, Hosted,
    steps::{Act, Call},
};
use gloveport_protocol::Secret;
use gloveport_provider_e2b::{E2b, E2bOptions, Traffic};
use http::Method;

use crate::standin::{KEY, StandIn};

/// E2B, as the checks of all hosted services know it.
pub(crate) struct OnE2b;

pub(crate) type Place = gloveport_hosted_checks::Place<OnE2b>;

impl Hosted for OnE2b {
    type Service = StandIn;
    type Options = E2bOptions;
    type Backend = E2b;

    const WISH: Call<'static> = (Method::POST, "/v2/sandboxes");
    const CALLS: &'static [(Act, &'static [Call<'static>])] = &[
        (Act::Find, &[(Method::GET, "/sandboxes/")]),
        (Act::List, &[(Method::GET, "/v2/sandboxes")]),
        (Act::Hold, &[(Method::POST, "/timeout")]),
        (Act::Snapshot, &[(Method::POST, "/snapshots")]),
        (Act::Fork, &[(Method::POST, "/snapshots")]),
        (Act::Pause, &[(Method::POST, "/pause")]),
        (Act::Resume, &[(Method::POST, "/connect")]),
        (Act::Garbage, &[(Method::GET, "/snapshots")]),
        (Act::Delete, &[(Method::DELETE, "/sandboxes")]),
    ];

    fn options(service: &StandIn, here: Here) -> E2bOptions {
        E2bOptions {
            key: Some(Secret::new(KEY)),
            api_url: service.url.clone(),
            domain: "sandboxes.test".to_owned(),
            sandbox_url: Some(service.url.clone()),
            template: "base".to_owned(),
            templates: BTreeMap::new(),
            user: "root".to_owned(),
            directory: here.directory,
            workspace: here.workspace,
            // They share a network.
            port: None,
            traffic: Traffic::Private,
            time_limit: Duration::from_mins(15),
            answer_within: here.answer_within,
            program: here.program,
            backends: here.backends,
        }
    }

    fn backend(options: E2bOptions) -> E2b {
        E2b::new(options)
    }

    fn snapshots(service: &StandIn) -> Vec<String> {
        service.snapshots()
    }
}

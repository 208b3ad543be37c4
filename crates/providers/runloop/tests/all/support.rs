//! The provider for the service on this machine.

use std::{collections::BTreeMap, time::Duration};

use gloveport_hosted_checks::{
    Here, Hosted,
    steps::{Act, Call},
};
use gloveport_protocol::Secret;
use gloveport_provider_runloop::{Runloop, RunloopOptions, Tunnel};
use gloveport_stand_ins::{Face as _, StandIn, runloop};
use http::Method;

/// Runloop, as the checks of all hosted services know it.
pub(crate) struct OnRunloop;

pub(crate) type Place = gloveport_hosted_checks::Place<OnRunloop>;

impl Hosted for OnRunloop {
    type Service = StandIn<runloop::Runloop>;
    type Options = RunloopOptions;
    type Backend = Runloop;

    const WISH: Call<'static> = (Method::POST, "/v1/devboxes");
    const CALLS: &'static [(Act, &'static [Call<'static>])] = &[
        (Act::Find, &[(Method::GET, "/v1/devboxes/dbx_")]),
        (Act::List, &[(Method::GET, "/v1/devboxes?")]),
        (Act::Hold, &[(Method::POST, "/keep_alive")]),
        (Act::Snapshot, &[(Method::POST, "/snapshot_disk_async")]),
        (Act::Fork, &[(Method::POST, "/snapshot_disk_async")]),
        (Act::Pause, &[(Method::POST, "/suspend")]),
        (Act::Resume, &[(Method::POST, "/resume")]),
        (Act::Garbage, &[(Method::GET, "/disk_snapshots")]),
        (Act::Delete, &[(Method::POST, "/shutdown")]),
    ];

    fn options(service: &Self::Service, here: Here) -> RunloopOptions {
        RunloopOptions {
            key: Some(Secret::new(runloop::Runloop::KEY)),
            api_url: service.url.clone(),
            port_url: format!("{}/tunnels/{{tunnel_key}}/{{port}}", service.url),
            blueprint: None,
            blueprints: BTreeMap::new(),
            size: "SMALL".to_owned(),
            directory: here.directory,
            workspace: here.workspace,
            // They share a network.
            port: None,
            tunnel: Tunnel::Authenticated,
            time_limit: Duration::from_mins(15),
            answer_within: here.answer_within,
            start_within: here.start_within,
            build_within: Duration::from_mins(1),
            program: here.program,
            backends: here.backends,
        }
    }

    fn backend(options: RunloopOptions) -> Runloop {
        Runloop::new(options)
    }

    fn snapshots(service: &Self::Service) -> Vec<String> {
        service.world().face.snapshots()
    }
}

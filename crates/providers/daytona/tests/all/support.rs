//! The provider for the service on this machine.

use std::{collections::BTreeMap, time::Duration};

use gloveport_hosted_checks::{
    Here, Hosted,
    steps::{Act, Call},
};
use gloveport_protocol::Secret;
use gloveport_provider_daytona::{Daytona, DaytonaOptions, Traffic};
use gloveport_stand_ins::{Face as _, StandIn, daytona};
use http::Method;

/// The key that the service takes.
pub(crate) const KEY: &str = daytona::Daytona::KEY;

/// Daytona, as the checks of all hosted services know it.
pub(crate) struct OnDaytona;

pub(crate) type Place = gloveport_hosted_checks::Place<OnDaytona>;

impl Hosted for OnDaytona {
    type Service = StandIn<daytona::Daytona>;
    type Options = DaytonaOptions;
    type Backend = Daytona;

    const WISH: Call<'static> = (Method::POST, "/api/sandbox");
    const CALLS: &'static [(Act, &'static [Call<'static>])] = &[
        (Act::Find, &[(Method::GET, "/api/sandbox/")]),
        (Act::List, &[(Method::GET, "/api/sandbox?")]),
        (Act::Hold, &[(Method::POST, "/last-activity")]),
        (Act::Snapshot, &[(Method::POST, "/snapshot")]),
        (Act::Fork, &[(Method::POST, "/snapshot")]),
        (Act::Pause, &[(Method::POST, "/stop")]),
        (Act::Resume, &[(Method::POST, "/start")]),
        (Act::Garbage, &[(Method::GET, "/snapshots")]),
        (Act::Delete, &[(Method::DELETE, "/api/sandbox")]),
    ];
    const AT_ONCE: bool = false;

    fn options(service: &Self::Service, here: Here) -> DaytonaOptions {
        DaytonaOptions {
            key: Some(Secret::new(KEY)),
            api_url: format!("{}/api", service.url),
            target: None,
            snapshot: None,
            image: None,
            snapshots: BTreeMap::new(),
            user: None,
            directory: here.directory,
            workspace: here.workspace,
            // They share a network.
            port: None,
            traffic: Traffic::Private,
            auto_stop: true,
            time_limit: Duration::from_mins(15),
            answer_within: here.answer_within,
            start_within: here.start_within,
            program: here.program,
            backends: here.backends,
        }
    }

    fn backend(options: DaytonaOptions) -> Daytona {
        Daytona::new(options)
    }

    fn snapshots(service: &Self::Service) -> Vec<String> {
        service.world().face.snapshots()
    }
}

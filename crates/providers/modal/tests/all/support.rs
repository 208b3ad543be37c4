//! The provider for the service on this machine.

use std::time::Duration;

use gloveport_hosted_checks::{
    Here, Hosted,
    steps::{Act, Call},
};
use gloveport_protocol::Secret;
use gloveport_provider_modal::{Modal, ModalOptions};
use gloveport_stand_ins::{Face as _, StandIn, modal};
use http::Method;

/// A call of the service by its end; all have one method.
pub(crate) const fn to(path: &str) -> Call<'_> {
    (Method::POST, path)
}

/// Modal, as the checks of all hosted services know it.
pub(crate) struct OnModal;

pub(crate) type Place = gloveport_hosted_checks::Place<OnModal>;

impl Hosted for OnModal {
    type Service = StandIn<modal::Modal>;
    type Options = ModalOptions;
    type Backend = Modal;

    const WISH: Call<'static> = to("/SandboxCreateV2");
    const CALLS: &'static [(Act, &'static [Call<'static>])] = &[
        (Act::Find, &[to("/SandboxWaitV2")]),
        (Act::List, &[to("/SandboxListV2")]),
        (Act::Hold, &[to("/SandboxTagsGetV2")]),
        (Act::Snapshot, &[to("/SandboxGetCommandRouterAccess"), to("/TaskSnapshotFilesystem")]),
        (Act::Fork, &[to("/TaskSnapshotFilesystem")]),
        (Act::Garbage, &[to("/SandboxListV2")]),
        (Act::Delete, &[to("/SandboxTerminateV2")]),
    ];
    const FORBIDDEN: u16 = 7;
    const TOLD_AT_ONCE: bool = true;
    // The service waits for the port.
    const MORE: &'static str = r#"python3 -c '
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
parent = os.getppid()
listener.settimeout(0.5)
while os.getppid() == parent:
    try: listener.accept()[0].close()
    except TimeoutError: pass
' "$port" &
"#;

    fn options(service: &Self::Service, here: Here) -> ModalOptions {
        ModalOptions {
            token_id: Some(modal::Modal::TOKEN_ID.to_owned()),
            token_secret: Some(Secret::new(modal::Modal::KEY)),
            server_url: service.url.clone(),
            app: "tests".to_owned(),
            environment: String::new(),
            image: "debian:13".to_owned(),
            isolation: None,
            regions: Vec::new(),
            cloud: String::new(),
            cpu: 1.0,
            memory: 512,
            directory: here.directory,
            workspace: here.workspace,
            // They share a network.
            port: None,
            time_limit: Duration::from_hours(1),
            answer_within: here.answer_within,
            start_within: here.start_within,
            build_within: Duration::from_mins(1),
            program: here.program,
            backends: here.backends,
        }
    }

    fn backend(options: ModalOptions) -> Modal {
        Modal::new(options)
    }

    fn snapshots(_service: &Self::Service) -> Vec<String> {
        // They are images, which the service keeps.
        Vec::new()
    }
}

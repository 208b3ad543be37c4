//! Sessions over a provider.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gloveport_client::{ClientOptions, Pause};
use gloveport_config::Config;
use gloveport_protocol::{BoxFuture, Secret};
use gloveport_provider::{Provider, SandboxSpec, SessionId};
use gloveport_runtime::{Hosted, HostedOptions, Runtime, RuntimeOptions, RuntimeStatus};

use crate::support::{engine::Engine, within};

/// The statuses of a session, as they were told.
type Told = Arc<Mutex<Vec<&'static str>>>;

/// Quick ones.
pub(crate) fn options() -> HostedOptions {
    let client = ClientOptions { pause: Arc::new(Quick), ..ClientOptions::new("") };
    HostedOptions { retry_wait: Duration::from_millis(100), client, ..HostedOptions::default() }
}

/// Does not wait before a request is sent again.
struct Quick;

impl Pause for Quick {
    fn pause(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Returns when it is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    within(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A session over such a provider.
pub(crate) struct Case {
    pub(crate) runtime: Runtime,
    told: Told,
}

impl Case {
    pub(crate) fn new(engine: &Engine, options: HostedOptions, attach: bool) -> Self {
        Self::over(engine.provider(), options, attach)
    }

    pub(crate) fn over(provider: Arc<dyn Provider>, options: HostedOptions, attach: bool) -> Self {
        let spec = SandboxSpec::new(SessionId::new("session").unwrap());
        let told = Told::default();
        let teller = Arc::clone(&told);
        let runtime = Runtime::new(RuntimeOptions {
            sid: "session".to_owned(),
            attach_to_existing: attach,
            env_vars: [("initial".to_owned(), Secret::new("value"))].into(),
            status_callback: Some(Arc::new(move |_, status: RuntimeStatus, _| {
                teller.lock().unwrap().push(status.as_str().trim_start_matches("STATUS$"));
            })),
            ..RuntimeOptions::new(Config::default(), Hosted::new(provider, spec, options))
        })
        .unwrap();
        Self { runtime, told }
    }

    /// The statuses since the last question, one letter each.
    pub(crate) fn told(&self) -> String {
        let short = |status: &&str| match *status {
            "STARTING_RUNTIME" => "S",
            "BUILDING_RUNTIME" => "B",
            "RUNTIME_STARTED" => "U",
            "READY" => "R",
            "ERROR_RUNTIME_DISCONNECTED" => "D",
            _ => "?",
        };
        std::mem::take(&mut *self.told.lock().unwrap()).iter().map(short).collect()
    }
}

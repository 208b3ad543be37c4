//! A sandbox for `gloveport mcp`: a fresh one that ends with its client, a session that is shared, or a server.

use std::sync::Arc;

use gloveport_client::ActionExecutionClient;
use gloveport_hosting::client;
use gloveport_provider::{SandboxSpec, SessionId};
use gloveport_runtime::{Approver, Nobody, Operations};
use tokio_util::sync::CancellationToken;

use super::{
    MakeArgs,
    handling::Handling,
    isolation, operations,
    own::Own,
    runtimes::Runtimes,
    settings::{Wanted, wanted},
    start::random_id,
};
use crate::{
    approve::{ApproveArgs, Person},
    here, key_file,
    names::LOCAL,
    output::tell,
    run::{is_foreign, told},
};

/// The plugin without which there is no Python, and how it is told to wait until it is used.
const JUPYTER: &str = "jupyter";
const FIRST_KERNEL: (&str, &str) = ("GLOVEPORT_FIRST_KERNEL", "when-needed");

/// Which sandbox is meant.
pub(crate) enum Which {
    /// One that is made for this client.
    Fresh(Box<FreshComputer>),
    /// That of a session.
    Session(String),
    /// That of a server, with its key.
    Server { url: String, key: Option<String>, key_file: Option<std::path::PathBuf> },
}

/// What a fresh sandbox is made from.
pub(crate) struct FreshComputer {
    pub(crate) runtime: Option<String>,
    pub(crate) make: MakeArgs,
    pub(crate) variables: Vec<(String, String)>,
    /// It is to run cells.
    pub(crate) has_python: bool,
    /// It goes on when its client has gone.
    pub(crate) keep: bool,
}

/// A sandbox that is used for a while.
pub(crate) struct Borrowed {
    pub(crate) client: ActionExecutionClient,
    /// What rates and records all that is done in it.
    pub(crate) operations: Operations,
    /// Where its tools start.
    pub(crate) directory: String,
    /// It is the user's own machine.
    pub(crate) is_here: bool,
    made: Option<Made>,
}

/// A sandbox that was made.
struct Made {
    own: Own,
    keep: bool,
}

impl Borrowed {
    /// Ends a sandbox that was made for this, unless it is to be kept.
    pub(crate) async fn give_back(&self) {
        match &self.made {
            Some(Made { own, keep: true }) => own.leave("it is kept").await,
            Some(Made { own, keep: false }) => own.delete().await,
            None => {}
        }
    }
}

/// The sandbox that is meant, which answers now. One that is being made is given up when it is to stop.
pub(crate) async fn borrow(which: Which, approve: ApproveArgs, stop: CancellationToken) -> anyhow::Result<Borrowed> {
    // A client's terminal shows something else than our questions.
    let approver: Arc<dyn Approver> =
        if approve.yes || approve.deny { Arc::new(Person::new(approve, true)) } else { Arc::new(Nobody) };
    match which {
        Which::Fresh(fresh) => make(*fresh, approver, stop).await,
        Which::Session(id) => {
            let runtimes = Runtimes::of_environment()?;
            let mut found = runtimes.find(&id).await?;
            let client = found.client().await?;
            let handling = Handling { approve, input_is_taken: true, unrecorded: false };
            let operations = operations::asked_by(&runtimes, &client, &found, handling, approver).await?;
            let directory = directory(&client, found.sandbox.workspace.as_deref()).await?;
            Ok(Borrowed { client, operations, directory, is_here: found.runtime == LOCAL, made: None })
        }
        Which::Server { url, key, key_file } => {
            let runtimes = Runtimes::new(None)?;
            let options = key_file::options(&url, key.as_deref(), key_file.as_deref())?;
            let client = ActionExecutionClient::new(&options)?;
            let operations = operations::of_fresh_asked_by(&runtimes.context, approver)?;
            let directory = directory(&client, None).await?;
            Ok(Borrowed { client, operations, directory, is_here: false, made: None })
        }
    }
}

async fn make(fresh: FreshComputer, approver: Arc<dyn Approver>, stop: CancellationToken) -> anyhow::Result<Borrowed> {
    let FreshComputer { runtime, mut make, mut variables, has_python, keep } = fresh;
    let runtimes = Runtimes::new(runtime)?;
    let operations = operations::of_fresh_asked_by(&runtimes.context, approver)?;
    let (runtime, provider) = runtimes.one()?;
    if has_python && !make.plugin.iter().any(|plugin| plugin == JUPYTER) {
        make.plugin.push(JUPYTER.to_owned());
        variables.push((FIRST_KERNEL.0.to_owned(), FIRST_KERNEL.1.to_owned()));
    }
    let session: SessionId = random_id()?;
    provider.learn().await?;
    let Wanted { spec, options } = wanted(&runtimes, &runtime, &provider.capabilities(), session, make, variables)?;
    let keep = keep || options.keep_alive;
    let spec = SandboxSpec { keep_alive: keep, ..spec };
    let own = Own::make(provider, &spec, stop).await?;
    if runtime == LOCAL {
        tell(&isolation::note(&own.sandbox, &spec));
    }
    let connected = async {
        let client = client(&own.sandbox)?;
        let directory = directory(&client, own.sandbox.workspace.as_deref()).await?;
        anyhow::Ok((client, directory))
    };
    let (client, directory) = match connected.await {
        Ok(connected) => connected,
        Err(error) => {
            own.delete().await;
            return Err(error);
        }
    };
    if isolation::is_none(&own.sandbox) {
        here::refill_waiting(&runtime, &runtimes.context).await;
    }
    Ok(Borrowed { client, operations, directory, is_here: runtime == LOCAL, made: Some(Made { own, keep }) })
}

/// Where the tools start.
async fn directory(client: &ActionExecutionClient, known: Option<&str>) -> anyhow::Result<String> {
    if let Some(known) = known {
        return Ok(known.to_owned());
    }
    let start = client.files().stat(".", false).await.map_err(|error| {
        if is_foreign(&error) {
            anyhow::anyhow!("{} has only the OpenHands interface; this needs a gloveport server", client.url())
        } else {
            told(error, client.url())
        }
    })?;
    let path = start.path.trim_end_matches(['/', '.']);
    Ok(if path.is_empty() { "/".to_owned() } else { path.to_owned() })
}

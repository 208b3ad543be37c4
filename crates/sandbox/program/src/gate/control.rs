//! Who changes what a gate lets through, while it is open ([`gloveport_contract::gate`]).

use std::{
    io,
    os::unix::net::UnixListener as StdListener,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context as _;
use gloveport_allow_list::Rules;
use gloveport_audit as audit;
use gloveport_contract::gate::{Answer, Asked, LONGEST, NetworkChange, NetworkState};
use gloveport_egress::{Policy, PolicyState};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    time::{sleep, timeout},
};

use super::rules::KeptRules;

/// Time for what is asked, and for its answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Time before the next one is waited for when the system has no room.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Makes it one for a program that waits for several things.
pub(super) fn ready(listener: StdListener) -> anyhow::Result<UnixListener> {
    let ready = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
    ready.context("cannot wait for who changes the rules")
}

/// Serves one after the other, for as long as the gate is open. What changes is kept there before anybody is told.
pub(super) async fn serve(listener: UnixListener, policy: Policy, kept: Option<KeptRules>) {
    loop {
        let served = match listener.accept().await {
            Ok((stream, _)) => {
                timeout(LIMIT, one(stream, &policy, kept.as_ref())).await.unwrap_or_else(|late| Err(late.into()))
            }
            Err(error) => {
                sleep(NO_ROOM).await;
                Err(error)
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "nobody is told what the gate does");
        }
    }
}

async fn one(mut stream: UnixStream, policy: &Policy, kept: Option<&KeptRules>) -> io::Result<()> {
    let (from, mut to) = stream.split();
    let mut line = Vec::new();
    BufReader::new(from.take(LONGEST)).read_until(b'\n', &mut line).await?;
    let mut answer = serde_json::to_vec(&answer(&line, policy, kept))?;
    answer.push(b'\n');
    to.write_all(&answer).await
}

fn answer(line: &[u8], policy: &Policy, kept: Option<&KeptRules>) -> Answer {
    let changed = serde_json::from_slice(line).map_err(|error| error.to_string()).and_then(|change: NetworkChange| {
        let rules = |texts: &[String]| Rules::parse(texts).map_err(|error| error.to_string());
        let (allow, deny) = (rules(&change.allow)?, rules(&change.deny)?);
        if !allow.is_empty() || !deny.is_empty() {
            policy.change(&allow, &deny).map_err(|error| error.to_string())?;
            if let Some(kept) = kept {
                kept.keep(&policy.state());
            }
            audit::record(|| audit::Event::Network { allow: change.allow.clone(), deny: change.deny.clone() });
            tracing::info!(allow = ?change.allow, deny = ?change.deny, "the rules of the gate have changed");
        }
        Ok(policy.state())
    });
    match changed {
        Ok(state) => Answer::State(told(&state)),
        Err(reason) => Answer::Wrong(reason),
    }
}

fn told(state: &PolicyState) -> NetworkState {
    let asked = |asked: &gloveport_egress::Asked| Asked {
        target: asked.target.to_string(),
        allowed: asked.allowed,
        times: asked.times,
        last: asked.last.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
    };
    NetworkState {
        allowed: state.allowed.texts().collect(),
        denied: state.denied.texts().collect(),
        asked: state.asked.iter().map(asked).collect(),
    }
}

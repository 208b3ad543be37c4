//! Sandboxes are found, by whoever asks.

use std::collections::BTreeMap;

use crate::{
    bench::{Bench, labels_of},
    check::{At as _, Check, Found, Problem, check, must, same},
};
use gloveport_provider::{
    Lifetime, ListFilter, LogOptions, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState,
};

pub(super) const CHECKS: &[Check] = &[
    check!("found/by-id-and-session", "a sandbox is found by its id and its session, and listed", by_id_and_session),
    check!("found/unknown", "what there is not is found by nobody, and no error but where it is needed", unknown),
    check!("found/labels", "labels are kept, and sandboxes are listed by them", labels),
    check!("found/one-for-each-session", "a session with a live sandbox gets no second one", one_for_each_session),
    check!("found/race", "of two that are made for a session at once one wins", race),
    check!("found/second-backend", "another backend finds a sandbox and uses it", second_backend),
    check!("found/second-backend-deletes", "another backend deletes a sandbox", second_backend_deletes),
];

async fn by_id_and_session(bench: &Bench) -> Found {
    let first = bench.start(&bench.spec("a")?).await?.sandbox;
    let second = bench.start(&bench.spec("b")?).await?.sandbox;
    let view = |sandbox: &Sandbox| (sandbox.id.clone(), sandbox.session_id.clone(), sandbox.url.clone());
    let found = bench.find(&first.id).await?;
    same(&found.as_ref().map(view), &Some(view(&first)), "find")?;
    let key = found.and_then(|sandbox| sandbox.session_key);
    must(key == first.session_key, "the key of what was found", "the key of the sandbox", &"another one")?;
    let found = bench.provider.find_session(&second.session_id).await.at("find_session")?;
    same(&found.as_ref().map(view), &Some(view(&second)), "find_session")?;
    let listed: Vec<_> = bench.all(&*bench.provider).await?.iter().map(view).collect();
    same(&listed, &vec![view(&first), view(&second)], "list, the oldest first")
}

async fn unknown(bench: &Bench) -> Found {
    let id = SandboxId::new("conformance-nobody-has-this").at("naming a sandbox")?;
    let provider = &bench.provider;
    must(bench.find(&id).await?.is_none(), "find", "nothing", &id)?;
    let session = bench.session("nobody")?;
    must(provider.find_session(&session).await.at("find_session")?.is_none(), "find_session", "nothing", &session)?;
    same(&provider.delete(&id).await.at("delete")?, &false, "delete")?;
    let missing = |result: Result<(), ProviderError>, step: &str| match result {
        Err(ProviderError::NotFound(found)) => same(&found, &id, step),
        other => Err(Problem::new(step, "that there is no such sandbox", format!("{other:?}"))),
    };
    if bench.can.pause {
        missing(provider.pause(&id).await, "pause")?;
        missing(provider.resume(&id).await, "resume")?;
    }
    if bench.can.logs {
        missing(provider.logs(&id, LogOptions::default()).await.map(drop), "logs")?;
    }
    Ok(())
}

async fn labels(bench: &Bench) -> Found {
    if !bench.can.labels {
        return Err(Problem::skip("no labels"));
    }
    let labels = |team: &str| -> BTreeMap<String, String> {
        [("gp-conformance".to_owned(), "labels".to_owned()), ("gp-team".to_owned(), team.to_owned())].into()
    };
    let first = bench.create(&SandboxSpec { labels: labels("a"), ..bench.spec("a")? }).await?;
    let second = bench.create(&SandboxSpec { labels: labels("b"), ..bench.spec("b")? }).await?;
    let found = bench.find(&first.id).await?;
    same(&found.as_ref().map(labels_of), &Some(labels("a")), "the labels of what was found")?;
    for (filter, expected) in [
        (labels("a"), vec![&first.id]),
        (labels("b"), vec![&second.id]),
        (labels("c"), vec![]),
        ([("gp-team".to_owned(), "a".to_owned())].into(), vec![&first.id]),
    ] {
        let listed = bench.provider.list(&ListFilter { labels: filter.clone(), ended: false }).await.at("list")?;
        let ours: Vec<_> = listed.iter().filter(|one| bench.is_ours(&one.session_id)).map(|one| &one.id).collect();
        same(&ours, &expected, &format!("list with the labels {filter:?}"))?;
    }
    Ok(())
}

async fn one_for_each_session(bench: &Bench) -> Found {
    let spec = bench.spec("a")?;
    let first = bench.start(&spec).await?;
    match bench.provider.create(&spec, &Progress::silent()).await {
        Err(ProviderError::SessionExists { session, sandbox }) => {
            same(&(session, &sandbox), &(spec.session_id, &first.sandbox.id), "what the error names")?;
        }
        other => return Err(Problem::new("a second create", "that the session has one", format!("{other:?}"))),
    }
    same(&first.run("echo here").await?, &"here".to_owned(), "the first one afterwards")?;
    same(&bench.all(&*bench.provider).await?.len(), &1, "sandboxes in the list")
}

async fn race(bench: &Bench) -> Found {
    let other = bench.another()?;
    let spec = bench.spec("a")?;
    let (here, there) = (Progress::silent(), Progress::silent());
    let (one, two) = tokio::join!(bench.provider.create(&spec, &here), other.create(&spec, &there));
    let winner = match (one, two) {
        (Ok(winner), Err(ProviderError::SessionExists { sandbox, .. }))
        | (Err(ProviderError::SessionExists { sandbox, .. }), Ok(winner)) => {
            same(&sandbox, &winner.id, "the sandbox that the loser is told")?;
            winner
        }
        other => return Err(Problem::new("two creates at once", "one sandbox, and one refusal", format!("{other:?}"))),
    };
    let live = bench.live(&*bench.provider, winner).await?;
    same(&live.run("echo won").await?, &"won".to_owned(), "the winner")?;
    same(&bench.all(&*bench.provider).await?.len(), &1, "sandboxes in the list")
}

async fn second_backend(bench: &Bench) -> Found {
    let spec = SandboxSpec { keep_alive: bench.can.keep_alive, ..bench.spec("a")? };
    let first = bench.start(&spec).await?;
    first.run("STATE=kept").await?;
    let other = bench.another()?;
    let found = other.find_session(&spec.session_id).await.at("find_session of another backend")?;
    let Some(found) = found else {
        return Err(Problem::new("find_session of another backend", "the sandbox", "nothing"));
    };
    same(&(&found.id, &found.state), &(&first.sandbox.id, &SandboxState::Running), "what another backend finds")?;
    let second = bench.live(&*other, found).await?;
    same(&second.run("echo $STATE").await?, &"kept".to_owned(), "an action of another backend")?;
    let lifetime = if bench.can.keep_alive { Lifetime::Kept } else { Lifetime::Backend };
    same(&second.sandbox.lifetime, &lifetime, "lifetime")
}

async fn second_backend_deletes(bench: &Bench) -> Found {
    let first = bench.start(&bench.spec("a")?).await?;
    let other = bench.another()?;
    same(&other.delete(&first.sandbox.id).await.at("delete by another backend")?, &true, "delete")?;
    first.silent().await?;
    must(bench.find(&first.sandbox.id).await?.is_none(), "find by the first backend", "nothing", &first.sandbox.id)
}

//! What a service, a network or somebody at a dashboard can do at each call.

use std::{fmt::Debug, time::Duration};

use gloveport_provider::{ListFilter, Provider as _, ProviderError, SandboxState};
use gloveport_stand_ins::{Face, Fault, Seen, StandIn};
use gloveport_testing::until;
use tokio::time::timeout;

use crate::{
    Hosted, Place, Service as _, runs,
    steps::{Act, Call, create, kept, spec},
};

/// Acts of a service whose sandboxes rest, each of which may be done again.
pub const ACTS: &[Act] = &[Act::Find, Act::Hold, Act::Pause, Act::Resume, Act::Garbage];

/// How many requests asked for a sandbox.
pub fn wishes<H: Hosted>(seen: &[Seen]) -> usize {
    let (method, path) = H::WISH;
    seen.iter().filter(|seen| seen.method == method && seen.path.ends_with(path)).count()
}

fn fail_wish<H: Hosted>(place: &Place<H>, fault: Fault) {
    let (method, path) = H::WISH;
    place.service.fail(method, path, fault);
}

/// These faults, and those that every network has.
fn and_of_networks(faults: &[Fault]) -> Vec<Fault> {
    [&[Fault::Lost, Fault::Dropped], faults].concat()
}

/// Whichever of these happens to the wish, or to the connection, it is fulfilled once, with two requests at the most.
pub async fn one_sandbox_for_a_wish<H: Hosted>(faults: &[Fault]) {
    for fault in and_of_networks(faults) {
        let place = Place::<H>::new().await;
        let backend = place.backend();
        fail_wish(&place, fault.clone());
        let made = create(&backend, &spec("s")).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(place.service.ids(), [made.id.to_string()], "{fault:?}");
        if H::AT_ONCE {
            assert_eq!(made.state, SandboxState::Running);
        }
        let wishes = wishes::<H>(&place.service.seen());
        assert!(wishes <= 2, "{fault:?}: {wishes}");
        backend.close().await;
        assert!(place.service.ids().is_empty(), "{fault:?}");
    }
}

/// A wish whose answers are lost so many times is asked for so often, and what came of it is found. Gives the requests.
pub async fn lost_wish_is_found<H: Hosted>(lost: usize) -> Vec<Seen> {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    for _ in 0..lost {
        fail_wish(&place, Fault::Lost);
    }
    let made = create(&backend, &spec("s")).await.unwrap();
    assert_eq!(place.service.ids(), [made.id.to_string()]);
    if H::AT_ONCE {
        assert_eq!(made.state, SandboxState::Running);
    }
    let seen = place.service.seen();
    assert_eq!(wishes::<H>(&seen), lost);
    seen
}

/// A wish that is refused with one of these says why, and has these words on what to do. Older paths of the wish refuse it, too.
pub async fn refused_wish_is_told<H: Hosted>(older: &[&str], refusals: &[(u16, &str)]) {
    for (status, expected) in refusals {
        let place = Place::<H>::new().await;
        let fault = Fault::status(*status, &[], "because");
        fail_wish(&place, fault.clone());
        for path in older {
            place.service.fail(H::WISH.0, path, fault.clone());
        }
        let error = create(&place.backend(), &spec("s")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("because"), "{status}: {error}");
        assert!(place.service.ids().is_empty());
    }
}

/// Work of which a call is refused four times as one for which the service has no time now is told as such.
pub async fn busy_is_told<H: Hosted, T: Debug>(
    place: &Place<H>,
    call: Call<'_>,
    fault: &Fault,
    expected: &str,
    work: impl Future<Output = Result<T, ProviderError>>,
) {
    for _ in 0..4 {
        place.service.fail(call.0.clone(), call.1, fault.clone());
    }
    let error = work.await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains(expected), "{error}");
    assert!(place.service.ids().is_empty());
}

/// Each fault at each of these calls of a creation, or of the connection, is outlived, or leaves nothing and is over at the next try.
pub async fn creation_outlives_faults<H: Hosted>(calls: &[Call<'_>], faults: &[Fault]) {
    for (method, part) in calls {
        for fault in and_of_networks(faults) {
            let place = Place::<H>::new().await;
            let backend = place.backend();
            place.service.fail(method.clone(), part, fault.clone());
            match create(&backend, &spec("s")).await {
                Ok(made) => assert_eq!(place.service.ids(), [made.id.to_string()], "{part} {fault:?}"),
                Err(error) => {
                    assert_eq!(place.service.ids(), Vec::<String>::new(), "{part} {fault:?}: {error}");
                    // Whoever tries once more gets one.
                    create(&backend, &spec("s")).await.unwrap();
                }
            }
            backend.close().await;
            assert!(place.service.ids().is_empty(), "{part} {fault:?}");
        }
    }
}

/// The calls of an act.
fn calls_of<H: Hosted>(act: Act) -> &'static [Call<'static>] {
    let (_, calls) = H::CALLS.iter().find(|(known, _)| *known == act).unwrap_or_else(|| panic!("no calls of {act:?}"));
    calls
}

/// Each act works although each of its calls fails once with each of the faults; a deletion works although its answer is lost.
/// Gives the service.
pub async fn calls_are_sent_again<H: Hosted>(faults: &[Fault], acts: &[Act]) -> Place<H> {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    for fault in faults {
        for act in acts {
            for (method, part) in calls_of::<H>(*act) {
                place.service.fail(method.clone(), part, fault.clone());
            }
            if *act == Act::Find {
                runs::<H>(&backend, &made).await;
            } else {
                act.on(&backend, &made.id).await.unwrap_or_else(|error| panic!("{act:?} {fault:?}: {error}"));
            }
        }
    }
    for (method, part) in calls_of::<H>(Act::Delete) {
        place.service.fail(method.clone(), part, Fault::Lost);
    }
    assert!(backend.delete(&made.id).await.unwrap());
    assert!(place.service.ids().is_empty());
    place
}

/// A refusal of the last call of each act but the collection of garbage is told as such, with its reason. The deletion, which is
/// the last act, then works.
pub async fn refusals_are_told<H: Hosted>() {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    for (act, calls) in H::CALLS.iter().filter(|(act, _)| *act != Act::Garbage) {
        let (method, part) = calls.last().unwrap();
        place.service.fail(method.clone(), part, Fault::status(H::FORBIDDEN, &[], "because"));
        let error = act.on(&backend, &made.id).await.unwrap_err();
        let is_access = matches!(error, ProviderError::Access { .. });
        assert!(is_access && error.to_string().contains("because"), "{act:?}: {error}");
        if *act == Act::Pause {
            backend.pause(&made.id).await.unwrap();
        }
    }
    assert_eq!(H::CALLS.last().map(|(act, _)| *act), Some(Act::Delete));
    assert!(backend.delete(&made.id).await.unwrap());
}

/// A sandbox that somebody deletes is gone for these acts and for all others, and its session may have a new one.
pub async fn deleted_is_gone<H: Hosted>(acts: &[Act]) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.hold(&made.id).await.unwrap();
    place.service.delete(made.id.as_str());
    assert!(backend.find(&made.id).await.unwrap().is_none() && !backend.delete(&made.id).await.unwrap());
    for act in acts {
        act.finds_nothing(&backend, &made.id).await;
    }
    assert_ne!(create(&backend, &kept("s")).await.unwrap().id, made.id);
}

/// A sandbox whose inside answers a call so many times with this fault is unknown and not gone.
pub async fn silent_is_unknown<H: Hosted>(call: Call<'_>, fault: &Fault, times: usize) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    for _ in 0..times {
        place.service.fail(call.0.clone(), call.1, fault.clone());
    }
    let found = backend.find(&made.id).await.unwrap().unwrap();
    assert!(matches!(found.state, SandboxState::Unknown(_)) && found.session_key == made.session_key, "{found:?}");
}

/// A creation leaves nothing that is given up while the service is silent at one of these calls; `hasty` lets no answer take more
/// than half a second.
pub async fn given_up_leaves_nothing<H: Hosted>(calls: &[Call<'_>], hasty: impl Fn(&mut H::Options)) {
    for (method, part) in calls {
        let place = Place::<H>::new().await;
        let backend = place.backend_with(&hasty);
        place.service.fail(method.clone(), part, Fault::Silent);
        timeout(Duration::from_millis(250), create(&backend, &spec("s"))).await.unwrap_err();
        until("a request", || !place.service.seen().is_empty()).await;
        backend.close().await;
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
}

/// A creation takes longer than this provider waits.
pub async fn creation_is_late(backend: &impl gloveport_provider::Provider) {
    let error = create(backend, &spec("late")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout { .. }), "{error}");
}

/// States that take a while are waited for, but not without end: a creation is given up, and leaves nothing, when they take
/// `slower` and no longer than a tenth of a second may be waited for, as `hasty` says.
pub async fn slow_states_are_waited_for<H: Hosted<Service = StandIn<F>>, F: Face>(
    acts: &[Act],
    slower: Duration,
    hasty: impl FnOnce(&mut H::Options),
) {
    let place = Place::<H>::new().await;
    place.service.set_slow(Duration::from_millis(700));
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    Act::all_on(acts, &backend, &made.id).await;
    runs::<H>(&backend, &made).await;
    place.service.set_slow(slower);
    creation_is_late(&place.backend_with(hasty)).await;
    until("the end of what was too slow", || place.service.ids() == [made.id.to_string()]).await;
}

/// The server of a sandbox does not start. Nothing is left and nothing is listed; gives what the server wrote.
pub async fn failed_start_leaves_nothing<H: Hosted>(place: &Place<H>, backend: &H::Backend) -> String {
    let error = create(backend, &spec("s")).await.unwrap_err();
    let ProviderError::Start { log, .. } = error else { panic!("{error:?}") };
    assert!(place.service.ids().is_empty());
    // The service tells of it for ever; it is none of ours any more.
    let all = ListFilter { ended: true, ..ListFilter::default() };
    assert!(backend.list(&all).await.unwrap().is_empty());
    log
}

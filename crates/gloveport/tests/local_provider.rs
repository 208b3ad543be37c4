//! The provider `local` with our real server: life, attach, names, ends.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod sandboxes;

use std::fs;

use gloveport_provider::{Lifetime, ListFilter, Progress, Provider as _, SandboxState};
use sandboxes::{Place, alive_in, run, spec};

#[tokio::test]
async fn a_sandbox_is_made_found_used_and_deleted_and_nothing_is_left() {
    let place = Place::new();
    let local = place.backend();
    let progress = Progress::silent();
    let made = local.create(&spec("one"), &progress).await.unwrap();
    assert_eq!((made.state.clone(), made.lifetime), (SandboxState::Running, Lifetime::Backend));
    let workspace = made.workspace.clone().unwrap();
    assert_eq!(run(&made, "pwd").await, workspace);
    // A backgrounded program that has detached itself is the sandbox's, too.
    run(&made, "setsid -f sleep 600 >/dev/null 2>&1; touch file").await;

    let found = local.find(&made.id).await.unwrap().unwrap();
    let by_session = local.find_session(&made.session_id).await.unwrap().unwrap();
    let listed = local.list(&ListFilter::default()).await.unwrap();
    for other in [&found, &by_session, &listed[0]] {
        assert_eq!((&other.id, &other.url, &other.session_key), (&made.id, &made.url, &made.session_key));
    }
    assert!(local.delete(&made.id).await.unwrap());
    assert!(!local.delete(&made.id).await.unwrap());
    assert!(local.find(&made.id).await.unwrap().is_none());
    assert!(!fs::exists(workspace).unwrap());
    assert_eq!(alive_in(&place), Vec::<String>::new());
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

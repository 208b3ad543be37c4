//! The provider `local` where sandboxes have a kernel of their own. `tests/isolation` tries to get out of them.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::sandboxes::{Place, alive_in, client, has_containers, has_kernels, run, spec, until};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, ReadAction};
use gloveport_provider::{
    Confinement, Level, NetworkPolicy, Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, Workspace,
};
use gloveport_provider_local::Local;

fn on_own_kernel(name: &str) -> SandboxSpec {
    let confinement = Confinement { level: Level::Gvisor, ..Confinement::default() };
    SandboxSpec { confinement: Some(confinement), ..spec(name) }
}

async fn create(local: &Local, spec: &SandboxSpec) -> Result<Sandbox, ProviderError> {
    local.create(spec, &Progress::silent()).await
}

/// What a backend is told that asks for such a sandbox, with these programs alone in its `PATH`.
#[expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]
async fn refusal(place: &Place, programs: &Path) -> String {
    let mut options = place.options();
    options.environment.insert("PATH".to_owned(), programs.display().to_string());
    let local = Local::new(options).unwrap();
    let error = create(&local, &on_own_kernel("one")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "isolation"), "{error}");
    local.close().await;
    assert_eq!((alive_in(place), place.left()), (Vec::new(), Vec::new()));
    error.to_string()
}

#[tokio::test]
async fn a_kernel_of_its_own_that_cannot_be_had_is_refused_and_nothing_is_made() {
    let place = Place::new();
    let programs = place.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let none = refusal(&place, &programs).await;
    assert!(none.contains("there is no `runsc` in PATH; install gVisor"), "{none}");
    if !has_containers() {
        return;
    }
    let runsc = |script: &str| {
        let file = programs.join("runsc");
        let _there_was_none = fs::remove_file(&file);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o755).open(&file);
        write!(made.unwrap(), "#!/bin/sh\n{script}\n").unwrap();
    };
    for (script, expected) in [
        ("echo 'runsc version release-20221219.0'", "`runsc` of 20221219 is too old"),
        ("echo 'something else 1.0'", "\"something else 1.0\", which names no release"),
        (
            "[ \"$1\" = --version ] && echo 'runsc version release-20991231.0' || { echo 'it is broken' >&2; exit 7; }",
            "exit status: 7: it is broken",
        ),
    ] {
        runsc(script);
        let told = refusal(&place, &programs).await;
        assert!(told.contains("the level `gvisor` cannot be had here: ") && told.contains(expected), "{told}");
    }
}

#[tokio::test]
async fn a_sandbox_on_a_kernel_of_its_own_has_what_it_was_given_and_nothing_of_it_stays() {
    if !has_kernels() {
        return;
    }
    let place = Place::new();
    let (secret, work) = (place.path().join("home/secret"), place.path().join("work"));
    fs::write(&secret, "a secret").unwrap();
    let local = place.backend();
    let workspace = Workspace::Directory(work.clone());
    let wanted = SandboxSpec { workspace, network: NetworkPolicy::None, ..on_own_kernel("one") };
    let sandbox = create(&local, &wanted).await.unwrap();
    assert_eq!(sandbox.labels.get(Level::LABEL).map(String::as_str), Some("gvisor"));
    let own = run(&sandbox, "cat /proc/sys/kernel/osrelease; echo words > file; ls /run/gloveport/engine").await;
    assert_ne!(own, fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
    assert_eq!(fs::read_to_string(work.join("file")).unwrap(), "words\n");
    // What is changed outside is seen inside.
    fs::write(work.join("file"), "other words").unwrap();
    assert_eq!(run(&sandbox, "cat file").await, "other words");
    let path = secret.display().to_string();
    let told = client(&sandbox).execute(&ActionEvent::from(Action::Read(ReadAction::new(&path)))).await;
    let told = told.map_or_else(|error| error.to_string(), |observation| format!("{observation:?}"));
    assert!(!told.contains("a secret"), "{told}");
    let tried = run(&sandbox, &format!("cat {path}; ls /proc/1/root{path}")).await;
    assert!(tried.lines().count() == 2 && !tried.contains("a secret"), "{tried}");
    // Programs in the background are no part of a command.
    assert_eq!(
        run(&sandbox, "setsid sleep 600 & sleep 600 & kill %2; wait %2; echo $?").await.lines().last(),
        Some("143")
    );
    assert!(local.delete(&sandbox.id).await.unwrap());
    local.close().await;
    until("its kernel has ended", || alive_in(&place).is_empty()).await;
    assert_eq!(place.left(), Vec::<String>::new());
}

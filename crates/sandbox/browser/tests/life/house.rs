//! A browser whose processes and files can be counted.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gloveport_browser::{Browser, BrowserError, BrowserOptions, BrowserState, Step};
use gloveport_browsergym::axtree;
use gloveport_sys::{Surroundings, process};

/// Where Chromium is.
const CHROMIUM: &str = "/usr/bin/chromium";
/// Time for a state to come.
const TIME: Duration = Duration::from_secs(20);

/// A browser with a directory of its own.
pub(crate) struct House {
    pub(crate) browser: Browser,
    pub(crate) directory: tempfile::TempDir,
}

impl House {
    /// None where there is no browser.
    pub(crate) fn open() -> Option<Self> {
        Self::with(|_| {})
    }

    /// The same with other options.
    pub(crate) fn with(change: impl FnOnce(&mut BrowserOptions)) -> Option<Self> {
        if !Path::new(CHROMIUM).exists() {
            println!("skipped: there is no {CHROMIUM}");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(&directory);
        options.program = Some(CHROMIUM.into());
        change(&mut options);
        Some(Self { browser: Browser::new(options), directory })
    }

    /// A step that has an observation.
    pub(crate) async fn step(&self, text: &str) -> Step {
        self.browser.step(text).await.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// What is to be seen after a step that succeeds.
    pub(crate) async fn see(&self, text: &str) -> String {
        let step = self.step(text).await;
        assert_eq!(step.error, None, "{text}");
        tree(&step)
    }

    /// The process, and all below it.
    pub(crate) fn family(&self) -> Family {
        let BrowserState::Ready { pid, .. } = *self.browser.state().borrow() else { panic!("it is not up") };
        Family::of(pid)
    }

    /// Waits until it stands as wanted.
    pub(crate) async fn becomes(&self, wanted: BrowserState) {
        let mut state = self.browser.state();
        let came = tokio::time::timeout(TIME, state.wait_for(|state| *state == wanted)).await;
        assert!(came.is_ok(), "it is not {wanted:?} but {:?}", self.browser.state().borrow());
    }
}

/// The usual options, with downloads in the directory.
pub(crate) fn options(directory: &tempfile::TempDir) -> BrowserOptions {
    let downloads = directory.path().join("downloads");
    std::fs::create_dir(&downloads).unwrap();
    let mut surroundings = Surroundings::inherited(directory.path().to_owned());
    let temporary = directory.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    surroundings.set("TMPDIR", temporary);
    BrowserOptions::new(surroundings, downloads)
}

/// What is to be seen after a step.
pub(crate) fn tree(step: &Step) -> String {
    axtree::flatten(&step.observation.axtree, &step.observation.properties).unwrap()
}

/// The words of the error of a step.
pub(crate) fn words(step: &Step) -> String {
    step.error.as_ref().unwrap().to_string()
}

/// The id of the first line of a tree with these words.
pub(crate) fn bid(tree: &str, words: &str) -> String {
    let line = tree.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {tree}"));
    line.trim().trim_start_matches('[').split(']').next().unwrap().to_owned()
}

/// A page in the address itself, for `goto`.
pub(crate) fn goto_inline(html: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    format!("goto('data:text/html;charset=utf-8;base64,{}')", BASE64_STANDARD.encode(html))
}

/// Why a step had no observation, and how long it took.
pub(crate) async fn fails(browser: &Browser, text: &str) -> (BrowserError, Duration) {
    let began = Instant::now();
    match browser.step(text).await {
        Ok(step) => panic!("{text}: {:?}", step.error),
        Err(error) => (error, began.elapsed()),
    }
}

/// The processes of a browser, and its profile.
pub(crate) struct Family {
    pub(crate) pid: u32,
    members: Vec<process::Stat>,
    pub(crate) profile: PathBuf,
}

impl Family {
    fn of(pid: u32) -> Self {
        let mut members = process::descendants(pid);
        members.push(pid);
        let members: Vec<process::Stat> = members.into_iter().filter_map(process::stat).collect();
        assert!(members.len() > 1, "{members:?}");
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let line = String::from_utf8(line).unwrap();
        let profile = line.split('\0').find_map(|word| word.strip_prefix("--user-data-dir=")).unwrap();
        assert!(Path::new(profile).is_dir(), "{profile}");
        Self { pid, members, profile: profile.into() }
    }

    pub(crate) fn kill(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    /// Nothing is left of it.
    pub(crate) fn is_gone(&self, house: &House) {
        let left: Vec<process::Stat> = self.members.iter().filter_map(|member| process::stat(member.pid)).collect();
        let left: Vec<&process::Stat> = left
            .iter()
            .filter(|now| now.state != 'Z' && self.members.iter().any(|then| then.start_ticks == now.start_ticks))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let profile = self.profile.to_string_lossy();
        let with_profile = process::all().into_iter().filter_map(process::command_line);
        assert_eq!(with_profile.filter(|line| line.contains(&*profile)).collect::<Vec<_>>(), Vec::<String>::new());
        assert!(!self.profile.exists(), "{profile} is left");
        let temporary = house.directory.path().join("temporary");
        let files: Vec<_> = std::fs::read_dir(temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files, Vec::<PathBuf>::new());
    }
}

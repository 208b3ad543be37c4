//! `gloveport session network`: whom a running sandbox may talk to.

use std::{
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use gloveport_provider::{Asked, NetworkChange, NetworkState};

use super::{
    arguments::{ChangeNetworkArgs, NetworkArgs, NetworkCommand},
    runtimes::Runtimes,
    table,
};
use crate::{
    output::{print, print_json, print_painted},
    paint::Paint,
};

const HEADING: [&str; 4] = ["HOST", "ALLOWED", "TIMES", "LAST"];

pub(super) async fn network(runtimes: &Runtimes, command: NetworkCommand) -> anyhow::Result<ExitCode> {
    let (NetworkArgs { id, json }, change, is_log) = match command {
        NetworkCommand::Show(arguments) => (arguments, NetworkChange::default(), false),
        NetworkCommand::Log(arguments) => (arguments, NetworkChange::default(), true),
        NetworkCommand::Allow(ChangeNetworkArgs { of, hosts }) => {
            (of, NetworkChange { allow: hosts, ..NetworkChange::default() }, false)
        }
        NetworkCommand::Deny(ChangeNetworkArgs { of, hosts }) => {
            (of, NetworkChange { deny: hosts, ..NetworkChange::default() }, false)
        }
    };
    let found = runtimes.find(&id).await?;
    let state = found.provider.network(&found.sandbox.id, &change).await?;
    if json {
        print_json(&state)?;
    } else if is_log {
        let rows: Vec<_> = state.asked.iter().map(row).collect();
        print_painted(&table::table(&HEADING, &rows, Paint::for_stdout()))?;
    } else {
        print(&text(&state))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(asked: &Asked) -> Vec<String> {
    let allowed = if asked.allowed { "yes" } else { "no" };
    let last = Duration::try_from_secs_f64(asked.last).ok().and_then(|since| UNIX_EPOCH.checked_add(since));
    vec![asked.target.clone(), allowed.to_owned(), asked.times.to_string(), table::age(last)]
}

fn text(state: &NetworkState) -> String {
    let hosts = |hosts: &[String]| if hosts.is_empty() { "nobody".to_owned() } else { hosts.join(", ") };
    let but = if state.denied.is_empty() { String::new() } else { format!("not      {}\n", hosts(&state.denied)) };
    format!("reaches  {}\n{but}", hosts(&state.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_who_is_reached_who_is_not_and_who_was_asked_for() {
        let asked = Asked { target: "a.test:443".to_owned(), allowed: false, times: 3, last: 1.5e9 };
        assert_eq!(row(&asked)[..3], ["a.test:443", "no", "3"]);
        let state = NetworkState { allowed: vec!["*.test".to_owned(), "b".to_owned()], ..NetworkState::default() };
        assert_eq!(text(&state), "reaches  *.test, b\n");
        let state = NetworkState { denied: vec!["a.test".to_owned()], ..NetworkState::default() };
        assert_eq!(text(&state), "reaches  nobody\nnot      a.test\n");
    }
}

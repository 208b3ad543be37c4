//! The fields of a manifest and their rules.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use hyper::http::uri::PathAndQuery;

use super::{
    Actions, Manifest,
    suggest::{did_you_mean, one_of},
    value::{At, Problems, Section, Span},
};
use crate::service::{Health, Listens, ServiceSpec};

const ROOT: [&str; 7] = ["name", "description", "requires", "set-up", "service", "actions", "environment"];
const SET_UP: [&str; 2] = ["command", "limit"];
const SERVICE: [&str; 7] = ["command", "environment", "listens", "health", "start", "start-limit", "idle-stop"];
const ACTIONS: [&str; 2] = ["handles", "path"];

/// Kinds of actions that a plugin can take.
const KINDS: [&str; 4] = ["run_ipython", "browse", "browse_interactive", "call_tool_mcp"];
/// Kinds of actions that the sandbox itself executes.
const OWN_KINDS: [&str; 4] = ["run", "read", "write", "edit"];

const SET_UP_LIMIT: Duration = Duration::from_mins(10);
const START_LIMIT: Duration = Duration::from_secs(30);
const ACTIONS_PATH: &str = "/execute_action";
/// Most plugins that one can require.
const REQUIRED: usize = 32;
/// Longest description, in characters.
const DESCRIPTION: usize = 500;

/// All fields as the documentation names them: `name`, `[service] command` and so on.
pub fn names() -> Vec<String> {
    let sections = [("set-up", SET_UP.as_slice()), ("service", &SERVICE), ("actions", &ACTIONS)];
    let is_section = |name: &str| sections.iter().any(|(section, _)| *section == name);
    let top = ROOT.iter().filter(|name| !is_section(name));
    let top = top.map(|name| if *name == "environment" { format!("[{name}]") } else { (*name).to_owned() });
    let inner = sections.iter().flat_map(|(section, keys)| keys.iter().map(move |key| format!("[{section}] {key}")));
    top.chain(inner).collect()
}

/// Reads all fields. The result is of use only if there are no problems.
pub(super) fn read(
    root: &Section<'_>,
    path: PathBuf,
    folder: PathBuf,
    problems: &mut Problems<'_>,
) -> Option<Manifest> {
    root.only(&ROOT, problems);
    let name = name(root, problems);
    let description = description(root, problems);
    let requires = requires(root, name.as_deref(), problems);
    let set_up = root.section("set-up", problems).and_then(|section| set_up(&section, &folder, problems));
    let service_section = root.section("service", problems);
    let mut service = service_section.as_ref().and_then(|section| service(section, &folder, problems));
    let actions = root.section("actions", problems).and_then(|section| {
        let nowhere = service.as_ref().is_some_and(|service| service.listens == Listens::Nowhere);
        if service_section.is_none() || nowhere {
            let message = "[actions] needs a [service] that listens, which gets the actions";
            problems.add(&section.span, message, Some("add [service]".to_owned()));
        }
        actions(&section, problems)
    });
    let environment = root.section("environment", problems).map(|section| {
        let variables = section.variables(problems);
        for variable in variables.values() {
            no_place(variable, "it is for the shells of the sandbox", problems);
        }
        plain(variables)
    });
    if !["set-up", "service", "environment"].iter().any(|section| root.key_span(section).is_some()) {
        let suggestion = "add [service], [set-up] or [environment]".to_owned();
        problems.add(&root.span, "the plugin does nothing", Some(suggestion));
    }
    if let Some(service) = &mut service {
        service.name = name.clone().unwrap_or_default();
        if let Some((command, limit)) = &set_up {
            (service.set_up, service.set_up_limit) = (Some(command.clone()), *limit);
        }
    }
    let environment = environment.unwrap_or_default();
    Some(Manifest { path, folder, name: name?, description, requires, set_up, service, actions, environment })
}

fn name(root: &Section<'_>, problems: &mut Problems<'_>) -> Option<String> {
    let rule = "a lower-case letter, then at most 31 lower-case letters, digits, `_` and `-`";
    if root.key_span("name").is_none() {
        root.missing("name", "write name = \"…\" at the beginning of the file", problems);
        return None;
    }
    let name = root.text("name", problems)?;
    if !Manifest::is_name(&name.value) {
        problems.add(&name.span, format!("`name` must be {rule}, not `{}`", name.value), None);
        return None;
    }
    Some(name.value)
}

fn description(root: &Section<'_>, problems: &mut Problems<'_>) -> Option<String> {
    let description = root.text("description", problems)?;
    if description.value.chars().any(char::is_control) || description.value.chars().count() > DESCRIPTION {
        let message = format!("`description` must be one line of at most {DESCRIPTION} characters");
        problems.add(&description.span, message, None);
    }
    Some(description.value)
}

fn requires(root: &Section<'_>, own: Option<&str>, problems: &mut Problems<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for At { value, span } in root.texts("requires", problems).unwrap_or_default() {
        if !Manifest::is_name(&value) {
            problems.add(&span, format!("`{value}` in `requires` is not a valid name for a plugin"), None);
        } else if own == Some(value.as_str()) {
            problems.add(&span, "the plugin requires itself", Some("leave it out".to_owned()));
        } else if names.contains(&value) {
            problems.add(&span, format!("`{value}` stands twice in `requires`"), Some("leave one out".to_owned()));
        } else if names.len() == REQUIRED {
            problems.add(&span, format!("`requires` has more than {REQUIRED} names"), None);
            break;
        } else {
            names.push(value);
        }
    }
    names
}

fn set_up(section: &Section<'_>, folder: &Path, problems: &mut Problems<'_>) -> Option<(Vec<OsString>, Duration)> {
    section.only(&SET_UP, problems);
    let limit = section.time("limit", problems).map_or(SET_UP_LIMIT, |limit| limit.value);
    let command = required_command(section, problems)?;
    for word in &command.value {
        no_place(&At { value: word.clone(), span: command.span.clone() }, "a set-up runs before the service", problems);
    }
    Some((words(command.value, folder), limit))
}

fn required_command(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<At<Vec<String>>> {
    if section.key_span("command").is_none() {
        section.missing("command", "write command = [\"program\", \"argument\"]", problems);
        return None;
    }
    section.command("command", problems)
}

/// The words of a command. Those that begin with `./` are files beside the manifest.
fn words(words: Vec<String>, folder: &Path) -> Vec<OsString> {
    let is_shell = matches!(words.as_slice(), [shell, option, _] if shell == "sh" && option == "-c");
    let word = |word: String| match word.strip_prefix("./") {
        // A text for a shell gets the folder as any other value, so that it is looked at before.
        Some(rest) if is_shell => format!("{{plugin}}/{rest}").into(),
        Some(rest) => folder.join(rest).into_os_string(),
        None => word.into(),
    };
    words.into_iter().map(word).collect()
}

fn service(section: &Section<'_>, folder: &Path, problems: &mut Problems<'_>) -> Option<ServiceSpec> {
    section.only(&SERVICE, problems);
    let listens = listens(section, problems);
    let health = health(section, listens.as_ref(), problems);
    let eager = section.choice("start", &[("lazy", false), ("eager", true)], problems);
    let start_limit = section.time("start-limit", problems).map_or(START_LIMIT, |limit| limit.value);
    let idle_stop = section.time("idle-stop", problems);
    let environment = section.table("environment", "service.environment", problems);
    let environment = environment.map(|table| table.variables(problems)).unwrap_or_default();
    let command = required_command(section, problems);
    if listens == Some(Listens::Nowhere) {
        if eager != Some(true) {
            let message = "a service that listens nowhere has no users, so nothing would start it";
            problems.add(&section.span, message, Some("write start = \"eager\"".to_owned()));
        }
        if let Some(idle) = &idle_stop {
            let message = "a service that listens nowhere has no users, so it would always be stopped";
            problems.add(&idle.span, message, Some("leave `idle-stop` out".to_owned()));
        }
    }
    if let Some((command, listens)) = command.as_ref().zip(listens.as_ref()) {
        places(command, &environment, listens, problems);
    }
    Some(ServiceSpec {
        name: String::new(),
        set_up: None,
        set_up_limit: SET_UP_LIMIT,
        command: words(command?.value, folder),
        environment: plain(environment),
        listens: listens?,
        health: health?,
        start_limit,
        idle_stop: idle_stop.map(|idle| idle.value),
        end_grace: ServiceSpec::END_GRACE,
        eager: eager.unwrap_or(false),
    })
}

fn listens(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<Listens> {
    if section.key_span("listens").is_none() {
        return Some(Listens::AnyPort);
    }
    let expected = "\"port\", the number of a port, \"socket\" or \"nowhere\"";
    let At { value, span } = section.word_or_number("listens", expected, problems)?;
    match (value.as_str(), value.parse::<u16>()) {
        ("port", _) => Some(Listens::AnyPort),
        ("socket", _) => Some(Listens::Socket),
        ("nowhere", _) => Some(Listens::Nowhere),
        (_, Ok(port @ 1..)) => Some(Listens::Port(port)),
        _ => {
            let message = format!("{} must be {expected}, not `{value}`", section.full("listens"));
            problems.add(&span, message, did_you_mean(&value, ["port", "socket", "nowhere"]));
            None
        }
    }
}

fn health(section: &Section<'_>, listens: Option<&Listens>, problems: &mut Problems<'_>) -> Option<Health> {
    let nowhere = listens == Some(&Listens::Nowhere);
    if section.key_span("health").is_none() {
        return Some(if nowhere { Health::Runs } else { Health::Accepts });
    }
    let At { value, span } = section.text("health", problems)?;
    let health = match value.as_str() {
        "accepts" => Health::Accepts,
        "runs" => Health::Runs,
        path if is_path(path) => Health::Http(path.to_owned()),
        _ => {
            let expected = "\"accepts\", \"runs\" or a path such as \"/health\"";
            let message = format!("{} must be {expected}, not `{value}`", section.full("health"));
            problems.add(&span, message, did_you_mean(&value, ["accepts", "runs"]));
            return None;
        }
    };
    if nowhere && health != Health::Runs {
        let message = format!("`health` cannot be `{value}`, as the service listens nowhere");
        problems.add(&span, message, Some("write health = \"runs\"".to_owned()));
    }
    Some(health)
}

/// Whether a text can stand in the first line of an HTTP request.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= 1000 && text.parse::<PathAndQuery>().is_ok_and(|path| path.as_str() == text)
}

/// A service must be told where to listen, and only that.
fn places(
    command: &At<Vec<String>>,
    environment: &BTreeMap<String, At<String>>,
    listens: &Listens,
    problems: &mut Problems<'_>,
) {
    let all = || {
        let words = command.value.iter().map(|word| (word.as_str(), &command.span));
        words.chain(environment.values().map(|variable| (variable.value.as_str(), &variable.span)))
    };
    let has = |what: &str| all().find(|(text, _)| holds(text, what)).map(|(_, span)| span);
    for (what, fits, place) in [
        ("{port}", matches!(listens, Listens::AnyPort | Listens::Port(_)), "at no port"),
        ("{socket}", *listens == Listens::Socket, "at no socket"),
    ] {
        if let Some(span) = has(what).filter(|_| !fits) {
            let message = format!("`{what}` has no value, as the service listens {place}");
            problems.add(span, message, Some("correct `listens`, or leave it out".to_owned()));
        }
    }
    for (what, needed, place) in [
        ("{port}", *listens == Listens::AnyPort, "on a free port"),
        ("{socket}", *listens == Listens::Socket, "at a socket"),
    ] {
        if needed && has(what).is_none() {
            let message =
                format!("the service listens {place}, and neither its command nor its environment has `{what}`");
            problems.add(&command.span, message, Some(format!("write `{what}` where the program expects it")));
        }
    }
}

/// Whether a text has these braces, and they are not the shell's.
fn holds(text: &str, what: &str) -> bool {
    text.match_indices(what).any(|(at, _)| !text.get(..at).is_some_and(|before| before.ends_with('$')))
}

/// Notes a place to listen at where there is none.
fn no_place(text: &At<String>, why: &str, problems: &mut Problems<'_>) {
    for what in ["{port}", "{socket}"].into_iter().filter(|what| holds(&text.value, what)) {
        let suggestion = Some("leave it out".to_owned());
        problems.add(&text.span, format!("`{what}` has no value here: {why}"), suggestion);
    }
}

fn actions(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<Actions> {
    section.only(&ACTIONS, problems);
    let path = match section.text("path", problems) {
        Some(path) => {
            if !is_path(&path.value) {
                let message = format!("{} must be a path such as \"{ACTIONS_PATH}\"", section.full("path"));
                problems.add(&path.span, message, None);
            }
            path.value
        }
        None => ACTIONS_PATH.to_owned(),
    };
    let suggestion = format!("it can have {}", one_of(&KINDS).replace(" or ", " and "));
    if section.key_span("handles").is_none() {
        section.missing("handles", &suggestion, problems);
        return None;
    }
    let kinds = section.texts("handles", problems)?;
    if kinds.is_empty() {
        let span: Span = section.key_span("handles").unwrap_or_default();
        problems.add(&span, format!("{} is empty", section.full("handles")), Some(suggestion.clone()));
    }
    let mut handles: Vec<String> = Vec::new();
    for At { value, span } in kinds {
        if OWN_KINDS.contains(&value.as_str()) {
            let message = format!("`{value}` cannot be taken, as the sandbox itself executes it");
            problems.add(&span, message, Some(suggestion.clone()));
        } else if !KINDS.contains(&value.as_str()) {
            let near = did_you_mean(&value, KINDS).unwrap_or_else(|| suggestion.clone());
            problems.add(&span, format!("`{value}` is not a kind of action that a plugin can take"), Some(near));
        } else if !handles.contains(&value) {
            handles.push(value);
        }
    }
    Some(Actions { handles, path })
}

/// The values without their places.
fn plain(variables: BTreeMap<String, At<String>>) -> BTreeMap<String, String> {
    variables.into_iter().map(|(name, At { value, .. })| (name, value)).collect()
}

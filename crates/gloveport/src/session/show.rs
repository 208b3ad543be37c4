//! `gloveport session show`, `url` and `env`.

use std::{fmt::Write as _, process::ExitCode};

use gloveport_protocol::Secret;
use gloveport_provider::Sandbox;
use serde_json::json;

use super::{
    arguments::{EnvArgs, ShowArgs, UrlArgs},
    list::lifetime,
    runtimes::{Found, Runtimes},
    table::{age, until},
};
use crate::{
    output::{print, print_json, print_painted},
    paint::{Paint, Style},
    visible,
};

pub(super) async fn show(runtimes: &Runtimes, arguments: &ShowArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    if arguments.json {
        print_json(&found.sandbox)?;
    } else {
        print_painted(&text(&found, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(found: &Found, paint: Paint) -> String {
    let sandbox = &found.sandbox;
    let mut rows = vec![
        ("session", sandbox.session_id.to_string()),
        ("sandbox", sandbox.id.to_string()),
        ("runtime", found.runtime.clone()),
        ("state", sandbox.state.to_string()),
        ("lifetime", lifetime(sandbox.lifetime).to_owned()),
        ("age", age(sandbox.created)),
        ("expires in", until(sandbox.expires)),
    ];
    let optional = [("url", &sandbox.url), ("image", &sandbox.image), ("workspace", &sandbox.workspace)];
    rows.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    rows.extend(sandbox.urls.iter().map(|(name, url)| ("port", format!("{name}: {url}"))));
    rows.extend(sandbox.labels.iter().map(|(name, value)| ("label", format!("{name}={value}"))));
    if sandbox.restarts.count > 0 {
        let reasons = sandbox.restarts.reasons.join(", ");
        rows.push(("restarts", format!("{} ({reasons})", sandbox.restarts.count)));
    }
    let mut text = String::new();
    for (name, value) in rows {
        let value = visible::one_line(&value);
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{} {value}", paint.text(Style::Heading, &format!("{name:<10}")));
    }
    text
}

pub(super) async fn url(runtimes: &Runtimes, arguments: &UrlArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    let url = match &arguments.name {
        None => server(&found.sandbox)?,
        Some(name) => found.sandbox.urls.get(name).ok_or_else(|| no_port(&found.sandbox, name))?,
    };
    if arguments.json {
        print_json(&json!({"url": url}))?;
    } else {
        print(&format!("{url}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn environment(runtimes: &Runtimes, arguments: &EnvArgs) -> anyhow::Result<ExitCode> {
    let found = runtimes.find(&arguments.id).await?;
    if arguments.json {
        let key = found.sandbox.session_key.as_ref().map(Secret::expose);
        print_json(&json!({"GLOVEPORT_URL": server(&found.sandbox)?, "GLOVEPORT_KEY": key}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let url = format!("export GLOVEPORT_URL={}\n", quoted(server(&found.sandbox)?));
    let key = match &found.sandbox.session_key {
        Some(key) => format!("export GLOVEPORT_KEY={}\n", quoted(Secret::expose(key))),
        // That of another session must not be sent to this one.
        None => "unset GLOVEPORT_KEY\n".to_owned(),
    };
    print(&(url + &key))?;
    Ok(ExitCode::SUCCESS)
}

fn no_port(sandbox: &Sandbox, name: &str) -> anyhow::Error {
    let names: Vec<&str> = sandbox.urls.keys().map(String::as_str).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    anyhow::anyhow!("the session `{}` has no port `{name}`; it has {known}", sandbox.session_id)
}

fn server(sandbox: &Sandbox) -> anyhow::Result<&String> {
    let url = sandbox.url.as_ref();
    url.ok_or_else(|| anyhow::anyhow!("the session `{}` is {} and has no URL", sandbox.session_id, sandbox.state))
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_for_the_shell() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("a'; rm -rf x"), r"'a'\''; rm -rf x'");
    }
}

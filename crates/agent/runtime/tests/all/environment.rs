//! Values arrive byte for byte in every tool, and nothing in them is ever executed (runtime-interface 6).

use std::collections::BTreeMap;

use crate::support::{Sandbox, Scripted, hex, output, within};
use gloveport_protocol::Secret;
use gloveport_runtime::Runtime;
use proptest::{prelude::*, test_runner::TestRunner};

/// What tries to break out of quotes, or to be expanded.
fn hostile(canary: &str) -> Vec<String> {
    let mut values: Vec<String> = [
        "abc\"def",
        "it's",
        "a b",
        " lead",
        "trail ",
        "",
        "-n",
        "$HOME",
        "${HOME}",
        "$(id)",
        "`id`",
        "\\",
        "\\\\",
        "\\'",
        "\\\"",
        "'",
        "\"",
        "''",
        "\"\"",
        "$'x'",
        "a\nb",
        "\n",
        "a\n\nb\n",
        "\r",
        "a\r\nb",
        "\t",
        "!!",
        "!x",
        "a!b'c!d",
        "#no comment",
        "a;b",
        "a|b",
        "a&b",
        "a>b",
        "*",
        "?",
        "[a]",
        "~",
        "{a,b}",
        "üñï",
        "日本語",
        "🦀",
        "\u{7f}\u{1}\u{1b}[31m",
        "%s%n",
        "a=b",
        "EOF\nEOF",
        "\u{2028}",
        "\\x41\\n",
        "-----BEGIN KEY-----\nabc\n-----END KEY-----\n",
    ]
    .map(str::to_owned)
    .into();
    for form in [
        "'; touch CANARY; '",
        "\"; touch CANARY; \"",
        "$(touch CANARY)",
        "`touch CANARY`",
        "\\'; touch CANARY #",
        "a\ntouch CANARY\n",
        "\r\ntouch CANARY\r\n",
        "$'\\'; touch CANARY; #",
        "'\"'\"'; touch CANARY; '\"'\"'",
        "\u{3}touch CANARY\n",
        "\u{4}",
        "a\\\ntouch CANARY",
        "x' && touch CANARY && echo 'y",
        "${X:-$(touch CANARY)}",
        "!(touch CANARY)",
        "\u{1b}]7777;x;0\u{7}",
    ] {
        values.push(form.replace("CANARY", canary));
    }
    values.push("x".repeat(10_000));
    values
}

/// Prints a variable so that all its bytes are seen.
fn shown(name: &str) -> String {
    format!("printf %s \"${name}\" | od -An -v -tx1 | tr -d ' \\n'")
}

fn variables(values: &[String]) -> BTreeMap<String, Secret> {
    values.iter().enumerate().map(|(index, value)| (format!("hostile_{index}"), Secret::new(value.as_str()))).collect()
}

#[tokio::test]
async fn hostile_values_arrive_in_the_shell_in_its_start_file_and_after_its_restart() {
    let sandbox = Sandbox::start().await;
    let canary = sandbox.home().join("canary");
    let values = hostile(canary.to_str().unwrap());
    assert!(values.len() >= 50);
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    // One by one and all together.
    for (index, value) in values.iter().enumerate() {
        let one = BTreeMap::from([(format!("hostile_{index}"), Secret::new(value.as_str()))]);
        within(runtime.add_env_vars(&one)).await.unwrap();
    }
    within(runtime.add_env_vars(&variables(&values))).await.unwrap();

    for step in ["live", "start file", "restart"] {
        for (index, value) in values.iter().enumerate() {
            let name = format!("HOSTILE_{index}");
            let command = match step {
                "start file" => format!(
                    "env -i HOME=\"$HOME\" PATH=\"$PATH\" bash --norc -c '. ~/.bashrc; {}'",
                    shown(&name).replace('\'', "'\\''")
                ),
                _ => shown(&name),
            };
            assert_eq!(output(&runtime, &command).await.trim(), hex(value), "{step}: {value:?}");
        }
        if step == "start file" {
            output(&runtime, "exit").await;
        }
    }
    assert!(!canary.exists());
    let bashrc = std::fs::read_to_string(sandbox.home().join(".bashrc")).unwrap();
    assert_eq!(bashrc.lines().filter(|line| line.starts_with("export HOSTILE_")).count(), values.len());
    runtime.close().await;
    sandbox.stop().await;
}

#[test]
fn any_value_arrives() {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let sandbox = tokio.block_on(Sandbox::start());
    let runtime = Runtime::new(sandbox.options()).unwrap();
    tokio.block_on(runtime.connect()).unwrap();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(60));
    let pieces = prop_oneof![
        "[^\0]{0,12}",
        proptest::sample::select(vec!["'", "\"", "$(", ")", "`", "\\", "\n", "!", "${", "}", ";", "$'", "#", "\r"])
            .prop_map(str::to_owned),
    ];
    let value = proptest::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat());
    let tried = runner.run(&value, |value| {
        let found = tokio.block_on(async {
            let variable = BTreeMap::from([("ANY".to_owned(), Secret::new(value.as_str()))]);
            runtime.add_env_vars(&variable).await.unwrap();
            output(&runtime, &shown("ANY")).await
        });
        prop_assert_eq!(found.trim(), hex(&value));
        Ok(())
    });
    tokio.block_on(async {
        runtime.close().await;
        sandbox.stop().await;
    });
    tried.unwrap();
}

#[tokio::test]
async fn a_value_can_be_replaced_and_is_found_by_its_line() {
    let sandbox = Sandbox::start().await;
    let runtime = Runtime::new(sandbox.options()).unwrap();
    within(runtime.connect()).await.unwrap();
    within(runtime.add_env_vars(&BTreeMap::new())).await.unwrap();
    assert!(!sandbox.home().join(".bashrc").exists());
    for value in ["abc\"def", "second"] {
        within(runtime.add_env_vars(&BTreeMap::from([("github_token".to_owned(), value.into())]))).await.unwrap();
        assert_eq!(output(&runtime, "printf '%s\\n' \"$GITHUB_TOKEN\"").await.trim(), value);
    }
    assert_eq!(output(&runtime, "grep -c \"^export GITHUB_TOKEN=\" ~/.bashrc").await.trim(), "1");
    output(&runtime, "exit").await;
    assert_eq!(output(&runtime, "echo $GITHUB_TOKEN").await.trim(), "second");
    runtime.close().await;
    sandbox.stop().await;
}

#[tokio::test]
async fn a_failure_names_the_variables_and_hides_their_values() {
    let failing = Scripted::new(|event| {
        let mut observation = crate::support::succeeded("x", "bash: export: `hunter2': not a valid identifier");
        observation.metadata.exit_code = i64::from(matches!(&event.action, gloveport_protocol::Action::Run(_)));
        Ok(gloveport_protocol::Observation::Run(observation))
    });
    let options = gloveport_runtime::RuntimeOptions {
        attach_to_existing: true,
        ..gloveport_runtime::RuntimeOptions::new(gloveport_config::Config::default(), failing)
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    let error = runtime.add_env_vars(&BTreeMap::from([("a".to_owned(), "hunter2".into())])).await.unwrap_err();
    let expected = "Failed to add env vars [A] to environment: bash: export: `<secret_hidden>': not a valid identifier";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_notebook_is_told_even_of_nothing() {
    let sandbox = Scripted::obedient();
    let options = gloveport_runtime::RuntimeOptions {
        plugins: vec!["jupyter".to_owned()],
        attach_to_existing: true,
        ..gloveport_runtime::RuntimeOptions::new(gloveport_config::Config::default(), sandbox.clone())
    };
    let runtime = Runtime::new(options).unwrap();
    within(runtime.connect()).await.unwrap();
    within(runtime.add_env_vars(&BTreeMap::new())).await.unwrap();
    let kinds: Vec<_> = sandbox.asked().iter().map(|event| event.action.kind()).collect();
    assert_eq!(kinds, ["run_ipython"]);
}

//! Nothing that is written anywhere brings the loader down.

use crate::support::Case;
use gloveport_config::LoadOptions;
use proptest::{collection::vec, prelude::*};

/// Pieces that configuration files are made of.
const PIECES: [&str; 44] = [
    "[core]",
    "[sandbox]",
    "[llm]",
    "[llm.x]",
    "[agent]",
    "[mcp]",
    "[[mcp.stdio_servers]]",
    "[kubernetes]",
    "[security]",
    "[extended]",
    "[condenser]",
    "runtime",
    "timeout",
    "volumes",
    "workspace_base",
    "workspace_mount_rewrite",
    "model",
    "sse_servers",
    "shttp_servers",
    "stdio_servers",
    "name",
    "command",
    "args",
    "env",
    "url",
    "api_key",
    " = ",
    "\n",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "5",
    "1.5",
    "true",
    "\"http://a\"",
    "\"/a:/workspace\"",
    "\"é:漢\"",
    "#",
    "1979-05-27T07:32:00Z",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Values of a variable, near those of Python and JSON.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        vec(
            proptest::sample::select(
                &["[", "]", "{", "}", "'", "\"", ":", ",", "1", "-", "e9", "True", "null", "a", "\\", "é"][..]
            ),
            0..20
        )
        .prop_map(|pieces| pieces.concat()),
    ]
}

fn check(options: &LoadOptions) {
    // Every outcome is fine but a panic; what is told of it can be printed.
    match gloveport_config::Config::load(options) {
        Ok(loaded) => drop(format!("{loaded:?} {:?}", loaded.values())),
        Err(error) => drop(format!("{error} {error:?}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_file_brings_the_loader_down(text in text()) {
        check(&Case::file(&text).options);
    }

    #[test]
    fn no_bytes_bring_the_loader_down(bytes in vec(any::<u8>(), 0..200)) {
        let case = Case::empty();
        std::fs::write(case.path().join("config.toml"), &bytes).unwrap();
        std::fs::write(case.path().join(".env"), &bytes).unwrap();
        check(&case.options);
    }

    #[test]
    fn no_variable_brings_the_loader_down(
        values in vec(value(), 14),
        lines in vec(("[A-Z]{1,3}", value()), 0..5),
    ) {
        let names = [
            "SANDBOX_TIMEOUT", "SANDBOX_VOLUMES", "SANDBOX_DOCKER_RUNTIME_KWARGS", "SANDBOX_RUNTIME_EXTRA_BUILD_ARGS",
            "SANDBOX_RUNTIME_STARTUP_ENV_VARS", "MCP_SSE_SERVERS", "MCP_SHTTP_SERVERS", "MCP_STDIO_SERVERS",
            "MAX_BUDGET_PER_TASK", "DEBUG", "WORKSPACE_BASE", "WORKSPACE_MOUNT_REWRITE", "LLM_SAFETY_SETTINGS", "RUNTIME",
        ];
        let variables: Vec<(&str, &str)> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        let env: Vec<String> = lines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        check(&Case::variables(&variables).with_file(".env", &env.join("\n")).options);
    }

    #[test]
    fn an_integer_is_read_as_it_is_written(value in any::<i64>()) {
        let from_file = Case::file(&format!("[core]\nmax_iterations = {value}\n")).config().max_iterations;
        let from_text = Case::file(&format!("[core]\nmax_iterations = \"{value}\"\n")).config().max_iterations;
        let from_variable = Case::variables(&[("MAX_ITERATIONS", &value.to_string())]).config().max_iterations;
        prop_assert_eq!((from_file, from_text, from_variable), (value, value, value));
    }

    #[test]
    fn a_text_is_read_as_it_is_written(value in "\\PC{1,40}") {
        let literal = serde_json::Value::from(value.as_str()).to_string();
        prop_assert_eq!(Case::file(&format!("[core]\ngit_user_name = {literal}\n")).config().git_user_name, value.clone());
        prop_assert_eq!(Case::variables(&[("GIT_USER_NAME", &value)]).config().git_user_name, value);
    }
}

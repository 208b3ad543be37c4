//! Variables: names, casts, and what is told of those that cannot be cast (configuration 2).

use crate::support::Case;
use gloveport_config::{Config, McpHttpServer};
use serde_json::json;

#[test]
fn a_variable_is_cast_by_the_type_of_its_key() {
    type Read = fn(&Config) -> serde_json::Value;
    let timeout: Read = |config| json!(config.sandbox.timeout);
    let debug: Read = |config| json!(config.debug);
    let budget: Read = |config| json!(config.max_budget_per_task);
    let networks: Read = |config| json!(config.sandbox.additional_networks);
    for (name, value, read, expected) in [
        ("SANDBOX_TIMEOUT", "5", timeout, json!(5)),
        ("SANDBOX_TIMEOUT", " +1_000 ", timeout, json!(1000)),
        ("SANDBOX_TIMEOUT", "-5", timeout, json!(-5)),
        ("SANDBOX_TIMEOUT", "", timeout, json!(120)),
        ("SANDBOX_TIMEOUT", "5.0", timeout, json!(120)),
        ("SANDBOX_TIMEOUT", "soon", timeout, json!(120)),
        ("DEBUG", "true", debug, json!(true)),
        ("DEBUG", "TRUE", debug, json!(true)),
        ("DEBUG", "1", debug, json!(true)),
        ("DEBUG", "yes", debug, json!(false)),
        ("DEBUG", "false", debug, json!(false)),
        ("DEBUG", " true", debug, json!(false)),
        ("MAX_BUDGET_PER_TASK", "1e3", budget, json!(1000.0)),
        ("MAX_BUDGET_PER_TASK", "much", budget, json!(null)),
        ("SANDBOX_ADDITIONAL_NETWORKS", "['a', \"b\"]", networks, json!(["a", "b"])),
        ("SANDBOX_ADDITIONAL_NETWORKS", "(\"a\",)", networks, json!(["a"])),
        ("SANDBOX_ADDITIONAL_NETWORKS", "[1, True, 2.5]", networks, json!(["1", "True", "2.5"])),
        ("SANDBOX_ADDITIONAL_NETWORKS", "['a'", networks, json!([])),
        ("SANDBOX_ADDITIONAL_NETWORKS", "{'a': 1}", networks, json!([])),
        ("SANDBOX_ADDITIONAL_NETWORKS", "a,b", networks, json!([])),
    ] {
        assert_eq!(read(&Case::variables(&[(name, value)]).config()), expected, "{name}={value:?}");
    }
}

#[test]
fn the_pinned_examples_of_the_specification_hold() {
    let config = Case::variables(&[
        ("SANDBOX_RUNTIME_EXTRA_BUILD_ARGS", "['--build-arg=A=1', \"--network\", 'host']"),
        ("SANDBOX_DOCKER_RUNTIME_KWARGS", "{'mem_limit': '4g', 'cpus': 2, 'init': True, 'x': {'y': [1, None]}}"),
        ("MCP_SHTTP_SERVERS", "[{'url': 'https://a'}, {'url': 'https://b', 'timeout': 5}]"),
        ("SANDBOX_VOLUMES", "/a:/workspace:rw"),
        ("SANDBOX_USER_ID", "4711"),
    ])
    .config();
    assert_eq!(
        config.sandbox.runtime_extra_build_args,
        Some(vec!["--build-arg=A=1".into(), "--network".into(), "host".into()])
    );
    assert_eq!(
        config.sandbox.docker_runtime_kwargs.map(serde_json::Map::from).map(Into::into),
        Some(json!({"mem_limit": "4g", "cpus": 2, "init": true, "x": {"y": [1, null]}}))
    );
    let server = |url| McpHttpServer::new(url, None).unwrap();
    assert_eq!(config.mcp.shttp_servers, [server("https://a"), server("https://b").with_timeout(Some(5)).unwrap()]);
    assert_eq!((config.sandbox.volumes.as_deref(), config.sandbox.user_id), (Some("/a:/workspace:rw"), 4711));
    assert_eq!(config.workspace_mount_path.as_deref(), Some("/a"));
}

#[test]
fn json_is_read_where_it_is_no_python() {
    let config = Case::variables(&[
        ("SANDBOX_DOCKER_RUNTIME_KWARGS", r#"{"init": true, "x": null, "y": [false]}"#),
        ("MCP_SSE_SERVERS", r#"["https://a"]"#),
    ])
    .config();
    assert_eq!(
        config.sandbox.docker_runtime_kwargs.map(serde_json::Map::from).map(Into::into),
        Some(json!({"init": true, "x": null, "y": [false]}))
    );
    assert_eq!(config.mcp.sse_servers[0].url, "https://a");
}

#[test]
fn every_section_has_its_variables() {
    let config = Case::variables(&[
        ("SECURITY_CONFIRMATION_MODE", "1"),
        ("SECURITY_SECURITY_ANALYZER", "llm"),
        ("KUBERNETES_NAMESPACE", "n"),
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("CLI_VI_MODE", "true"),
        ("LLM_MODEL", "m"),
        ("LLM_API_KEY", "k"),
        ("AGENT_ENABLE_JUPYTER", "false"),
        ("SEARCH_API_KEY", "s"),
        ("FILE_STORE_WEB_HOOK_HEADERS", "{'X': 'y', 'Z': 1}"),
    ])
    .config();
    assert!(config.security.confirmation_mode && config.cli.vi_mode);
    assert_eq!(config.security.security_analyzer.as_deref(), Some("llm"));
    assert_eq!(config.kubernetes.namespace, "n");
    assert_eq!((config.llm("llm").model.as_str(), config.llm("llm").api_key), ("m", Some("k".into())));
    assert!(!config.default_agent_config().enable_jupyter);
    assert_eq!(config.search_api_key, Some("s".into()));
    let headers = config.file_store_web_hook_headers.unwrap();
    assert_eq!((headers["X"].expose(), headers["Z"].expose()), ("y", "1"));
}

#[test]
fn variables_do_not_reach_named_groups() {
    let config = Case::file("[core]\n[llm.a]\nseed = 1\n[agent.b]\nenable_mcp = false\n")
        .with_variables(&[("LLM_MODEL", "m"), ("AGENT_ENABLE_CMD", "false")])
        .config();
    assert_eq!(config.llm("llm").model, "m");
    assert_ne!(config.llm("a").model, "m");
    assert!(!config.agent("agent").enable_cmd && config.agent("b").enable_cmd);
}

#[test]
fn a_variable_that_cannot_be_cast_is_told_of_and_keeps_the_value() {
    let case =
        Case::file("[core]\n[sandbox]\ntimeout = 7\n[mcp]\nsse_servers = [\"http://kept\"]\n").with_variables(&[
            ("MCP_SSE_SERVERS", "[{'url': 'hunter2'}]"),
            ("SANDBOX_DOCKER_RUNTIME_KWARGS", "{'password': 'hunter2'"),
            ("SANDBOX_RUNTIME_STARTUP_ENV_VARS", "TOKEN=hunter2"),
            ("SANDBOX_TIMEOUT", "soon"),
            ("SANDBOX_TIMOUT", "8"),
            ("SANDBOX_ENV_TIMEOUT", "8"),
            ("WORKSPACE_BASE", "/w"),
            ("DEBUG", "yes"),
        ]);
    assert_eq!(
        case.notes(),
        [
            "hint: $WORKSPACE_BASE: WORKSPACE_BASE is deprecated; use `volumes` in [sandbox]",
            "warning: $DEBUG: DEBUG is taken for false; only `true` and `1` are true",
            "warning: $SANDBOX_TIMEOUT: Error setting env var SANDBOX_TIMEOUT=soon: check that the value is of the right \
             type; it must be an integer",
            "warning: $SANDBOX_RUNTIME_STARTUP_ENV_VARS: Error setting env var SANDBOX_RUNTIME_STARTUP_ENV_VARS=**********: \
             check that the value is of the right type; it must be a table of texts as a Python literal or JSON",
            "warning: $SANDBOX_DOCKER_RUNTIME_KWARGS: Error setting env var SANDBOX_DOCKER_RUNTIME_KWARGS=**********: check \
             that the value is of the right type; it must be a table as a Python literal or JSON",
            "warning: $MCP_SSE_SERVERS: Error setting env var MCP_SSE_SERVERS=**********: check that the value is of the \
             right type; it[0].url URL must include a scheme (http:// or https://)",
            "hint: $SANDBOX_TIMOUT: SANDBOX_TIMOUT is no setting; did you mean `SANDBOX_TIMEOUT`?",
        ]
    );
    let config = case.config();
    assert_eq!((config.sandbox.timeout, config.mcp.sse_servers[0].url.as_str()), (7, "http://kept"));
}

#[test]
fn a_dot_env_file_here_or_above_adds_variables_and_replaces_none() {
    let mut case = Case::empty()
        .with_file(".env", "SANDBOX_TIMEOUT=7\nRUNTIME=local\nSANDBOX_ENV_X=y\nwrong line\n")
        .with_file("a/b/config.toml", "[core]\n")
        .with_variables(&[("RUNTIME", "remote")]);
    case.options.current_directory = case.path().join("a/b");
    let loaded = case.load();
    assert_eq!((loaded.config.sandbox.timeout, loaded.config.runtime.as_str()), (7, "remote"));
    assert_eq!(loaded.environment.get("SANDBOX_ENV_X").map(String::as_str), Some("y"));
    let file = case.path().join(".env").display().to_string();
    assert_eq!(loaded.origins.of("sandbox", "timeout").to_string(), format!("$SANDBOX_TIMEOUT ({file})"));
    assert_eq!(loaded.origins.of("core", "runtime").to_string(), "$RUNTIME");
    assert_eq!(
        crate::support::texts(&loaded.notes),
        [format!("warning: {file}:4: the line cannot be read and is passed over")]
    );

    // The nearest one counts, alone.
    let case = case.with_file("a/.env", "DEBUG=1\n");
    let config = case.config();
    assert_eq!((config.sandbox.timeout, config.debug), (120, true));
}

#[test]
fn the_host_of_mcp_and_the_user_follow_the_process() {
    let mut case = Case::variables(&[("port", "8080")]);
    case.options.user_id = Some(4711);
    let loaded = case.load();
    assert_eq!((loaded.config.mcp_host.as_str(), loaded.config.sandbox.user_id), ("localhost:8080", 4711));
    assert!(loaded.values().iter().all(|value| value.is_default));
    let mut case = Case::file("[core]\n[sandbox]\ntimeout = 5\n");
    case.options.user_id = Some(4711);
    assert_eq!(case.config().sandbox.user_id, 4711);
}

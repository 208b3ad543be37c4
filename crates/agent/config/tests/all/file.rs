//! The file: sections, keys, types, and what is told of mistakes (configuration 3 to 6).

use std::collections::BTreeMap;

use crate::support::Case;
use gloveport_config::{Config, ConfigError, LoadOptions, McpHttpServer, McpSseServer, McpStdioServer, Severity};
use serde_json::json;

#[test]
fn every_situation_of_the_file_is_told_of() {
    for (text, expected) in [
        ("[core]\n", &[][..]),
        ("", &["warning: config.toml: No [core] section found in config.toml. Core settings will use defaults."]),
        (
            "[core]\nruntime = local\n",
            &["warning: config.toml:2:11: Cannot parse config from toml, toml values have not been applied: string \
                 values must be quoted, expected literal string"],
        ),
        (
            "[core]\nruntim = \"x\"\n",
            &["warning: config.toml:2:1: Unknown config key \"runtim\" in [core] section; did you mean `runtime`?"],
        ),
        (
            "[core]\n volumes = \"x\"\n",
            &["warning: config.toml:2:2: Unknown config key \"volumes\" in [core] section; it is a key of [sandbox]"],
        ),
        (
            "[core]\nmax_iterations = \"many\"\ndebug = 1\n",
            &["warning: config.toml:2:18: `max_iterations` in [core]: must be an integer, not a text"],
        ),
        (
            "[core]\nsandbox = { timeout = 5 }",
            &["warning: config.toml:2:1: Unknown config key \"sandbox\" in [core] section; it is a section of its \
                 own, [sandbox]"],
        ),
        ("core = 5", &["warning: config.toml:1:1: `core` must be a section; it is not applied"]),
        (
            "[core]\n[sanbox]\n[x]\n",
            &[
                "warning: config.toml:2:2: Unknown section [sanbox] in config.toml; did you mean `sandbox`?",
                "warning: config.toml:3:2: Unknown section [x] in config.toml",
            ],
        ),
        (
            "[core]\n[SandBox]\n",
            &["warning: config.toml:2:2: [SandBox] is not applied: sections have lower-case names; write [sandbox]"],
        ),
        (
            "runtime = \"local\"\n[core]\n",
            &["warning: config.toml:1:1: Unknown section [runtime] in config.toml; it is a key of [core]"],
        ),
        (
            "[core]\n[llm]\ntemperature = \"hot\"\n[llm.b]\nmodl = \"x\"\n",
            &[
                "warning: config.toml:3:15: `temperature` in [llm]: must be a number, not a text",
                "warning: config.toml:2:2: Cannot parse [llm] config from toml. Continuing with defaults.",
                "warning: config.toml:5:1: unknown key `modl` in [llm.b]; did you mean `model`?",
                "warning: config.toml:4:6: Cannot parse [llm.b] config from toml. This section will be skipped.",
            ],
        ),
        (
            "[core]\nextended = 1\n[agent]\nenable_comand = true\n",
            &[
                "warning: config.toml:2:1: Unknown config key \"extended\" in [core] section; it is a section of its \
                 own, [extended]",
                "warning: config.toml:4:1: unknown key `enable_comand` in [agent]; did you mean `enable_cmd`?",
                "warning: config.toml:3:2: Cannot parse [agent] config from toml. Continuing with defaults.",
            ],
        ),
        (
            "agent = 1\nllm = 2\nextended = 3\ncondenser = 4\n[core]\n",
            &[
                "warning: config.toml:1:1: `agent` must be a section; it is not applied",
                "warning: config.toml:2:1: `llm` must be a section; it is not applied",
                "warning: config.toml:3:1: `extended` must be a section; it is not applied",
                "warning: config.toml:4:1: `condenser` must be a section; it is not applied",
            ],
        ),
        (
            "[core]\n[condenser]\ntype = \"noop\"\n[model_routing]\n",
            &[
                "hint: config.toml:2:2: [condenser] is accepted, but not used by gloveport",
                "hint: config.toml:4:2: [model_routing] is accepted, but not used by gloveport",
            ],
        ),
        (
            "[core]\nworkspace_base = \"w\"\nruntime = \"eventstream\"\n",
            &[
                "hint: config.toml:2:1: `workspace_base` in [core] is deprecated; use `volumes` in [sandbox]",
                "hint: config.toml:3: the runtime name `eventstream` is deprecated; use `docker`",
            ],
        ),
        (
            "[core]\n[llm]\ncompletion_kwargs = { seed = 1 }\n",
            &["hint: config.toml:3:1: `completion_kwargs` in [llm] is a table, so it is read as a named group; as a \
                 key it can only stand in [llm.NAME]"],
        ),
        (
            "[core]\n[mcp]\nsse_servers = [{ url = \"http://a\", api_kye = \"hunter2\" }]\n",
            &["warning: config.toml:3:36: unknown member `api_kye` in `sse_servers[0]` of [mcp]; it is ignored; did \
                 you mean `api_key`?"],
        ),
        (
            "[core]\n\"\\u001b[31mred\" = 1\n",
            &["warning: config.toml:2:1: Unknown config key \"\\u{1b}[31mred\" in [core] section"],
        ),
    ] {
        assert_eq!(Case::file(text).notes(), expected, "{text}");
        Case::file(text).load();
    }
}

#[test]
fn a_mistake_in_a_strict_section_is_fatal_and_tells_its_place() {
    for (text, expected) in [
        (
            "[core]\n[sandbox]\ntimeot = 5\n",
            "config.toml:3:1: Error in [sandbox] section in config.toml: unknown key `timeot` in [sandbox]; did you mean \
             `timeout`?",
        ),
        (
            "[core]\n[sandbox]\ntimeout = \"soon\"\nplatform = 5\n",
            "config.toml:3:11: Error in [sandbox] section in config.toml: `timeout` in [sandbox]: must be an integer, not a \
             text\nconfig.toml:4:12: Error in [sandbox] section in config.toml: `platform` in [sandbox]: must be a text, \
             not an integer",
        ),
        (
            "sandbox = 5\n[core]\n",
            "config.toml:1:1: Error in [sandbox] section in config.toml: `sandbox` must be a section, not an integer",
        ),
        (
            "[core]\n[sandbox]\nadditional_networks = [\"a\", 5]\n",
            "config.toml:3:29: Error in [sandbox] section in config.toml: `additional_networks[1]` in [sandbox]: must be a \
             text, not an integer",
        ),
        (
            "[core]\n[sandbox]\nruntime_startup_env_vars = { A = 5 }\n",
            "config.toml:3:34: Error in [sandbox] section in config.toml: `runtime_startup_env_vars.A` in [sandbox]: must \
             be a text, not an integer",
        ),
        (
            "[core]\n[security]\nenable_security_analyzer = true\n",
            "config.toml:3:1: Error in [security] section in config.toml: unknown key `enable_security_analyzer` in \
             [security]",
        ),
        (
            "[core]\n[mcp]\nservers = []\n",
            "config.toml:3:1: Error in MCP sections in config.toml: unknown key `servers` in [mcp]",
        ),
        (
            "[core]\n[mcp]\nshttp_servers = [\"http://a\", { url = \"http://a\", timeout = 0 }]\n",
            "config.toml:3:60: Error in MCP sections in config.toml: `shttp_servers[1].timeout` in [mcp]: Timeout must be \
             positive",
        ),
        (
            "[core]\n[mcp]\nsse_servers = [\"http://a\", { url = \"http://a\" }]\n",
            "config.toml:3:28: Error in MCP sections in config.toml: Duplicate MCP server URLs are not allowed",
        ),
        (
            "[core]\n[mcp]\nsse_servers = [{ api_key = \"x\" }]\n",
            "config.toml:3:16: Error in MCP sections in config.toml: `sse_servers[0]` in [mcp]: `url` is missing",
        ),
        (
            "[core]\n[kubernetes]\nnamspace = \"x\"\n",
            "config.toml:3:1: Invalid kubernetes configuration: unknown key `namspace` in [kubernetes]; did you mean \
             `namespace`?",
        ),
    ] {
        assert_eq!(Case::file(text).failure(), expected, "{text}");
    }
}

#[test]
fn a_fatal_mistake_comes_with_all_other_notes() {
    let case = Case::file("[core]\nruntim = 1\n[sandbox]\ntimeot = 5\n");
    let ConfigError::Invalid { notes } = case.try_load().unwrap_err() else { panic!("another error") };
    let severities: Vec<Severity> = notes.iter().map(|note| note.severity).collect();
    assert_eq!(severities, [Severity::Warning, Severity::Error]);
}

#[test]
fn a_file_that_is_not_there_changes_nothing() {
    let case = Case::empty();
    assert_eq!(case.notes(), ["hint: config.toml: file not found. Toml values have not been applied."]);
    assert!(!case.load().notes[0].costs_a_setting());
    let mut case = Case::empty();
    case.options.file = Some("mine.toml".into());
    assert_eq!(case.notes(), ["warning: mine.toml: file not found. Toml values have not been applied."]);
    assert!(case.load().notes[0].costs_a_setting());
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_one_that_is_no_text_is_passed_over() {
    let mut case = Case::empty().with_file("mine.toml/inside", "");
    case.options.file = Some("mine.toml".into());
    assert!(case.failure().starts_with("cannot read the configuration file mine.toml: "), "{}", case.failure());
    let case = Case::empty();
    std::fs::write(case.path().join("config.toml"), b"[core]\nruntime = \"\xff\"\n").unwrap();
    let expected =
        "warning: config.toml: Cannot parse config from toml, toml values have not been applied: it is not UTF-8";
    assert_eq!(case.notes(), [expected]);
    let mut case = Case::file(&"#".repeat(4 * 1024 * 1024 + 1));
    case.options.file = Some("config.toml".into());
    assert_eq!(case.failure(), "the configuration file config.toml is larger than 4194304 bytes");
}

#[test]
fn the_file_of_another_program_is_told_in_a_hint_and_changes_nothing() {
    let hugo = "baseURL = \"https://example.org\"\ntimeout = \"30s\"\n[params]\nx = 1\n[security]\nenableInlineShortcodes \
                = false\n[security.exec]\nallow = [\"^go$\"]\n";
    for (text, why) in [
        ("[build]\njobs = 2\n[profile.dev]\ndebug = 1\n", "it has [build], [profile], and no setting of OpenHands"),
        (
            "version = 2\n[plugins.\"io\"]\nsandbox_image = \"pause\"\n[grpc]\n",
            "it has `version`, [plugins], [grpc], and",
        ),
        (hugo, "it has `baseURL`, `timeout`, [params], and"),
        (
            "model = \"m\"\nsandbox_mode = \"x\"\n[mcp_servers.a]\ncommand = \"b\"\n",
            "it has `model`, `sandbox_mode`, [mcp_",
        ),
        ("title = {{ .Title }}\n[menu]\n[[menu.main]]\nx = 1\n", "it is not TOML, and has no section of OpenHands"),
    ] {
        let case = Case::file(text);
        let notes = case.notes();
        let expected = "hint: config.toml: this is the file of another program, and passed over: ";
        assert!(notes.len() == 1 && notes[0].starts_with(&format!("{expected}{why}")), "{text}: {notes:?}");
        assert_eq!(case.load().origins, gloveport_config::Origins::default(), "{text}");
        assert!(!case.load().notes[0].costs_a_setting());
        // Whoever names it means it.
        let mut case = Case::file(text);
        case.options.file = Some("config.toml".into());
        assert!(!case.notes().iter().any(|note| note.contains("another program")), "{text}");
    }
    for case in [Case::empty().with_file("config.toml/inside", ""), Case::file(&"#".repeat(4 * 1024 * 1024 + 1))] {
        let notes = case.notes();
        assert!(notes[0].contains("another program, and passed over: it is "), "{notes:?}");
    }
}

#[test]
fn a_file_with_a_setting_of_ours_is_ours_whatever_else_is_in_it() {
    for text in [
        "[build]\n[sandbox]\ntimeot = 5\n",
        "[sanbox]\n[x]\n",
        "[sanbox]\nvolumes = \"a:b\"\n[x]\n",
        "[x]\n[core]\n",
        "runtime = \"local\"\n",
        "[llm.a]\nmodel = \"x\"\n[y]\n",
        "[extended.docker]\nx = 1\n[y]\n",
        "[x]\n[core]\nruntime = local\n",
    ] {
        let notes = Case::file(text).notes();
        assert!(!notes.iter().any(|note| note.contains("another program")), "{text}: {notes:?}");
        assert!(notes.iter().any(|note| !note.starts_with("hint")), "{text}: {notes:?}");
    }
}

#[test]
fn a_named_file_is_found_from_the_current_directory() {
    let mut case = Case::empty().with_file("a/b.toml", "[core]\nruntime = \"local\"\n");
    case.options.file = Some("a/b.toml".into());
    let loaded = case.load();
    assert_eq!(loaded.config.runtime, "local");
    assert_eq!(loaded.origins.of("core", "runtime").to_string(), "a/b.toml:2");
    case.options = LoadOptions {
        file: Some(case.path().join("a/b.toml")),
        current_directory: "/".into(),
        ..LoadOptions::default()
    };
    assert_eq!(case.config().runtime, "local");
}

#[test]
fn broken_toml_applies_nothing_and_tells_every_mistake() {
    let case = Case::file("[core]\nruntime = \"local\"\na = \nb == 1\n");
    assert_eq!(case.config().runtime, "docker");
    let lines: Vec<String> = case.notes().iter().map(|note| note.chars().take(23).collect()).collect();
    assert_eq!(lines, ["warning: config.toml:3:", "warning: config.toml:4:", "warning: config.toml:4:"]);
}

#[test]
fn values_are_read_as_leniently_as_the_reference_validates() {
    let text = "[core]\n[sandbox]\ntimeout = '5'\nclose_delay = 5.0\nenable_gpu = 'Yes'\nenable_auto_lint = 1\nuser_id = \
                true\nrm_all_containers = 'OFF'\nvscode_port = ' 5.00 '\nuse_host_network = 0.0\n[llm]\ntemperature = 1\n\
                top_k = '2.5'\n";
    let config = Case::file(text).config();
    let sandbox = &config.sandbox;
    assert_eq!((sandbox.timeout, sandbox.close_delay, sandbox.user_id, sandbox.vscode_port), (5, 5, 1, Some(5)));
    assert_eq!(
        (sandbox.enable_gpu, sandbox.enable_auto_lint, sandbox.rm_all_containers, sandbox.use_host_network),
        (true, true, false, false)
    );
    assert_eq!((config.llm("llm").temperature, config.llm("llm").top_k), (1.0, Some(2.5)));
    for value in ["5.5", "'5.5'", "'five'", "''", "1979-05-27", "[]", "{}", "inf", "1e300", "99999999999999999999"] {
        let failure = Case::file(&format!("[core]\n[sandbox]\ntimeout = {value}\n")).failure();
        assert!(failure.contains("`timeout` in [sandbox]: must be an integer, not "), "{value}: {failure}");
    }
}

#[test]
fn a_section_replaces_the_whole_section() {
    let config = Case::file("[core]\n[sandbox]\nplatform = \"p\"\n").config();
    let mut expected = Config::default();
    expected.sandbox.platform = Some("p".into());
    assert_eq!(config.sandbox, expected.sandbox);
}

#[test]
fn named_groups_inherit_from_the_base() {
    let case = Case::file(
        "[core]\n[llm]\nmodel = \"base\"\nnum_retries = 3\napi_key = \"k\"\n[llm.\"gpt-3.5\"]\nmodel = \"small\"\n\
         completion_kwargs = { a = 1 }\n[agent]\nenable_cmd = false\nllm_config = \"gpt-3.5\"\n[agent.CodeActAgent]\n\
         enable_cmd = true\n[agent.CodeActAgent.extended]\nb = 2\n",
    );
    let loaded = case.load();
    let config = &loaded.config;
    let small = config.llm("gpt-3.5");
    assert_eq!((small.model.as_str(), small.num_retries, small.api_key), ("small", 3, Some("k".into())));
    assert_eq!(small.completion_kwargs.map(serde_json::Map::from).map(Into::into), Some(json!({"a": 1})));
    assert_eq!(config.llm("unknown"), config.llm("llm"));
    assert!(!config.default_agent_config().enable_cmd);
    assert!(config.agent("CodeActAgent").enable_cmd);
    assert_eq!(config.agent("CodeActAgent").extended.get("b"), Some(&json!(2)));
    assert_eq!(config.agent("Other"), config.default_agent_config());
    assert_eq!(config.llm_of_agent("CodeActAgent").model, "small");
    assert_eq!(loaded.origins.of("llm.gpt-3.5", "model").to_string(), "config.toml:7");
    assert_eq!(loaded.origins.of("llm.gpt-3.5", "num_retries").to_string(), "config.toml:4");
    assert_eq!(loaded.origins.of("llm.gpt-3.5", "seed").to_string(), "default");
}

#[test]
fn a_wrong_group_costs_only_itself_and_a_wrong_base_only_its_own_keys() {
    let config = Case::file("[core]\n[llm]\nmodel = \"m\"\n[llm.bad]\nx = 1\n[llm.good]\nseed = 1\n").config();
    assert_eq!(config.llms.keys().collect::<Vec<_>>(), ["good", "llm"]);
    assert_eq!(config.llm("bad").model, "m");
    let loaded = Case::file("[core]\n[llm]\nmodel = \"m\"\nx = 1\n[llm.good]\nseed = 1\n").load();
    assert_eq!(loaded.config.llm("good").model, gloveport_config::LlmConfig::default().model);
    assert_eq!(loaded.config.llm("good").seed, Some(1));
    assert_eq!(loaded.origins.of("llm", "model").to_string(), "default");
}

#[test]
fn a_model_of_azure_has_a_version() {
    let loaded = Case::file("[core]\n[llm]\nmodel = \"azure/x\"\n[llm.b]\napi_version = \"mine\"\n").load();
    assert_eq!(loaded.config.llm("llm").api_version.as_deref(), Some("2024-12-01-preview"));
    assert_eq!(loaded.config.llm("b").api_version.as_deref(), Some("mine"));
    assert_eq!(loaded.origins.of("llm", "api_version").to_string(), "follows from `model`");
}

#[test]
fn servers_of_mcp_are_urls_or_tables() {
    let config = Case::file(
        "[core]\n[mcp]\nsse_servers = [\"http://a\", { url = \" http://b \", api_key = \"k\" }]\n\
         shttp_servers = [\"http://c\", { url = \"http://c\", timeout = 3600 }]\n[[mcp.stdio_servers]]\nname = \"n\"\n\
         command = \"npx\"\nargs = \"-y 'a b'\"\nenv = \"A=1,B=2=3\"\n",
    )
    .config();
    assert_eq!(
        config.mcp.sse_servers,
        [McpSseServer::new("http://a", None).unwrap(), McpSseServer::new("http://b", Some("k".into())).unwrap()]
    );
    let plain = McpHttpServer::new("http://c", None).unwrap();
    assert_eq!(config.mcp.shttp_servers, [plain.clone(), plain.with_timeout(Some(3600)).unwrap()]);
    let env = BTreeMap::from([("A".into(), "1".into()), ("B".into(), "2=3".into())]);
    assert_eq!(
        config.mcp.stdio_servers,
        [McpStdioServer::new("n", "npx", vec!["-y".into(), "a b".into()], env).unwrap()]
    );
}

#[test]
fn free_sections_are_kept() {
    let config = Case::file("[core]\n[extended]\na = [1, { b = 1979-05-27 }]\n[condenser]\ntype = \"noop\"\n").config();
    assert_eq!(config.extended.get("a"), Some(&json!([1, {"b": "1979-05-27"}])));
    assert_eq!(config.condenser.get("type"), Some(&json!("noop")));
    assert!(config.model_routing.is_empty());
}

#[test]
fn every_core_key_has_the_default_of_the_specification() {
    let config = Config::default();
    assert_eq!(
        (config.runtime.as_str(), config.default_agent.as_str(), config.file_store.as_str()),
        ("docker", "CodeActAgent", "local")
    );
    assert_eq!((config.file_store_path.as_str(), config.cache_dir.as_str()), ("~/.openhands", "/tmp/cache"));
    assert_eq!((config.max_iterations, config.max_concurrent_conversations, config.client_wait_timeout), (500, 3, 30));
    assert_eq!((config.conversation_max_age_seconds, config.file_uploads_max_file_size_mb), (864_000, 0));
    assert_eq!(config.file_uploads_allowed_extensions, [".*"]);
    assert_eq!(config.mcp_host, "localhost:3000");
    assert_eq!((config.sandbox.timeout, config.sandbox.close_delay, config.sandbox.user_id), (120, 3600, 1000));
    assert_eq!((config.sandbox.keep_runtime_alive, config.sandbox.pause_closed_runtimes), (false, true));
    assert_eq!(config.sandbox.base_image(), "nikolaik/python-nodejs:python3.12-nodejs22");
    assert_eq!(config.llm("llm").correct_num, 5);
    assert_eq!((config.jwt_secret, config.max_budget_per_task, config.workspace_base), (None, None, None));
}

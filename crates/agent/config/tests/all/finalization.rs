//! What follows from the settings, and what the command line overrides (configuration 1, 7 and 9).

use crate::support::Case;
use gloveport_config::{Origin, Overrides};

/// Base, mount path and path in the sandbox; `@` is the current directory.
fn workspace(text: &str) -> (Option<String>, Option<String>, String) {
    let case = Case::file(text);
    let here = case.path().display().to_string();
    let config = case.config();
    let shown = |path: Option<String>| path.map(|path| path.replace(&here, "@"));
    (shown(config.workspace_base), shown(config.workspace_mount_path), config.workspace_mount_path_in_sandbox)
}

#[test]
fn the_workspace_follows_from_volumes_or_from_the_deprecated_keys() {
    for (text, base, mount, inside) in [
        ("[core]\n", None, None, "/workspace"),
        ("[core]\nworkspace_mount_path_in_sandbox = '/x'\n", None, None, "/x"),
        ("[core]\n[sandbox]\nvolumes = '/a:/workspace:rw'\n", Some("/a"), Some("/a"), "/workspace"),
        ("[core]\n[sandbox]\nvolumes = '/d:/data,w/../v/./x:/workspace'\n", Some("@/v/x"), Some("@/v/x"), "/workspace"),
        ("[core]\n[sandbox]\nvolumes = '/a:/workspace,/b:/workspace:ro'\n", Some("/a"), Some("/a"), "/workspace"),
        (
            "[core]\nworkspace_mount_path_in_sandbox = '/x'\n[sandbox]\nvolumes = '/a:/workspace'\n",
            Some("/a"),
            Some("/a"),
            "/workspace",
        ),
        (
            "[core]\nworkspace_base = '/w'\nworkspace_mount_path = '/m'\n[sandbox]\nvolumes = '/a:/workspace/b:ro'\n",
            None,
            None,
            "/workspace",
        ),
        ("[core]\nworkspace_base = './w'\n", Some("@/w"), Some("@/w"), "/workspace"),
        ("[core]\nworkspace_base = ''\n", Some("@"), Some("@"), "/workspace"),
        ("[core]\nworkspace_mount_path = 'm'\n", None, Some("m"), "/workspace"),
        ("[core]\nworkspace_base = '/w'\nworkspace_mount_path = 'm'\n", Some("/w"), Some("m"), "/workspace"),
        (
            "[core]\nworkspace_base = '/home/me/w'\nworkspace_mount_rewrite = '/home/me:/mnt:x'\n",
            Some("/home/me/w"),
            Some("/mnt/w"),
            "/workspace",
        ),
        ("[core]\nworkspace_base = '/w'\nworkspace_mount_rewrite = ''\n", Some("/w"), Some("/w"), "/workspace"),
        ("[core]\nworkspace_mount_path = '/m'\nworkspace_mount_rewrite = '/none:/x'\n", None, Some("@"), "/workspace"),
        ("[core]\nworkspace_mount_rewrite = '/a:/b'\n", None, None, "/workspace"),
    ] {
        let expected = (base.map(str::to_owned), mount.map(str::to_owned), inside.to_owned());
        assert_eq!(workspace(text), expected, "{text}");
    }
}

#[test]
fn a_mount_that_is_none_is_fatal() {
    let message = |mount: &str| {
        format!(
            "config.toml:3: Invalid mount format in sandbox.volumes: {mount}. Expected format: \
             'host_path:container_path[:mode]', e.g. '/my/host/dir:/workspace:rw'"
        )
    };
    for (volumes, expected) in [
        ("", message("")),
        ("/a", message("/a")),
        ("/a:/b,", message("")),
        ("/a:/workspace,b:c:d:e,f", format!("{}\n{}", message("b:c:d:e"), message("f"))),
    ] {
        assert_eq!(Case::file(&format!("[core]\n[sandbox]\nvolumes = '{volumes}'\n")).failure(), expected, "{volumes}");
    }
    assert_eq!(
        Case::file("[core]\nworkspace_base = '/a'\nworkspace_mount_rewrite = 'x'\n").failure(),
        "config.toml:3: `workspace_mount_rewrite` must have the form FROM:TO"
    );
}

#[test]
fn derived_values_name_what_they_follow_from() {
    let loaded = Case::file("[core]\nworkspace_base = '/w'\n[sandbox]\nvolumes = '/a:/b'\n").load();
    let from_volumes = Origin::Derived { from: "`volumes` in [sandbox]".into() };
    assert_eq!(*loaded.origins.of("core", "workspace_base"), from_volumes);
    assert_eq!(*loaded.origins.of("core", "workspace_mount_path"), Origin::Default);
    let loaded = Case::file("[core]\nworkspace_base = '/w'\n").load();
    assert_eq!(loaded.origins.of("core", "workspace_base").to_string(), "config.toml:2");
    assert_eq!(loaded.origins.of("core", "workspace_mount_path").to_string(), "follows from `workspace_base`");
}

#[test]
fn the_runtime_cli_has_neither_jupyter_nor_a_browser() {
    for runtime in ["cli", "CLI"] {
        let loaded =
            Case::file("[core]\n[agent.X]\nenable_jupyter = false\n").with_variables(&[("RUNTIME", runtime)]).load();
        for name in ["agent", "X"] {
            let agent = loaded.config.agent(name);
            assert_eq!((agent.enable_jupyter, agent.enable_browsing, agent.enable_cmd), (false, false, true));
        }
        let derived = "follows from `runtime` in [core], which is `cli`";
        assert_eq!(loaded.origins.of("agent", "enable_jupyter").to_string(), derived);
        assert_eq!(loaded.origins.of("agent.X", "enable_jupyter").to_string(), "config.toml:3");
    }
    assert!(Case::variables(&[("RUNTIME", "local")]).config().default_agent_config().enable_jupyter);
}

#[test]
fn the_folder_of_completions_is_absolute() {
    let case = Case::file("[core]\n[llm]\nlog_completions_folder = 'c'\n[llm.a]\nlog_completions_folder = '/x/../y'\n");
    let config = case.config();
    assert_eq!(config.llm("llm").log_completions_folder, case.path().join("c").to_str().unwrap());
    assert_eq!(config.llm("a").log_completions_folder, "/y");
    let case = Case::empty();
    assert_eq!(case.config().llm("llm").log_completions_folder, case.path().join("logs/completions").to_str().unwrap());
}

#[test]
fn loading_changes_nothing_on_the_disk() {
    let case = Case::empty();
    let cache = case.path().join("cache");
    let case = case.with_file("config.toml", &format!("[core]\ncache_dir = '{}'\n", cache.display()));
    assert_eq!(case.config().jwt_secret, None);
    assert_eq!(std::fs::read_dir(case.path()).unwrap().count(), 1);
}

#[test]
fn a_flag_comes_before_a_variable_before_the_file_before_the_default() {
    let file = "[core]\nmax_iterations = 1\nruntime = 'file'\nfile_store = 'file'\n";
    let case = Case::file(file)
        .with_variables(&[("MAX_ITERATIONS", "2"), ("RUNTIME", "variable")])
        .with_overrides(Overrides { max_iterations: Some(3), ..Overrides::default() });
    let loaded = case.load();
    let config = &loaded.config;
    assert_eq!(
        (config.max_iterations, config.runtime.as_str(), config.file_store.as_str(), config.cache_dir.as_str()),
        (3, "variable", "file", "/tmp/cache")
    );
    let origins = ["max_iterations", "runtime", "file_store", "cache_dir"]
        .map(|key| (loaded.origins.of("core", key).kind(), loaded.origins.of("core", key).to_string()));
    let expected =
        [("flag", "--max-iterations"), ("environment", "$RUNTIME"), ("file", "config.toml:4"), ("default", "default")];
    assert_eq!(origins, expected.map(|(kind, text)| (kind, text.to_owned())));
}

#[test]
fn every_flag_has_its_effect_and_unset_ones_have_none() {
    let case = Case::file("[core]\n[agent.small]\nenable_cmd = false\n").with_overrides(Overrides {
        agent_class: Some("Mine".into()),
        max_iterations: None,
        max_budget_per_task: Some(1.5),
        selected_repo: Some("a/b".into()),
        llm_config: None,
        agent_config: Some("[agent.small]".into()),
        directory: Some("work".into()),
    });
    let work = case.path().join("work").to_str().unwrap().to_owned();
    let loaded = case.load();
    let config = &loaded.config;
    assert_eq!(
        (config.default_agent.as_str(), config.max_iterations, config.max_budget_per_task),
        ("Mine", 500, Some(1.5))
    );
    assert_eq!(config.sandbox.selected_repo.as_deref(), Some("a/b"));
    assert!(!config.default_agent_config().enable_cmd);
    assert_eq!((config.workspace_base.as_ref(), config.workspace_mount_path.as_ref()), (Some(&work), Some(&work)));
    assert_eq!(loaded.origins.of("sandbox", "selected_repo").to_string(), "--selected-repo");
    assert_eq!(loaded.origins.of("agent", "enable_cmd").to_string(), "config.toml:3");
}

#[test]
fn a_model_group_is_taken_from_the_file_or_else_from_the_users_file() {
    let with = |name: &str| {
        let case = Case::file("[core]\n[llm]\nseed = 1\n[llm.mine]\nmodel = 'a'\n")
            .with_file(
                "home/.openhands/config.toml",
                "[llm]\nseed = 2\n[llm.far]\nmodel = 'b'\n[llm.bad]\nmodl = 'c'\n",
            )
            .with_overrides(Overrides { llm_config: Some(name.into()), ..Overrides::default() });
        let home = case.path().join("home");
        let mut case = case;
        case.options.home = Some(home);
        case
    };
    let llm = |name: &str| with(name).config().llm("llm");
    assert_eq!((llm("mine").model.as_str(), llm("mine").seed), ("a", Some(1)));
    assert_eq!(llm("[llm.mine]").model, "a");
    // A group of the user's file inherits from nothing.
    assert_eq!((llm("far").model.as_str(), llm("far").seed), ("b", None));
    assert_eq!(llm("llm").seed, Some(1));
    let far = with("far");
    let file = far.path().join("home/.openhands/config.toml").display().to_string();
    assert_eq!(far.load().origins.of("llm", "model").to_string(), format!("{file}:4"));
    assert_eq!(
        with("mien").failure(),
        "--llm-config: Cannot find LLM configuration 'mien' in any config file; did you mean `mine`?"
    );
    assert!(with("bad").failure().ends_with("config.toml:6:1: unknown key `modl` in [llm.bad]; did you mean `model`?"));
    let missing = Overrides { agent_config: Some("x".into()), ..Overrides::default() };
    assert_eq!(
        Case::empty().with_overrides(missing).failure(),
        "--agent-config: cannot find the agent configuration 'x' in the configuration file"
    );
}

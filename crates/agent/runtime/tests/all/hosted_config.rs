//! What a configuration makes of a sandbox, and what a runtime has no use for (configuration 4, 5, 7).

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::{collections::BTreeMap, time::Duration};

use gloveport_config::Config;
use gloveport_protocol::Secret;
use gloveport_provider::{
    Capabilities, ExposedPort, Isolation, Level, Mount, MountSource, ResourceLimits, SessionId, Workspace,
};
use gloveport_runtime::{FromConfig, RuntimeError};

use crate::support::engine::stands_for;

fn local() -> Capabilities {
    Capabilities {
        host_directories: true,
        limit_memory: true,
        ports: true,
        pause: true,
        keep_alive: true,
        warm: true,
        ..Capabilities::NONE
    }
}

fn docker() -> Capabilities {
    Capabilities { isolation: Isolation::Container, images: true, volumes: true, gpus: true, warm: false, ..local() }
}

fn remote() -> Capabilities {
    Capabilities {
        isolation: Isolation::Container,
        images: true,
        resource_factor: true,
        runtime_classes: true,
        pause: true,
        keep_alive: true,
        ..Capabilities::NONE
    }
}

fn from(config: &Config, runtime: &str, can: &Capabilities) -> Result<FromConfig, RuntimeError> {
    with(config, runtime, can, &[])
}

fn with(
    config: &Config,
    runtime: &str,
    can: &Capabilities,
    variables: &[(&str, &str)],
) -> Result<FromConfig, RuntimeError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let can = Capabilities { stands_for: stands_for(runtime), ..can.clone() };
    FromConfig::new(config, runtime, &can, SessionId::new("session").unwrap(), &["jupyter".to_owned()], &variables)
}

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}

#[test]
fn the_defaults_are_a_sandbox_everywhere_without_a_warning() {
    for (runtime, can, image, seconds) in [
        ("local", local(), None, 120),
        ("docker", docker(), Some("nikolaik/python-nodejs:python3.12-nodejs22"), 120),
        ("remote", remote(), Some("nikolaik/python-nodejs:python3.12-nodejs22"), 180),
        ("kubernetes", docker(), Some("nikolaik/python-nodejs:python3.12-nodejs22"), 300),
        ("nothing", Capabilities::NONE, None, 120),
    ] {
        let made = from(&Config::default(), runtime, &can).unwrap();
        assert!(made.ignored.is_empty(), "{runtime}: {:?}", made.ignored);
        made.spec.check(runtime, &can).unwrap();
        assert_eq!(made.spec.image.as_deref(), image);
        assert_eq!(made.spec.workspace, Workspace::Temporary);
        assert_eq!(made.spec.plugins, ["jupyter"]);
        assert_eq!(made.options.alive_within, Duration::from_secs(seconds));
        let options = (made.options.keep_alive, made.options.pause_closed, made.options.retries, made.options.warm);
        assert_eq!(options, (false, runtime == "remote", true, 0));
        assert_eq!(made.options.client.sandbox_timeout, Duration::from_mins(2));
    }
}

#[test]
fn a_browser_that_is_not_enabled_is_left_out_by_every_runtime() {
    let off = config(|config| config.enable_browser = false);
    for (runtime, can) in
        [("local", local()), ("docker", docker()), ("remote", remote()), ("nothing", Capabilities::NONE)]
    {
        let made = from(&off, runtime, &can).unwrap();
        assert_eq!(made.spec.environment, [("GLOVEPORT_BROWSER".to_owned(), "off".to_owned())].into(), "{runtime}");
        assert!(from(&Config::default(), runtime, &can).unwrap().spec.environment.is_empty(), "{runtime}");
    }
}

#[test]
fn origins_whose_pages_may_use_a_sandbox_are_told_to_it_by_every_runtime_and_what_is_none_is_refused() {
    let pages = |origins: &[&str]| {
        config(|config| {
            config.sandbox.allow_origins = Some(origins.iter().map(|&origin| origin.to_owned()).collect());
        })
    };
    let both = pages(&["https://app.example", "http://localhost:5173"]);
    let told = ("GLOVEPORT_ALLOW_ORIGINS".to_owned(), "https://app.example,http://localhost:5173".to_owned());
    for (runtime, can) in
        [("local", local()), ("docker", docker()), ("remote", remote()), ("nothing", Capabilities::NONE)]
    {
        assert_eq!(from(&both, runtime, &can).unwrap().spec.environment, [told.clone()].into(), "{runtime}");
        let error = from(&pages(&["https://app.example/"]), runtime, &can).unwrap_err().to_string();
        for words in ["sandbox.allow_origins", "`https://app.example/` is not the origin of a page"] {
            assert!(error.contains(words), "{error}");
        }
    }
}

#[test]
fn keys_of_the_sandbox_arrive_where_the_provider_can_do_them_and_are_named_where_it_cannot() {
    let all = config(|config| {
        config.debug = true;
        let sandbox = &mut config.sandbox;
        sandbox.runtime_container_image = Some("finished".to_owned());
        sandbox.keep_runtime_alive = true;
        sandbox.pause_closed_runtimes = false;
        sandbox.remote_runtime_enable_retries = false;
        sandbox.remote_runtime_init_timeout = 7;
        sandbox.remote_runtime_resource_factor = 4;
        sandbox.remote_runtime_class = Some("sysbox".to_owned());
        sandbox.timeout = 9;
        sandbox.enable_gpu = true;
        sandbox.vscode_port = Some(4000);
        sandbox.platform = Some("linux/arm64".to_owned());
        sandbox.runtime_startup_env_vars = [("A".to_owned(), Secret::new("b"))].into();
        sandbox.use_host_network = true;
    });
    let one = from(&all, "local", &local()).unwrap();
    let ignored = [
        "sandbox.runtime_container_image",
        "sandbox.platform",
        "sandbox.use_host_network",
        "sandbox.enable_gpu",
        "sandbox.remote_runtime_class",
        "sandbox.remote_runtime_resource_factor",
    ];
    assert_eq!(one.ignored, ignored);
    assert_eq!((one.spec.image, one.spec.runtime_class), (None, None));
    assert_eq!(one.spec.ports, [ExposedPort { name: "vscode".to_owned(), port: Some(4000) }]);
    assert_eq!(one.spec.secrets, [("A".to_owned(), Secret::new("b"))].into());
    assert_eq!(one.spec.environment, [("DEBUG".to_owned(), "true".to_owned())].into());
    assert!(one.spec.keep_alive && one.options.keep_alive && !one.options.pause_closed && !one.options.retries);
    assert_eq!(one.options.client.sandbox_timeout, Duration::from_secs(9));

    let one = from(&all, "remote", &remote()).unwrap();
    let ignored = ["sandbox.platform", "sandbox.use_host_network", "sandbox.enable_gpu", "sandbox.vscode_port"];
    assert_eq!(one.ignored, ignored);
    assert_eq!(one.spec.image.as_deref(), Some("finished"));
    assert_eq!(one.spec.runtime_class.as_deref(), Some("sysbox"));
    assert_eq!(one.spec.limits, ResourceLimits { factor: Some(4), ..ResourceLimits::default() });
    assert_eq!(one.options.alive_within, Duration::from_secs(7));
    assert!(!one.options.pause_closed);

    let one = from(&all, "docker", &docker()).unwrap();
    assert_eq!(one.ignored, ["sandbox.remote_runtime_class", "sandbox.remote_runtime_resource_factor"]);
    assert!(one.spec.limits.gpus);
    one.spec.check("docker", &docker()).unwrap();
    assert_eq!(from(&all, "x", &Capabilities::NONE).unwrap().ignored.last(), Some(&"sandbox.keep_runtime_alive"));
}

#[test]
fn a_level_of_isolation_is_for_this_machine_and_is_refused_where_nothing_keeps_sandboxes_from_it() {
    let apart = |level: &str| config(|config| config.sandbox.isolation = Some(level.to_owned()));
    let here = Capabilities { confine: true, ..local() };
    let level = |name: &str| from(&apart(name), "local", &here).unwrap().spec.confinement.map(|found| found.level);
    for known in Level::ALL {
        assert_eq!(level(known.name()), Some(known));
    }
    // What is a container anyway needs none.
    let made = from(&apart("container"), "docker", &docker()).unwrap();
    assert_eq!((made.spec.confinement, made.ignored), (None, vec!["sandbox.isolation"]));
    for (name, runtime, can, expected) in [
        ("container", "cli", Capabilities::NONE, "keeps no sandbox"),
        ("gvisor", "cli", Capabilities::NONE, "keeps no sandbox"),
        ("gvisor", "docker", docker(), "have the kernel of their machine"),
        ("strong", "local", here.clone(), "`none`, `files`, `container` or `gvisor`"),
    ] {
        let error = from(&apart(name), runtime, &can).unwrap_err().to_string();
        assert!(error.contains("sandbox.isolation") && error.contains(expected), "{error}");
    }
}

#[test]
fn volumes_become_the_workspace_and_mounts() {
    let volumes = "/data/../work:/workspace:rw,/in:/in:ro,cache:/cache,volume:named:/named:ro,/base:/base:overlay";
    let config = config(|config| {
        config.sandbox.volumes = Some(volumes.to_owned());
        config.workspace_base = Some("/work".to_owned());
        config.workspace_mount_path = Some("/work".to_owned());
    });
    let mount = |source, target: &str, read_only| Mount { source, target: target.to_owned(), read_only };
    let volume = |name: &str| MountSource::Volume(name.to_owned());
    let mut mounts = vec![
        mount(MountSource::Directory("/in".into()), "/in", true),
        mount(volume("cache"), "/cache", false),
        mount(volume("named"), "/named", true),
    ];
    let made = from(&config, "docker", &docker()).unwrap();
    assert_eq!(made.spec.workspace, Workspace::Directory("/data/../work".into()));
    assert_eq!((&made.spec.mounts, made.ignored), (&mounts, vec!["sandbox.volumes"]));
    let made = with(&config, "docker", &docker(), &[("SANDBOX_VOLUME_OVERLAYS", "/overlays")]).unwrap();
    mounts.push(mount(MountSource::Overlay("/base".into()), "/base", false));
    assert_eq!((made.spec.mounts, made.ignored), (mounts, vec![]));

    let made = from(&config, "local", &local()).unwrap();
    assert_eq!(made.spec.workspace, Workspace::Directory("/work".into()));
    assert_eq!((made.spec.mounts.len(), made.ignored), (0, vec!["sandbox.volumes"]));
    let made = from(&config, "remote", &remote()).unwrap();
    assert_eq!((made.spec.workspace, made.ignored), (Workspace::Temporary, vec!["sandbox.volumes"]));
}

#[test]
fn the_old_keys_of_the_workspace_work_where_there_are_directories_of_the_machine() {
    let config = config(|config| {
        config.workspace_base = Some("/base".to_owned());
        config.workspace_mount_path = Some("/mount".to_owned());
    });
    for (runtime, can, workspace, ignored) in [
        ("local", local(), Workspace::Directory("/base".into()), vec![]),
        ("docker", docker(), Workspace::Directory("/mount".into()), vec![]),
        ("remote", remote(), Workspace::Temporary, vec!["core.workspace_base"]),
        ("x", Capabilities::NONE, Workspace::Temporary, vec!["core.workspace_base"]),
    ] {
        let made = from(&config, runtime, &can).unwrap();
        assert_eq!((made.spec.workspace, made.ignored), (workspace, ignored), "{runtime}");
    }
}

#[test]
fn a_workspace_that_must_not_be_written_to_is_refused_where_it_would_be() {
    for (volumes, hint) in [("/w:/workspace:ro", "leave `:ro` out"), ("/w:/workspace:overlay", "leave `:overlay` out")]
    {
        let config = config(|config| {
            config.sandbox.volumes = Some(volumes.to_owned());
            config.workspace_base = Some("/w".to_owned());
        });
        let error = from(&config, "local", &local()).unwrap_err().to_string();
        let begin = "the runtime `local` cannot do what `sandbox.volumes` says: it works in the directory itself";
        assert!(error.starts_with(begin) && error.ends_with(hint), "{error}");
    }
    let read_only = config(|config| config.sandbox.volumes = Some("/w:/workspace:ro".to_owned()));
    let made = from(&read_only, "docker", &docker()).unwrap();
    assert_eq!(made.spec.workspace, Workspace::Temporary);
    assert!(made.spec.mounts[0].read_only);
}

#[test]
fn wrong_values_are_refused_with_their_key() {
    let with = |change: fn(&mut Config)| config(change);
    for (config, runtime, can, expected) in [
        (with(|config| config.sandbox.vscode_port = Some(0)), "local", local(), "`sandbox.vscode_port`"),
        (
            with(|config| config.sandbox.remote_runtime_resource_factor = -1),
            "remote",
            remote(),
            "`sandbox.remote_runtime_resource_factor`",
        ),
        (with(|config| config.sandbox.volumes = Some("/w".to_owned())), "docker", docker(), "`/w` is not of the form"),
    ] {
        let error = from(&config, runtime, &can).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = self::with(&Config::default(), "local", &local(), &[("DESIRED_NUM_WARM_SERVERS", "x")]).unwrap_err();
    assert!(error.to_string().contains("`DESIRED_NUM_WARM_SERVERS`"), "{error}");
}

#[test]
fn variables_of_the_backend_that_belong_to_the_local_runtime_are_its_own() {
    let variables = [("SESSION_API_KEY", "key"), ("DESIRED_NUM_WARM_SERVERS", "2"), ("DEBUG", "TRUE")];
    let made = with(&Config::default(), "local", &local(), &variables).unwrap();
    assert_eq!((made.spec.session_key, made.options.warm), (Some(Secret::new("key")), 2));
    assert_eq!(made.spec.environment.get("DEBUG").map(String::as_str), Some("true"));
    let made = with(&Config::default(), "docker", &docker(), &variables).unwrap();
    assert_eq!((made.spec.session_key, made.options.warm), (None, 0));
    let made = with(&Config::default(), "local", &local(), &[("SESSION_API_KEY", "")]).unwrap();
    assert_eq!((made.spec.session_key, made.spec.environment), (None, BTreeMap::new()));
}

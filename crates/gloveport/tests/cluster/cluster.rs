//! A cluster for tests, backends on it, and what they leave.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]
#![expect(clippy::print_stdout, reason = "what a cluster said is shown when a test fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use gloveport_config::Config;
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, ExecuteError, Observation, RunAction};
use gloveport_provider::{Progress, Provider, ProviderContext, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_kubernetes::Kubernetes;
pub(crate) use gloveport_testing::until;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for anything.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

pub(crate) const DEBIAN: &str = "gloveport-test/debian:12";
pub(crate) const BUSYBOX: &str = "gloveport-test/busybox:1";
pub(crate) const BARE: &str = "gloveport-test/bare:1";

/// All kinds of objects that a sandbox may have.
const KINDS: &str = "configmaps,secrets,persistentvolumeclaims,services,ingresses,networkpolicies,pods,leases";

static PLACES: AtomicU32 = AtomicU32::new(0);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run tests/kubernetes/run, see CONTRIBUTING.md"))
}

/// A namespace and a home for backends.
pub(crate) struct Place {
    root: Arc<TempDir>,
    /// The namespace ends with this.
    owns: bool,
    pub(crate) namespace: String,
    pub(crate) config: Config,
    pub(crate) kubeconfig: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("gp-{}-{number}", std::process::id());
        fs::create_dir(root.path().join("tmp")).unwrap();
        let mut config = Config::default();
        config.kubernetes.namespace.clone_from(&namespace);
        "10m".clone_into(&mut config.kubernetes.resource_cpu_request);
        "32Mi".clone_into(&mut config.kubernetes.resource_memory_request);
        let mut place = Self { root, owns: true, namespace, config, kubeconfig: variable("KUBECONFIG").into() };
        place.extend(&json!({"storage": "empty-dir"}));
        Self::kubectl(["create", "namespace", &place.namespace]);
        // Pods wait for it.
        let account = ["get", "serviceaccount", "default", "--namespace", &place.namespace];
        while !try_kubectl(account, "").0 {}
        place
    }

    /// The same namespace and home, to be configured in another way.
    pub(crate) fn beside(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            owns: false,
            namespace: self.namespace.clone(),
            config: self.config.clone(),
            kubeconfig: self.kubeconfig.clone(),
        }
    }

    /// Sets all keys of `[extended.kubernetes]`.
    pub(crate) fn extend(&mut self, keys: &Value) {
        let Value::Object(map) = json!({ "kubernetes": keys }) else { unreachable!() };
        self.config.extended = map.into();
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn context(&self) -> ProviderContext {
        let environment: BTreeMap<String, String> = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", self.path().display().to_string()),
            ("TMPDIR", self.path().join("tmp").display().to_string()),
            ("KUBECONFIG", self.kubeconfig.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let program = program();
        let small = program.with_file_name("gloveport-sandbox");
        let inside = if small.exists() { small } else { program.clone() };
        ProviderContext { config: self.config.clone(), program, inside, environment, argument: None }
    }

    pub(crate) fn backend(&self) -> Arc<dyn Provider> {
        Kubernetes::factory(&self.context()).unwrap()
    }

    /// The command line of gloveport at this place.
    pub(crate) fn gloveport(&self) -> Command {
        let mut command = Command::new(program());
        command.env_clear().envs(self.context().environment).env("KUBERNETES_NAMESPACE", &self.namespace);
        command.env("KUBERNETES_RESOURCE_CPU_REQUEST", "10m").env("KUBERNETES_RESOURCE_MEMORY_REQUEST", "32Mi");
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn spec(name: &str) -> SandboxSpec {
        SandboxSpec { image: Some(BUSYBOX.to_owned()), warm: false, ..SandboxSpec::new(SessionId::new(name).unwrap()) }
    }

    pub(crate) fn kubectl<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
        let (success, text) = try_kubectl(arguments, "");
        assert!(success, "{text}");
        text
    }

    /// The same in the namespace of this place.
    pub(crate) fn here<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        // What stands behind `--` is not for kubectl.
        let mut all = vec!["--namespace", self.namespace.as_str()];
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        all.extend(arguments.iter().map(String::as_str));
        Self::kubectl(all)
    }

    /// An object as JSON.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.here(["get", kind, name, "--output", "json"])).unwrap()
    }

    pub(crate) fn apply(&self, object: &Value) {
        let arguments = ["apply", "--namespace", &self.namespace, "--filename", "-"];
        let (success, text) = try_kubectl(arguments, &object.to_string());
        assert!(success, "{text}");
    }

    /// All objects of sandboxes and backends that there are.
    pub(crate) fn left(&self) -> Vec<String> {
        let listed = self.here(["get", KINDS, "--selector", "app=openhands-runtime", "--output", "name"]);
        listed.lines().map(str::to_owned).collect()
    }

    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// The same while backends live.
    pub(crate) async fn nothing_left_soon_but_leases(&self) {
        until("nothing but leases is left", || self.left().iter().all(|name| name.starts_with("lease"))).await;
    }

    /// A backend of another machine, which knows of others what the cluster tells.
    pub(crate) fn elsewhere(&self) -> Arc<dyn Provider> {
        let mut context = self.context();
        let home = self.path().join("elsewhere");
        fs::create_dir_all(&home).unwrap();
        context.environment.insert("HOME".to_owned(), home.display().to_string());
        Kubernetes::factory(&context).unwrap()
    }

    /// Says of a pod what its node would.
    pub(crate) fn set_pod_status(&self, name: &str, status: &Value) {
        let mut pod = self.object("pod", name);
        pod["status"] = status.clone();
        // Its node writes to it as well.
        pod["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        let path = format!("/api/v1/namespaces/{}/pods/{name}/status", self.namespace);
        let (success, text) = try_kubectl(["replace", "--raw", &path, "--filename", "-"], &pod.to_string());
        assert!(success, "{text}");
    }

    /// The same, for what ends by itself.
    pub(crate) async fn nothing_left_soon(&self) {
        until("nothing is left", || self.left().is_empty()).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.owns {
            return;
        }
        if std::thread::panicking() {
            let arguments = ["get", "pods,events", "--namespace", &self.namespace, "--output", "wide"];
            println!("{}", try_kubectl(arguments, "").1);
        }
        let arguments = ["delete", "namespace", &self.namespace, "--wait=false"];
        let (success, text) = try_kubectl(arguments, "");
        assert!(success || std::thread::panicking(), "{text}");
    }
}

/// Runs the script that made the cluster.
pub(crate) fn script(arguments: &[&str]) {
    let output = Command::new(variable("GLOVEPORT_TEST_CLUSTER_SCRIPT")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Simulated nodes, as new, whatever another test has left.
pub(crate) fn new_nodes(count: usize) {
    script(&["nodes", "0"]);
    script(&["nodes", &count.to_string()]);
}

/// Runs kubectl with something on its standard input; whether it succeeded, and what it wrote.
pub(crate) fn try_kubectl<'a>(arguments: impl IntoIterator<Item = &'a str>, input: &str) -> (bool, String) {
    use std::io::Write as _;
    let mut command = Command::new(variable("GLOVEPORT_TEST_CLUSTER_SCRIPT"));
    command.args(["kubectl"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (output.status.success(), if output.status.success() { text } else { error })
}

/// The program, which is small enough to be sent into pods only as a release.
fn program() -> PathBuf {
    let named = std::env::var_os("GLOVEPORT_TEST_BINARY").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_gloveport").into())
}

/// Makes a sandbox and waits for its server.
pub(crate) async fn start(backend: &dyn Provider, spec: &SandboxSpec) -> Sandbox {
    let made = backend.create(spec, &Progress::silent()).await.unwrap_or_else(|error| panic!("{error}"));
    alive(backend, made).await
}

pub(crate) async fn alive(backend: &dyn Provider, sandbox: Sandbox) -> Sandbox {
    let options = WaitOptions { limit: LIMIT, ..WaitOptions::default() };
    wait_until_alive(backend, sandbox, &options, &Progress::silent()).await.unwrap()
}

/// The error of a sandbox that cannot be made.
pub(crate) async fn refused(backend: &dyn Provider, spec: &SandboxSpec) -> ProviderError {
    let progress = Progress::silent();
    let making = tokio::time::timeout(LIMIT, backend.create(spec, &progress));
    match making.await.unwrap_or_else(|_| panic!("no answer within {LIMIT:?}")) {
        Ok(sandbox) => panic!("it was made: {sandbox:?}"),
        Err(error) => error,
    }
}

/// Runs a command in a sandbox and gives its output.
pub(crate) async fn run(sandbox: &Sandbox, command: &str) -> String {
    try_run(sandbox, command).await.unwrap()
}

/// The same where it may fail.
pub(crate) async fn try_run(sandbox: &Sandbox, command: &str) -> Result<String, ExecuteError> {
    let client = gloveport_hosting::client(sandbox).unwrap();
    let action = Action::Run(RunAction::new(command));
    let event = ActionEvent { timeout: Some(LIMIT.as_secs_f64()), ..ActionEvent::from(action) };
    Ok(match client.execute(&event).await? {
        Observation::Run(observation) => observation.content,
        other => format!("{other:?}"),
    })
}

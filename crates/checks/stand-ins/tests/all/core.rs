//! The core of all stand-ins, by the face of Runloop.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gloveport_client::{Certificates, Pool};
use gloveport_stand_ins::{Face as _, Fault, StandIn, runloop::Runloop};
use serde_json::{Value, json};

type Service = StandIn<Runloop>;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_mins(1);

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap()
}

/// Whether a process lives; one that only waits to be reaped does not.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for something that no event tells of.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What came of a request: the status, and the body if it is JSON.
async fn ask(service: &Service, method: &str, path: &str, body: Value) -> (u16, Value) {
    let pool = Pool::new(Certificates::Checked).unwrap();
    let request = pool.http().request(method.parse().unwrap(), format!("{}{path}", service.url));
    let request = request.bearer_auth(Runloop::KEY).json(&body);
    let answer = within(request.send()).await.unwrap();
    (answer.status().as_u16(), within(answer.json()).await.unwrap_or_default())
}

async fn running(service: &Service, wish: Value) -> String {
    let (status, made) = ask(service, "POST", "/v1/devboxes", wish).await;
    assert_eq!((status, &made["status"]), (200, &json!("provisioning")), "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    let wanted = json!({"statuses": ["running", "failure"], "timeout_seconds": 30});
    let (_, reached) = ask(service, "POST", &format!("/v1/devboxes/{id}/wait_for_status"), wanted).await;
    assert_eq!(reached["status"], "running", "{reached}");
    id
}

async fn run(service: &Service, id: &str, command: &str) -> Value {
    let body = json!({"command": command, "command_id": "0", "optimistic_timeout": 25});
    ask(service, "POST", &format!("/v1/devboxes/{id}/execute"), body).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_a_sandbox_run_write_files_and_end_with_the_service() {
    let service = Service::plain().await;
    let id = running(&service, json!({"environment_variables": {"A": "b c"}})).await;
    let ran = run(&service, &id, "echo \"$A\" | tee file; echo no >&2; exit 3").await;
    assert_eq!((&ran["exit_status"], &ran["stdout"], &ran["stderr"]), (&json!(3), &json!("b c\n"), &json!("no\n")));
    let started =
        run(&service, &id, "setsid sleep 600 >/dev/null 2>&1 & echo $!; sleep 600 >/dev/null 2>&1 & echo $!").await;
    let pids: Vec<u32> = started["stdout"].as_str().unwrap().lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    drop(service);
    until("the end of all in the sandbox", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_rests_has_its_files_and_none_of_its_processes() {
    let service = Service::plain().await;
    let commands = json!(["echo started >>starts"]);
    let id = running(&service, json!({"launch_parameters": {"launch_commands": commands}})).await;
    let started = run(&service, &id, "sleep 600 >/dev/null 2>&1 & echo $!").await;
    let pid: u32 = started["stdout"].as_str().unwrap().trim().parse().unwrap();
    ask(&service, "POST", &format!("/v1/devboxes/{id}/suspend"), json!({})).await;
    let reached = async |status: &str| {
        let wanted = json!({"statuses": [status], "timeout_seconds": 30});
        ask(&service, "POST", &format!("/v1/devboxes/{id}/wait_for_status"), wanted).await
    };
    assert_eq!(reached("suspended").await.0, 200);
    // Whoever inherits a process that was killed takes a moment to notice its end.
    until("the process is gone", || !is_alive(pid)).await;
    let (status, _) =
        ask(&service, "POST", &format!("/v1/devboxes/{id}/execute_async"), json!({"command": "true"})).await;
    assert_eq!(status, 400);
    ask(&service, "POST", &format!("/v1/devboxes/{id}/resume"), json!({})).await;
    assert_eq!(reached("running").await.0, 200);
    assert_eq!(run(&service, &id, "cat starts").await["stdout"], "started\nstarted\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_that_goes_by_ends_and_rests_what_is_idle() {
    let service = Service::plain().await;
    let idle = |what: &str| json!({"launch_parameters": {"lifecycle": {"after_idle": {"idle_time_seconds": 60, "on_idle": what}}}});
    let (ends, rests) = (running(&service, idle("shutdown")).await, running(&service, idle("suspend")).await);
    let lasts = running(&service, json!({})).await;
    service.advance(Duration::from_secs(50));
    ask(&service, "POST", &format!("/v1/devboxes/{ends}/keep_alive"), json!({})).await;
    service.advance(Duration::from_secs(50));
    let state = async |id: &str| ask(&service, "GET", &format!("/v1/devboxes/{id}"), json!({})).await.1;
    assert_eq!(
        (&state(&ends).await["status"], &state(&rests).await["status"]),
        (&json!("running"), &json!("suspended"))
    );
    service.advance(Duration::from_hours(1));
    assert_eq!(
        (&state(&ends).await["shutdown_reason"], &state(&lasts).await["shutdown_reason"]),
        (&json!("idle"), &json!("keep_alive_timeout"))
    );
    assert_eq!(service.ids(), [rests]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_come_once_and_where_they_were_asked_for() {
    let service = Service::plain().await;
    service.fail("POST".parse().unwrap(), "/v1/devboxes", Fault::status(429, &[("retry-after", "1")], "slow down"));
    assert_eq!(ask(&service, "GET", "/v1/devboxes", json!({})).await.0, 200);
    assert_eq!(ask(&service, "POST", "/v1/devboxes", json!({})).await.0, 429);
    service.fail("POST".parse().unwrap(), "/v1/devboxes", Fault::Lost);
    let pool = Pool::new(Certificates::Checked).unwrap();
    let lost = pool.http().post(format!("{}/v1/devboxes", service.url)).bearer_auth(Runloop::KEY).json(&json!({}));
    assert!(lost.send().await.is_err() || service.ids().len() == 1);
    assert_eq!(service.ids().len(), 1);
    let (status, told) = ask(&service, "POST", "/stand-in/requests", json!({})).await;
    let paths: Vec<&str> = told.as_array().unwrap().iter().map(|seen| seen["path"].as_str().unwrap()).collect();
    assert_eq!((status, paths), (200, vec!["/v1/devboxes"; 3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_in_without_the_key_or_the_token_of_a_tunnel() {
    let service = Service::plain().await;
    let pool = Pool::new(Certificates::Checked).unwrap();
    assert_eq!(pool.http().get(format!("{}/v1/devboxes", service.url)).send().await.unwrap().status(), 401);
    let id = running(&service, json!({"tunnel": {"auth_mode": "authenticated"}})).await;
    let (_, view) = ask(&service, "GET", &format!("/v1/devboxes/{id}"), json!({})).await;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("{}/tunnels/{}/{port}/", service.url, view["tunnel"]["tunnel_key"].as_str().unwrap());
    assert_eq!(pool.http().get(&url).send().await.unwrap().status(), 401);
    let token = format!("Bearer {}", view["tunnel"]["auth_token"].as_str().unwrap());
    let entered = pool.http().get(&url).header("x-runloop-tunnel-authorization", token).send().await.unwrap();
    assert_eq!(entered.status(), 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_prints_where_it_is_and_ends_with_its_input() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gloveport-stand-in"));
    let mut child = command.arg("runloop").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(
        told[0].starts_with("RUNLOOP_API_KEY=") && told[1].starts_with("RUNLOOP_BASE_URL=http://127.0.0.1:"),
        "{told:?}"
    );
    drop(child.stdin.take());
    assert!(tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap().success());
    let wrong = Command::new(env!("CARGO_BIN_EXE_gloveport-stand-in")).arg("nobody").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

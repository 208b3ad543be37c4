//! Logins at servers that want them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    fmt::Debug,
    fs,
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use gloveport_client::{Certificates, Pool};
use gloveport_mcp_client::{
    CallError, Client, ConnectError, HttpServer, LoggedIn, LoggedOut, LoginOptions, OAuthError, Revocation, Server,
    TokenStore, login, logout,
};
use gloveport_protocol::Secret;
use gloveport_testing::within;
use reqwest::{Url, header::LOCATION};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    authorization::{Authorization, SECRET},
    support::{connect, names, text},
};

/// A directory for tokens.
fn store() -> (TempDir, TokenStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = TokenStore::new(directory.path().join("tokens.json"));
    (directory, store)
}

fn server(authorization: &Authorization, store: &TokenStore) -> Server {
    Server::Http(HttpServer::new(authorization.url()).with_tokens(store))
}

async fn get(url: &str) -> reqwest::Response {
    Pool::new(Certificates::Checked).unwrap().http().get(url).send().await.unwrap()
}

/// Where the authorization server sends a browser.
async fn redirect(page: &Url) -> String {
    get(page.as_str()).await.headers()[LOCATION].to_str().unwrap().to_owned()
}

/// A login with a browser that goes where `route` says when it has come back from the authorization server.
async fn login_by<F: Future<Output = ()> + Send + 'static>(
    authorization: &Authorization,
    options: &LoginOptions,
    route: impl FnOnce(String) -> F + Send + 'static,
) -> Result<LoggedIn, OAuthError> {
    let server = HttpServer::new(authorization.url());
    let browser = |page: &Url| {
        let page = page.clone();
        tokio::spawn(async move { route(redirect(&page).await).await });
    };
    within(login(&server, options, browser)).await
}

async fn go(url: String) {
    get(&url).await;
}

async fn log_in(authorization: &Authorization, store: &TokenStore) -> LoggedIn {
    login_by(authorization, &LoginOptions::new(store.clone()), go).await.unwrap()
}

async fn call(client: &Client) -> Result<String, CallError> {
    within(client.call("t", JsonObject::new(), None)).await.map(|result| text(&result).to_owned())
}

/// What is kept of the one server.
fn kept(store: &TokenStore) -> Value {
    let content: Value = serde_json::from_slice(&fs::read(store.path()).unwrap()).unwrap();
    content["servers"].as_object().unwrap().values().next().unwrap().clone()
}

/// Changes what is kept, as a clock or another program does.
fn edit(store: &TokenStore, edit: impl FnOnce(&mut Value)) {
    let mut content: Value = serde_json::from_slice(&fs::read(store.path()).unwrap()).unwrap();
    edit(content["servers"].as_object_mut().unwrap().values_mut().next().unwrap());
    fs::write(store.path(), content.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_ends_with_tokens_that_calls_use() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    let logged_in = log_in(&authorization, &store).await;
    let expected = LoggedIn {
        server: authorization.url(),
        issuer: authorization.base(),
        scopes: vec!["tools".to_owned()],
        expires: None,
        can_refresh: true,
    };
    assert_eq!(logged_in, expected);
    assert_eq!(store.servers().await.unwrap(), [authorization.url()]);
    let client = connect(&server(&authorization, &store)).await;
    assert_eq!(names(&client).await, ["t"]);
    assert_eq!(call(&client).await.unwrap(), "called");
    within(client.close()).await;
    assert_eq!(authorization.known().refreshes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tokens_says_what_to_run() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    let url = authorization.url();
    let expected = format!("the MCP server {url} wants a login; run `gloveport mcp login {url}`");
    for server in [server(&authorization, &store), Server::Http(HttpServer::new(&url))] {
        let error = within(Client::connect(&server)).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(!store.path().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_state_is_refused_and_the_right_one_still_works() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    let route = |back: String| async move {
        let mut wrong = Url::parse(&back).unwrap();
        wrong.query_pairs_mut().clear().extend_pairs([("code", "other"), ("state", "wrong")]);
        assert_eq!(get(wrong.as_str()).await.status(), 400);
        let page = get(&back).await;
        assert_eq!(page.status(), 200);
    };
    login_by(&authorization, &LoginOptions::new(store.clone()), route).await.unwrap();
    call(&*connect(&server(&authorization, &store)).await).await.unwrap();
    assert_eq!(authorization.count("/token"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_a_secret_show_it_where_the_server_wants_it() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let (authorization, (_directory, store)) = (Authorization::start().await, store());
        authorization.known().is_confidential = true;
        authorization.known().metadata = [("token_endpoint_auth_methods_supported", json!([method]))].into();
        log_in(&authorization, &store).await;
        authorization.known().access.clear();
        call(&*connect(&server(&authorization, &store)).await).await.unwrap();
        assert_eq!(authorization.known().refreshes, 1, "{method}");
        let out = within(logout(&HttpServer::new(authorization.url()), &store)).await.unwrap();
        assert_eq!(out, LoggedOut::Forgotten(Revocation::Done), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_is_told_as_the_server_writes_it() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    // As an address this has a slash at its end; some servers compare it as a text.
    let base = authorization.base();
    authorization.known().resource = Some(base.clone());
    log_in(&authorization, &store).await;
    assert_eq!(kept(&store)["resource"], base);
    authorization.known().access.clear();
    call(&*connect(&server(&authorization, &store)).await).await.unwrap();
    assert_eq!(authorization.known().refreshes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_refreshed_once_by_all_who_need_it_at_the_same_time() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    authorization.known().lifetime = Some(3600);
    log_in(&authorization, &store).await;
    edit(&store, |record| record["tokens"]["received"] = json!(1000));
    authorization.known().access.clear();
    // Each has a lock file open of its own, as other processes have.
    let clients = (0..10).map(|_| {
        let server = server(&authorization, &TokenStore::new(store.path()));
        async move { call(&*connect(&server).await).await.unwrap() }
    });
    assert_eq!(join_all(clients).await, ["called"; 10]);
    let known = authorization.known();
    assert_eq!(known.refreshes, 1);
    let [refresh] = &known.refresh.iter().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(kept(&store)["tokens"]["refresh"], **refresh, "the rotated token is the one that is kept");
}

/// What `two_processes_refresh_a_token_once` starts: it does nothing in a run of all tests.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_calls_the_server_of_its_environment() {
    let (Ok(url), Ok(path)) = (std::env::var("TEST_OAUTH_URL"), std::env::var("TEST_OAUTH_STORE")) else { return };
    let server = Server::Http(HttpServer::new(url).with_tokens(&TokenStore::new(path)));
    assert_eq!(call(&*connect(&server).await).await.unwrap(), "called");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_refresh_a_token_once() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    authorization.known().access.clear();
    let processes = (0..4).map(|_| {
        let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "oauth::a_process_calls_the_server_of_its_environment"])
            .env("TEST_OAUTH_URL", authorization.url())
            .env("TEST_OAUTH_STORE", store.path())
            .kill_on_drop(true);
        async move { command.output().await.unwrap() }
    });
    for output in within(join_all(processes)).await {
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    }
    assert_eq!(authorization.known().refreshes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_server_refuses_is_refreshed_once_and_the_call_is_repeated() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    let client = connect(&server(&authorization, &store)).await;
    authorization.known().access.clear();
    let calls = join_all((0..5).map(|_| call(&client))).await;
    assert!(calls.iter().all(|called| called.as_ref().is_ok_and(|text| text == "called")), "{calls:?}");
    assert_eq!(authorization.known().refreshes, 1);
    // Every new refresh token is good, too, for as long as the connection is used.
    for _ in 0..50 {
        authorization.known().access.clear();
        call(&client).await.unwrap();
    }
    assert_eq!(authorization.known().refreshes, 51);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_still_good_is_used_when_there_is_no_new_one_yet() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    authorization.known().lifetime = Some(1000);
    log_in(&authorization, &store).await;
    // It expires so soon that it is refreshed.
    edit(&store, |record| record["tokens"]["received"] = json!(record["tokens"]["received"].as_u64().unwrap() - 980));
    authorization.known().answers = [("/token", (503, "", String::new()))].into();
    call(&*connect(&server(&authorization, &store)).await).await.unwrap();
    assert!(authorization.count("/token") > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_does_not_allow_enough_says_what_it_lacks() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    let client = connect(&server(&authorization, &store)).await;
    authorization.known().wanted_scope = Some("write\tall");
    let error = call(&client).await.unwrap_err().to_string();
    let expected = "its token does not allow this: the server wants the scope `write all`";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_there_is_no_new_token_somebody_must_log_in_again() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    let client = connect(&server(&authorization, &store)).await;
    authorization.known().access.clear();
    authorization.known().refresh.clear();
    let url = authorization.url();
    let expected = format!("the MCP server {url} wants a login; run `gloveport mcp login {url}`");
    let error = call(&client).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, CallError::LoginRequired { .. }));
    let error = within(Client::connect(&server(&authorization, &store))).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(authorization.known().refreshes, 1, "a refresh token that is refused is not sent again");
    log_in(&authorization, &store).await;
    call(&*connect(&server(&authorization, &store)).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_server_that_is_out_of_order_costs_no_login() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    authorization.known().access.clear();
    // It repeats what it was sent.
    let refresh = kept(&store)["tokens"]["refresh"].as_str().unwrap().to_owned();
    let answer = json!({"error": "server_error", "error_description": format!("\u{1b}[2J {refresh}?")});
    authorization.known().answers = [("/token", (503, "", answer.to_string()))].into();
    let error = within(Client::connect(&server(&authorization, &store))).await.unwrap_err().to_string();
    let expected = format!(
        "the MCP server {} cannot be used: its token has expired, and there is no new one: it answers with HTTP 503 \
         Service Unavailable: server_error  [2J **********?",
        authorization.url()
    );
    assert_eq!(error, expected);
    authorization.known().answers.clear();
    call(&*connect(&server(&authorization, &store)).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_configuration_counts_more_than_a_login() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    let http = HttpServer::new(authorization.url()).with_tokens(&store);
    call(&*connect(&Server::Http(http.clone().with_key(Some(&"configured".into())))).await).await.unwrap();
    let seen = authorization.known().seen.clone();
    assert!(seen.iter().any(|(_, sent)| sent.as_deref() == Some("Bearer configured")));
    assert!(!seen.iter().any(|(_, sent)| sent.as_ref().is_some_and(|sent| sent.contains("hidden-access"))), "{seen:?}");
    let wrong = Server::Http(http.with_key(Some(&"wrong".into())));
    let error = within(Client::connect(&wrong)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unauthorized { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_never_leaves_its_origin() {
    let (authorization, other, (_directory, store)) =
        (Authorization::start().await, Authorization::start().await, store());
    log_in(&authorization, &store).await;
    // No redirect is followed with it, to another server or to another path.
    for location in [other.url(), format!("{}/mcp/", authorization.base())] {
        let location: &'static str = location.leak();
        authorization.known().answers = [("/mcp", (307, location, String::new()))].into();
        assert!(within(Client::connect(&server(&authorization, &store))).await.is_err());
    }
    assert_eq!((authorization.count("/mcp/"), other.count("/mcp")), (0, 0));
    authorization.known().answers.clear();
    // Nor is one sent that the file has for another server.
    let key = authorization.url();
    let text = fs::read_to_string(store.path()).unwrap();
    fs::write(store.path(), text.replace(&format!("\"{key}\":"), &format!("\"{}\":", other.url()))).unwrap();
    let error = within(Client::connect(&server(&other, &store))).await.unwrap_err();
    assert!(matches!(error, ConnectError::LoginRequired { .. }), "{error}");
    assert!(!other.has_seen_secrets());
    // Nor to an endpoint without encryption.
    fs::write(store.path(), text).unwrap();
    edit(&store, |record| record["token_endpoint"] = json!("http://login.example/token"));
    authorization.known().access.clear();
    let error = within(Client::connect(&server(&authorization, &store))).await.unwrap_err().to_string();
    assert!(error.contains("http://login.example/token is not asked"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_others_can_read_is_refused_before_anybody_logs_in() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    log_in(&authorization, &store).await;
    gloveport_platform::set_mode(store.path(), 0o644).unwrap();
    let expected = format!("others than its owner may use {}", store.path().display());
    let error = within(Client::connect(&server(&authorization, &store))).await.unwrap_err().to_string();
    assert!(error.starts_with(&expected), "{error}");
    let (http, options) = (HttpServer::new(authorization.url()), LoginOptions::new(store));
    let error = within(login(&http, &options, |_| panic!("nobody is to log in"))).await.unwrap_err().to_string();
    assert!(error.starts_with(&expected), "{error}");
}

/// The error of a login that must not come as far as a browser.
async fn refused(authorization: &Authorization) -> String {
    let (_directory, store) = store();
    let (http, options) = (HttpServer::new(authorization.url()), LoginOptions::new(store));
    let shown = |page: &Url| panic!("a login is offered at {page}");
    within(login(&http, &options, shown)).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_cannot_be_trusted_are_refused() {
    let http = "http://login.example/x";
    for (field, value, expected) in [
        ("issuer", json!("https://accounts.example"), "issuer mismatch"),
        ("issuer", Value::Null, "missing required issuer"),
        ("token_endpoint", json!(http), "names http://login.example/x, which is not encrypted"),
        ("authorization_endpoint", json!("javascript:alert(1)"), "which is not encrypted or not public"),
        ("registration_endpoint", json!(http), "names http://login.example/x, which is not encrypted"),
        ("revocation_endpoint", json!(http), "names http://login.example/x, which is not encrypted"),
        ("code_challenge_methods_supported", json!(["plain"]), "does not say that it knows PKCE with S256"),
        ("code_challenge_methods_supported", Value::Null, "does not say that it knows PKCE with S256"),
        ("registration_endpoint", Value::Null, "register one there for the redirect http://127.0.0.1/callback"),
        ("response_types_supported", json!(["token"]), "Invalid scope: code"),
    ] {
        let authorization = Authorization::start().await;
        authorization.known().metadata = [(field, value.clone())].into();
        let error = refused(&authorization).await;
        assert!(error.contains(expected), "{field} {value}: {error}");
        assert_eq!(authorization.count("/authorize") + authorization.count("/token"), 0, "{field} {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_at_a_strange_path_speaks_for_its_own_server_only() {
    let authorization = Authorization::start().await;
    let document = format!("{}/.well-known/strange", authorization.base());
    let metadata = json!({
        "issuer": "https://accounts.example",
        "authorization_endpoint": "https://accounts.example/authorize",
        "token_endpoint": format!("{}/token", authorization.base()),
        "code_challenge_methods_supported": ["S256"],
    });
    authorization.known().authorization_server = Some(document);
    authorization.known().answers = [("/.well-known/strange", (200, "", metadata.to_string()))].into();
    let error = refused(&authorization).await;
    assert!(error.contains("says that it is https://accounts.example, which it is not"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_is_bounded_and_stays_where_it_may_be() {
    const DOCUMENT: &str = "/.well-known/oauth-authorization-server";
    const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
    let other = Authorization::start().await;
    let elsewhere: &'static str = format!("{}{DOCUMENT}", other.base()).leak();
    for (path, answer, expected) in [
        (DOCUMENT, (200, "", " ".repeat(100 * 1024)), "answers with more than 64 KiB"),
        (DOCUMENT, (302, elsewhere, String::new()), "redirect"),
        (DOCUMENT, (500, "", String::new()), "500"),
        (DOCUMENT, (404, "", String::new()), "none published usable metadata"),
        (RESOURCE, (200, "", json!({"resource": "https://other.example/mcp"}).to_string()), "mismatch"),
    ] {
        let authorization = Authorization::start().await;
        authorization.known().answers = [(path, answer)].into();
        let error = refused(&authorization).await;
        assert!(error.contains(expected), "{path}: {error}");
    }
    assert!(other.known().seen.is_empty(), "a redirect to another origin is not followed");

    // Authorization servers elsewhere on this machine are asked, in private networks without encryption they are not.
    let authorization = Authorization::start().await;
    authorization.known().authorization_server = Some("http://192.0.2.1:1".to_owned());
    let error = refused(&authorization).await;
    assert!(error.contains("http://192.0.2.1:1/") && error.contains("is not asked"), "{error}");

    let authorization = Authorization::start().await;
    let many: Vec<_> = (0..500).map(|number| format!("{}/{number}", other.base())).collect();
    let document = json!({"resource": authorization.url(), "authorization_servers": many}).to_string();
    authorization.known().answers = [(RESOURCE, (200, "", document))].into();
    other.known().answers = [(DOCUMENT, (404, "", String::new()))].into();
    let error = refused(&authorization).await;
    assert!(error.contains("more than 40 requests would be needed"), "{error}");
    assert!(other.known().seen.len() < 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_without_logins_or_encryption_get_none() {
    let authorization = Authorization::start().await;
    let nothing = || (404, "", String::new());
    let paths = [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
    ];
    authorization.known().answers = paths.map(|path| (path, nothing())).into();
    let error = refused(&authorization).await;
    assert!(error.contains("offers no login: it does not say where to log in"), "{error}");
    let (_directory, store) = store();
    for (url, expected) in [
        ("http://mcp.example/mcp?key=hidden", "http://mcp.example/mcp would send tokens without encryption"),
        ("ws://mcp.example/mcp", "MCP has no logins over ws"),
        ("nonsense", "no address of an MCP server"),
    ] {
        let options = LoginOptions::new(store.clone());
        let error = within(login(&HttpServer::new(url), &options, |_| ())).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hidden"), "{error}");
    }
    assert!(!store.path().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_comes_to_nothing_says_why_and_keeps_nothing() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    let options = LoginOptions::new(store.clone());
    let with = |fields: &'static [(&str, &str)]| {
        move |back: String| async move {
            let mut url = Url::parse(&back).unwrap();
            let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
            url.query_pairs_mut().clear().append_pair("state", &state).extend_pairs(fields);
            go(url.into()).await;
        }
    };
    let denied = [("error", "access_denied"), ("error_description", "not\u{1b}[2J you")].as_slice();
    let url = authorization.url();
    for (fields, expected) in [
        (denied, format!("the login at {url} was denied: not [2J you")),
        (&[("error", "access_denied")], format!("the login at {url} was denied")),
        (
            &[("error", "server_\nerror")],
            format!("the authorization server {} refuses the login: server_ error", authorization.base()),
        ),
    ] {
        let error = login_by(&authorization, &options, with(fields)).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let error = login_by(&authorization, &options, with(&[("code", "hidden-code-of-somebody")])).await.unwrap_err();
    let expected = format!("the authorization server {} gives no tokens: ", authorization.base());
    assert!(error.to_string().starts_with(&expected) && error.to_string().contains("invalid_grant"), "{error}");
    assert!(!format!("{error} {error:?}").contains(SECRET) && !error.to_string().contains('\u{1b}'), "{error:?}");

    authorization.known().issuer_of_code = Some("https://accounts.example".to_owned());
    let error = login_by(&authorization, &options, go).await.unwrap_err().to_string();
    assert!(error.contains("issuer mismatch"), "{error}");

    let brief = LoginOptions { wait: Duration::from_millis(50), ..options };
    let error = login_by(&authorization, &brief, |_| std::future::ready(())).await.unwrap_err();
    assert!(matches!(error, OAuthError::Timeout { .. }), "{error}");
    assert_eq!(error.to_string(), "nobody has logged in within 0.05 seconds; try again");
    assert_eq!(store.servers().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_forgets_the_tokens_and_revokes_them_if_it_can() {
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    let http = HttpServer::new(authorization.url());
    assert_eq!(within(logout(&http, &store)).await.unwrap(), LoggedOut::NothingKept);

    log_in(&authorization, &store).await;
    assert_eq!(within(logout(&http, &store)).await.unwrap(), LoggedOut::Forgotten(Revocation::Done));
    assert_eq!(store.servers().await.unwrap(), Vec::<String>::new());
    assert!(authorization.known().access.is_empty() && authorization.known().refresh.is_empty());
    assert_eq!(authorization.known().revoked.len(), 2);

    log_in(&authorization, &store).await;
    authorization.known().answers = [("/revoke", (503, "", String::new()))].into();
    let LoggedOut::Forgotten(Revocation::Failed(reason)) = within(logout(&http, &store)).await.unwrap() else {
        panic!()
    };
    assert_eq!(reason, "it answers with HTTP 503 Service Unavailable");
    assert_eq!(store.servers().await.unwrap(), Vec::<String>::new());

    authorization.known().answers.clear();
    authorization.known().metadata = [("revocation_endpoint", Value::Null)].into();
    log_in(&authorization, &store).await;
    assert_eq!(within(logout(&http, &store)).await.unwrap(), LoggedOut::Forgotten(Revocation::NotOffered));
    assert_eq!(store.servers().await.unwrap(), Vec::<String>::new());
}

/// All that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_logged_or_shown() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let (authorization, (_directory, store)) = (Authorization::start().await, store());
    authorization.known().is_confidential = true;
    let options =
        LoginOptions { client_secret: Some(Secret::new("hidden-secret-of-ours")), ..LoginOptions::new(store.clone()) };
    let logged_in = login_by(&authorization, &options, go).await.unwrap();
    authorization.known().access.clear();
    let server = server(&authorization, &store);
    let client = connect(&server).await;
    call(&client).await.unwrap();
    authorization.known().access.clear();
    authorization.known().refresh.clear();
    let error = call(&client).await.unwrap_err();
    let shown: [&dyn Debug; 6] = [&options, &logged_in, &server, &client, &error, &store];
    let text = format!("{shown:?}");
    assert!(!text.contains(SECRET), "{text}");
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the token of an MCP server is refreshed"), "the log is the real one");
    let bad: Vec<_> = logged.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

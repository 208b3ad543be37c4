//! The services that host repositories, played by a server on a loopback socket that speaks their interfaces.
#![expect(clippy::unwrap_used, reason = "a helper that fails ends its test")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use gloveport_protocol::Secret;
use gloveport_runtime::git_providers::{
    GitProviderError, GitProviders, ProviderFailure, ProviderToken, ProviderTokens, ProviderType, Refresh, Repository,
    RepositoryName, Wanted, env_vars,
};
use reqwest::Url;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

/// What a server was asked: path with query, `Authorization`, and the key of a session.
type Asked = (String, Option<String>, Option<String>);

/// A server that gives one answer and remembers what it was asked.
struct Service {
    url: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
enum Answer {
    Json(serde_json::Value),
    Text(StatusCode, String),
    Redirect(String),
    Never,
    Endless,
}

impl Service {
    async fn start(answer: Answer) -> Self {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let router = Router::new().fallback(respond).with_state((answer, Arc::clone(&asked)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked, task }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn respond(State((answer, asked)): State<(Answer, Arc<Mutex<Vec<Asked>>>)>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let path = head.uri.path_and_query().unwrap().to_string();
    asked.lock().unwrap().push((path, header("authorization"), header("x-session-api-key")));
    match answer {
        Answer::Json(value) => axum::Json(value).into_response(),
        Answer::Text(status, text) => (status, text).into_response(),
        Answer::Redirect(target) => (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, target)]).into_response(),
        Answer::Never => std::future::pending().await,
        Answer::Endless => {
            let pieces = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]));
            axum::body::Body::from_stream(pieces).into_response()
        }
    }
}

fn tokens(tokens: &[(ProviderType, &str)]) -> ProviderTokens {
    tokens.iter().map(|(provider, token)| (*provider, ProviderToken::new(*token))).collect()
}

fn repository(provider: ProviderType, name: &str) -> Repository {
    Repository { provider, full_name: RepositoryName::parse(name).unwrap() }
}

async fn failures(providers: &GitProviders, name: &str) -> Vec<(ProviderType, ProviderFailure)> {
    let error = providers.resolve(name, Wanted::Required).await.unwrap_err();
    assert_eq!(error.to_string(), format!("Unable to access repo {name}"));
    let GitProviderError::Inaccessible { failures, .. } = error else { return Vec::new() };
    failures
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_words_and_gives_the_canonical_name() {
    use ProviderType::{AzureDevops, Bitbucket, Github, Gitlab};
    for (provider, token, name, answer, asked, authorization, expected, url) in [
        (
            Github,
            "ghp_1",
            "Acme/API",
            json!({"id": 1, "full_name": "acme/api", "private": true}),
            "/repos/Acme/API",
            "Bearer ghp_1",
            "acme/api",
            "https://ghp_1@github.com/acme/api.git",
        ),
        (
            Gitlab,
            "glpat-1",
            "group/sub/api",
            json!({"id": 1, "path_with_namespace": "group/sub/api"}),
            "/projects/group%2Fsub%2Fapi",
            "Bearer glpat-1",
            "group/sub/api",
            "https://oauth2:glpat-1@gitlab.com/group/sub/api.git",
        ),
        (
            Bitbucket,
            "user:pass",
            "Work/Repo",
            json!({"uuid": "{1}", "slug": "repo", "workspace": {"slug": "work"}}),
            "/repositories/Work/Repo",
            "Basic dXNlcjpwYXNz",
            "work/repo",
            "https://user:pass@bitbucket.org/work/repo.git",
        ),
        (
            AzureDevops,
            "pat",
            "org/my project/repo",
            json!({"id": "1", "name": "repo", "project": {"name": "My Project"}}),
            "/org/my%20project/_apis/git/repositories/repo?api-version=7.1",
            "Basic OnBhdA==",
            "org/My Project/repo",
            "https://org:pat@dev.azure.com/org/My%20Project/_git/repo",
        ),
    ] {
        let service = Service::start(Answer::Json(answer)).await;
        let providers = GitProviders::new(tokens(&[(provider, token)])).unwrap();
        let providers = providers.with_api_base(provider, service.url.clone());
        assert_eq!(providers.resolve(name, Wanted::Required).await.unwrap(), repository(provider, expected));
        let secret = providers.authenticated_url(name, Wanted::Required).await.unwrap();
        assert_eq!(secret.expose(), url);
        let expected = (asked.to_owned(), Some(authorization.to_owned()), None);
        assert_eq!(service.asked(), [expected.clone(), expected]);
    }
}

#[tokio::test]
async fn services_are_asked_in_order_until_one_has_the_repository() {
    let without = Service::start(Answer::Text(StatusCode::NOT_FOUND, String::new())).await;
    let with = Service::start(Answer::Json(json!({"full_name": "acme/api"}))).await;
    let after = Service::start(Answer::Json(json!({"slug": "api", "workspace": {"slug": "acme"}}))).await;
    let order = [(ProviderType::Gitlab, "l"), (ProviderType::Github, "h"), (ProviderType::Bitbucket, "b")];
    let providers = GitProviders::new(tokens(&order))
        .unwrap()
        .with_api_base(ProviderType::Gitlab, without.url.clone())
        .with_api_base(ProviderType::Github, with.url.clone())
        .with_api_base(ProviderType::Bitbucket, after.url.clone());
    let found = providers.resolve("acme/api", Wanted::Required).await.unwrap();
    assert_eq!(found, repository(ProviderType::Github, "acme/api"));
    assert_eq!((without.asked().len(), with.asked().len(), after.asked().len()), (1, 1, 0));
}

#[tokio::test]
async fn a_service_without_a_token_is_asked_for_what_is_public() {
    let service = Service::start(Answer::Json(json!({"full_name": "acme/api"}))).await;
    let configured = [(ProviderType::Github, ProviderToken::default())].into_iter().collect();
    let providers = GitProviders::new(configured).unwrap().with_api_base(ProviderType::Github, service.url.clone());
    let url = providers.authenticated_url("acme/api", Wanted::Required).await.unwrap();
    assert_eq!(url.expose(), "https://github.com/acme/api.git");
    assert_eq!(service.asked(), [("/repos/acme/api".to_owned(), None, None)]);
}

#[tokio::test]
async fn without_a_service_no_repository_is_accessible() {
    let providers = GitProviders::new(ProviderTokens::default()).unwrap();
    assert_eq!(failures(&providers, "acme/api").await, []);
    let error = providers.authenticated_url("acme/api", Wanted::Optional).await.unwrap_err();
    assert_eq!(error.to_string(), "Unable to access repo acme/api");
    let error = providers.resolve("acme/../user", Wanted::Optional).await.unwrap_err();
    assert_eq!(error.to_string(), "`acme/../user` is not a valid name for a repository: it leads out of where it is");
}

#[tokio::test]
async fn answers_without_a_repository_are_failures() {
    use ProviderFailure::{Answer as Wrong, NotFound, RateLimit, Redirect, Refused, Status};
    let text = |status: u16, text: &str| Answer::Text(StatusCode::from_u16(status).unwrap(), text.to_owned());
    for (answer, expected) in [
        (text(401, "{}"), Refused(401)),
        (text(403, "{}"), Refused(403)),
        (text(404, "{}"), NotFound),
        (text(429, "{}"), RateLimit),
        (text(500, "{}"), Status(500)),
        (text(203, "<html>"), Status(203)),
        (text(200, "<html>"), Wrong("expected value at line 1 column 1".to_owned())),
        (text(200, "{}"), Wrong("it has no `full_name`".to_owned())),
        (
            text(200, r#"{"full_name": "../x"}"#),
            Wrong("`../x` is not a valid name for a repository: it leads out of where it is".to_owned()),
        ),
        (Answer::Redirect("/elsewhere".to_owned()), Redirect(301)),
        (Answer::Endless, Wrong("the answer has more than 1048576 bytes".to_owned())),
    ] {
        let service = Service::start(answer).await;
        let providers = GitProviders::new(tokens(&[(ProviderType::Github, "t")])).unwrap();
        let providers = providers.with_api_base(ProviderType::Github, service.url.clone());
        assert_eq!(failures(&providers, "acme/api").await, [(ProviderType::Github, expected)]);
    }
}

#[tokio::test]
async fn a_redirect_takes_no_token_along() {
    let elsewhere = Service::start(Answer::Json(json!({"full_name": "acme/api"}))).await;
    let service = Service::start(Answer::Redirect(elsewhere.url.to_string())).await;
    let providers = GitProviders::new(tokens(&[(ProviderType::Github, "t")])).unwrap();
    let providers = providers.with_api_base(ProviderType::Github, service.url.clone());
    assert_eq!(failures(&providers, "acme/api").await, [(ProviderType::Github, ProviderFailure::Redirect(301))]);
    assert_eq!(elsewhere.asked(), []);
}

#[tokio::test]
async fn a_service_that_does_not_answer_or_is_not_there_is_passed_over() {
    let silent = Service::start(Answer::Never).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone_url = format!("http://{}", gone.local_addr().unwrap()).parse().unwrap();
    drop(gone);
    let with = Service::start(Answer::Json(json!({"slug": "api", "workspace": {"slug": "acme"}}))).await;
    let order = [(ProviderType::Gitlab, "l"), (ProviderType::Github, "h"), (ProviderType::Bitbucket, "b")];
    let providers = GitProviders::new(tokens(&order))
        .unwrap()
        .with_limit(Duration::from_millis(300))
        .with_api_base(ProviderType::Gitlab, silent.url.clone())
        .with_api_base(ProviderType::Github, gone_url)
        .with_api_base(ProviderType::Bitbucket, with.url.clone());
    let found = providers.resolve("acme/api", Wanted::Required).await.unwrap();
    assert_eq!(found, repository(ProviderType::Bitbucket, "acme/api"));
    drop(with);
    let failures = failures(&providers.with_api_base(ProviderType::Bitbucket, silent.url.clone()), "acme/api").await;
    let [(_, silent), (_, gone), (_, third)] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((silent, third), (&ProviderFailure::Silent(0), &ProviderFailure::Silent(0)));
    assert!(matches!(gone, ProviderFailure::Unreachable(reason) if !reason.contains("127.0.0.1")), "{gone}");
}

#[tokio::test]
async fn nothing_is_sent_to_a_host_that_is_none() {
    let token = ProviderToken { host: Some("good.com@127.0.0.1".to_owned()), ..ProviderToken::new("t") };
    let providers = GitProviders::new([(ProviderType::Gitlab, token)].into_iter().collect()).unwrap();
    let expected = ProviderFailure::Host("good.com@127.0.0.1".to_owned());
    assert_eq!(failures(&providers, "acme/api").await, [(ProviderType::Gitlab, expected)]);
}

#[tokio::test]
async fn newest_tokens_come_from_the_web_server() {
    let service = Service::start(Answer::Json(json!({"token": "new", "more": 1}))).await;
    let refresh = Refresh::new(service.url.clone(), "s 1&x", Some("key".into())).unwrap();
    let tokens = tokens(&[(ProviderType::Gitlab, "old"), (ProviderType::AzureDevops, "")]);
    let expected: BTreeMap<_, _> =
        ["gitlab_token", "azure_devops_token"].map(|name| (name.to_owned(), Secret::from("new"))).into();
    assert_eq!(env_vars(&tokens, &[], Some(&refresh)).await, expected);
    let asked = |provider: &str| {
        let path = format!("/api/refresh-tokens?provider={provider}&sid=s+1%26x");
        (path, None, Some("key".to_owned()))
    };
    assert_eq!(service.asked(), [asked("gitlab"), asked("azure_devops")]);
}

#[tokio::test]
async fn a_token_that_cannot_be_refreshed_is_none() {
    for answer in [
        Answer::Text(StatusCode::UNAUTHORIZED, r#"{"token": "x"}"#.to_owned()),
        Answer::Text(StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        Answer::Text(StatusCode::OK, "{}".to_owned()),
        Answer::Text(StatusCode::OK, r#"{"token": 1}"#.to_owned()),
        Answer::Text(StatusCode::OK, r#"{"token": ""}"#.to_owned()),
        Answer::Redirect("/api/refresh-tokens".to_owned()),
        Answer::Never,
        Answer::Endless,
    ] {
        let service = Service::start(answer).await;
        let refresh = Refresh::new(service.url.clone(), "s1", None).unwrap().with_limit(Duration::from_millis(300));
        let tokens = tokens(&[(ProviderType::Github, "old")]);
        assert_eq!(env_vars(&tokens, &[ProviderType::Github], Some(&refresh)).await, BTreeMap::new());
        assert_eq!(service.asked().len(), 1);
    }
}

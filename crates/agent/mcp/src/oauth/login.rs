//! From the address of an MCP server to tokens for it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gloveport_client::causes;
use gloveport_protocol::Secret;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
};
use tokio::time::timeout;
use tracing::{instrument::WithSubscriber as _, subscriber::NoSubscriber};

use super::{
    OAuthError, TokenStore,
    callback::{Answer, Callback},
    record::{Answer as TokenAnswer, Credentials, Record},
    requests::{Requests, is_here},
    store::key,
    text::{clean, without},
};
use crate::{HttpServer, server::shown};

/// How long somebody may take to log in, if nothing else is said.
pub const WAIT: Duration = Duration::from_mins(5);
/// How long it may take to find out where to log in, and to be registered there.
const DISCOVERY_LIMIT: Duration = Duration::from_mins(1);
/// What people read in the browser, and in lists of programs that they have let in.
const NAME: &str = "gloveport";
/// The scope that some authorization servers want for a refresh token.
const OFFLINE: &str = "offline_access";

/// How to log in.
#[derive(Clone, Debug)]
pub struct LoginOptions {
    /// Where the tokens are kept.
    pub store: TokenStore,
    /// The ID that somebody has registered this program with; without, it registers itself.
    pub client_id: Option<String>,
    /// The secret that belongs to that ID, if there is one.
    pub client_secret: Option<Secret>,
    /// What the tokens are to allow; if empty, what the server asks for.
    pub scopes: Vec<String>,
    /// How long somebody may take to log in.
    pub wait: Duration,
}

impl LoginOptions {
    /// A login in which this program registers itself, asks for what the server wants, and waits for [`WAIT`].
    pub const fn new(store: TokenStore) -> Self {
        Self { store, client_id: None, client_secret: None, scopes: Vec::new(), wait: WAIT }
    }
}

/// What came of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The address that the tokens are kept for.
    pub server: String,
    /// The authorization server that gave them.
    pub issuer: String,
    /// What they allow, as far as the authorization server told.
    pub scopes: Vec<String>,
    /// When the access token expires; none if the authorization server did not say.
    pub expires: Option<SystemTime>,
    /// Whether it is renewed without a new login.
    pub can_refresh: bool,
}

/// Logs in at a server, and keeps its tokens in place of those that were there.
///
/// `show` gets the address at which a person agrees, and returns at once: it prints the address, and may open a browser.
/// The address has the login's `state` in it and belongs in no log. If this is given up, nothing is left but a
/// registration at the authorization server.
pub async fn login(
    server: &HttpServer,
    options: &LoginOptions,
    show: impl FnOnce(&Url) + Send,
) -> Result<LoggedIn, OAuthError> {
    let server = address(&server.url)?;
    let key = key(&server);
    // Whether there is a place for the tokens is found out before somebody logs in.
    drop(options.store.lock_server(&key).await?);
    options.store.get(&key).await?;
    let callback = Callback::listen().await.map_err(OAuthError::Listen)?;
    let begun = timeout(DISCOVERY_LIMIT, Box::pin(begin(&server, options, &callback.address()))).await;
    let too_long = |_| {
        let reason = format!("it takes longer than {} seconds", DISCOVERY_LIMIT.as_secs());
        OAuthError::Discovery { server: shown(server.as_str()), reason }
    };
    let begun = begun.map_err(too_long)??;
    show(&begun.page);
    let timed_out = |_| OAuthError::Timeout { limit: options.wait };
    let answer = timeout(options.wait, callback.answer(&begun.state)).await.map_err(timed_out)?;
    let record = begun.finish(answer, shown(server.as_str())).await?;
    let logged_in = LoggedIn {
        server: key.clone(),
        issuer: record.issuer.clone(),
        scopes: record.tokens.scopes.clone(),
        expires: record.tokens.expiry(),
        can_refresh: record.tokens.refresh.is_some(),
    };
    let _lock = options.store.lock_server(&key).await?;
    options.store.put(&key, record).await?;
    Ok(logged_in)
}

/// The address of a server as the OAuth parties see it: without what may be secret.
pub(super) fn address(url: &str) -> Result<Url, OAuthError> {
    let wrong = |reason: String| OAuthError::Address { server: shown(url), reason };
    let parsed = Url::parse(&shown(url)).map_err(|error| wrong(error.to_string()))?;
    match parsed.scheme() {
        "https" => Ok(parsed),
        "http" if is_here(&parsed) => Ok(parsed),
        "http" => Err(OAuthError::Insecure { server: shown(url) }),
        other => Err(wrong(format!("MCP has no logins over {other}"))),
    }
}

/// A login for which a person has not agreed yet.
struct Begun {
    manager: AuthorizationManager,
    issuer: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client: Credentials,
    scopes: Vec<String>,
    page: Url,
    state: Secret,
    resource: String,
}

/// Finds out where to log in, and registers this program there.
async fn begin(server: &Url, options: &LoginOptions, redirect: &str) -> Result<Begun, OAuthError> {
    let requests = Requests::for_server(server)?;
    let name = shown(server.as_str());
    let failed = |reason: String| OAuthError::Discovery { server: name.clone(), reason };
    let made = AuthorizationManager::new_with_oauth_http_client(server.clone(), Arc::new(requests.clone())).await;
    let mut manager = made.map_err(|error| failed(clean(&causes(&error))))?;
    let resolved = manager.resolve_metadata().await.map_err(|error| failed(clean(&causes(&error))))?;
    let not_offered = |reason: &str| OAuthError::NotOffered { server: name.clone(), reason: reason.to_owned() };
    // Old servers have endpoints at fixed paths. Whether those know PKCE cannot be told, so they get no login.
    if resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err(not_offered("it does not say where to log in"));
    }
    let metadata = resolved.metadata;
    let issuer = check(&metadata, &requests).map_err(failed)?;
    manager.set_metadata(metadata.clone());

    let mut scopes = options.scopes.clone();
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
    } else if metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE)
        && !scopes.iter().any(|scope| scope == OFFLINE)
    {
        scopes.push(OFFLINE.to_owned());
    }
    let wanted: Vec<&str> = scopes.iter().map(String::as_str).collect();

    let shown_issuer = clean(&issuer);
    let registration = |reason: String| OAuthError::Registration { issuer: shown_issuer.clone(), reason };
    let config = if let Some(id) = &options.client_id {
        let mut config = OAuthClientConfig::new(id, redirect).with_scopes(scopes.clone());
        config.client_secret = options.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        manager.configure_client(config.clone()).map_err(|error| registration(clean(&causes(&error))))?;
        config
    } else if metadata.registration_endpoint.is_some() {
        let registered = manager.register_client(NAME, redirect, &wanted).await;
        registered.map_err(|error| registration(clean(&causes(&error))))?
    } else {
        return Err(OAuthError::NoRegistration { issuer: shown_issuer });
    };

    let page = manager.get_authorization_url(&wanted).await.map_err(|error| failed(clean(&causes(&error))))?;
    let page = Url::parse(&page).map_err(|error| failed(error.to_string()))?;
    let of_page = |name: &str| {
        let mut found = page.query_pairs().filter(|(field, _)| field == name);
        // An authorization endpoint with a `state` of its own would make two of them.
        found.next().filter(|_| found.next().is_none()).map(|(_, value)| value.into_owned())
    };
    let missing = || failed("its authorization endpoint has fields of a login in it".to_owned());
    let state = Secret::new(of_page("state").ok_or_else(missing)?);
    let resource = of_page("resource").ok_or_else(missing)?;
    let secret_in_body = takes_secret_in_body(&metadata);
    Ok(Begun {
        manager,
        issuer,
        token_endpoint: metadata.token_endpoint.clone(),
        revocation_endpoint: endpoint(&metadata, "revocation_endpoint").map(str::to_owned),
        client: Credentials { id: config.client_id, secret: config.client_secret.map(Secret::new), secret_in_body },
        scopes,
        page,
        state,
        resource,
    })
}

/// What the SDK lets pass: who the authorization server is, or why it is not trusted.
fn check(metadata: &AuthorizationMetadata, requests: &Requests) -> Result<String, String> {
    let issuer = metadata.issuer.clone().ok_or("its authorization server does not say who it is")?;
    // The SDK compares the two unless a server names a document at a path that no standard knows.
    let origin = Url::parse(&issuer).ok().map(|issuer| issuer.origin());
    let source = requests.last_document().map(|document| document.origin());
    if origin.is_none() || origin != source {
        return Err(clean(&format!("an authorization server says that it is {issuer}, which it is not")));
    }
    // Without PKCE, whoever sees the code can use it. MCP wants servers to say that they have it.
    if !metadata.code_challenge_methods_supported.iter().flatten().any(|method| method == "S256") {
        return Err(clean(&format!("the authorization server {issuer} does not say that it knows PKCE with S256")));
    }
    let optional = [metadata.registration_endpoint.as_deref(), endpoint(metadata, "revocation_endpoint")];
    let required = [metadata.authorization_endpoint.as_str(), metadata.token_endpoint.as_str()];
    for address in required.into_iter().chain(optional.into_iter().flatten()) {
        if !Url::parse(address).is_ok_and(|url| requests.may_ask(&url)) {
            let shown = shown(address);
            return Err(clean(&format!(
                "its authorization server names {shown}, which is not encrypted or not public"
            )));
        }
    }
    Ok(issuer)
}

fn endpoint<'a>(metadata: &'a AuthorizationMetadata, name: &str) -> Option<&'a str> {
    metadata.additional_fields.get(name)?.as_str()
}

/// Whether a server takes the secret of a client in the body of requests only, as the SDK decides it for its own.
fn takes_secret_in_body(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let has = |name: &str| methods.and_then(|all| all.as_array()).is_some_and(|all| all.iter().any(|one| one == name));
    has("client_secret_post") && !has("client_secret_basic")
}

impl Begun {
    /// Changes the code of the browser's answer into tokens.
    async fn finish(self, answer: Answer, server: String) -> Result<Record, OAuthError> {
        let issuer = clean(&self.issuer);
        let (code, from) = match answer {
            Answer::Code { code, issuer } => (code, issuer),
            Answer::Error { code, description } => {
                let text = clean(&description);
                if code == "access_denied" {
                    let reason = if text.is_empty() { String::new() } else { format!(": {text}") };
                    return Err(OAuthError::Denied { server, reason });
                }
                return Err(OAuthError::Refused { issuer, reason: clean(&format!("{code} {text}")) });
            }
        };
        // What goes wrong here may have parts of the request or the answer in it, and both are secret.
        let hidden = [code.expose(), self.state.expose(), self.client.secret.as_ref().map_or("", Secret::expose)];
        let failed =
            |reason: &str| OAuthError::Exchange { issuer: issuer.clone(), reason: clean(&without(reason, &hidden)) };
        let exchange =
            self.manager.exchange_code_for_token_with_issuer(code.expose(), self.state.expose(), from.as_deref());
        // The SDK logs the code, and fields of the answer that it does not know.
        let exchanged = Box::pin(exchange).with_subscriber(NoSubscriber::default()).await;
        let answer = exchanged.map_err(|error| match error {
            AuthError::TokenExchangeFailed(reason) if !reason.starts_with("Server returned") => {
                failed("its answer has no tokens in it")
            }
            error => failed(&causes(&error)),
        })?;
        let answer = serde_json::to_value(&answer).and_then(serde_json::from_value::<TokenAnswer>);
        let answer = answer.map_err(|_| failed("its answer has no tokens in it"))?;
        let tokens = answer.into_tokens(self.scopes, None).map_err(failed)?;
        Ok(Record {
            resource: self.resource,
            issuer: self.issuer,
            token_endpoint: self.token_endpoint,
            revocation_endpoint: self.revocation_endpoint,
            client: self.client,
            tokens,
        })
    }
}

//! An authorization server and the MCP server that it protects, at one address or two. It takes nothing that the
//! standards do not allow, and counts what it is asked.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{net::TcpListener, task::JoinHandle};

/// What every secret that the server gives begins with.
pub(crate) const SECRET: &str = "hidden-";
/// The error that the server gives for what it does not take.
const INVALID_GRANT: &str = "invalid_grant";

/// What is known of the server, and how it behaves.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) base: String,
    /// Fields that its metadata have in place of the usual ones.
    pub(crate) metadata: BTreeMap<&'static str, Value>,
    /// The authorization server that the MCP server names in place of itself.
    pub(crate) authorization_server: Option<String>,
    /// What the MCP server says that it is.
    pub(crate) resource: Option<String>,
    /// What a path is answered with in place of the usual answer.
    pub(crate) answers: BTreeMap<&'static str, (u16, &'static str, String)>,
    /// How long access tokens are good; for ever without.
    pub(crate) lifetime: Option<u64>,
    /// A scope that no token has, and every call needs.
    pub(crate) wanted_scope: Option<&'static str>,
    /// Clients get a secret.
    pub(crate) is_confidential: bool,
    /// What the redirect says of who made the code.
    pub(crate) issuer_of_code: Option<String>,
    clients: BTreeMap<String, (Option<String>, String)>,
    codes: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) access: BTreeSet<String>,
    pub(crate) refresh: BTreeSet<String>,
    number: usize,
    pub(crate) refreshes: usize,
    pub(crate) revoked: Vec<String>,
    /// What every request had as its `Authorization`, by path.
    pub(crate) seen: Vec<(String, Option<String>)>,
}

/// A server, which ends with this.
pub(crate) struct Authorization {
    known: Arc<Mutex<Known>>,
    task: JoinHandle<()>,
}

impl Drop for Authorization {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Authorization {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let known = Arc::new(Mutex::new(Known { base, ..Known::default() }));
        let app = Router::new().fallback(handle).with_state(Arc::clone(&known));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { known, task }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    pub(crate) fn base(&self) -> String {
        self.known().base.clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base())
    }

    /// How many requests had a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.known().seen.iter().filter(|(seen, _)| seen == path).count()
    }

    /// Whether any request had a token or a password.
    pub(crate) fn has_seen_secrets(&self) -> bool {
        self.known().seen.iter().any(|(_, authorization)| authorization.is_some())
    }
}

async fn handle(State(known): State<Arc<Mutex<Known>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    known.lock().unwrap().answer(&parts.method, &parts.uri, &parts.headers, &body)
}

fn pairs(text: &[u8]) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(text) {
        assert!(pairs.insert(name.into_owned(), value.into_owned()).is_none(), "a field stands there twice");
    }
    pairs
}

fn error(code: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": code, "error_description": "no\u{1b}[2J"}))).into_response()
}

impl Known {
    fn fresh(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("{SECRET}{kind}-{}", self.number)
    }

    fn resource(&self) -> String {
        self.resource.clone().unwrap_or_else(|| format!("{}/mcp", self.base))
    }

    fn answer(&mut self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
        let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let authorization = text(header::AUTHORIZATION);
        let path = uri.path();
        self.seen.push((path.to_owned(), authorization.clone()));
        if let Some((status, location, body)) = self.answers.get(path) {
            let status = StatusCode::from_u16(*status).unwrap();
            return (status, [(header::LOCATION, *location)], body.clone()).into_response();
        }
        match (method.as_str(), path) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                let server = self.authorization_server.clone().unwrap_or_else(|| self.base.clone());
                Json(json!({
                    "resource": self.resource(), "authorization_servers": [server], "scopes_supported": ["tools"]
                }))
                .into_response()
            }
            ("GET", "/.well-known/oauth-authorization-server") => self.metadata().into_response(),
            ("POST", "/register") => self.register(body),
            ("GET", "/authorize") => self.authorize(&pairs(uri.query().unwrap().as_bytes())),
            ("POST", "/token") => self.token(&pairs(body), authorization.as_deref()),
            ("POST", "/revoke") => {
                let fields = pairs(body);
                if !self.is_client(&fields, authorization.as_deref()) {
                    return error("invalid_client");
                }
                let token = &fields["token"];
                self.access.remove(token);
                self.refresh.remove(token);
                self.revoked.push(token.clone());
                StatusCode::OK.into_response()
            }
            (_, "/mcp") => self.mcp(method, authorization.as_deref(), body),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn metadata(&self) -> Json<Value> {
        let base = &self.base;
        let mut metadata = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        });
        for (name, value) in &self.metadata {
            metadata[name] = value.clone();
        }
        Json(metadata)
    }

    fn register(&mut self, body: &Bytes) -> Response {
        let wanted: Value = serde_json::from_slice(body).unwrap();
        let [redirect] = &wanted["redirect_uris"].as_array().unwrap()[..] else { return error("invalid_redirect_uri") };
        let secret = self.is_confidential.then(|| self.fresh("secret:+"));
        let id = format!("client-{}", self.clients.len());
        self.clients.insert(id.clone(), (secret.clone(), redirect.as_str().unwrap().to_owned()));
        let mut answer = json!({"client_id": id, "redirect_uris": [redirect]});
        if let Some(secret) = secret {
            answer["client_secret"] = secret.into();
        }
        (StatusCode::CREATED, Json(answer)).into_response()
    }

    /// A person who agrees at once.
    fn authorize(&mut self, fields: &BTreeMap<String, String>) -> Response {
        let (_, redirect) = &self.clients[&fields["client_id"]];
        assert_eq!(&fields["redirect_uri"], redirect);
        assert_eq!((fields["response_type"].as_str(), fields["code_challenge_method"].as_str()), ("code", "S256"));
        assert_eq!(fields["resource"], self.resource());
        assert_eq!(fields["scope"], "tools");
        let code = self.fresh("code");
        let issuer = self.issuer_of_code.clone().unwrap_or_else(|| self.base.clone());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([("code", &code), ("state", &fields["state"]), ("iss", &issuer)]);
        let location = format!("{}?{}", fields["redirect_uri"], query.finish());
        self.codes.insert(code, fields.clone());
        (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
    }

    fn is_client(&self, fields: &BTreeMap<String, String>, authorization: Option<&str>) -> bool {
        let (id, secret) = match authorization.and_then(|text| text.strip_prefix("Basic ")) {
            Some(basic) => {
                let basic = String::from_utf8(BASE64_STANDARD.decode(basic).unwrap()).unwrap();
                let (id, secret) = basic.split_once(':').unwrap();
                let decoded = |text: &str| form_urlencoded::parse(text.as_bytes()).next().unwrap().0.into_owned();
                (decoded(id), Some(decoded(secret)))
            }
            None => (fields["client_id"].clone(), fields.get("client_secret").cloned()),
        };
        self.clients.get(&id).is_some_and(|(known, _)| *known == secret)
    }

    fn token(&mut self, fields: &BTreeMap<String, String>, authorization: Option<&str>) -> Response {
        if !self.is_client(fields, authorization) {
            return error("invalid_client");
        }
        if fields["resource"] != self.resource() {
            return error("invalid_target");
        }
        match fields["grant_type"].as_str() {
            "authorization_code" => {
                // A code is good once.
                let Some(asked) = self.codes.remove(&fields["code"]) else { return error(INVALID_GRANT) };
                let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&fields["code_verifier"]));
                if challenge != asked["code_challenge"] || fields["redirect_uri"] != asked["redirect_uri"] {
                    return error(INVALID_GRANT);
                }
            }
            "refresh_token" => {
                self.refreshes += 1;
                if !self.refresh.remove(&fields["refresh_token"]) {
                    // Somebody has a copy: all that came of it ends.
                    self.refresh.clear();
                    self.access.clear();
                    return error(INVALID_GRANT);
                }
            }
            _ => return error("unsupported_grant_type"),
        }
        let (access, refresh) = (self.fresh("access"), self.fresh("refresh"));
        self.access.insert(access.clone());
        self.refresh.insert(refresh.clone());
        let mut answer = json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh, "id_token": self.fresh("id")
        });
        if let Some(lifetime) = self.lifetime {
            answer["expires_in"] = lifetime.into();
        }
        Json(answer).into_response()
    }

    fn mcp(&self, method: &Method, authorization: Option<&str>, body: &Bytes) -> Response {
        let token = authorization.and_then(|text| text.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.access.contains(token) || token == "configured") {
            let document = format!("{}/.well-known/oauth-protected-resource/mcp", self.base);
            let challenge = format!("Bearer resource_metadata=\"{document}\"");
            return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
        }
        if let Some(scope) = self.wanted_scope {
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
        }
        if method == Method::DELETE {
            return StatusCode::OK.into_response();
        }
        if method != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let message: Value = serde_json::from_slice(body).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "protected", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "called"}]}),
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
    }
}

//! One client: every request of the protocol, and where it goes.

use std::{collections::HashSet, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequest, ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
        ListToolsRequest, LoggingLevel, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
        Reference, ServerCapabilities, SetLevelRequest, SetLevelRequestParams,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};

use crate::{
    audience::Listener,
    forward::forward,
    names,
    proxy::{Place, Proxy},
    server::{Live, Server},
};

/// Pages of one list of one server that are read, and elements that are taken.
const PAGES: usize = 1000;
const ELEMENTS: usize = 100_000;

/// One client of the proxy.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) listener: Arc<Listener>,
}

/// One of the lists of the protocol.
#[derive(Debug, Clone, Copy)]
enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    /// Its name in the result.
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn is_offered(self, by: &ServerCapabilities) -> bool {
        match self {
            Self::Tools => by.tools.is_some(),
            Self::Prompts => by.prompts.is_some(),
            Self::Resources | Self::Templates => by.resources.is_some(),
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let page = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest { params: page, ..Default::default() }),
            Self::Prompts => {
                ClientRequest::ListPromptsRequest(ListPromptsRequest { params: page, ..Default::default() })
            }
            Self::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest { params: page, ..Default::default() })
            }
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params: page,
                ..Default::default()
            }),
        }
    }

    /// Puts the server's name into each element.
    fn prefix(self, server: &str, page: &mut Value) {
        match self {
            Self::Tools | Self::Prompts => {
                names::change_each(page, self.name(), "name", |name| names::prefixed(server, name));
            }
            Self::Resources => names::change_each(page, self.name(), "uri", |uri| names::prefixed_uri(server, uri)),
            Self::Templates => {
                names::change_each(page, self.name(), "uriTemplate", |uri| names::prefixed_uri(server, uri));
            }
        }
    }
}

impl Session {
    pub(crate) fn new(proxy: &Arc<Proxy>) -> Self {
        Self { proxy: Arc::clone(proxy), listener: proxy.audience.join() }
    }

    /// The result of a request, as the servers wrote it.
    pub(crate) async fn answer(
        &self,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        if context.peer.peer_info().is_some() {
            self.listener.listen(context.peer.clone());
        }
        match request {
            ClientRequest::ListToolsRequest(_) => self.list(List::Tools, context).await,
            ClientRequest::ListPromptsRequest(_) => self.list(List::Prompts, context).await,
            ClientRequest::ListResourcesRequest(_) => self.list(List::Resources, context).await,
            ClientRequest::ListResourceTemplatesRequest(_) => self.list(List::Templates, context).await,
            ClientRequest::CallToolRequest(call) => self.call_tool(call, context).await,
            ClientRequest::GetPromptRequest(mut prompt) => {
                let place = self.proxy.of_prompt(&prompt.params.name);
                let Place { server, own } = place.ok_or_else(|| unknown("prompt", &prompt.params.name))?;
                prompt.params.name = own;
                self.ask(&server, ClientRequest::GetPromptRequest(prompt), context).await
            }
            ClientRequest::ReadResourceRequest(read) => self.read_resource(read, context).await,
            ClientRequest::SubscribeRequest(mut subscribe) => {
                let uri = subscribe.params.uri.clone();
                let Place { server, own } = self.proxy.of_uri(&uri).ok_or_else(|| unknown("resource", &uri))?;
                subscribe.params.uri = own;
                if !self.listener.subscribe(uri.clone()) {
                    return Err(ErrorData::invalid_request("this client has too many subscriptions", None));
                }
                let answer = self.ask(&server, ClientRequest::SubscribeRequest(subscribe), context).await;
                answer.inspect_err(|_| self.listener.unsubscribe(&uri))
            }
            ClientRequest::UnsubscribeRequest(mut unsubscribe) => {
                let uri = unsubscribe.params.uri.clone();
                let Place { server, own } = self.proxy.of_uri(&uri).ok_or_else(|| unknown("resource", &uri))?;
                self.listener.unsubscribe(&uri);
                if self.proxy.audience.subscribes(&uri) {
                    return Ok(json!({}));
                }
                unsubscribe.params.uri = own;
                self.ask(&server, ClientRequest::UnsubscribeRequest(unsubscribe), context).await
            }
            ClientRequest::CompleteRequest(mut complete) => {
                let place = match &complete.params.r#ref {
                    Reference::Prompt(prompt) => self.proxy.of_prompt(&prompt.name),
                    Reference::Resource(resource) => self.proxy.of_uri(&resource.uri),
                    _ => None,
                };
                let Place { server, own } = place.ok_or_else(|| unknown("reference", "of the completion"))?;
                match &mut complete.params.r#ref {
                    Reference::Prompt(prompt) => prompt.name = own,
                    Reference::Resource(resource) => resource.uri = own,
                    _ => {}
                }
                self.ask(&server, ClientRequest::CompleteRequest(complete), context).await
            }
            ClientRequest::SetLevelRequest(level) => {
                self.set_level(level.params.level, context).await;
                Ok(json!({}))
            }
            // What has no name that tells whose it is goes to a single server only.
            other => match &*self.proxy.servers() {
                [server] => self.ask(server, other, context).await,
                _ => Err(ErrorData::new(
                    rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                    format!("{} cannot be passed on: it does not say for which of the servers it is", other.method()),
                    None,
                )),
            },
        }
    }

    async fn ask(
        &self,
        server: &Arc<Server>,
        request: ClientRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        forward(&*self.live(server, context).await?, request, context).await
    }

    async fn live(&self, server: &Arc<Server>, context: &RequestContext<RoleServer>) -> Result<Arc<Live>, ErrorData> {
        tokio::select! {
            live = server.live(self.proxy.waits.start) => live.map_err(|gone| ErrorData::internal_error(gone.to_string(), None)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }

    async fn call_tool(
        &self,
        mut call: CallToolRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let name = call.params.name.clone();
        let Place { server, own } = self.proxy.of_tool(&name).ok_or_else(|| unknown("tool", &name))?;
        call.params.name = own.into();
        self.ask(&server, ClientRequest::CallToolRequest(call), context).await
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let uri = &read.params.uri;
        if let Some(Place { server, own }) = self.proxy.of_uri(uri) {
            let asked = ReadResourceRequest::new(ReadResourceRequestParams::new(own));
            let mut result = self.ask(&server, ClientRequest::ReadResourceRequest(asked), context).await?;
            if self.proxy.audience.has_prefixes() {
                names::change_each(&mut result, "contents", "uri", |own| names::prefixed_uri(server.name(), own));
            }
            return Ok(result);
        }
        // Results of tools name resources as their servers do, so each that has some is asked.
        let mut failure = unknown("resource", uri);
        for (_, live) in self.proxy.all().await {
            let Ok(live) = live else { continue };
            if live.capabilities.resources.is_some() {
                match forward(&live, ClientRequest::ReadResourceRequest(read.clone()), context).await {
                    Ok(result) => return Ok(result),
                    Err(error) => failure = error,
                }
            }
        }
        Err(failure)
    }

    /// Sets the level of this client. Each server sends the lines that any client wants.
    async fn set_level(&self, level: LoggingLevel, context: &RequestContext<RoleServer>) {
        self.listener.set_level(level);
        let lowest = self.proxy.audience.lowest_level().unwrap_or(level);
        for (_, live) in self.proxy.all().await {
            let Ok(live) = live else { continue };
            if live.capabilities.logging.is_some() {
                let request = SetLevelRequest::new(SetLevelRequestParams::new(lowest));
                if let Err(error) = forward(&live, ClientRequest::SetLevelRequest(request), context).await {
                    tracing::debug!(server = live.name, %error, "an MCP server does not set the level of its lines");
                }
            }
        }
    }

    /// One list of all servers. One that cannot be asked is left out, unless that leaves nothing.
    async fn list(&self, list: List, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
        let has_prefixes = self.proxy.audience.has_prefixes();
        let asked = self.proxy.all().await.into_iter().map(|(server, live)| async move {
            let live = live.map_err(|gone| ErrorData::internal_error(gone.to_string(), None));
            let elements = match live {
                Ok(live) if list.is_offered(&live.capabilities) => {
                    elements(list, &live, has_prefixes, &server, context).await
                }
                Ok(_) => Ok(Vec::new()),
                Err(error) => Err(error),
            };
            (server, elements)
        });
        let mut all = Vec::new();
        let mut failures = Vec::new();
        let mut answers = 0;
        for (server, elements) in futures_util::future::join_all(asked).await {
            match elements {
                Ok(elements) => {
                    answers += 1;
                    all.extend(elements);
                }
                Err(error) => {
                    if server.fails_first_time() {
                        let name = server.name();
                        tracing::warn!(server = name, "lists leave out an MCP server: {}", error.message);
                    }
                    failures.push(error);
                }
            }
        }
        if answers == 0 && !failures.is_empty() {
            return match <[ErrorData; 1]>::try_from(failures) {
                Ok([failure]) => Err(failure),
                Err(failures) => {
                    let texts: Vec<&str> = failures.iter().map(|failure| &*failure.message).collect();
                    Err(ErrorData::internal_error(texts.join("; "), None))
                }
            };
        }
        let mut result = Map::new();
        result.insert(list.name().to_owned(), Value::Array(all));
        Ok(Value::Object(result))
    }
}

/// All elements of a list of one server.
async fn elements(
    list: List,
    live: &Live,
    has_prefixes: bool,
    server: &Server,
    context: &RequestContext<RoleServer>,
) -> Result<Vec<Value>, ErrorData> {
    let mut all = Vec::new();
    let mut names = HashSet::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let mut page = forward(live, list.request(cursor), context).await?;
        if matches!(list, List::Tools) {
            let tools = page.get(list.name()).and_then(Value::as_array).into_iter().flatten();
            names.extend(tools.filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)));
        }
        if has_prefixes {
            list.prefix(server.name(), &mut page);
        }
        if let Some(Value::Array(elements)) = page.get_mut(list.name()) {
            all.append(elements);
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || all.len() >= ELEMENTS {
            break;
        }
    }
    all.truncate(ELEMENTS);
    if matches!(list, List::Tools) {
        server.know_tools(names);
    }
    Ok(all)
}

fn unknown(what: &str, name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Unknown {what}: {name}"), None)
}

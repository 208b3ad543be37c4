//! One client's view of a sandbox.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, ServerNotification, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError},
};
use tokio::sync::mpsc;

use crate::{
    answer, browser,
    changes::Watches,
    computer::{Computer, Failure},
    files, python, resources, search,
    shell::Shells,
    tool::{Tool, UnknownTool},
};

type Context = RequestContext<RoleServer>;

/// A sandbox as an MCP server, for one client.
pub struct McpServer {
    shared: Arc<Shared>,
    watches: Watches,
    /// What the watches tell, until somebody listens.
    waiting: Mutex<Option<mpsc::Receiver<ServerNotification>>>,
}

/// What all clients of a sandbox have in common.
struct Shared {
    computer: Arc<dyn Computer>,
    tools: Vec<Tool>,
    shells: Shells,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("McpServer").field("tools", &self.shared.tools).finish_non_exhaustive()
    }
}

impl McpServer {
    /// A server with these tools.
    pub fn new(computer: Arc<dyn Computer>, tools: Vec<Tool>) -> Self {
        Self::with(Arc::new(Shared { computer, tools, shells: Shells::default() }))
    }

    /// The same for another client.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self::with(Arc::clone(&self.shared))
    }

    fn with(shared: Arc<Shared>) -> Self {
        let (watches, waiting) = Watches::new();
        Self { shared, watches, waiting: Mutex::new(Some(waiting)) }
    }

    fn take_waiting(&self) -> Option<mpsc::Receiver<ServerNotification>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The tools that the sandbox can use.
    fn tools(&self) -> impl Iterator<Item = Tool> {
        let has_browser = self.computer().has_browser();
        self.shared.tools.iter().copied().filter(move |tool| has_browser || !tool.is_of_browser())
    }

    fn computer(&self) -> &dyn Computer {
        &*self.shared.computer
    }

    async fn ready(&self) -> Result<(), ErrorData> {
        self.computer().ready().await.map_err(|failure| ErrorData::internal_error(failure.text, None))
    }

    async fn call(
        &self,
        tool: Tool,
        call: CallToolRequestParams,
        context: &Context,
    ) -> Result<answer::Answer, Failure> {
        let (computer, arguments) = (self.computer(), call.arguments.unwrap_or_default());
        let shells = &self.shared.shells;
        match tool {
            Tool::Shell => shells.shell(computer, arguments, context).await,
            Tool::ShellOutput => shells.output(computer, arguments, context).await,
            Tool::ShellInput => shells.input(computer, arguments, context).await,
            Tool::ShellStop => shells.stop(computer, arguments, context).await,
            Tool::Python => python::run(computer, arguments, context).await,
            Tool::ReadFile => files::read(computer, arguments).await,
            Tool::WriteFile => files::write(computer, arguments).await,
            Tool::EditFile => files::edit(computer, arguments).await,
            Tool::SearchFiles => search::search(computer, arguments).await,
            Tool::BrowserOpen => cancellable(browser::open(computer, arguments), context).await,
            Tool::BrowserAct => cancellable(browser::act(computer, arguments), context).await,
            Tool::BrowserRead => cancellable(browser::read(computer, arguments), context).await,
        }
    }
}

/// Work that is given up with its call. What it has begun in the sandbox has its own limit.
async fn cancellable(
    work: impl Future<Output = Result<answer::Answer, Failure>>,
    context: &Context,
) -> Result<answer::Answer, Failure> {
    tokio::select! {
        done = work => done,
        () = context.ct.cancelled() => Err(Failure::new("the call was cancelled")),
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .build();
        let computer = self.computer();
        let place = if computer.is_the_users() {
            "on the user's own machine, with all that the user may do there"
        } else {
            "in a Linux sandbox, which is another computer than the user's"
        };
        let directory = match computer.directory() {
            "" => "the directory",
            directory => directory,
        };
        let mut info = ServerConfig::new(capabilities).with_instructions(format!(
            "These tools work {place}. The work is in {directory}, where relative paths and the shell start."
        ));
        info.server_info = Implementation::new("gloveport", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools().map(Tool::describe).collect()))
    }

    async fn call_tool(&self, call: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let wrong = |error: UnknownTool| ErrorData::invalid_params(error.to_string(), None);
        let tool: Tool = call.name.parse().map_err(wrong)?;
        if !self.tools().any(|one| one == tool) {
            return Err(ErrorData::invalid_params(format!("the tool `{}` is switched off here", tool.name()), None));
        }
        let called = Box::pin(async {
            tokio::select! {
                ready = self.computer().ready() => ready?,
                () = context.ct.cancelled() => return Err(Failure::new("the call was cancelled")),
            }
            self.call(tool, call, &context).await
        });
        let result = match called.await {
            Ok(answer) => answer.into_result(),
            Err(failure) => answer::failed(failure),
        };
        Ok(CallToolResponse::Complete(result))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.ready().await?;
        // Whoever has seen the list wants to know of the next one.
        self.watches.list(&self.shared.computer).await;
        resources::list(self.computer(), page.and_then(|page| page.cursor).as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.ready().await?;
        resources::read(self.computer(), &read.uri).await.map(ReadResourceResponse::Complete)
    }

    async fn subscribe(&self, subscribe: SubscribeRequestParams, _context: Context) -> Result<(), ErrorData> {
        self.ready().await?;
        self.watches.file(&self.shared.computer, &subscribe.uri).await
    }

    async fn unsubscribe(&self, unsubscribe: UnsubscribeRequestParams, _context: Context) -> Result<(), ErrorData> {
        self.watches.forget(&unsubscribe.uri);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(mut waiting) = self.take_waiting() else { return };
        // It ends with the watches, or with the client.
        tokio::spawn(async move {
            while let Some(notification) = waiting.recv().await {
                if context.peer.send_notification(notification).await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// What clients of revisions without `initialize` listen to.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.ready().await?;
        let (watches, mut waiting) = Watches::new();
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            watches.file(&self.shared.computer, uri).await?;
        }
        if subscription.accepted().resources_list_changed == Some(true) {
            watches.list(&self.shared.computer).await;
        }
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                Some(told) = waiting.recv() => {
                    let sent = subscription.sink().send(told).await;
                    if let Err(SubscriptionSendError::Service(_) | SubscriptionSendError::SubscriptionClosed) = sent {
                        return Ok(());
                    }
                }
            }
        }
    }
}

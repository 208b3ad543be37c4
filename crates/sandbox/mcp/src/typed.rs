//! A client over the SDK's own transports, which want results that they know.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, ClientRequest, CompleteRequest,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, GetPromptRequest, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest,
        ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListToolsRequest, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SetLevelRequest, SetLevelRequestParams, SubscribeRequest,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequest, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::session::Session;

type Context = RequestContext<RoleServer>;

impl Session {
    async fn typed<T: DeserializeOwned>(&self, request: ClientRequest, context: &Context) -> Result<T, ErrorData> {
        let mut result = self.answer(request, context).await?;
        if let Value::Object(result) = &mut result {
            // The newest revision wants it said, and the SDK leaves it out for the others.
            result.entry("resultType").or_insert_with(|| "complete".into());
        }
        serde_json::from_value(result).map_err(|error| {
            ErrorData::internal_error(format!("the MCP server answered what the protocol does not know: {error}"), None)
        })
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_completions()
            .build();
        capabilities.logging = Some(serde_json::Map::new());
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("gloveport", env!("CARGO_PKG_VERSION"));
        info
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// What clients of revisions without `initialize` listen to.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(mut told) = self.listener.take() else {
            return Err(ErrorData::invalid_request("this session is told what changes already", None));
        };
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri.clone()));
            let request = ClientRequest::SubscribeRequest(request);
            self.answer(request, subscription.request_context()).await?;
        }
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                Some(told) = told.recv() => {
                    // What was not asked for is left out.
                    let sent = subscription.sink().send(told).await;
                    if let Err(SubscriptionSendError::Service(_) | SubscriptionSendError::SubscriptionClosed) = sent {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.listener.listen(context.peer);
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let request = ListToolsRequest { params: page, ..Default::default() };
        self.typed(ClientRequest::ListToolsRequest(request), &context).await
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let request = ListPromptsRequest { params: page, ..Default::default() };
        self.typed(ClientRequest::ListPromptsRequest(request), &context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let request = ListResourcesRequest { params: page, ..Default::default() };
        self.typed(ClientRequest::ListResourcesRequest(request), &context).await
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let request = ListResourceTemplatesRequest { params: page, ..Default::default() };
        self.typed(ClientRequest::ListResourceTemplatesRequest(request), &context).await
    }

    async fn call_tool(&self, call: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        self.typed(request, &context).await.map(CallToolResponse::Complete)
    }

    async fn get_prompt(
        &self,
        prompt: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(prompt));
        self.typed(request, &context).await.map(GetPromptResponse::Complete)
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(read));
        self.typed(request, &context).await.map(ReadResourceResponse::Complete)
    }

    async fn complete(&self, complete: CompleteRequestParams, context: Context) -> Result<CompleteResult, ErrorData> {
        self.typed(ClientRequest::CompleteRequest(CompleteRequest::new(complete)), &context).await
    }

    async fn subscribe(&self, subscribe: SubscribeRequestParams, context: Context) -> Result<(), ErrorData> {
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(subscribe));
        self.answer(request, &context).await.map(drop)
    }

    async fn unsubscribe(&self, unsubscribe: UnsubscribeRequestParams, context: Context) -> Result<(), ErrorData> {
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(unsubscribe));
        self.answer(request, &context).await.map(drop)
    }

    async fn set_level(&self, level: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(level));
        self.answer(request, &context).await.map(drop)
    }

    async fn on_custom_request(&self, request: CustomRequest, context: Context) -> Result<CustomResult, ErrorData> {
        let result = self.answer(ClientRequest::CustomRequest(request), &context).await?;
        Ok(CustomResult::new(result))
    }
}

//! `[llm]` and its named groups (configuration 3 and 4).

use std::collections::BTreeMap;

use gloveport_protocol::Secret;

use crate::{free_form::FreeForm, key::section};

section! {
    /// The language model. `[llm]` is the default; `[llm.NAME]` is another one that inherits from it. gloveport itself
    /// asks a model only for `llm_based_edit`, with the group `draft_editor`.
    pub struct LlmConfig = "llm" {
        /// Name of the model.
        model: String = "claude-sonnet-4-20250514".into();
        /// Key for the service of the model.
        api_key: Option<Secret> = None, example = "\"…\"";
        /// URL of the service.
        base_url: Option<String> = None, example = "\"https://models.example.com/v1\"";
        /// Version of the service's interface; models whose name starts with `azure` have one by default.
        api_version: Option<String> = None, example = "\"2024-12-01-preview\"";
        /// Key id for AWS.
        aws_access_key_id: Option<Secret> = None, example = "\"…\"";
        /// Key for AWS.
        aws_secret_access_key: Option<Secret> = None, example = "\"…\"";
        /// Region of AWS.
        aws_region_name: Option<String> = None, example = "\"eu-central-1\"";
        /// Site to report to OpenRouter.
        openrouter_site_url: String = "https://docs.all-hands.dev/".into();
        /// Name to report to OpenRouter.
        openrouter_app_name: String = "OpenHands".into();
        /// How often a request is retried.
        num_retries: i64 = 5;
        /// Factor by which the wait between attempts grows.
        retry_multiplier: f64 = 8.0;
        /// Shortest wait between attempts, in seconds.
        retry_min_wait: i64 = 8;
        /// Longest wait between attempts, in seconds.
        retry_max_wait: i64 = 64;
        /// Seconds to wait for an answer; unset: gloveport sets no limit.
        timeout: Option<i64> = None, example = "120";
        /// Longest message to the model, in characters; longer ones lose their middle.
        max_message_chars: i64 = 30000;
        /// Sampling temperature.
        temperature: f64 = 0.0;
        /// Share of the probability that is sampled from.
        top_p: f64 = 1.0;
        /// How many of the likeliest tokens are sampled from.
        top_k: Option<f64> = None, example = "40.0";
        /// Provider, if the name of the model does not imply it.
        custom_llm_provider: Option<String> = None, example = "\"openai\"";
        /// Maximum number of tokens of a request.
        max_input_tokens: Option<i64> = None, example = "100000";
        /// Maximum number of tokens of an answer.
        max_output_tokens: Option<i64> = None, example = "8192";
        /// Price of a token of a request.
        input_cost_per_token: Option<f64> = None, example = "0.000003";
        /// Price of a token of an answer.
        output_cost_per_token: Option<f64> = None, example = "0.000015";
        /// URL of Ollama.
        ollama_base_url: Option<String> = None, example = "\"http://localhost:11434\"";
        /// Leave out parameters that the model does not know.
        drop_params: bool = true;
        /// Let the client library adapt parameters.
        modify_params: bool = true;
        /// Send no images, even if the model could read them.
        disable_vision: Option<bool> = None, example = "true";
        /// Send no stop words.
        disable_stop_word: Option<bool> = Some(false);
        /// Let the service keep the prompt between requests.
        caching_prompt: bool = true;
        /// Write every answer into a file.
        log_completions: bool = false;
        /// Directory of those files.
        log_completions_folder: String = "logs/completions".into(), dynamic = "`logs/completions` in the current directory";
        /// Tokenizer for counting.
        custom_tokenizer: Option<String> = None, example = "\"some/tokenizer\"";
        /// Use the model's own tool calls; unset: if the model is known to support them.
        native_tool_calling: Option<bool> = None, example = "true";
        /// How hard the model should think: `low`, `medium`, `high`.
        reasoning_effort: Option<String> = None, example = "\"high\"";
        /// Seed of the sampling.
        seed: Option<i64> = None, example = "42";
        /// Safety settings for models that have them.
        safety_settings: Option<Vec<BTreeMap<String, String>>> = None,
            example = "[{ category = \"HARM_CATEGORY_HARASSMENT\", threshold = \"BLOCK_NONE\" }]";
        /// May be chosen by the routing of models.
        for_routing: bool = false;
        /// How often the editor lets a model correct an edit that breaks the file.
        correct_num: i64 = 5;
        /// Further parameters of every request; only in a named group, because a table in `[llm]` is a group.
        completion_kwargs: Option<FreeForm> = None, example = "{ user = \"me\" }";
    }
}

/// Version of the interface that models of Azure need.
const AZURE_API_VERSION: &str = "2024-12-01-preview";

impl LlmConfig {
    /// Sets what follows from other keys; tells whether `api_version` was set.
    pub(crate) fn complete(&mut self) -> bool {
        let needed = self.api_version.is_none() && self.model.starts_with("azure");
        if needed {
            self.api_version = Some(AZURE_API_VERSION.to_owned());
        }
        needed
    }
}

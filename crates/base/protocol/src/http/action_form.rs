//! What every serialised action has, for the document of the interface. The members of each kind are those of the reference.

use utoipa::ToSchema;

/// A serialised action.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands for an object in the document of the interface")]
pub(super) struct SerialisedAction {
    /// Its kind: `run`, `run_ipython`, `read`, `write`, `edit`, `browse` and others.
    #[schema(example = "run")]
    action: String,
    /// Its members, by kind: `{"command": "ls"}` of a `run`.
    #[schema(value_type = Option<Object>)]
    args: Option<serde_json::Map<String, serde_json::Value>>,
    /// Seconds after which it is given up.
    #[schema(minimum = 0)]
    timeout: Option<f64>,
}

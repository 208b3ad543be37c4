//! What travels between the two halves of the sandbox: actions, observations, events and HTTP bodies.
//!
//! The crate turns JSON into types at the edge and back; behind it nobody handles raw JSON. It holds no behaviour
//! beyond that: no input or output, no clocks, no processes.
//!
//! | module | idea |
//! |---|---|
//! | [`action`] | what the caller wants done |
//! | [`observation`] | what came of it |
//! | [`event`] | the envelope around either, and its JSON form |
//! | [`values`] | the enumerations of the wire |
//! | [`error`] | why JSON was refused |
//! | [`http`] | bodies of the other endpoints |
//! | [`exec`], [`files`], [`kernels`], [`processes`], [`terminals`] | bodies of the native API |
//! | [`executor`] | the boundary between who receives actions and who executes them |
//! | [`seconds`] | numbers of seconds as time limits |
//! | [`truncate`], [`python`], [`python_literal`] | the text forms that the wire depends on |

pub mod action;
pub mod browser;
mod envelope;
pub mod error;
pub mod event;
pub mod exec;
pub mod executor;
mod fields;
pub mod files;
mod form;
pub mod http;
pub mod kernels;
mod legacy;
pub mod observation;
pub mod processes;
pub mod python;
pub mod python_literal;
pub mod sandbox;
pub mod seconds;
mod secret;
pub mod terminals;
pub mod truncate;
pub mod values;

pub use action::{
    Action, BrowseAction, BrowseInteractiveAction, CallToolMcpAction, ChangeAgentStateAction, CondensationAction,
    DelegateAction, EditAction, FinishAction, InsertLine, LoopRecoveryAction, MessageAction, ReadAction, RecallAction,
    RejectAction, RunAction, RunIpythonAction, SystemAction, TaskTrackingAction, ThinkAction, WriteAction,
};
pub use error::{EnvelopeError, FieldError, ParseActionError, ParseEventError, ParseObservationError};
pub use event::{ActionEvent, Event, ObservationEvent};
pub use executor::{ActionExecutor, BoxFuture, ExecuteError};
pub use http::{
    AliveBody, ConnectionToken, DiskUsage, ErrorBody, ExecuteActionRequest, IoCounters, ListFilesRequest,
    McpServerEntry, McpServerEntryError, MemoryUsage, PORT_HEADER, PORT_KEY_HEADER, Resources, SESSION_KEY_HEADER,
    ServerInfo, UpdateMcpResponse, ValidationErrorBody,
};
pub use observation::{
    AgentStateChangedObservation, BrowseObservation, CommandMetadata, CondenseObservation, DelegateObservation,
    DownloadObservation, EditObservation, ErrorObservation, LoopDetectionObservation, McpObservation,
    MicroagentKnowledge, Observation, ReadObservation, RecallObservation, RunIpythonObservation, RunObservation,
    SuccessObservation, TaskTrackingObservation, ThinkObservation, UserRejectedObservation, WriteObservation,
};
pub use secret::Secret;
pub use truncate::{CONTENT_LIMIT, truncate_content};
pub use values::{
    AgentState, ConfirmationState, EventSource, FileEditSource, FileReadSource, RecallType, SecurityRisk,
};

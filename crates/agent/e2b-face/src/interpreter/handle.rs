//! What requests for the code interpreter need.

use std::sync::Arc;

use gloveport_client::ClientError;
use http::StatusCode;

use crate::{
    Refusal,
    connect::{Code, ConnectError},
    place::Place,
    shared::Shared,
};

/// What requests need.
#[derive(Clone, Debug)]
pub(super) struct Interpreter {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Arc<Place>,
}

/// What the server of the sandbox did not do.
pub(super) fn refused(error: ClientError) -> Refusal {
    if let ClientError::Status(status) = &error
        && status.native.as_ref().is_some_and(|native| native.code == "no_notebook")
    {
        let message = "The sandbox is running but port is not open: it has no code interpreter; make it from the template \
            code-interpreter-v1, or from one with code_interpreter = true";
        return Refusal::new(StatusCode::BAD_GATEWAY, message);
    }
    let ConnectError { code, message } = error.into();
    let status = match code {
        Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::Unauthenticated => StatusCode::BAD_GATEWAY,
        code => code.status(),
    };
    Refusal::new(status, message)
}

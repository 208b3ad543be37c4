//! Why a document cannot be shown.

/// Why a document can not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It is not what its name says.
    #[error("the file is not a valid document: {0}")]
    Invalid(String),
    /// What it unpacks to is too large.
    #[error("the unpacked document is larger than {} MB", .0 / (1024 * 1024))]
    Large(usize),
    /// It is too deep or has too many parts.
    #[error("the document is too complex: {0}")]
    Complex(&'static str),
}

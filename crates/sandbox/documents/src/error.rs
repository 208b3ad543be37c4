//! Why a document cannot be shown.

/// Why a document can not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// This build has no converters.
    #[cfg(not(feature = "documents"))]
    #[error("this build of the server leaves documents out; use one with the feature `documents`")]
    LeftOut,
    /// It is not what its name says.
    #[cfg(feature = "documents")]
    #[error("the file is not a valid document: {0}")]
    Invalid(String),
    /// What it unpacks to is too large.
    #[cfg(feature = "documents")]
    #[error("the unpacked document is larger than {} MB", .0 / (1024 * 1024))]
    Large(usize),
    /// It is too deep or has too many parts.
    #[cfg(feature = "documents")]
    #[error("the document is too complex: {0}")]
    Complex(&'static str),
}

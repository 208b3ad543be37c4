//! An element, as far as the text of a page depends on it.

/// What the text depends on of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// The tag in lower case.
    pub(super) name: String,
    pub(super) href: Option<String>,
    pub(super) title: Option<String>,
    /// The first number of a list.
    pub(super) start: Option<String>,
}

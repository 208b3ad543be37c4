//! Labels of sandboxes that gateways make.

/// The label of sandboxes that gateways make, where the engine has labels, and what it says.
pub(crate) const LABEL: (&str, &str) = ("gloveport-gateway", "default");

/// The label of those that their clients end.
pub(crate) const NOT_KEPT: &str = "gloveport-gateway-client-ends";

//! The only way out of and into a sandbox whose network is closed.

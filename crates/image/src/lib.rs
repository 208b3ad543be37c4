//! Names, contents and builds of container images for sandboxes.

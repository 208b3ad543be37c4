//! VS Code for a workspace: the server that the image has, started when it is used.

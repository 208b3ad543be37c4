//! Sandboxes as processes of this machine: our server as a child process.

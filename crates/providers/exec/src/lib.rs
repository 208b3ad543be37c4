//! Sandboxes of a program that gets a verb and JSON, and answers JSON.

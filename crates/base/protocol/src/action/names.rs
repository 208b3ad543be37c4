//! The names of the kinds of actions.

/// The kinds with a class: the reference's name of the enum member, and the name on the wire, in the order in which
/// the reference lists them.
pub(crate) const NAMES: [(&str, &str); 21] = [
    ("NULL", "null"),
    ("RUN", "run"),
    ("RUN_IPYTHON", "run_ipython"),
    ("BROWSE", "browse"),
    ("BROWSE_INTERACTIVE", "browse_interactive"),
    ("READ", "read"),
    ("WRITE", "write"),
    ("EDIT", "edit"),
    ("THINK", "think"),
    ("FINISH", "finish"),
    ("REJECT", "reject"),
    ("DELEGATE", "delegate"),
    ("RECALL", "recall"),
    ("CHANGE_AGENT_STATE", "change_agent_state"),
    ("MESSAGE", "message"),
    ("SYSTEM", "system"),
    ("CONDENSATION", "condensation"),
    ("CONDENSATION_REQUEST", "condensation_request"),
    ("MCP", "call_tool_mcp"),
    ("TASK_TRACKING", "task_tracking"),
    ("LOOP_RECOVERY", "loop_recovery"),
];

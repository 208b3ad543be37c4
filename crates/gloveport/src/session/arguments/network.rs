//! Flags of what changes the network of running sessions.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::session) enum NetworkCommand {
    /// Show whom a session may reach.
    Show(NetworkArgs),
    /// Let a session reach hosts and networks, at once.
    Allow(ChangeNetworkArgs),
    /// Keep a session from hosts and networks, at once, whatever else lets it reach them. Connections to them end.
    Deny(ChangeNetworkArgs),
    /// Show the hosts that a session has asked for lately, and whether it was let through.
    Log(NetworkArgs),
}

#[derive(Debug, Args)]
pub(in crate::session) struct NetworkArgs {
    /// The session. It was started with --network HOSTS.
    #[arg(value_name = "ID")]
    pub(in crate::session) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(in crate::session) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::session) struct ChangeNetworkArgs {
    #[command(flatten)]
    pub(in crate::session) of: NetworkArgs,
    /// A host, `*.HOST`, an address or a network, each also with `:PORT`.
    #[arg(value_name = "HOST", required = true)]
    pub(in crate::session) hosts: Vec<String>,
}

//! The flags of `gloveport serve`.

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, builder::BoolishValueParser};

use crate::session::values::{memory, positive};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ServeArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0 lets the system choose.
    #[arg(long, short, default_value_t = 8000, allow_negative_numbers = true)]
    pub(crate) port: u16,
    /// Directory that tools start in; created if it is missing.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// File with the key that clients must send as X-Session-API-Key. The variables GLOVEPORT_KEY and SESSION_API_KEY
    /// do the same. Without any of them, a new key is printed and kept where your other commands find it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Serve without a key: every user of this machine can run commands, but web pages cannot. On any address other than
    /// loopback you also need --insecure.
    #[arg(long, conflicts_with = "key_file")]
    pub(crate) no_key: bool,
    /// Serve without a key on an address other than loopback: everyone who reaches the port can run commands. Implies
    /// --no-key.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Also answer to this name when there is no key; may be repeated. Addresses and localhost are always allowed.
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Let web pages of this origin, such as https://app.example.com, use the server from a browser; may be repeated, and `*`
    /// is all pages. A page needs the key as well.
    #[arg(long = "allow-origin", value_name = "ORIGIN", env = "GLOVEPORT_ALLOW_ORIGINS", value_delimiter = ',')]
    pub(crate) allowed_origins: Vec<String>,
    /// Start this plugin with the sandbox; may be repeated. browser, jupyter and agent_skills are always available and start
    /// when first used; `gloveport plugin ls` lists the others.
    #[arg(long = "plugin", value_name = "NAME")]
    pub(crate) plugins: Vec<String>,
    /// Use no plugins.
    #[arg(long, conflicts_with = "plugins")]
    pub(crate) no_plugins: bool,
    /// Maximum memory of all the sandbox's processes together, such as 512m or 2g.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,
    /// The same in GiB, as a number alone.
    #[arg(long, value_name = "GIB", value_parser = positive, hide = true, conflicts_with = "memory")]
    pub(crate) max_memory_gb: Option<f64>,
    /// Answer a run action as soon as its program waits for input, and say so. By default the answer comes after the soft
    /// time limit, as in OpenHands. Blocking actions are never answered early.
    #[arg(long, env = "GLOVEPORT_ANSWER_WHEN_WAITING", value_parser = BoolishValueParser::new())]
    pub(crate) answer_when_waiting: bool,
}

//! Serves the editor of AgentSkills, for programs that try the package.
//!
//! Prints the directory of the packages and the path of the socket, a line each, and ends with its standard input.

#![expect(clippy::print_stdout, reason = "what starts it reads this")]

use std::io::Read as _;

use gloveport_skills::Skills;
use gloveport_sys::Surroundings;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let skills = Skills::start(&Surroundings::inherited(std::env::current_dir()?)).await?;
    println!("{}\n{}", skills.packages().display(), skills.socket().display());
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    end.await.map_err(std::io::Error::other)??;
    skills.close().await;
    Ok(())
}

//! The measurements of the gateway, each with a gateway of its own, as a process.
//!
//! | module | idea |
//! |---|---|
//! | [`program`] | a gateway that runs: its sandboxes, its memory, its end |
//! | [`bodies`] | large bodies, beside the direct way |
//! | [`sockets`] | idle WebSockets |
//! | [`crowd`] | many sandboxes behind one gateway |
//! | [`warm`] | sandboxes that were started ahead |

mod bodies;
mod crowd;
mod program;
mod sockets;
mod warm;

use std::path::Path;

use serde::Serialize;

use self::{
    bodies::BodyNumbers,
    crowd::CrowdNumbers,
    program::{Engine, Gateway},
    sockets::SocketNumbers,
    warm::WarmNumbers,
};
use crate::sample::{Sample, in_turn};

/// Commands before times are taken.
const WARM_UP: usize = 3;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatewayAmount {
    /// Commands through the gateway, and directly.
    pub(crate) echo: usize,
    /// Bytes of a large body.
    pub(crate) body: u64,
    /// How often one is sent and fetched each way.
    pub(crate) bodies: usize,
    /// WebSockets that are open at the same time.
    pub(crate) sockets: usize,
    /// Sandboxes that live at the same time.
    pub(crate) crowd: usize,
    /// Claims of sandboxes that were started ahead.
    pub(crate) claims: usize,
}

/// Numbers of the gateway.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct GatewayNumbers {
    /// `echo hi` through the gateway.
    pub(crate) echo: Sample,
    /// The same in the same sandbox without the gateway, in turn.
    pub(crate) direct: Sample,
    pub(crate) bodies: BodyNumbers,
    pub(crate) sockets: SocketNumbers,
    pub(crate) crowd: CrowdNumbers,
    /// `None` where the program starts no sandboxes ahead.
    pub(crate) warm: Option<WarmNumbers>,
    /// The same with containers; `None` also where there is no engine.
    pub(crate) warm_containers: Option<WarmNumbers>,
    /// Sandboxes, processes and files that were left at the end.
    pub(crate) left: usize,
}

/// Measures gateways of this program, over sandboxes of this machine, and containers of the engine if one is named.
pub(crate) fn measure(binary: &Path, engine: Option<&str>, amount: GatewayAmount) -> anyhow::Result<GatewayNumbers> {
    let gateway = Gateway::start(binary, &Engine::Local, &[])?;
    let sandbox = gateway.sandbox("bench")?;
    let place = gateway.inside(&sandbox)?;
    let (mut through, mut direct) = (gateway.client_of(&sandbox)?, place.client(&sandbox)?);
    // The first ones make connections.
    in_turn(&mut through, &mut direct, WARM_UP, |client| client.expect("echo hi", "hi"))?;
    let (echo, direct) = in_turn(&mut through, &mut direct, amount.echo, |client| client.expect("echo hi", "hi"))?;
    let bodies = bodies::measure(&gateway, &sandbox, &place, amount.body, amount.bodies)?;
    let mut left = gateway.end()?;

    // The gateway has the limits of this program.
    sockets::allow(amount.sockets)?;
    let gateway = Gateway::start(binary, &Engine::Local, &[])?;
    let sockets = sockets::measure(&gateway, amount.sockets)?;
    left += gateway.end()?;

    let gateway = Gateway::start(binary, &Engine::Local, &[])?;
    let crowd = crowd::measure(&gateway, amount.crowd)?;
    left += gateway.end()?;

    let warm = warm::measure(binary, &Engine::Local, amount.claims, &mut left)?;
    let warm_containers = match (&warm, engine) {
        (Some(_), Some(address)) => {
            warm::measure(binary, &Engine::Docker(address.to_owned()), amount.claims, &mut left)?
        }
        _ => None,
    };
    Ok(GatewayNumbers { echo, direct, bodies, sockets, crowd, warm, warm_containers, left })
}

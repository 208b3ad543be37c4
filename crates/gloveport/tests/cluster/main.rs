//! The tests that need a cluster, in one program.

mod agent_sandbox;
mod cluster;
mod faults;
mod gate;
mod life;
mod nodes;
mod pool;
mod proxy;
mod scale;
mod snapshots;
mod steps;

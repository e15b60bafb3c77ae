//! The simulated driver through its functions, object by object.

mod check;
mod context;
mod device;
mod event;
mod fault;
mod graph;
mod graph_memory;
mod graph_node;
mod graph_stale;
mod launch;
mod link;
mod live;
mod memory;
mod module;
mod ptx;
mod race;
mod retired;
mod rows;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(all(target_os = "linux", not(miri)))]
mod speed;
mod stream;
mod support;
mod test;
#[cfg(target_os = "linux")]
mod virtual_memory;

//! Tests of what only a simulator has: options, reports and injected faults. The tests of the C
//! functions that run on hardware too are in `tests/tests/contract/behavior`.

mod answers;
mod bugs;
mod check;
mod fault;
mod graph_memory;
mod graph_stale;
mod launch;
mod link;
mod live;
mod memory;
mod module;
mod ptx;
mod race;
mod simulator;
#[cfg(all(target_os = "linux", not(miri)))]
mod speed;
mod support;
mod test;
#[cfg(target_os = "linux")]
mod virtual_memory;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

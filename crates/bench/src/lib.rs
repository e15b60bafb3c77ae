//! What Curium costs beside its twin in C.
//!
//! Each measurement has a twin: the same done by direct calls through the driver's table, as a C program does it. Both run in turns in one
//! run, so that what disturbs the machine disturbs both, and the ratio is that of each pair of turns. `curium bench` and the benchmarks of
//! the workspace are this crate.
//!
//! A measurement has an id that stays the same between versions, such as `launch/threads/2`: its subject, what is varied, and the value.

mod allocate;
mod calls;
mod comparison;
mod copy;
mod error;
mod graph;
mod launch;
mod plan;
mod samples;
mod training;

use curium_driver::Context;

pub use self::comparison::{Comparison, Unit};
pub use self::error::{Error, Result};
pub use self::plan::Plan;
pub use self::samples::Samples;

/// Measures what `plan` asks for on the context's device, and hands each comparison to `observe` when it is made.
///
/// # Errors
///
/// Those of the driver, and of `observe`.
pub fn run(context: &Context, plan: &Plan, observe: &mut dyn FnMut(Comparison) -> Result<()>) -> Result<()> {
    launch::run(context, plan, observe)?;
    graph::run(context, plan, observe)?;
    training::run(context, plan, observe)?;
    copy::run(context, plan, observe)?;
    allocate::run(context, plan, observe)?;
    calls::run(context, plan, observe)
}

/// The ids of what `plan` asks for, in the order in which they are measured.
#[must_use]
pub fn ids(plan: &Plan) -> Vec<String> {
    let all = [launch::ids(plan), graph::ids(plan), training::ids(plan), copy::ids(plan), allocate::ids(plan)].concat();
    let all = [launch::ids, graph::ids, copy::ids, allocate::ids, calls::ids].map(|ids| ids(plan)).concat();
    all.into_iter().filter(|id| plan.wants(id)).collect()
}

/// The measured way of the two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// Direct calls through the table.
    C,
    Curium,
}

//! What Curium costs beside its twin in C.
//!
//! Each measurement has a twin: the same done by direct calls through the driver's table, as a C program does it. Both run in turns in one
//! run, so that what disturbs the machine disturbs both, and the ratio is that of each pair of turns. `curium bench` measures with this
//! crate, and so does `cargo bench`, under the same ids.
//!
//! A measurement has an id that stays the same between versions, such as `launch/threads/2`: its subject, what is varied, and the value.

mod allocate;
mod calls;
mod comparison;
mod copy;
mod error;
mod graph;
mod launch;
mod measurement;
mod plan;
mod samples;
mod training;

use curium_driver::Context;

pub use self::comparison::{Comparison, Unit};
pub use self::error::{Error, Result};
pub use self::measurement::{Measurement, Way};
pub use self::plan::Plan;
pub use self::samples::Samples;

/// What is done with a measurement.
pub type Visit<'a> = dyn FnMut(&mut Measurement<'_>) -> Result<()> + 'a;

/// Hands each measurement of times that `plan` asks for to `visit`, with all that it needs in place on the context's device.
///
/// # Errors
///
/// Those of the driver, and of `visit`.
pub fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    launch::visit(context, plan, visit)?;
    graph::visit(context, plan, visit)?;
    training::visit(context, plan, visit)?;
    copy::visit(context, plan, visit)?;
    allocate::visit(context, plan, visit)
}

/// Measures what `plan` asks for on the context's device, and hands each comparison to `observe` when it is made.
///
/// # Errors
///
/// Those of the driver, and of `observe`.
pub fn run(context: &Context, plan: &Plan, observe: &mut dyn FnMut(Comparison) -> Result<()>) -> Result<()> {
    visit(context, plan, &mut |measurement| observe(measurement.compare()?))?;
    calls::run(context, plan, observe)
}

/// The ids of what `plan` asks for, in the order in which they are measured.
#[must_use]
pub fn ids(plan: &Plan) -> Vec<String> {
    let all = [launch::ids, graph::ids, training::ids, copy::ids, allocate::ids, calls::ids];
    let all = all.map(|ids| ids(plan)).concat();
    all.into_iter().filter(|id| plan.wants(id)).collect()
}

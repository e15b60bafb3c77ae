//! Curium's overhead over C.
//!
//! Each measurement has a twin: the same operation by direct driver calls, as in a C program. Both alternate in one
//! run, so that disturbances affect both, and the ratio is taken per round. `curium bench` and `cargo bench` use this
//! crate with the same ids.
//!
//! The id of a measurement, such as `launch/threads/2`, is stable: subject, parameter and value.

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

/// A callback for measurements.
pub type Visit<'a> = dyn FnMut(&mut Measurement<'_>) -> Result<()> + 'a;

/// Prepares each time measurement of `plan` on the device of `context`, and passes it to `visit`.
///
/// # Errors
///
/// Returns the errors of the driver and of `visit`.
pub fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    launch::visit(context, plan, visit)?;
    graph::visit(context, plan, visit)?;
    training::visit(context, plan, visit)?;
    copy::visit(context, plan, visit)?;
    allocate::visit(context, plan, visit)
}

/// Runs the measurements of `plan` on the device of `context`, and passes each comparison to `observe`.
///
/// # Errors
///
/// Returns the errors of the driver and of `observe`.
pub fn run(
    context: &Context,
    plan: &Plan,
    observe: &mut dyn FnMut(Comparison) -> Result<()>,
) -> Result<()> {
    visit(context, plan, &mut |measurement| {
        observe(measurement.compare()?)
    })?;
    calls::run(context, plan, observe)
}

/// Returns the ids of `plan`, in the order of measurement.
#[must_use]
pub fn ids(plan: &Plan) -> Vec<String> {
    let all = [
        launch::ids,
        graph::ids,
        training::ids,
        copy::ids,
        allocate::ids,
        calls::ids,
    ];
    let all = all.map(|ids| ids(plan)).concat();
    all.into_iter().filter(|id| plan.wants(id)).collect()
}

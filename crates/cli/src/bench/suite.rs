//! The measurements of `curium bench`: Curium's overhead over C.
//!
//! Each measurement has a C counterpart: the same operation by direct driver calls, as in a C
//! program. Both alternate in one run, so that disturbances affect both, and the ratio is taken per
//! round.
//!
//! The id of a measurement, such as `launch/threads/2`, is stable: subject, parameter and value.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "the plan, not the command line, has the numbers"
)]

mod allocate;
mod calls;
mod comparison;
mod copy;
mod graph;
mod launch;
mod measurement;
mod plan;
mod samples;
mod training;

use anyhow::{Result, ensure};
use curium::driver::Function;
use curium::prelude::Context;
use curium::sys::CUresult;

use self::measurement::{Implementation, Measurement};

pub(super) use self::comparison::{Comparison, Unit};
pub(super) use self::plan::Plan;
pub(super) use self::samples::Samples;

/// A callback for comparisons.
pub(super) type Observer<'a> = dyn FnMut(Comparison) -> Result<()> + 'a;

/// Runs the measurements of `plan` on the device of `context`, and passes each comparison to
/// `observe`.
pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    launch::run(context, plan, observe)?;
    graph::run(context, plan, observe)?;
    training::run(context, plan, observe)?;
    copy::run(context, plan, observe)?;
    allocate::run(context, plan, observe)?;
    calls::run(context, plan, observe)
}

/// Returns the ids of `plan`, in the order of measurement.
pub(super) fn ids(plan: &Plan) -> Vec<String> {
    let mut ids = launch::ids(plan);
    ids.extend(graph::ids());
    ids.extend(training::ids());
    ids.extend(copy::ids(plan));
    ids.extend(allocate::ids(plan));
    ids.extend(calls::ids(plan));
    ids.retain(|id| plan.wants(id));
    ids
}

/// Calls a driver function through the table of a driver, as a C program does, and checks the code.
/// The caller supplies `unsafe`.
macro_rules! call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $driver.api().$function {
            Some(function) => $crate::bench::suite::check(
                curium::driver::Function::$function,
                function($($argument),*),
            ),
            None => Err(anyhow::anyhow!(
                "the driver lacks {}, which the C counterpart calls",
                curium::driver::Function::$function
            )),
        }
    };
}
use call;

/// Checks a code, as a C program does.
#[inline]
fn check(function: Function, code: CUresult) -> Result<()> {
    ensure!(
        code == CUresult::CUDA_SUCCESS,
        "{function} returned {} in the C counterpart",
        code.0
    );
    Ok(())
}

//! Compares Curium with other CUDA crates: the same work by each, in turns, on one device and its
//! primary context, through the driver that the system's loader finds.
//!
//! ```text
//! compare [--quick] [FILTER]
//! ```

mod c;
mod cudarc;
mod curium;
mod cust;
mod libraries;
mod measure;
#[path = "../../../tests/src/samples.rs"]
mod samples;
mod subject;

use std::error::Error;

use curium_driver::Device;
use curium_memory::MemoryPool;

use self::libraries::{Libraries, Operation};
use self::measure::{Plan, Unit};
use self::subject::{Copy, Source, Subject};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The kernel that is launched: three parameters, and nothing to do.
const NOTHING: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry nothing(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n ret;\n}\n";
/// Elements of the vectors that it is launched with, and threads of its block.
const COUNT: u32 = 256;

fn main() -> Result<()> {
    let plan = Plan::read(std::env::args().skip(1))?;
    // It makes the primary context current, which the crates other than Curium require.
    let cust = cust::Lane::new()?;
    let device = Device::first()?;
    println!(
        "{}, driver for CUDA {}",
        device.name()?,
        device.driver().version()
    );
    println!(
        "medians and [quartiles]; ratio: to C's in the same turn, the median of all turns; of ns less is better, of GB/s more"
    );
    let context = device.primary_context()?;
    // The pool keeps its memory: what a program does that is in a hurry.
    MemoryPool::default_for(&device)?.set_release_threshold(u64::MAX)?;
    let mut subjects: Vec<Box<dyn Subject>> = vec![
        Box::new(c::Lane::new(&context)?),
        Box::new(curium::Lane::new(&context)?),
        Box::new(curium::Cached::new(&context)?),
        Box::new(cudarc::Lane::new(cudarc::Tracking::On)?),
        Box::new(cudarc::Lane::new(cudarc::Tracking::Off)?),
        Box::new(cust),
    ];
    launches(&plan, &mut subjects)?;
    allocations(&plan, &mut subjects)?;
    copies(&plan, &mut subjects)?;
    library_calls(&plan, &mut subjects)
}

fn launches(plan: &Plan, subjects: &mut [Box<dyn Subject>]) -> Result<()> {
    let queued = "launch/queued";
    let awaited = "launch/awaited";
    if plan.wants(queued) {
        plan.compare(queued, Unit::Nanoseconds, subjects, |subject| {
            subject.launches(plan.count)
        })?;
    }
    if plan.wants(awaited) {
        plan.compare(awaited, Unit::Nanoseconds, subjects, |subject| {
            subject.awaited_launches(plan.count)
        })?;
    }
    Ok(())
}

fn allocations(plan: &Plan, subjects: &mut [Box<dyn Subject>]) -> Result<()> {
    for &bytes in plan.allocations {
        for (source, name, count) in [
            (Source::Stream, "stream", plan.count),
            (Source::Plain, "plain", plan.count / 20),
        ] {
            let id = format!("allocate/{name}/{bytes}");
            if plan.wants(&id) {
                let measure =
                    |subject: &mut dyn Subject| subject.allocations(source, bytes, count.max(1));
                plan.compare(&id, Unit::Nanoseconds, subjects, measure)?;
            }
        }
    }
    Ok(())
}

fn copies(plan: &Plan, subjects: &mut [Box<dyn Subject>]) -> Result<()> {
    for &bytes in plan.copies {
        let ids = Copy::ALL.map(|copy| (copy, format!("{}/{bytes}", copy.name)));
        let wanted: Vec<_> = ids.into_iter().filter(|(_, id)| plan.wants(id)).collect();
        if !wanted.is_empty() {
            subjects
                .iter_mut()
                .try_for_each(|subject| subject.set_sides(bytes))?;
        }
        for (copy, id) in wanted {
            plan.compare(&id, Unit::Rate(bytes), subjects, |subject| {
                subject.copy(copy)
            })?;
        }
    }
    Ok(())
}

/// Measures operations of NVIDIA's libraries, if this machine has them.
fn library_calls(plan: &Plan, subjects: &mut [Box<dyn Subject>]) -> Result<()> {
    let wanted: Vec<_> = Operation::ALL
        .into_iter()
        .filter(|(_, id)| plan.wants(id))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let libraries = match Libraries::load() {
        Ok(libraries) => libraries,
        Err(error) => {
            println!("\nblas/…, rand/…: left out: {error}");
            return Ok(());
        }
    };
    subjects
        .iter_mut()
        .try_for_each(|subject| subject.set_libraries(&libraries))?;
    // An operation may be several kernels.
    let count = plan.count.div_ceil(2);
    for (operation, id) in wanted {
        plan.compare(id, Unit::Nanoseconds, subjects, |subject| {
            subject.library_calls(operation, count)
        })?;
    }
    Ok(())
}

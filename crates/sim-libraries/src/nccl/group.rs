//! Groups of calls, which start at the end of the outermost group of a thread.
//!
//! A call that meets other ranks, such as the creation of a communicator, consists of steps that
//! wait for them. The calls of a group take each step together, because the ranks of one thread
//! wait for each other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use curium_sys::nccl::ncclResult_t;

use super::registry::{Creation, Member};
use super::transfer::Transfer;
use super::{Result, failed, order};

#[derive(Default)]
struct Group {
    depth: usize,
    transfers: Vec<Transfer>,
    steps: Vec<Step>,
    error: Option<ncclResult_t>,
}

/// A step of a call, which waits for other ranks and returns the next step. The steps of a
/// non-blocking communicator run on a thread of their own.
pub(super) struct Step(Box<dyn FnOnce() -> Result<Option<Step>> + Send>);

impl Step {
    pub(super) fn new(step: impl FnOnce() -> Result<Option<Self>> + Send + 'static) -> Self {
        Self(Box::new(step))
    }
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Starts an operation, or adds it to the group of the thread.
pub(super) fn start(transfer: Transfer) -> Result {
    let transfer = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(transfer);
        }
        group.transfers.push(transfer);
        None
    });
    transfer.map_or(Ok(()), |transfer| run(vec![transfer]))
}

/// Takes the steps of a call: now, or at the end of the group.
pub(super) fn take(step: Step) -> Result {
    let step = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(step);
        }
        group.steps.push(step);
        None
    });
    take_all(step.into_iter().collect())
}

/// Takes the steps of a call that creates a communicator from another one, which is in progress
/// meanwhile if it is non-blocking.
pub(super) fn create_from(member: &Arc<Member>, step: Step) -> Result {
    let is_in_group = GROUP.with_borrow(|group| group.depth > 0);
    if member.is_blocking || is_in_group {
        return take(step);
    }
    member.set_creation(Creation::Running);
    let member = Arc::clone(member);
    thread::spawn(move || {
        let result = take_all(vec![step]);
        member.set_creation(result.map_or_else(Creation::Failed, |()| Creation::None));
    });
    Err(ncclResult_t::ncclInProgress)
}

fn take_all(mut steps: Vec<Step>) -> Result {
    while !steps.is_empty() {
        let next = steps
            .into_iter()
            .map(|step| (step.0)())
            .collect::<Result<Vec<_>>>()?;
        steps = next.into_iter().flatten().collect();
    }
    Ok(())
}

/// Records the failure of a call: a group with one fails at its end.
pub(super) fn record(result: Result) -> Result {
    if let Err(error) = result {
        GROUP.with_borrow_mut(|group| {
            group.error = group.error.or((group.depth > 0).then_some(error));
        });
    }
    result
}

/// Enqueues the contributions of all operations before the waits of any: operations of a group
/// progress together.
fn run(mut transfers: Vec<Transfer>) -> Result {
    let mut differences = HashMap::<_, isize>::new();
    for (communicator, difference) in transfers.iter().filter_map(Transfer::transfer_to_self) {
        *differences.entry(communicator).or_default() += difference;
    }
    if differences.values().any(|difference| *difference != 0) {
        return Err(failed(
            ncclResult_t::ncclInvalidUsage,
            "a group has different numbers of sends and receives from a rank to itself",
        ));
    }
    let group = order::start_group();
    transfers
        .iter_mut()
        .try_for_each(|transfer| transfer.agree(group))?;
    transfers
        .iter()
        .try_for_each(Transfer::enqueue_contribution)?;
    transfers.into_iter().try_for_each(Transfer::enqueue_result)
}

functions! {
    fn ncclGroupStart() {
        GROUP.with_borrow_mut(|group| group.depth += 1);
        Ok(())
    }

    fn ncclGroupEnd() {
        let ended = GROUP.with_borrow_mut(|group| match group.depth {
            0 => Err(failed(ncclResult_t::ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart")),
            1 => Ok(Some(std::mem::take(group))),
            _ => {
                group.depth -= 1;
                Ok(None)
            }
        });
        let Some(group) = ended? else { return Ok(()) };
        take_all(group.steps)?;
        group.error.map_or(Ok(()), Err)?;
        run(group.transfers)
    }
}

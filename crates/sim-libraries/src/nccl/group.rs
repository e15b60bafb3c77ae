//! Groups of calls, which start at the end of the outermost group of a thread.

use std::cell::RefCell;

use curium_nccl::sys::{Api, ncclResult_t};

use super::link::Link;
use super::transfer::Transfer;
use super::{Result, code, failed};

#[derive(Default)]
struct Group {
    depth: usize,
    transfers: Vec<Transfer>,
    /// The communicators whose ranks this thread creates in the group.
    created: Vec<Link>,
    error: Option<ncclResult_t>,
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

/// Waits for the other ranks of a communicator: now, or at the end of the group.
pub(super) fn wait_for_ranks(link: Link) -> Result {
    let link = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(link);
        }
        group.created.push(link);
        None
    });
    link.map_or(Ok(()), |link| link.wait_for_ranks())
}

/// Records the failure of a call: a group with one fails at its end.
pub(super) fn record(result: Result) -> ncclResult_t {
    if let Err(error) = result {
        GROUP.with_borrow_mut(|group| group.error = group.error.or((group.depth > 0).then_some(error)));
    }
    code(result)
}

/// Enqueues the contributions of all operations before the waits of any: operations of a group progress together.
fn run(mut transfers: Vec<Transfer>) -> Result {
    transfers.iter_mut().try_for_each(Transfer::agree)?;
    transfers.iter().try_for_each(Transfer::enqueue_contribution)?;
    transfers.into_iter().try_for_each(Transfer::enqueue_result)
}

unsafe extern "C" fn group_start() -> ncclResult_t {
    GROUP.with_borrow_mut(|group| group.depth += 1);
    ncclResult_t::ncclSuccess
}

unsafe extern "C" fn group_end() -> ncclResult_t {
    let ended = GROUP.with_borrow_mut(|group| match group.depth {
        0 => Err(failed(ncclResult_t::ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart")),
        1 => Ok(Some(std::mem::take(group))),
        _ => {
            group.depth -= 1;
            Ok(None)
        }
    });
    let end = |group: Group| {
        group.created.iter().try_for_each(Link::wait_for_ranks)?;
        group.error.map_or(Ok(()), Err)?;
        run(group.transfers)
    };
    code(ended.and_then(|group| group.map_or(Ok(()), end)))
}

/// Adds the functions on groups.
pub(super) fn add_to(api: &mut Api) {
    api.ncclGroupStart = Some(group_start);
    api.ncclGroupEnd = Some(group_end);
}

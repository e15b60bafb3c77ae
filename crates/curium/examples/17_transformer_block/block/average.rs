//! The averages of gradients over ranks.

use curium::nccl::{Communicator, Operation, Reduction};
use curium::prelude::*;

use super::{Buffer, Result};

/// Enqueues the averages of gradients over the ranks as one operation, if there are ranks.
pub(super) fn average<const N: usize>(
    ranks: &mut Option<Communicator>,
    stream: &Stream,
    gradients: [&mut Buffer; N],
) -> Result<()> {
    let Some(communicator) = ranks else {
        return Ok(());
    };
    let library = communicator.library().clone();
    Ok(library.group(|group| {
        gradients.into_iter().try_for_each(|gradient| {
            group.enqueue(
                communicator,
                stream,
                Operation::all_reduce_in_place(gradient, Reduction::Average),
            )
        })
    })?)
}

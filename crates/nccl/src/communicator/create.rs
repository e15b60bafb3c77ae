//! Creating communicators.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use curium_driver::extend::refuse_wait;
use curium_driver::{Context, ContextKind};

use super::options::CommunicatorOptions;
use super::shared::{Output, Ownership, Shared, entered};
use super::{Communicator, Connecting};
use crate::error::{ArgumentError, Result, call};
use crate::group;
use crate::library::Nccl;
use crate::operation::Membership;
use crate::rendezvous::Exchange;
use crate::sys::{Api, ncclComm_t, ncclConfig_t};
use crate::unique_id::UniqueId;

impl Communicator {
    /// Creates rank `rank` of `size` on the device of `context`, and waits for the other ranks.
    /// They are other processes or other threads.
    ///
    /// CUDA: `ncclCommInitRankConfig`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the rank is out of range, or the context is
    /// not the primary one of its device. An error of NCCL.
    #[doc(alias = "ncclCommInitRank")]
    pub fn new(
        library: &Nccl,
        context: &Context,
        id: UniqueId,
        rank: usize,
        size: usize,
    ) -> Result<Self> {
        Self::create(
            "Communicator::new",
            library,
            context,
            id,
            Membership { rank, size },
            CommunicatorOptions::new(),
        )
    }

    /// Creates a rank, like [`Communicator::new`], with options.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::new`], and [`Error::Timeout`](crate::Error::Timeout) if the other
    /// ranks did not arrive in time.
    #[doc(alias = "ncclCommInitRankConfig")]
    pub fn with_options(
        library: &Nccl,
        context: &Context,
        id: UniqueId,
        rank: usize,
        size: usize,
        options: CommunicatorOptions,
    ) -> Result<Self> {
        Self::create(
            "Communicator::with_options",
            library,
            context,
            id,
            Membership { rank, size },
            options,
        )
    }

    /// Creates the rank of this process in a job, whose identifier rank 0 sends to all ranks.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::with_options`], and the errors of the exchange.
    pub fn exchanged(
        library: &Nccl,
        context: &Context,
        exchange: &mut impl Exchange,
        options: CommunicatorOptions,
    ) -> Result<Self> {
        let id = UniqueId::exchanged(library, exchange)?;
        Self::with_options(
            library,
            context,
            id,
            exchange.rank(),
            exchange.world_size(),
            options,
        )
    }

    /// Returns a future that creates a rank like [`Communicator::with_options`].
    ///
    /// The communicator is non-blocking in NCCL's sense. Without a timeout, later calls wait
    /// without a limit.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::new`]. Later errors are those of the future.
    pub fn connect(
        library: &Nccl,
        context: &Context,
        id: UniqueId,
        rank: usize,
        size: usize,
        options: CommunicatorOptions,
    ) -> Result<Connecting> {
        start_new(
            "Communicator::connect",
            library,
            context,
            id,
            Membership { rank, size },
            options,
            false,
        )
        .map(Connecting::new)
    }

    /// Creates one rank for each of the devices of `contexts`, in this order, for one process.
    ///
    /// CUDA: `ncclCommInitAll`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if there is no context, or one is not the
    /// primary one of its device. An error of NCCL, for example if two contexts are of one device.
    #[doc(alias = "ncclCommInitAll")]
    pub fn all(library: &Nccl, contexts: &[Context]) -> Result<Vec<Self>> {
        const OPERATION: &str = "Communicator::all";
        let Some(first) = contexts.first() else {
            return Err(ArgumentError::refused(OPERATION, "there is no context"));
        };
        for context in contexts {
            validate_context(OPERATION, context)?;
        }
        let size = contexts.len();
        let devices: Vec<c_int> = contexts
            .iter()
            .map(|context| context.device().as_raw())
            .collect();
        let mut raw = vec![ptr::null_mut(); size];
        let count = number(OPERATION, size)?;
        // SAFETY: both lists have one element for each device.
        entered(first, || unsafe {
            call!(
                library.api(),
                ncclCommInitAll(raw.as_mut_ptr(), count, devices.as_ptr())
            )
        })?;
        let ranks = raw
            .into_iter()
            .zip(contexts)
            .enumerate()
            .map(|(rank, (raw, context))| {
                Self::from_shared(Shared::new(
                    raw,
                    library,
                    context,
                    Membership { rank, size },
                    Ownership::Owned,
                ))
            });
        Ok(ranks.collect())
    }

    /// Creates a rank, and waits until all ranks are connected.
    fn create(
        operation: &'static str,
        library: &Nccl,
        context: &Context,
        id: UniqueId,
        membership: Membership,
        options: CommunicatorOptions,
    ) -> Result<Self> {
        let is_blocking = options.timeout.is_none();
        let shared = start_new(
            operation,
            library,
            context,
            id,
            membership,
            options,
            is_blocking,
        )?;
        shared.settle(operation)?;
        Ok(Self::from_shared(shared))
    }
}

/// Starts to create a rank of a new communicator.
fn start_new(
    operation: &'static str,
    library: &Nccl,
    context: &Context,
    id: UniqueId,
    membership: Membership,
    options: CommunicatorOptions,
    is_blocking: bool,
) -> Result<Arc<Shared>> {
    start(
        operation,
        library,
        context,
        membership,
        options,
        is_blocking,
        |rank, size, output, config| {
            // SAFETY: `output` is valid for writes until the communicator has ended, the
            // configuration is complete, and the context is current.
            unsafe {
                call!(
                    library.api(),
                    ncclCommInitRankConfig(output, size, id.to_raw(), rank, config)
                )
            }
        },
    )
}

/// Starts to create a rank. Calls `create` with the rank, the number of ranks, the output for the
/// communicator, and the configuration.
pub(super) fn start(
    operation: &'static str,
    library: &Nccl,
    context: &Context,
    membership: Membership,
    options: CommunicatorOptions,
    is_blocking: bool,
    create: impl FnOnce(c_int, c_int, *mut ncclComm_t, *mut ncclConfig_t) -> Result<()>,
) -> Result<Arc<Shared>> {
    validate_context(operation, context)?;
    let (rank, size) = in_range(operation, membership)?;
    let output = Output::new();
    let mut config = options.to_raw(library.version(), is_blocking);
    entered(context, || {
        create(rank, size, output.as_ptr(), &raw mut config)
    })?;
    let timeout = if is_blocking {
        None
    } else {
        Some(options.timeout.unwrap_or(std::time::Duration::MAX))
    };
    Shared::created(output, library, context, membership, timeout)
}

/// Returns the rank and the number of ranks of a communicator.
///
/// # Safety
///
/// The communicator is live.
pub(super) unsafe fn membership(api: &Api, raw: ncclComm_t) -> Result<Membership> {
    let mut rank = 0;
    let mut size = 0;
    // SAFETY: the communicator is live, and `rank` is valid for writes.
    unsafe { call!(api, ncclCommUserRank(raw, &raw mut rank)) }?;
    // SAFETY: the communicator is live, and `size` is valid for writes.
    unsafe { call!(api, ncclCommCount(raw, &raw mut size)) }?;
    Ok(Membership {
        rank: rank.try_into().unwrap_or_default(),
        size: size.try_into().unwrap_or_default(),
    })
}

fn validate_context(operation: &'static str, context: &Context) -> Result<()> {
    group::check_none(operation)?;
    refuse_wait(operation)?;
    if matches!(context.kind(), ContextKind::Primary | ContextKind::Borrowed) {
        return Ok(());
    }
    Err(ArgumentError::refused(
        operation,
        "the context is not the primary one of its device, which NCCL uses",
    ))
}

/// Converts a rank and the number of ranks.
fn in_range(operation: &'static str, membership: Membership) -> Result<(c_int, c_int)> {
    let rank = number(operation, membership.rank)?;
    let size = number(operation, membership.size)?;
    if rank < size {
        return Ok((rank, size));
    }
    Err(ArgumentError::refused(
        operation,
        format!("rank out of range ({rank} of {size} ranks)"),
    ))
}

/// Converts a number of ranks, or a rank.
pub(super) fn number(operation: &'static str, number: usize) -> Result<c_int> {
    number
        .try_into()
        .map_err(|_| ArgumentError::refused(operation, format!("too many ranks ({number})")))
}

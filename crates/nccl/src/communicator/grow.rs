//! Communicators that gain ranks.

use std::ptr;

use curium_driver::Context;

use super::options::CommunicatorOptions;
use super::use_guard::UseGuard;
use super::{Communicator, create};
use crate::error::{ArgumentError, Result, call};
use crate::group;
use crate::library::Nccl;
use crate::operation::Membership;
use crate::sys::ncclUniqueId;
use crate::unique_id::UniqueId;

impl Communicator {
    /// Creates the identifier with which new ranks [join](Communicator::join) this communicator.
    /// One rank calls it, sends the result to the new ranks, and passes it to
    /// [`Communicator::grow`]. An identifier can be used once.
    ///
    /// Requires NCCL 2.29. CUDA: `ncclCommGetUniqueId`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if NCCL is older. An error of NCCL.
    #[doc(alias = "ncclCommGetUniqueId")]
    pub fn growth_id(&mut self) -> Result<UniqueId> {
        const OPERATION: &str = "Communicator::growth_id";
        group::check_none(OPERATION)?;
        let use_guard = UseGuard::acquire(&*self.shared, OPERATION)?;
        let mut id = ncclUniqueId::default();
        // SAFETY: the communicator is in use, and `id` is valid for writes.
        unsafe {
            call!(
                self.shared.api(),
                ncclCommGetUniqueId(use_guard.raw(), &raw mut id)
            )
        }?;
        Ok(UniqueId::from_raw(id))
    }

    /// Creates a communicator of `size` ranks: those of this one, which keep their numbers, and new
    /// ones, which call [`Communicator::join`]. Every rank of this communicator calls it; the one
    /// that created the identifier passes it, and the others pass `None`. Waits for all ranks.
    ///
    /// The operations of this communicator must have completed on every rank. The options are those
    /// of this communicator.
    ///
    /// Requires NCCL 2.29. CUDA: `ncclCommGrow`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if there are no new ranks.
    /// [`Error::Missing`](crate::Error::Missing) if NCCL is older. An error of NCCL, or
    /// [`Error::Timeout`](crate::Error::Timeout).
    ///
    /// ```
    /// # let config = curium_sim::Config::new().with_devices(2);
    /// # let driver = curium_sim::Simulator::new(config)?.driver::<curium_driver::Driver>()?;
    /// # let nccl = curium_sim_libraries::nccl();
    /// # let contexts = [driver.device(0)?.primary_context()?, driver.device(1)?.primary_context()?];
    /// use curium_nccl::{Communicator, CommunicatorOptions, UniqueId};
    ///
    /// let mut first = Communicator::new(&nccl, &contexts[0], UniqueId::new(&nccl)?, 0, 1)?;
    /// let id = first.growth_id()?;
    /// let second = std::thread::spawn(move || {
    ///     Communicator::join(&nccl, &contexts[1], id, 1, 2, CommunicatorOptions::new())
    /// });
    /// let grown = first.grow(2, Some(id))?;
    /// assert_eq!((grown.rank(), grown.size()), (0, 2));
    /// # drop(second.join());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "ncclCommGrow")]
    pub fn grow(&mut self, size: usize, id: Option<UniqueId>) -> Result<Self> {
        const OPERATION: &str = "Communicator::grow";
        let current = self.size();
        if size <= current {
            return Err(ArgumentError::refused(
                OPERATION,
                format!("no new ranks ({size} ranks, of which {current} exist)"),
            ));
        }
        let size = create::number(OPERATION, size)?;
        let id = id.map(UniqueId::to_raw);
        let id = id.as_ref().map_or(ptr::null(), ptr::from_ref);
        let grown = self.derive(OPERATION, |api, raw, child| {
            // SAFETY: the communicator is live and used by this thread alone, the identifier is
            // null or valid, and `child` is valid for writes until the call is complete.
            unsafe { call!(api, ncclCommGrow(raw, size, id, -1, child, ptr::null_mut())) }
        })?;
        grown.ok_or_else(|| ArgumentError::refused(OPERATION, "NCCL created no communicator"))
    }

    /// Joins a communicator that [grows](Communicator::grow) to `size` ranks, as rank `rank`, and
    /// waits for all ranks. New ranks are numbered after the existing ones.
    ///
    /// Requires NCCL 2.29. CUDA: `ncclCommGrow`.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::with_options`], and [`Error::Missing`](crate::Error::Missing) if NCCL
    /// is older.
    #[doc(alias = "ncclCommGrow")]
    pub fn join(
        library: &Nccl,
        context: &Context,
        id: UniqueId,
        rank: usize,
        size: usize,
        options: CommunicatorOptions,
    ) -> Result<Self> {
        const OPERATION: &str = "Communicator::join";
        let membership = Membership { rank, size };
        let is_blocking = options.timeout.is_none();
        let id = id.to_raw();
        let shared = create::start(
            OPERATION,
            library,
            context,
            membership,
            options,
            is_blocking,
            |rank, size, output, config| {
                // SAFETY: without a communicator, the call creates a new rank; the identifier and
                // the configuration are complete, `output` is valid for writes until the
                // communicator has ended, and the context is current.
                unsafe {
                    call!(
                        library.api(),
                        ncclCommGrow(ptr::null_mut(), size, &raw const id, rank, output, config)
                    )
                }
            },
        )?;
        shared.settle(OPERATION)?;
        Ok(Self::from_shared(shared))
    }
}

//! Communicators created from others.

use std::ffi::c_int;
use std::ptr;

use super::shared::{Output, Shared, entered};
use super::use_guard::UseGuard;
use super::{Communicator, create};
use crate::error::{ArgumentError, Result, call};
use crate::group;
use crate::operation::Membership;
use crate::sys::{Api, NCCL_SHRINK_ABORT, NCCL_SHRINK_DEFAULT, NCCL_SPLIT_NOCOLOR, ncclComm_t};

impl Communicator {
    /// Splits the communicator into one for each color, whose ranks are ordered by `key`, and by
    /// rank where keys are equal. Every rank calls it. Returns `None` on a rank without a color.
    ///
    /// The options are those of this communicator.
    ///
    /// CUDA: `ncclCommSplit`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if a number is too large. An error of NCCL.
    #[doc(alias = "ncclCommSplit")]
    pub fn split(&mut self, color: Option<u32>, key: u32) -> Result<Option<Self>> {
        let color = match color {
            Some(color) => split_number(color)?,
            None => NCCL_SPLIT_NOCOLOR,
        };
        let key = split_number(key)?;
        self.derive("Communicator::split", |api, raw, child| {
            // SAFETY: the communicator is live and used by this thread alone, and `child` is valid
            // for writes until the call is complete.
            unsafe { call!(api, ncclCommSplit(raw, color, key, child, ptr::null_mut())) }
        })
    }

    /// Creates a communicator of all ranks except those in `excluded`. The remaining ranks call it.
    ///
    /// With `aborts`, operations that wait for an excluded rank, such as one that has failed, end
    /// first.
    ///
    /// Requires NCCL 2.27. CUDA: `ncclCommShrink`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if no rank is excluded, a rank is out of range,
    /// or this rank is excluded. An error of NCCL.
    #[doc(alias = "ncclCommShrink")]
    pub fn shrink(&mut self, excluded: &[usize], aborts: bool) -> Result<Self> {
        const OPERATION: &str = "Communicator::shrink";
        let rank = self.rank();
        let size = self.size();
        if let Some(wrong) = excluded.iter().find(|excluded| **excluded >= size) {
            return Err(ArgumentError::refused(
                OPERATION,
                format!("rank out of range ({wrong} of {size} ranks)"),
            ));
        }
        if excluded.is_empty() {
            return Err(ArgumentError::refused(OPERATION, "no rank is excluded"));
        }
        if excluded.contains(&rank) {
            return Err(ArgumentError::refused(
                OPERATION,
                format!("this rank is excluded ({rank})"),
            ));
        }
        let mut ranks = excluded
            .iter()
            .map(|rank| create::number(OPERATION, *rank))
            .collect::<Result<Vec<_>>>()?;
        let count = create::number(OPERATION, ranks.len())?;
        let flags = if aborts {
            NCCL_SHRINK_ABORT
        } else {
            NCCL_SHRINK_DEFAULT
        } as c_int;
        let child = self.derive(OPERATION, |api, raw, child| {
            // SAFETY: the communicator is live and used by this thread alone, the list has `count`
            // ranks, and `child` is valid for writes until the call is complete.
            unsafe {
                call!(
                    api,
                    ncclCommShrink(
                        raw,
                        ranks.as_mut_ptr(),
                        count,
                        child,
                        ptr::null_mut(),
                        flags
                    )
                )
            }
        })?;
        child.ok_or_else(|| ArgumentError::refused(OPERATION, "NCCL created no communicator"))
    }

    /// Creates a communicator from this one.
    pub(super) fn derive(
        &mut self,
        operation: &'static str,
        create: impl FnOnce(&Api, ncclComm_t, *mut ncclComm_t) -> Result<()>,
    ) -> Result<Option<Self>> {
        group::check_none(operation)?;
        let use_guard = UseGuard::acquire(&*self.shared, operation)?;
        let Shared {
            library,
            context,
            timeout,
            ..
        } = &**use_guard.shared();
        let output = Output::new();
        let created = entered(context, || {
            create(library.api(), use_guard.raw(), output.as_ptr())
        });
        if let Err(error) = created.and_then(|()| self.shared.settle(operation)) {
            // A non-blocking call may still write the new communicator to it.
            std::mem::forget(output);
            drop(use_guard);
            return self.shared.ended_by_timeout(Err(error));
        }
        let raw = output.get();
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: NCCL has just created the communicator.
        match unsafe { create::membership(library.api(), raw) } {
            Ok(membership) => {
                let child = Shared::created(output, library, context, membership, *timeout)?;
                Ok(Some(Self::from_shared(child)))
            }
            Err(error) => {
                // Without its rank and size the communicator cannot be used: its drop aborts it.
                let unknown = Membership { rank: 0, size: 0 };
                Shared::created(output, library, context, unknown, *timeout)?.fail();
                Err(error)
            }
        }
    }
}

/// Converts a color or a key.
fn split_number(value: u32) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| {
        ArgumentError::refused(
            "Communicator::split",
            format!("number out of range ({value})"),
        )
    })
}

//! The operators of reductions.

use std::ffi::c_void;

use crate::element::Element;
use crate::error::{Result, call};
use crate::sys::{Api, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclScalarResidence_t};

/// The operator of a reduction over the ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reduction<T> {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// The sum divided by the number of ranks.
    Average,
    /// The sum of the ranks' elements, each multiplied by the factor of its rank.
    ScaledSum(T),
}

/// An operator whose element type is erased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operator {
    raw: ncclRedOp_t,
    element: ncclDataType_t,
    /// The factor of a scaled sum.
    factor: Option<[u8; 8]>,
}

/// The NCCL operator that was created for one call, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreatedOperator(Option<ncclRedOp_t>);

impl<T: Element> Reduction<T> {
    #[inline]
    pub(crate) fn erased(self) -> Operator {
        let raw = match self {
            Self::Sum | Self::ScaledSum(_) => ncclRedOp_t::ncclSum,
            Self::Product => ncclRedOp_t::ncclProd,
            Self::Min => ncclRedOp_t::ncclMin,
            Self::Max => ncclRedOp_t::ncclMax,
            Self::Average => ncclRedOp_t::ncclAvg,
        };
        let factor = if let Self::ScaledSum(factor) = self {
            Some(widened(&factor))
        } else {
            None
        };
        Operator {
            raw,
            element: T::TYPE,
            factor,
        }
    }
}

/// Returns the bytes of a number, followed by zeros.
fn widened<T: Element>(factor: &T) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(factor));
    bytes
}

impl Operator {
    /// Returns the name of the reduction, such as `Sum`.
    pub(crate) fn name(&self) -> &'static str {
        match self.raw {
            _ if self.factor.is_some() => "ScaledSum",
            ncclRedOp_t::ncclProd => "Product",
            ncclRedOp_t::ncclMin => "Min",
            ncclRedOp_t::ncclMax => "Max",
            ncclRedOp_t::ncclAvg => "Average",
            _ => "Sum",
        }
    }

    /// Returns NCCL's predefined operator, or `self` as the error if the operator must be created.
    #[inline]
    pub(crate) fn existing(&self) -> Result<ncclRedOp_t, Self> {
        if self.factor.is_none() {
            Ok(self.raw)
        } else {
            Err(*self)
        }
    }

    /// Returns the operator for `communicator`, which exists until [`CreatedOperator::destroy`].
    ///
    /// # Safety
    ///
    /// The communicator is live.
    pub(crate) unsafe fn create(
        mut self,
        api: &Api,
        communicator: ncclComm_t,
    ) -> Result<(ncclRedOp_t, CreatedOperator)> {
        let Some(factor) = &mut self.factor else {
            return Ok((self.raw, CreatedOperator::NONE));
        };
        let mut raw = ncclRedOp_t(0);
        let factor = factor.as_mut_ptr().cast::<c_void>();
        let residence = ncclScalarResidence_t::ncclScalarHostImmediate;
        // SAFETY: the communicator is live, `raw` is valid for writes, and the factor has the type
        // and is read during the call.
        unsafe {
            call!(
                api,
                ncclRedOpCreatePreMulSum(
                    &raw mut raw,
                    factor,
                    self.element,
                    residence,
                    communicator
                )
            )
        }?;
        Ok((raw, CreatedOperator(Some(raw))))
    }
}

impl CreatedOperator {
    /// No created operator: the operation has none, or uses a predefined one.
    pub(crate) const NONE: Self = Self(None);

    /// Returns `true` if no operator was created for the call.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0.is_none()
    }

    /// Destroys the operator, if it was created for this call.
    ///
    /// # Safety
    ///
    /// `communicator` is live and the one that the operator was created for. Every call with the
    /// operator has returned, including the end of its group.
    #[inline]
    pub(crate) unsafe fn destroy(self, api: &Api, communicator: ncclComm_t) -> Result<()> {
        match self.0 {
            // SAFETY: the caller guarantees the communicator, and that no call uses the operator
            // any more.
            Some(raw) => unsafe { call!(api, ncclRedOpDestroy(raw, communicator)) },
            None => Ok(()),
        }
    }
}

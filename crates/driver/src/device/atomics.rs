//! Atomic operations across the links of a device.

use bitflags::bitflags;
use curium_sys::{CUatomicOperation, CUatomicOperationCapability};

use crate::call;
use crate::{Device, Error, Result};

/// An atomic operation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AtomicOperation {
    /// Integer addition.
    IntegerAdd,
    /// Integer minimum.
    IntegerMin,
    /// Integer maximum.
    IntegerMax,
    /// Integer increment, wrapping to zero at a limit.
    IntegerIncrement,
    /// Integer decrement, wrapping from zero to a limit.
    IntegerDecrement,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise XOR.
    Xor,
    /// Exchange.
    Exchange,
    /// Compare and swap.
    CompareAndSwap,
    /// Floating-point addition.
    FloatAdd,
    /// Floating-point minimum.
    FloatMin,
    /// Floating-point maximum.
    FloatMax,
}

bitflags! {
    /// The forms in which an atomic operation is supported across a link; empty if it is
    /// unsupported.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct AtomicForms: u32 {
        /// Signed operands.
        const SIGNED = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SIGNED.0;
        /// Unsigned operands.
        const UNSIGNED = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
        /// Reductions, which do not return the old value.
        const REDUCTION = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_REDUCTION.0;
        /// 32-bit operands.
        const BITS_32 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_32.0;
        /// 64-bit operands.
        const BITS_64 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_64.0;
        /// 128-bit operands.
        const BITS_128 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_128.0;
        /// Vectors of four 32-bit operands.
        const FOUR_OF_32 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_VECTOR_32x4.0;
        /// Forms defined by newer drivers.
        const _ = !0;
    }
}

impl AtomicOperation {
    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn as_raw(self) -> CUatomicOperation {
        match self {
            Self::IntegerAdd => CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_ADD,
            Self::IntegerMin => CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_MIN,
            Self::IntegerMax => CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_MAX,
            Self::IntegerIncrement => CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_INCREMENT,
            Self::IntegerDecrement => CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_DECREMENT,
            Self::And => CUatomicOperation::CU_ATOMIC_OPERATION_AND,
            Self::Or => CUatomicOperation::CU_ATOMIC_OPERATION_OR,
            Self::Xor => CUatomicOperation::CU_ATOMIC_OPERATION_XOR,
            Self::Exchange => CUatomicOperation::CU_ATOMIC_OPERATION_EXCHANGE,
            Self::CompareAndSwap => CUatomicOperation::CU_ATOMIC_OPERATION_CAS,
            Self::FloatAdd => CUatomicOperation::CU_ATOMIC_OPERATION_FLOAT_ADD,
            Self::FloatMin => CUatomicOperation::CU_ATOMIC_OPERATION_FLOAT_MIN,
            Self::FloatMax => CUatomicOperation::CU_ATOMIC_OPERATION_FLOAT_MAX,
        }
    }
}

impl Device {
    /// Returns, for each of `operations`, the forms in which this device supports it on host
    /// memory.
    ///
    /// Requires CUDA 13.0. CUDA: `cuDeviceGetHostAtomicCapabilities`.
    ///
    /// # Errors
    ///
    /// An argument error if `operations` is empty, and any error returned by the driver.
    #[doc(alias = "cuDeviceGetHostAtomicCapabilities")]
    pub fn host_atomics(&self, operations: &[AtomicOperation]) -> Result<Vec<AtomicForms>> {
        let (raw, count) = listed("Device::host_atomics", operations)?;
        let mut forms = vec![0; raw.len()];
        let asked = raw.as_ptr();
        let answers = forms.as_mut_ptr();
        // SAFETY: both arrays have `count` elements and outlive the call.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetHostAtomicCapabilities(answers, asked, count, self.as_raw())
            )
        }?;
        Ok(forms
            .into_iter()
            .map(AtomicForms::from_bits_retain)
            .collect())
    }

    /// Returns, for each of `operations`, the forms in which this device supports it on memory of
    /// `peer`.
    ///
    /// Driver 580 returns no form even where
    /// [`PeerLink::all_atomics`](crate::PeerLink::all_atomics) is `true`.
    ///
    /// Requires CUDA 13.0. CUDA: `cuDeviceGetP2PAtomicCapabilities`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if `peer` is the same device; an argument error if `operations`
    /// is empty or the devices belong to different drivers.
    #[doc(alias = "cuDeviceGetP2PAtomicCapabilities")]
    pub fn peer_atomics(
        &self,
        peer: &Self,
        operations: &[AtomicOperation],
    ) -> Result<Vec<AtomicForms>> {
        self.driver()
            .check_same(peer.driver(), "Device::peer_atomics")?;
        let (raw, count) = listed("Device::peer_atomics", operations)?;
        let mut forms = vec![0; raw.len()];
        let asked = raw.as_ptr();
        let answers = forms.as_mut_ptr();
        let from = self.as_raw();
        let to = peer.as_raw();
        // SAFETY: both arrays have `count` elements and outlive the call.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetP2PAtomicCapabilities(answers, asked, count, from, to)
            )
        }?;
        Ok(forms
            .into_iter()
            .map(AtomicForms::from_bits_retain)
            .collect())
    }
}

/// Returns the operations as raw values, with their number.
fn listed(
    operation: &'static str,
    operations: &[AtomicOperation],
) -> Result<(Vec<CUatomicOperation>, u32)> {
    if operations.is_empty() {
        return Err(Error::argument(operation, "no atomic operations"));
    }
    let count = u32::try_from(operations.len()).map_err(|_| {
        Error::argument(
            operation,
            format!("too many operations ({})", operations.len()),
        )
    })?;
    Ok((
        operations
            .iter()
            .map(|operation| operation.as_raw())
            .collect(),
        count,
    ))
}

//! Atomic operations over the links of a device.

use bitflags::bitflags;
use curium_sys::{CUatomicOperation, CUatomicOperationCapability};

use crate::call;
use crate::{Device, Error, Result};

/// An atomic operation on memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AtomicOperation {
    /// The sum of integers.
    IntegerAdd,
    /// The lesser of two integers.
    IntegerMin,
    /// The greater of two integers.
    IntegerMax,
    /// One more, up to a limit at which it starts at zero again.
    IntegerIncrement,
    /// One less, down to zero, from which it starts at a limit again.
    IntegerDecrement,
    /// The bits that both have.
    And,
    /// The bits that either has.
    Or,
    /// The bits that only one has.
    Xor,
    /// The new value in place of the old.
    Exchange,
    /// The new value in place of the old if that is as expected.
    CompareAndSwap,
    /// The sum of floating-point numbers.
    FloatAdd,
    /// The lesser of two floating-point numbers.
    FloatMin,
    /// The greater of two floating-point numbers.
    FloatMax,
}

bitflags! {
    /// In which forms an atomic operation works over a link; empty if it does not.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct AtomicForms: u32 {
        /// On signed values.
        const SIGNED = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SIGNED.0;
        /// On unsigned values.
        const UNSIGNED = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
        /// As a reduction, which does not return the old value.
        const REDUCTION = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_REDUCTION.0;
        /// On 32 bits.
        const BITS_32 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_32.0;
        /// On 64 bits.
        const BITS_64 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_64.0;
        /// On 128 bits.
        const BITS_128 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_SCALAR_128.0;
        /// On four values of 32 bits at once.
        const FOUR_OF_32 = CUatomicOperationCapability::CU_ATOMIC_CAPABILITY_VECTOR_32x4.0;
        /// Forms of newer drivers.
        const _ = !0;
    }
}

impl AtomicOperation {
    /// Returns the driver's number.
    #[must_use]
    #[inline]
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
    /// In which forms this device can do each of `operations` on memory of the host, in their order.
    ///
    /// Needs CUDA 13.0. CUDA: `cuDeviceGetHostAtomicCapabilities`.
    ///
    /// # Errors
    ///
    /// An argument error without an operation, and an error of the driver.
    #[doc(alias = "cuDeviceGetHostAtomicCapabilities")]
    #[inline]
    pub fn host_atomics(&self, operations: &[AtomicOperation]) -> Result<Vec<AtomicForms>> {
        let (raw, count) = listed("Device::host_atomics", operations)?;
        let mut forms = vec![0; raw.len()];
        let (asked, answers) = (raw.as_ptr(), forms.as_mut_ptr());
        // SAFETY: both lists have `count` entries and outlive the call.
        unsafe { call!(self.driver(), cuDeviceGetHostAtomicCapabilities(answers, asked, count, self.as_raw())) }?;
        Ok(forms.into_iter().map(AtomicForms::from_bits_retain).collect())
    }

    /// In which forms this device can do each of `operations` on memory of `peer`, in their order.
    ///
    /// Driver 580 answers with no form where [`PeerLink::all_atomics`](crate::PeerLink::all_atomics) says that every operation works.
    ///
    /// Needs CUDA 13.0. CUDA: `cuDeviceGetP2PAtomicCapabilities`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_DEVICE` if `peer` is the same device; an argument error without an operation, or if the devices are of
    /// different drivers.
    #[doc(alias = "cuDeviceGetP2PAtomicCapabilities")]
    #[inline]
    pub fn peer_atomics(&self, peer: &Self, operations: &[AtomicOperation]) -> Result<Vec<AtomicForms>> {
        self.driver().expect_same(peer.driver(), "Device::peer_atomics")?;
        let (raw, count) = listed("Device::peer_atomics", operations)?;
        let mut forms = vec![0; raw.len()];
        let (asked, answers, from, to) = (raw.as_ptr(), forms.as_mut_ptr(), self.as_raw(), peer.as_raw());
        // SAFETY: both lists have `count` entries and outlive the call.
        unsafe { call!(self.driver(), cuDeviceGetP2PAtomicCapabilities(answers, asked, count, from, to)) }?;
        Ok(forms.into_iter().map(AtomicForms::from_bits_retain).collect())
    }
}

/// Returns the operations as the driver wants them, with their number.
#[inline]
fn listed(operation: &'static str, operations: &[AtomicOperation]) -> Result<(Vec<CUatomicOperation>, u32)> {
    if operations.is_empty() {
        return Err(Error::argument(operation, "no atomic operation is named"));
    }
    let count = u32::try_from(operations.len())
        .map_err(|_| Error::argument(operation, format!("{} operations are too many", operations.len())))?;
    Ok((operations.iter().map(|operation| operation.as_raw()).collect(), count))
}

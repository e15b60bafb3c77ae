//! The types that families of instructions accept.

use crate::syntax::scalar::ScalarType::{self, *};

/// `mov`.
pub(super) const MOVED: &[ScalarType] = &[
    Pred, B16, B32, B64, B128, U16, U32, U64, S16, S32, S64, F32, F64,
];
/// Loads and stores.
pub(super) const STORED: &[ScalarType] = &[
    B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64,
];
/// Stores and reductions that complete asynchronously.
pub(super) const ASYNCHRONOUS: &[ScalarType] = &[
    B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64,
];
/// Stores that complete on an mbarrier object.
pub(super) const COMPLETED: &[ScalarType] = &[B32, B64, U32, U64, S32, S64, F32, F64];
/// Asynchronous sums.
pub(super) const ASYNCHRONOUS_SUMS: &[ScalarType] = &[U32, S32, U64, S64];
/// Atomic bitwise operations.
pub(super) const ATOMIC_LOGIC: &[ScalarType] = &[B32, B64];
/// Atomic sums.
pub(super) const ATOMIC_SUMS: &[ScalarType] = &[U32, S32, U64, F32, F64, F16, F16x2, Bf16, Bf16x2];
/// Atomic extremes.
pub(super) const ATOMIC_EXTREMES: &[ScalarType] = &[U32, S32, U64, S64];
/// Atomic sums of vectors.
pub(super) const ATOMIC_VECTOR_SUMS: &[ScalarType] = &[F32, F16, F16x2, Bf16, Bf16x2];
/// Atomic extremes of vectors.
pub(super) const ATOMIC_VECTOR_EXTREMES: &[ScalarType] = &[F16, F16x2, Bf16, Bf16x2];
/// Atomic counters.
pub(super) const ATOMIC_COUNTERS: &[ScalarType] = &[U32];
/// Atomic exchanges.
pub(super) const ATOMIC_EXCHANGES: &[ScalarType] = &[B32, B64, B128];
/// Atomic compare and swap.
pub(super) const ATOMIC_SWAPS: &[ScalarType] = &[B16, B32, B64, B128];
/// Stores to multicast memory.
pub(super) const MULTICAST_STORED: &[ScalarType] = &[
    B32, U32, S32, B64, U64, S64, F16, F16x2, Bf16, Bf16x2, F32, F64, E4m3, E4m3x2, E4m3x4, E5m2,
    E5m2x2, E5m2x4,
];
/// Sums that loads from multicast memory return.
pub(super) const MULTICAST_LOADED_SUMS: &[ScalarType] = &[
    U32, S32, U64, F16, F16x2, Bf16, Bf16x2, F32, F64, E4m3, E4m3x2, E4m3x4, E5m2, E5m2x2, E5m2x4,
];
/// Extremes that loads from multicast memory return.
pub(super) const MULTICAST_LOADED_EXTREMES: &[ScalarType] = &[
    U32, S32, U64, S64, F16, F16x2, Bf16, Bf16x2, E4m3, E4m3x2, E4m3x4, E5m2, E5m2x2, E5m2x4,
];
/// Extremes in multicast memory.
pub(super) const MULTICAST_EXTREMES: &[ScalarType] =
    &[U32, S32, U64, S64, F16, F16x2, Bf16, Bf16x2];
/// Sums of bulk copies to multicast memory.
pub(super) const BULK_SUMS: &[ScalarType] = &[U32, S32, U64, F16, Bf16, F32, F64];
/// Extremes of bulk copies to multicast memory.
pub(super) const BULK_EXTREMES: &[ScalarType] = &[U32, S32, U64, S64, F16, Bf16];

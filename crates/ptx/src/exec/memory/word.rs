//! The words of memory, read and written without undefined behavior.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::exec::values::lane::HALF;

/// An unsigned integer in memory that the host can access atomically.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// Length in bytes.
    const SIZE: u64;
    /// Keeps the low bits.
    fn truncate(bits: u64) -> Self;
    /// Returns the zero-extended value.
    fn extend(self) -> u64;
    /// Reads atomically.
    ///
    /// # Safety
    ///
    /// `pointer` is aligned and valid for reads, and concurrent accesses are atomic.
    unsafe fn load(pointer: *mut Self) -> Self;
    /// Writes atomically.
    ///
    /// # Safety
    ///
    /// `pointer` is aligned and valid for writes, and concurrent accesses are atomic.
    unsafe fn store(pointer: *mut Self, value: Self);
    /// Reads a value for each lane of half a warp, each atomically.
    ///
    /// # Safety
    ///
    /// `pointer` is aligned and valid for reads of 16 values, and concurrent accesses are atomic.
    /// `WIDE` requires AVX2.
    unsafe fn load_half<const WIDE: bool>(pointer: *mut Self) -> [Self; HALF];
    /// Writes a value of each lane of half a warp, each atomically.
    ///
    /// # Safety
    ///
    /// `pointer` is aligned and valid for writes of 16 values, and concurrent accesses are atomic.
    /// `WIDE` requires AVX2.
    unsafe fn store_half<const WIDE: bool>(pointer: *mut Self, values: &[Self; HALF]);
    /// Copies a value for each lane of half a warp, each read and written atomically.
    ///
    /// # Safety
    ///
    /// Both pointers are aligned, `from` is valid for reads and `to` for writes of 16 values, which
    /// do not overlap, and concurrent accesses are atomic. `WIDE` requires AVX2.
    unsafe fn copy_half<const WIDE: bool>(to: *mut Self, from: *const Self);
    /// Changes atomically and returns the value before.
    ///
    /// # Safety
    ///
    /// `pointer` is aligned and valid for reads and writes, and concurrent accesses are atomic.
    unsafe fn update(pointer: *mut Self, change: impl Fn(Self) -> Self) -> Self;
}

macro_rules! words {
    ($($ty:ty: $atomic:ty),*) => {$(
        impl Word for $ty {
            const SIZE: u64 = size_of::<$ty>() as u64;

            #[inline(always)]
            fn truncate(bits: u64) -> Self {
                bits as $ty
            }

            #[inline(always)]
            fn extend(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            unsafe fn load(pointer: *mut Self) -> Self {
                // SAFETY: the caller guarantees that the pointer is aligned and valid, and that
                // concurrent accesses are atomic.
                unsafe { <$atomic>::from_ptr(pointer) }.load(Ordering::Relaxed)
            }

            #[inline(always)]
            unsafe fn store(pointer: *mut Self, value: Self) {
                // SAFETY: the caller guarantees that the pointer is aligned and valid, and that
                // concurrent accesses are atomic.
                unsafe { <$atomic>::from_ptr(pointer) }.store(value, Ordering::Relaxed);
            }

            #[inline(always)]
            unsafe fn load_half<const WIDE: bool>(pointer: *mut Self) -> [Self; HALF] {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let mut values = [0; HALF];
                    let bytes = size_of::<[Self; HALF]>();
                    // SAFETY: the caller guarantees the values in memory and the processor; the row
                    // is local.
                    unsafe { copy::<WIDE>((&raw mut values).cast(), pointer.cast(), bytes) };
                    values
                }
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                {
                    // SAFETY: the caller guarantees 16 values.
                    std::array::from_fn(|lane| unsafe { Self::load(pointer.wrapping_add(lane)) })
                }
            }

            #[inline(always)]
            unsafe fn store_half<const WIDE: bool>(pointer: *mut Self, values: &[Self; HALF]) {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                // SAFETY: the caller guarantees the values in memory and the processor; the row is
                // local.
                unsafe {
                    copy::<WIDE>(pointer.cast(), values.as_ptr().cast(), size_of::<[Self; HALF]>());
                };
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                for (lane, value) in values.iter().enumerate() {
                    // SAFETY: the caller guarantees 16 values.
                    unsafe { Self::store(pointer.wrapping_add(lane), *value) };
                }
            }

            #[inline(always)]
            unsafe fn copy_half<const WIDE: bool>(to: *mut Self, from: *const Self) {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                // SAFETY: the caller guarantees 16 values on both sides, which do not overlap, and
                // the processor.
                unsafe {
                    copy::<WIDE>(to.cast(), from.cast(), size_of::<[Self; HALF]>());
                };
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                for lane in 0..HALF {
                    // SAFETY: the caller guarantees 16 values that can be read.
                    let value = unsafe { Self::load(from.wrapping_add(lane).cast_mut()) };
                    // SAFETY: the caller guarantees 16 values that can be written.
                    unsafe { Self::store(to.wrapping_add(lane), value) };
                }
            }

            #[inline(always)]
            unsafe fn update(pointer: *mut Self, change: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller guarantees that the pointer is aligned and valid, and that
                // concurrent accesses are atomic.
                let atomic = unsafe { <$atomic>::from_ptr(pointer) };
                let mut old = atomic.load(Ordering::Relaxed);
                loop {
                    match atomic.compare_exchange_weak(
                        old,
                        change(old),
                        Ordering::SeqCst,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    )*};
}

words!(u8: AtomicU8, u16: AtomicU16, u32: AtomicU32, u64: AtomicU64);

/// Copies `bytes` bytes, a multiple of 16. Other threads may access the memory on either side.
///
/// The copy is written in assembly: in Rust a racing copy is undefined behavior, and as many atomic
/// copies are slow. The processor moves aligned values of up to eight bytes without tearing, also
/// with vector instructions, so the result is that of atomic copies. The vectors are as wide as
/// those of the later reader, so the processor can forward stored values to it.
///
/// # Safety
///
/// `from` is valid for reads and `to` for writes of `bytes` bytes, which do not overlap. `WIDE`
/// requires AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy<const WIDE: bool>(to: *mut u8, from: *const u8, bytes: usize) {
    let step = if WIDE && bytes.is_multiple_of(32) {
        32
    } else {
        16
    };
    for offset in (0..bytes).step_by(step) {
        let to = to.wrapping_add(offset);
        let from = from.wrapping_add(offset);
        if step == 32 {
            // SAFETY: the caller guarantees the bytes and the processor; otherwise only a register
            // is written.
            unsafe {
                std::arch::asm!(
                    "vmovdqu {all:y}, [{from}]",
                    "vmovdqu [{to}], {all:y}",
                    from = in(reg) from,
                    to = in(reg) to,
                    all = out(xmm_reg) _,
                    options(nostack, preserves_flags),
                );
            }
        } else {
            // SAFETY: the caller guarantees the bytes; otherwise only a register is written.
            unsafe {
                std::arch::asm!(
                    "movups {all}, [{from}]",
                    "movups [{to}], {all}",
                    from = in(reg) from,
                    to = in(reg) to,
                    all = out(xmm_reg) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    }
}

//! Loads and stores with a cache policy.

use core::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, Pod};

use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::ptx;

intrinsics! {
    address_is_global = "curium.asm|{ .reg .pred p; isspacep.global p, $1; selp.u32 $0, 1, 0, p; }|=r,l|pure"(address: u64) -> u32;
}

/// Returns `true` for an address in global memory.
#[inline(always)]
pub(crate) fn is_global<T>(address: *const T) -> bool {
    // SAFETY: the result depends on the operand only.
    unsafe { address_is_global(address as usize as u64) != 0 }
}

/// The cache policy of a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadPolicy {
    /// Data that is read once, and is evicted first (`ld.global.cs`, `__ldcs`).
    Streaming,
    /// Data that is not needed after this load (`ld.global.lu`, `__ldlu`).
    LastUse,
    /// Data that is cached in L2 only (`ld.global.cg`, `__ldcg`).
    SkipL1,
    /// Data that is evicted from L1 first (`ld.global.L1::evict_first`).
    EvictFirst,
    /// Data that is evicted from L1 last (`ld.global.L1::evict_last`).
    EvictLast,
    /// Fetches 128 bytes to L2 (`ld.global.L2::128B`), because the data around it is needed too.
    /// Needs compute capability 7.5.
    Prefetch128,
}

/// The cache policy of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StorePolicy {
    /// Data that is not read again soon, and is evicted first (`st.global.cs`, `__stcs`).
    Streaming,
    /// Data that is cached in L2 only (`st.global.cg`, `__stcg`).
    SkipL1,
    /// Data that is evicted from L1 first (`st.global.L1::evict_first`).
    EvictFirst,
    /// Data that is evicted from L1 last (`st.global.L1::evict_last`).
    EvictLast,
}

/// Loads of elements with a cache policy. Elements of 8 and 16 bytes are loaded by one instruction,
/// larger ones by several. Elements that are not in global memory are loaded as usual.
///
/// Inputs need no policy to be loaded through the read-only cache: the compiler uses `ld.global.nc`
/// (`__ldg`) for `&[T]` and [`Matrix`](crate::Matrix), which nobody writes during a launch.
///
/// ```
/// # use curium_kernel::prelude::*;
/// use curium_kernel::{LoadWith, StoreWith};
///
/// /// y = 2 x, for data that is larger than the caches.
/// #[kernel]
/// pub fn double(t: Thread, x: &[F32x4], mut y: PerThread<F32x4>) {
///     if let Some(y) = y.get(&t) {
///         y.store_streaming(x.load_streaming(t.index()) * 2.0);
///     }
/// }
/// ```
pub trait LoadWith<T> {
    /// Loads an element with a policy.
    ///
    /// # Panics
    ///
    /// If the index is out of bounds.
    #[must_use]
    fn load_with(&self, index: usize, policy: LoadPolicy) -> T;

    /// Loads an element that is read once: [`LoadPolicy::Streaming`].
    ///
    /// # Panics
    ///
    /// If the index is out of bounds.
    #[doc(alias = "__ldcs")]
    #[inline(always)]
    #[must_use]
    fn load_streaming(&self, index: usize) -> T {
        self.load_with(index, LoadPolicy::Streaming)
    }

    /// Fetches the cache line of an element to L2 (`prefetch.L2`). An index out of bounds has no
    /// effect.
    #[doc(alias = "__prefetch_global_l2")]
    fn prefetch(&self, index: usize);

    /// Fetches the cache line of an element to L1 (`prefetch.L1`). An index out of bounds has no
    /// effect.
    #[doc(alias = "__prefetch_global_l1")]
    fn prefetch_l1(&self, index: usize);
}

/// Stores to an element with a cache policy. An element that is not in global memory is stored as
/// usual.
pub trait StoreWith: Pod {
    /// Stores a value with a policy.
    fn store_with(&mut self, value: Self, policy: StorePolicy);

    /// Stores a value that is not read again soon: [`StorePolicy::Streaming`].
    #[doc(alias = "__stcs")]
    #[inline(always)]
    fn store_streaming(&mut self, value: Self) {
        self.store_with(value, StorePolicy::Streaming);
    }
}

impl<T: AnyBitPattern> LoadWith<T> for [T] {
    #[inline(always)]
    fn load_with(&self, index: usize, policy: LoadPolicy) -> T {
        // SAFETY: the element is borrowed.
        unsafe { load(&raw const self[index], policy) }
    }

    #[inline(always)]
    fn prefetch(&self, index: usize) {
        if let Some(element) = self.get(index) {
            let address = core::ptr::from_ref(element) as usize as u64;
            // SAFETY: the instruction has no effect on memory, and none at all outside of global
            // and local memory.
            unsafe { ptx!("prefetch.L2 [{0}];", in(l) address) };
        }
    }

    #[inline(always)]
    fn prefetch_l1(&self, index: usize) {
        if let Some(element) = self.get(index) {
            let address = core::ptr::from_ref(element) as usize as u64;
            // SAFETY: the instruction has no effect on memory, and none at all outside of global
            // and local memory.
            unsafe { ptx!("prefetch.L1 [{0}];", in(l) address) };
        }
    }
}

impl<T: Pod> StoreWith for T {
    #[inline(always)]
    fn store_with(&mut self, value: Self, policy: StorePolicy) {
        // SAFETY: the element is borrowed mutably.
        unsafe { store(self, value, policy) };
    }
}

intrinsics! {
    load_1_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cs.u8 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_2_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cs.u16 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_4_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cs.u32 $0, [a]; }|=r,l|"(address: u64) -> u32;
    load_8_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cs.u64 $0, [a]; }|=l,l|"(address: u64) -> u64;
    load_16_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.cs.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    load_1_last_use = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.lu.u8 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_2_last_use = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.lu.u16 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_4_last_use = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.lu.u32 $0, [a]; }|=r,l|"(address: u64) -> u32;
    load_8_last_use = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.lu.u64 $0, [a]; }|=l,l|"(address: u64) -> u64;
    load_16_last_use = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.lu.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    load_1_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cg.u8 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_2_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cg.u16 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_4_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cg.u32 $0, [a]; }|=r,l|"(address: u64) -> u32;
    load_8_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.cg.u64 $0, [a]; }|=l,l|"(address: u64) -> u64;
    load_16_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.cg.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    load_1_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_first.u8 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_2_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_first.u16 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_4_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_first.u32 $0, [a]; }|=r,l|"(address: u64) -> u32;
    load_8_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_first.u64 $0, [a]; }|=l,l|"(address: u64) -> u64;
    load_16_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.L1::evict_first.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    load_1_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_last.u8 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_2_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_last.u16 $0, [a]; }|=h,l|"(address: u64) -> u16;
    load_4_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_last.u32 $0, [a]; }|=r,l|"(address: u64) -> u32;
    load_8_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L1::evict_last.u64 $0, [a]; }|=l,l|"(address: u64) -> u64;
    load_16_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.L1::evict_last.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    load_1_prefetch_128 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L2::128B.u8 $0, [a]; }|=h,l|sm_75"(address: u64) -> u16;
    load_2_prefetch_128 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L2::128B.u16 $0, [a]; }|=h,l|sm_75"(address: u64) -> u16;
    load_4_prefetch_128 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L2::128B.u32 $0, [a]; }|=r,l|sm_75"(address: u64) -> u32;
    load_8_prefetch_128 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $1; ld.global.L2::128B.u64 $0, [a]; }|=l,l|sm_75"(address: u64) -> u64;
    load_16_prefetch_128 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $4; ld.global.L2::128B.v4.u32 {$0, $1, $2, $3}, [a]; }|=r,=r,=r,=r,l|sm_75"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, address: u64);
    store_1_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cs.u8 [a], $1; }|l,h|"(address: u64, value: u16);
    store_2_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cs.u16 [a], $1; }|l,h|"(address: u64, value: u16);
    store_4_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cs.u32 [a], $1; }|l,r|"(address: u64, value: u32);
    store_8_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cs.u64 [a], $1; }|l,l|"(address: u64, value: u64);
    store_16_streaming = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cs.v4.u32 [a], {$1, $2, $3, $4}; }|l,r,r,r,r|"(address: u64, a: u32, b: u32, c: u32, d: u32);
    store_1_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cg.u8 [a], $1; }|l,h|"(address: u64, value: u16);
    store_2_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cg.u16 [a], $1; }|l,h|"(address: u64, value: u16);
    store_4_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cg.u32 [a], $1; }|l,r|"(address: u64, value: u32);
    store_8_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cg.u64 [a], $1; }|l,l|"(address: u64, value: u64);
    store_16_skip_l1 = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.cg.v4.u32 [a], {$1, $2, $3, $4}; }|l,r,r,r,r|"(address: u64, a: u32, b: u32, c: u32, d: u32);
    store_1_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_first.u8 [a], $1; }|l,h|"(address: u64, value: u16);
    store_2_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_first.u16 [a], $1; }|l,h|"(address: u64, value: u16);
    store_4_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_first.u32 [a], $1; }|l,r|"(address: u64, value: u32);
    store_8_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_first.u64 [a], $1; }|l,l|"(address: u64, value: u64);
    store_16_evict_first = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_first.v4.u32 [a], {$1, $2, $3, $4}; }|l,r,r,r,r|"(address: u64, a: u32, b: u32, c: u32, d: u32);
    store_1_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_last.u8 [a], $1; }|l,h|"(address: u64, value: u16);
    store_2_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_last.u16 [a], $1; }|l,h|"(address: u64, value: u16);
    store_4_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_last.u32 [a], $1; }|l,r|"(address: u64, value: u32);
    store_8_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_last.u64 [a], $1; }|l,l|"(address: u64, value: u64);
    store_16_evict_last = "curium.asm|{ .reg .b64 a; cvta.to.global.u64 a, $0; st.global.L1::evict_last.v4.u32 [a], {$1, $2, $3, $4}; }|l,r,r,r,r|"(address: u64, a: u32, b: u32, c: u32, d: u32);
}

/// Calls the function for a policy.
macro_rules! with_policy {
    ($policy:expr, $enum:ident: $($variant:ident $function:ident)*, $arguments:tt) => {
        match $policy {
            // SAFETY: the caller of the macro guarantees the access.
            $($enum::$variant => unsafe { $function $arguments },)*
        }
    };
}

/// Returns the number of bytes that are accessed at once, of `remaining` bytes that are aligned to
/// `align`.
const fn width(align: usize, remaining: usize) -> usize {
    let mut width = 16;
    while width > align || width > remaining {
        width /= 2;
    }
    width
}

/// Loads a value.
///
/// # Safety
///
/// The address is valid for reads, and nobody writes the value at the same time.
#[inline(always)]
unsafe fn load<T: AnyBitPattern>(source: *const T, policy: LoadPolicy) -> T {
    // In local memory, a streaming load would discard what was written (`ld.lu`).
    if !is_global(source) {
        // SAFETY: the caller guarantees that the element is valid for reads.
        return unsafe { *source };
    }
    let mut value = MaybeUninit::<T>::uninit();
    let target = value.as_mut_ptr().cast::<u8>();
    let mut offset = 0;
    while offset < size_of::<T>() {
        let address = source as usize as u64 + offset as u64;
        // SAFETY: the offset is in bounds.
        let part = unsafe { target.add(offset) };
        let bytes = width(align_of::<T>(), size_of::<T>() - offset);
        match bytes {
            16 => {
                let [mut a, mut b, mut c, mut d] = [0_u32; 4];
                with_policy!(policy, LoadPolicy: Streaming load_16_streaming LastUse load_16_last_use SkipL1 load_16_skip_l1 EvictFirst load_16_evict_first EvictLast load_16_evict_last Prefetch128 load_16_prefetch_128, (&raw mut a, &raw mut b, &raw mut c, &raw mut d, address));
                // SAFETY: the value has 16 more bytes, which are aligned.
                unsafe { part.cast::<[u32; 4]>().write([a, b, c, d]) };
            }
            8 => {
                let word = with_policy!(policy, LoadPolicy: Streaming load_8_streaming LastUse load_8_last_use SkipL1 load_8_skip_l1 EvictFirst load_8_evict_first EvictLast load_8_evict_last Prefetch128 load_8_prefetch_128, (address));
                // SAFETY: the value has 8 more bytes, which are aligned.
                unsafe { part.cast::<u64>().write(word) };
            }
            4 => {
                let word = with_policy!(policy, LoadPolicy: Streaming load_4_streaming LastUse load_4_last_use SkipL1 load_4_skip_l1 EvictFirst load_4_evict_first EvictLast load_4_evict_last Prefetch128 load_4_prefetch_128, (address));
                // SAFETY: the value has 4 more bytes, which are aligned.
                unsafe { part.cast::<u32>().write(word) };
            }
            2 => {
                let word = with_policy!(policy, LoadPolicy: Streaming load_2_streaming LastUse load_2_last_use SkipL1 load_2_skip_l1 EvictFirst load_2_evict_first EvictLast load_2_evict_last Prefetch128 load_2_prefetch_128, (address));
                // SAFETY: the value has 2 more bytes, which are aligned.
                unsafe { part.cast::<u16>().write(word) };
            }
            _ => {
                let word = with_policy!(policy, LoadPolicy: Streaming load_1_streaming LastUse load_1_last_use SkipL1 load_1_skip_l1 EvictFirst load_1_evict_first EvictLast load_1_evict_last Prefetch128 load_1_prefetch_128, (address));
                // SAFETY: the value has 1 more byte.
                unsafe { part.cast::<u8>().write(word as u8) };
            }
        }
        offset += bytes;
    }
    // SAFETY: every byte was written, and any bytes are a `T`.
    unsafe { value.assume_init() }
}

/// Stores a value.
///
/// # Safety
///
/// The address is valid for writes, and no other thread accesses it at the same time.
#[inline(always)]
unsafe fn store<T: Pod>(target: *mut T, value: T, policy: StorePolicy) {
    if !is_global(target) {
        // SAFETY: the caller guarantees that the element is valid for writes.
        unsafe { *target = value };
        return;
    }
    let source = (&raw const value).cast::<u8>();
    let mut offset = 0;
    while offset < size_of::<T>() {
        let address = target as usize as u64 + offset as u64;
        // SAFETY: the offset is in bounds.
        let part = unsafe { source.add(offset) };
        let bytes = width(align_of::<T>(), size_of::<T>() - offset);
        match bytes {
            16 => {
                // SAFETY: the value has 16 more bytes, which are aligned.
                let [a, b, c, d] = unsafe { *part.cast::<[u32; 4]>() };
                with_policy!(policy, StorePolicy: Streaming store_16_streaming SkipL1 store_16_skip_l1 EvictFirst store_16_evict_first EvictLast store_16_evict_last, (address, a, b, c, d));
            }
            8 => {
                // SAFETY: the value has 8 more bytes, which are aligned.
                let word = unsafe { *part.cast::<u64>() };
                with_policy!(policy, StorePolicy: Streaming store_8_streaming SkipL1 store_8_skip_l1 EvictFirst store_8_evict_first EvictLast store_8_evict_last, (address, word));
            }
            4 => {
                // SAFETY: the value has 4 more bytes, which are aligned.
                let word = unsafe { *part.cast::<u32>() };
                with_policy!(policy, StorePolicy: Streaming store_4_streaming SkipL1 store_4_skip_l1 EvictFirst store_4_evict_first EvictLast store_4_evict_last, (address, word));
            }
            2 => {
                // SAFETY: the value has 2 more bytes, which are aligned.
                let word = unsafe { *part.cast::<u16>() };
                with_policy!(policy, StorePolicy: Streaming store_2_streaming SkipL1 store_2_skip_l1 EvictFirst store_2_evict_first EvictLast store_2_evict_last, (address, word));
            }
            _ => {
                // SAFETY: the value has 1 more byte.
                let word = unsafe { *part.cast::<u8>() };
                with_policy!(policy, StorePolicy: Streaming store_1_streaming SkipL1 store_1_skip_l1 EvictFirst store_1_evict_first EvictLast store_1_evict_last, (address, u16::from(word)));
            }
        }
        offset += bytes;
    }
}

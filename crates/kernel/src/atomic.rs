//! Atomic numbers.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use bytemuck::AnyBitPattern;

use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::thread::SingleThread;

/// A number in shared memory or in a buffer, which threads access atomically.
///
/// The scope is a part of the type. An operation is atomic for the threads of its scope, so memory
/// that all blocks access needs [`DeviceScope`], which is the default.
///
/// Operations take the thread, because their results differ between threads: code of a block cannot
/// use them.
#[repr(transparent)]
pub struct Atomic<T, S = DeviceScope> {
    value: UnsafeCell<T>,
    _scope: PhantomData<S>,
}

// SAFETY: all accesses through `&` are atomic for the threads that can have one.
unsafe impl<T: AtomicNumber, S: MemoryScope> Sync for Atomic<T, S> {}

/// The threads for which an atomic operation is atomic. The trait is sealed.
pub trait MemoryScope: sealed::Scope + Send + Sync + 'static {
    #[doc(hidden)]
    const NUMBER: u32;
}

/// A scope that includes all threads of a grid. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not include all threads that access the memory",
    label = "this scope is too narrow for memory of a buffer",
    note = "all blocks of the grid access a buffer: use `Atomic<T>` or `Atomic<T, SystemScope>`"
)]
pub trait GridScope: MemoryScope {}

/// The threads of a block (`.cta`): for shared memory.
#[derive(Clone, Copy, Debug)]
pub struct BlockScope;

/// The threads of a cluster (`.cluster`): for distributed shared memory. Needs compute capability
/// 9.0.
#[derive(Clone, Copy, Debug)]
pub struct ClusterScope;

/// The threads of a device (`.gpu`).
#[derive(Clone, Copy, Debug)]
pub struct DeviceScope;

/// The threads of all devices and the host (`.sys`).
#[derive(Clone, Copy, Debug)]
pub struct SystemScope;

const BLOCK: u32 = 0;
pub(crate) const DEVICE: u32 = 1;
const SYSTEM: u32 = 2;
const CLUSTER: u32 = 3;

impl MemoryScope for BlockScope {
    const NUMBER: u32 = BLOCK;
}

impl MemoryScope for ClusterScope {
    const NUMBER: u32 = CLUSTER;
}

impl MemoryScope for DeviceScope {
    const NUMBER: u32 = DEVICE;
}

impl MemoryScope for SystemScope {
    const NUMBER: u32 = SYSTEM;
}

impl GridScope for DeviceScope {}
impl GridScope for SystemScope {}

mod sealed {
    pub trait Scope {}
    impl Scope for super::BlockScope {}
    impl Scope for super::ClusterScope {}
    impl Scope for super::DeviceScope {}
    impl Scope for super::SystemScope {}

    pub trait Number {}
    impl Number for u32 {}
    impl Number for i32 {}
    impl Number for u64 {}
    impl Number for i64 {}
    impl Number for f32 {}
    impl Number for f64 {}
}

/// Numbers with atomic addition. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    label = "not an atomic number",
    note = "atomic numbers are `u32`, `i32`, `u64`, `i64`, `f32` and `f64`"
)]
pub trait AtomicNumber: AnyBitPattern + Send + Sync + sealed::Number {
    /// # Safety
    ///
    /// The pointer is valid, and all threads of the launch access it atomically.
    #[doc(hidden)]
    unsafe fn fetch_add(pointer: *mut Self, value: Self, scope: u32) -> Self;

    /// # Safety
    ///
    /// As for `fetch_add`.
    #[doc(hidden)]
    unsafe fn load(pointer: *const Self, scope: u32) -> Self;

    /// # Safety
    ///
    /// As for `fetch_add`.
    #[doc(hidden)]
    unsafe fn store(pointer: *mut Self, value: Self, scope: u32);
}

/// Integers with all atomic operations. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has only atomic addition, loads and stores",
    label = "not an atomic integer"
)]
pub trait AtomicInteger: AtomicNumber {
    /// # Safety
    ///
    /// As for [`AtomicNumber::fetch_add`].
    #[doc(hidden)]
    unsafe fn update(pointer: *mut Self, operation: Update, value: Self, scope: u32) -> Self;

    /// # Safety
    ///
    /// As for [`AtomicNumber::fetch_add`].
    #[doc(hidden)]
    unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self, scope: u32) -> Self;
}

/// A read-modify-write operation.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Update {
    Exchange,
    And,
    Or,
    Xor,
    Min,
    Max,
}

/// Evaluates the expression on the device.
macro_rules! on_device {
    (($($argument:ident),*) $($code:tt)*) => {{
        #[cfg(target_arch = "nvptx64")]
        {
            $($code)*
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            $(let _ = $argument;)*
            only_on_the_device()
        }
    }};
}

/// Declares a read-modify-write operation of LLVM on `$ty`, for each scope.
macro_rules! update {
    ($name:ident($ty:tt), $operation:literal) => {
        #[inline(always)]
        unsafe fn $name(pointer: *mut $ty, value: $ty, scope: u32) -> $ty {
            #[cfg(target_arch = "nvptx64")]
            unsafe extern "C" {
                #[link_name = concat!("curium.atomicrmw|", $operation, "|block|monotonic|", stringify!($ty))]
                fn in_block(pointer: *mut $ty, value: $ty) -> $ty;
                #[link_name = concat!("curium.atomicrmw|", $operation, "|cluster|monotonic|", stringify!($ty))]
                fn in_cluster(pointer: *mut $ty, value: $ty) -> $ty;
                #[link_name = concat!("curium.atomicrmw|", $operation, "|device|monotonic|", stringify!($ty))]
                fn in_device(pointer: *mut $ty, value: $ty) -> $ty;
                #[link_name = concat!("curium.atomicrmw|", $operation, "|system|monotonic|", stringify!($ty))]
                fn in_system(pointer: *mut $ty, value: $ty) -> $ty;
            }
            on_device! { (pointer, value, scope) match scope {
                // SAFETY: the caller guarantees the access.
                BLOCK => unsafe { in_block(pointer, value) },
                // SAFETY: the caller guarantees the access.
                DEVICE => unsafe { in_device(pointer, value) },
                // SAFETY: the caller guarantees the access.
                CLUSTER => unsafe { in_cluster(pointer, value) },
                // SAFETY: the caller guarantees the access.
                _ => unsafe { in_system(pointer, value) },
            } }
        }
    };
}

/// Declares the loads and stores of `$ty`.
macro_rules! accesses {
    ($ty:tt) => {
        #[inline(always)]
        unsafe fn load(pointer: *const $ty, scope: u32) -> $ty {
            #[cfg(target_arch = "nvptx64")]
            unsafe extern "C" {
                #[link_name = concat!("curium.load|block|monotonic|", stringify!($ty))]
                fn in_block(pointer: *const $ty) -> $ty;
                #[link_name = concat!("curium.load|cluster|monotonic|", stringify!($ty))]
                fn in_cluster(pointer: *const $ty) -> $ty;
                #[link_name = concat!("curium.load|device|monotonic|", stringify!($ty))]
                fn in_device(pointer: *const $ty) -> $ty;
                #[link_name = concat!("curium.load|system|monotonic|", stringify!($ty))]
                fn in_system(pointer: *const $ty) -> $ty;
            }
            on_device! { (pointer, scope) match scope {
                // SAFETY: the caller guarantees the access.
                BLOCK => unsafe { in_block(pointer) },
                // SAFETY: the caller guarantees the access.
                DEVICE => unsafe { in_device(pointer) },
                // SAFETY: the caller guarantees the access.
                CLUSTER => unsafe { in_cluster(pointer) },
                // SAFETY: the caller guarantees the access.
                _ => unsafe { in_system(pointer) },
            } }
        }

        #[inline(always)]
        unsafe fn store(pointer: *mut $ty, value: $ty, scope: u32) {
            #[cfg(target_arch = "nvptx64")]
            unsafe extern "C" {
                #[link_name = concat!("curium.store|block|monotonic|", stringify!($ty))]
                fn in_block(pointer: *mut $ty, value: $ty);
                #[link_name = concat!("curium.store|cluster|monotonic|", stringify!($ty))]
                fn in_cluster(pointer: *mut $ty, value: $ty);
                #[link_name = concat!("curium.store|device|monotonic|", stringify!($ty))]
                fn in_device(pointer: *mut $ty, value: $ty);
                #[link_name = concat!("curium.store|system|monotonic|", stringify!($ty))]
                fn in_system(pointer: *mut $ty, value: $ty);
            }
            on_device! { (pointer, value, scope) match scope {
                // SAFETY: the caller guarantees the access.
                BLOCK => unsafe { in_block(pointer, value) },
                // SAFETY: the caller guarantees the access.
                DEVICE => unsafe { in_device(pointer, value) },
                // SAFETY: the caller guarantees the access.
                CLUSTER => unsafe { in_cluster(pointer, value) },
                // SAFETY: the caller guarantees the access.
                _ => unsafe { in_system(pointer, value) },
            } }
        }
    };
}

macro_rules! number {
    ($ty:tt, $add:literal) => {
        impl AtomicNumber for $ty {
            update!(fetch_add($ty), $add);
            accesses!($ty);
        }
    };
}

number!(u32, "add");
number!(i32, "add");
number!(u64, "add");
number!(i64, "add");
number!(f32, "fadd");
number!(f64, "fadd");

macro_rules! integer {
    ($ty:tt, $min:literal, $max:literal) => {
        impl AtomicInteger for $ty {
            #[inline(always)]
            unsafe fn update(pointer: *mut Self, operation: Update, value: Self, scope: u32) -> Self {
                update!(exchange($ty), "xchg");
                update!(and($ty), "and");
                update!(or($ty), "or");
                update!(xor($ty), "xor");
                update!(min($ty), $min);
                update!(max($ty), $max);
                match operation {
                    // SAFETY: the caller guarantees the access.
                    Update::Exchange => unsafe { exchange(pointer, value, scope) },
                    // SAFETY: the caller guarantees the access.
                    Update::And => unsafe { and(pointer, value, scope) },
                    // SAFETY: the caller guarantees the access.
                    Update::Or => unsafe { or(pointer, value, scope) },
                    // SAFETY: the caller guarantees the access.
                    Update::Xor => unsafe { xor(pointer, value, scope) },
                    // SAFETY: the caller guarantees the access.
                    Update::Min => unsafe { min(pointer, value, scope) },
                    // SAFETY: the caller guarantees the access.
                    Update::Max => unsafe { max(pointer, value, scope) },
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self, scope: u32) -> Self {
                #[cfg(target_arch = "nvptx64")]
                unsafe extern "C" {
                    #[link_name = concat!("curium.cmpxchg|block|monotonic|monotonic|", stringify!($ty))]
                    fn in_block(pointer: *mut $ty, current: $ty, new: $ty) -> $ty;
                    #[link_name = concat!("curium.cmpxchg|cluster|monotonic|monotonic|", stringify!($ty))]
                    fn in_cluster(pointer: *mut $ty, current: $ty, new: $ty) -> $ty;
                    #[link_name = concat!("curium.cmpxchg|device|monotonic|monotonic|", stringify!($ty))]
                    fn in_device(pointer: *mut $ty, current: $ty, new: $ty) -> $ty;
                    #[link_name = concat!("curium.cmpxchg|system|monotonic|monotonic|", stringify!($ty))]
                    fn in_system(pointer: *mut $ty, current: $ty, new: $ty) -> $ty;
                }
                on_device! { (pointer, current, new, scope) match scope {
                    // SAFETY: the caller guarantees the access.
                    BLOCK => unsafe { in_block(pointer, current, new) },
                    // SAFETY: the caller guarantees the access.
                    DEVICE => unsafe { in_device(pointer, current, new) },
                    // SAFETY: the caller guarantees the access.
                    CLUSTER => unsafe { in_cluster(pointer, current, new) },
                    // SAFETY: the caller guarantees the access.
                    _ => unsafe { in_system(pointer, current, new) },
                } }
            }
        }
    };
}

integer!(u32, "umin", "umax");
integer!(i32, "min", "max");
integer!(u64, "umin", "umax");
integer!(i64, "min", "max");

/// A fence of PTX. `None` is no fence.
#[derive(Clone, Copy)]
enum Fence {
    None,
    AcquireRelease,
    Sequential,
}

impl Fence {
    /// The fence before an operation with this ordering. The operations themselves are relaxed.
    fn before(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Release | Ordering::AcqRel => Self::AcquireRelease,
            Ordering::SeqCst => Self::Sequential,
            _ => Self::None,
        }
    }

    /// The fence after an operation with this ordering.
    fn after(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst => Self::AcquireRelease,
            _ => Self::None,
        }
    }

    #[inline(always)]
    fn execute<S: MemoryScope>(self) {
        intrinsics! {
            block_acq_rel = "curium.fence|block|acq_rel"();
            block_seq_cst = "curium.fence|block|seq_cst"();
            cluster_acq_rel = "curium.fence|cluster|acq_rel"();
            cluster_seq_cst = "curium.fence|cluster|seq_cst"();
            device_acq_rel = "curium.fence|device|acq_rel"();
            device_seq_cst = "curium.fence|device|seq_cst"();
            system_acq_rel = "curium.fence|system|acq_rel"();
            system_seq_cst = "curium.fence|system|seq_cst"();
        }
        match (self, S::NUMBER) {
            (Self::None, _) => {}
            // SAFETY: a fence has no requirements.
            (Self::AcquireRelease, BLOCK) => unsafe { block_acq_rel() },
            // SAFETY: a fence has no requirements.
            (Self::AcquireRelease, CLUSTER) => unsafe { cluster_acq_rel() },
            // SAFETY: a fence has no requirements.
            (Self::AcquireRelease, DEVICE) => unsafe { device_acq_rel() },
            // SAFETY: a fence has no requirements.
            (Self::AcquireRelease, _) => unsafe { system_acq_rel() },
            // SAFETY: a fence has no requirements.
            (Self::Sequential, BLOCK) => unsafe { block_seq_cst() },
            // SAFETY: a fence has no requirements.
            (Self::Sequential, CLUSTER) => unsafe { cluster_seq_cst() },
            // SAFETY: a fence has no requirements.
            (Self::Sequential, DEVICE) => unsafe { device_seq_cst() },
            // SAFETY: a fence has no requirements.
            (Self::Sequential, _) => unsafe { system_seq_cst() },
        }
    }
}

/// A fence for all threads of the device (`__threadfence()`).
#[inline(always)]
pub(crate) fn device_fence() {
    Fence::AcquireRelease.execute::<DeviceScope>();
}

/// Runs a relaxed operation between the fences of its ordering.
#[inline(always)]
fn ordered<S: MemoryScope, R>(ordering: Ordering, operation: impl FnOnce() -> R) -> R {
    Fence::before(ordering).execute::<S>();
    let result = operation();
    Fence::after(ordering).execute::<S>();
    result
}

impl<T: AtomicNumber, S: MemoryScope> Atomic<T, S> {
    /// Adds to the number, and returns the previous value.
    #[doc(alias = "atomicAdd")]
    #[inline(always)]
    pub fn fetch_add(&self, _: &impl SingleThread, value: T, ordering: Ordering) -> T {
        // SAFETY: the pointer is valid, and all accesses through `&` are atomic.
        ordered::<S, _>(ordering, || unsafe {
            T::fetch_add(self.value.get(), value, S::NUMBER)
        })
    }

    /// Loads the number.
    ///
    /// # Panics
    ///
    /// If `ordering` is `Release` or `AcqRel`.
    #[inline(always)]
    pub fn load(&self, _: &impl SingleThread, ordering: Ordering) -> T {
        assert!(
            !matches!(ordering, Ordering::Release | Ordering::AcqRel),
            "a load has no release ordering"
        );
        if matches!(ordering, Ordering::SeqCst) {
            Fence::Sequential.execute::<S>();
        }
        // SAFETY: the number is borrowed, and all accesses through `&` are atomic.
        let value = unsafe { T::load(self.value.get(), S::NUMBER) };
        Fence::after(ordering).execute::<S>();
        value
    }

    /// Stores a number.
    ///
    /// # Panics
    ///
    /// If `ordering` is `Acquire` or `AcqRel`.
    #[inline(always)]
    pub fn store(&self, _: &impl SingleThread, value: T, ordering: Ordering) {
        assert!(
            !matches!(ordering, Ordering::Acquire | Ordering::AcqRel),
            "a store has no acquire ordering"
        );
        Fence::before(ordering).execute::<S>();
        // SAFETY: the pointer is valid, and all accesses through `&` are atomic.
        unsafe { T::store(self.value.get(), value, S::NUMBER) };
    }

    /// Returns the number for accesses that need not be atomic, because the caller is the only one
    /// that can access it.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Declares a method that updates the number.
macro_rules! methods {
    ($($(#[$attribute:meta])* $name:ident = $update:ident;)*) => {
        impl<T: AtomicInteger, S: MemoryScope> Atomic<T, S> {
            $(
                $(#[$attribute])*
                #[inline(always)]
                pub fn $name(&self, _: &impl SingleThread, value: T, ordering: Ordering) -> T {
                    // SAFETY: the pointer is valid, and all accesses through `&` are atomic.
                    ordered::<S, _>(ordering, || unsafe { T::update(self.value.get(), Update::$update, value, S::NUMBER) })
                }
            )*
        }
    };
}

methods! {
    /// Replaces the number, and returns the previous value.
    #[doc(alias = "atomicExch")]
    swap = Exchange;
    /// Replaces the number by the bitwise "and" with the value, and returns the previous value.
    #[doc(alias = "atomicAnd")]
    fetch_and = And;
    /// Replaces the number by the bitwise "or" with the value, and returns the previous value.
    #[doc(alias = "atomicOr")]
    fetch_or = Or;
    /// Replaces the number by the bitwise exclusive "or" with the value, and returns the previous
    /// value.
    #[doc(alias = "atomicXor")]
    fetch_xor = Xor;
    /// Replaces the number by the minimum of it and the value, and returns the previous value.
    #[doc(alias = "atomicMin")]
    fetch_min = Min;
    /// Replaces the number by the maximum of it and the value, and returns the previous value.
    #[doc(alias = "atomicMax")]
    fetch_max = Max;
}

impl<T: AtomicInteger + PartialEq, S: MemoryScope> Atomic<T, S> {
    /// Stores `new` if the number is `current`.
    ///
    /// # Errors
    ///
    /// Returns the previous value: in `Ok` if it was `current`, and in `Err` otherwise.
    #[doc(alias = "atomicCAS")]
    #[inline(always)]
    pub fn compare_exchange(
        &self,
        _: &impl SingleThread,
        current: T,
        new: T,
        ordering: Ordering,
    ) -> Result<T, T> {
        // SAFETY: the pointer is valid, and all accesses through `&` are atomic.
        let previous = ordered::<S, _>(ordering, || unsafe {
            T::compare_exchange(self.value.get(), current, new, S::NUMBER)
        });
        if previous == current {
            Ok(previous)
        } else {
            Err(previous)
        }
    }
}

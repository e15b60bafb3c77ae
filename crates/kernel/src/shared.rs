//! Memory that a block owns.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, Pod};

use crate::address::Address;
use crate::atomic::{Atomic, AtomicNumber, BlockScope, MemoryScope};
use crate::block::{Block, BlockCodeOnly};
use crate::elements::Elements;
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::operand::ThreadOperand;
use crate::parameter::{Description, Kind, Parameter, Word};
use crate::synced::Synced;
use crate::thread::Thread;
use crate::tile::Tile;

/// Memory that the threads of a block own together: shared memory, or a part of a buffer that only
/// this block accesses.
///
/// As a parameter, `Shared<[f32; 256]>` or `Shared<Tile<f32, 64, 16>>` is static shared memory
/// (`__shared__`).
///
/// The thread with index `t` in its block owns the elements `t`, `t + THREADS`, … All threads read
/// all elements only within [`Synced::synced`](crate::Synced::synced). Shared memory is not
/// initialized: elements that were not written have unspecified values.
pub struct Shared<T: ?Sized> {
    pointer: Address<T>,
    _not_sync: BlockCodeOnly,
}

/// Atomic counters in shared memory.
pub type Counters<const N: usize> = Shared<[Atomic<u32, BlockScope>; N]>;

impl<T: ?Sized> Shared<T> {
    /// # Safety
    ///
    /// The memory is valid for the lifetime of the kernel, contains values of `T`, and only this
    /// `Shared` of this block accesses it.
    #[inline(always)]
    pub(crate) unsafe fn new(pointer: *mut T) -> Self {
        Self {
            pointer: Address(pointer),
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    #[inline(always)]
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.pointer.0
    }
}

impl<T: SharedType> Shared<T> {
    /// Lets all threads read the memory: a barrier, then `code` with a shared view, then another
    /// barrier. See [`Synced::synced`].
    #[doc(alias = "__syncthreads")]
    #[inline(always)]
    pub fn synced<const X: u32, const Y: u32, const Z: u32, R>(
        &mut self,
        block: &Block<X, Y, Z>,
        code: impl FnOnce(&T) -> R,
    ) -> R {
        Synced::synced(self, block, code)
    }
}

/// Types that static shared memory can contain: [`Tile`](crate::Tile), and arrays of types that are
/// [`AnyBitPattern`] or of [`Atomic`].
///
/// # Safety
///
/// Any bytes are a value, so that uninitialized shared memory has unspecified values. All threads
/// may access the type through `&` at the same time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in shared memory",
    label = "not a type of shared memory",
    note = "shared memory contains arrays `[T; N]` of types for which any bytes are a value (`AnyBitPattern`) or of `Atomic`, or a `Tile`"
)]
pub unsafe trait SharedType: 'static {}

// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: AnyBitPattern, const N: usize> SharedType for [T; N] {}

// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> SharedType
    for Tile<T, ROWS, COLUMNS, PADDING>
{
}

// SAFETY: any bytes are a number, and all accesses through `&` are atomic.
unsafe impl<T: AtomicNumber, S: MemoryScope, const N: usize> SharedType for [Atomic<T, S>; N] {}

/// A static that the compiler of kernels places in shared memory.
#[doc(hidden)]
#[repr(transparent)]
pub struct SharedStatic<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: the static is accessed only through the `Shared` that is created from it.
unsafe impl<T> Sync for SharedStatic<T> {}

impl<T> SharedStatic<T> {
    #[doc(hidden)]
    #[expect(
        clippy::declare_interior_mutable_const,
        reason = "the initial value of statics"
    )]
    pub const UNINIT: Self = Self(UnsafeCell::new(MaybeUninit::uninit()));

    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// Parameters in static shared memory.
///
/// # Safety
///
/// `from_static` uses the static only as its contract allows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not static shared memory",
    label = "expected `Shared<T>`, `Counters<N>` or `Scratch<T>` of this crate",
    note = "a parameter that is spelled `Shared`, `Counters` or `Scratch` is not an argument of a launch"
)]
#[doc(hidden)]
pub unsafe trait StaticShared {
    /// The type of the static.
    type Storage: 'static;

    /// # Safety
    ///
    /// The static is in shared memory, and this is its only use in the kernel.
    unsafe fn from_static(launch: &Launch, memory: &'static SharedStatic<Self::Storage>) -> Self;
}

// SAFETY: the only access to the static is through the result.
unsafe impl<T: SharedType> StaticShared for Shared<T> {
    type Storage = T;

    #[inline(always)]
    unsafe fn from_static(_: &Launch, memory: &'static SharedStatic<T>) -> Self {
        // SAFETY: the caller guarantees it, and any bytes are a `T`.
        unsafe { Self::new(memory.get()) }
    }
}

/// Dynamic shared memory (`extern __shared__`), whose length is an argument of the launch. A kernel
/// has at most one.
pub struct DynamicShared<T> {
    memory: Shared<[T]>,
}

// SAFETY: the launcher reserves the bytes, and `KernelTable::new` checks that a kernel has one such
// parameter.
unsafe impl<T: AnyBitPattern> Parameter for DynamicShared<T> {
    type In<'k> = DynamicShared<T>;
    type First = ();
    type Second = ();
    type Third = ();

    const DESCRIPTION: Description = {
        assert!(
            align_of::<T>() <= 16,
            "dynamic shared memory is aligned to 16 bytes"
        );
        assert!(
            size_of::<T>() > 0,
            "an element of dynamic shared memory has a size"
        );
        Description::new::<T>(Kind::DynamicShared, [Word::ABSENT; 3])
    };

    #[inline(always)]
    unsafe fn from_words(_: &Launch, (): (), (): (), (): ()) -> DynamicShared<T> {
        // SAFETY: reads the address.
        let start = unsafe { device::dynamic_shared() };
        // SAFETY: reads a special register.
        let bytes = unsafe { device::dynamic_shared_size() } as usize;
        let elements = core::ptr::slice_from_raw_parts_mut(start.cast(), bytes / size_of::<T>());
        DynamicShared {
            // SAFETY: the memory has that many bytes, any bytes are a `T`, and this is the kernel's
            // only dynamic shared memory.
            memory: unsafe { Shared::new(elements) },
        }
    }
}

// SAFETY: threads own different elements, by their index modulo the number of threads.
unsafe impl<'a, T, const N: usize, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut Shared<[T; N]>
{
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Elements<'a, T> {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { crate::thread::index_in_block::<X, Y, Z>() };
        // SAFETY: the memory is borrowed mutably, and other threads own other elements.
        unsafe {
            Elements::new(
                self.as_ptr().cast(),
                N,
                thread,
                Block::<X, Y, Z>::THREADS,
                true,
            )
        }
    }
}

// SAFETY: threads own different elements, by their index modulo the number of threads.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut Shared<[T]>
{
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Elements<'a, T> {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { crate::thread::index_in_block::<X, Y, Z>() };
        // SAFETY: the memory is borrowed mutably, and other threads own other elements.
        unsafe {
            Elements::new(
                self.as_ptr().cast(),
                self.as_ptr().len(),
                thread,
                Block::<X, Y, Z>::THREADS,
                false,
            )
        }
    }
}

impl<T: AnyBitPattern, const N: usize> Shared<[T; N]> {
    /// Writes each element, in the thread that owns it. No barrier.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, usize) -> T + Sync,
    ) {
        block.threads_with(self, |t, elements| {
            elements
                .into_iter()
                .for_each(|(index, element)| *element = value(t, index));
        });
    }

    /// Runs steps on pairs of elements. A barrier stands before the first step and after each.
    #[inline(always)]
    pub fn pairs<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        code: impl FnOnce(&mut Pairs<'_, T, X, Y, Z>),
    ) {
        const { assert!(N <= 1 << 31, "an array of pairs has at most 2^31 elements") };
        block.barrier();
        code(&mut Pairs {
            start: Address(self.as_ptr().cast()),
            len: N as u32,
            block,
        });
    }
}

/// Implements memory of a block whose length is known at run time. The type has a field
/// `memory: Shared<[T]>`, which safe code cannot exchange for the memory of a value with another
/// lifetime.
macro_rules! slice_memory {
    ($ty:ty) => {
        impl<T: bytemuck::AnyBitPattern> $ty {
            /// Returns the number of elements.
            #[inline(always)]
            #[must_use]
            pub fn len(&self) -> usize {
                self.memory.as_ptr().len()
            }

            /// Returns `true` if there are no elements.
            #[inline(always)]
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Lets all threads read the memory: a barrier, then `code` with a shared view, then
            /// another barrier. See [`Synced::synced`](crate::Synced::synced).
            #[doc(alias = "__syncthreads")]
            #[inline(always)]
            pub fn synced<const X: u32, const Y: u32, const Z: u32, R>(
                &mut self,
                block: &$crate::Block<X, Y, Z>,
                code: impl FnOnce(&[T]) -> R,
            ) -> R {
                $crate::Synced::synced(self, block, code)
            }

            /// Writes each element, in the thread that owns it. No barrier.
            #[inline(always)]
            pub fn fill<const X: u32, const Y: u32, const Z: u32>(
                &mut self,
                block: &$crate::Block<X, Y, Z>,
                value: impl Fn(&$crate::Thread, usize) -> T + Sync,
            ) {
                block.threads_with(self, |t, elements| {
                    for (index, element) in elements {
                        *element = value(t, index);
                    }
                });
            }
        }

        // SAFETY: the elements are those of the memory, of which each thread owns its own.
        unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32>
            $crate::operand::ThreadOperand<X, Y, Z> for &'a mut $ty
        {
            type Part = $crate::Elements<'a, T>;

            #[inline(always)]
            unsafe fn thread_part(self) -> $crate::Elements<'a, T> {
                // SAFETY: only code of the running thread receives the elements, in a block of
                // these dimensions.
                unsafe { $crate::operand::ThreadOperand::<X, Y, Z>::thread_part(&mut self.memory) }
            }
        }

        // SAFETY: the memory is borrowed mutably, so no thread writes it while the view exists.
        unsafe impl<T: bytemuck::AnyBitPattern> $crate::Synced for &mut $ty {
            type View<'v> = &'v [T];

            #[inline(always)]
            unsafe fn view<'v>(self) -> &'v [T] {
                // SAFETY: any bytes are a `T`, and nobody writes them while they are borrowed.
                unsafe { &*self.memory.as_ptr() }
            }
        }
    };
}
pub(crate) use slice_memory;

slice_memory!(DynamicShared<T>);

impl<T: AtomicNumber, S: MemoryScope, const N: usize> Shared<[Atomic<T, S>; N]> {
    /// Writes each number, in the thread that owns it. No barrier.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, usize) -> T + Sync,
    ) {
        block.threads_with(self, |t, numbers| {
            numbers
                .into_iter()
                .for_each(|(index, number)| *number.get_mut() = value(t, index));
        });
    }
}

/// Steps on pairs of elements of an array, as in a sorting network. See `Shared::pairs`.
pub struct Pairs<'a, T, const X: u32, const Y: u32, const Z: u32> {
    start: Address<T>,
    len: u32,
    block: &'a Block<X, Y, Z>,
}

impl<T, const X: u32, const Y: u32, const Z: u32> Pairs<'_, T, X, Y, Z> {
    /// Passes each pair of elements whose indices differ only in the bit `stride` to one thread,
    /// with the lower index. One barrier.
    ///
    /// # Panics
    ///
    /// If `stride` is not a power of two.
    #[inline(always)]
    pub fn step(&mut self, stride: usize, code: impl Fn(usize, &mut T, &mut T) + Sync) {
        assert!(stride.is_power_of_two(), "the stride is a power of two");
        if stride < self.len as usize {
            // The stride is a power of two, so it and the indices are at most 2³¹.
            let stride = stride as u32;
            let threads = Block::<X, Y, Z>::THREADS as u32;
            let thread = self.block.index_in_block() as u32;
            for round in 0..(self.len / 2).div_ceil(threads) {
                let pair = thread + round * threads;
                // Inserts a zero at the bit `stride`. No pair has an index in common with another.
                let low = 2 * pair - (pair & (stride - 1));
                let high = low + stride;
                let is_in_bounds = if self.len.is_power_of_two() {
                    // A zero that is inserted into a number below half of the length.
                    (self.len / 2).is_multiple_of(threads) || pair < self.len / 2
                } else {
                    high < self.len
                };
                if is_in_bounds {
                    // SAFETY: the index is in bounds.
                    let first = unsafe { self.start.add(low as usize) };
                    // SAFETY: the index is in bounds, and no other pair has it.
                    let low_element = unsafe { first.get_mut(0) };
                    // SAFETY: this is the index `high`, which is in bounds, no other pair has, and
                    // is not `low`.
                    let high_element = unsafe { first.get_mut(stride as usize) };
                    code(low as usize, low_element, high_element);
                }
            }
        }
        self.block.barrier();
    }
}

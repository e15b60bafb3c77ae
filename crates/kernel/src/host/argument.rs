//! Arguments of launches.

use bytemuck::AnyBitPattern;
use curium_driver::hazard::Operation;
use curium_driver::{Argument as DriverArgument, Result};
use curium_memory::{DeviceSlice, DeviceView, DeviceViewMut};

use crate::atomic::{Atomic, AtomicNumber, GridScope};
use crate::by_value::ByValue;
use crate::grid::{GridPerBlock, GridShared};
use crate::matrix::Matrix;
use crate::output::{
    PerBlock, PerBlockChunk, PerBlockRow, PerBlockTile, PerThread, PerThreadChunk, PerWarpChunk,
    PerWarpPlaneTile, PerWarpTile,
};
use crate::parameter::Parameter;
use crate::shared::DynamicShared;
use crate::tma::{RingStage, TmaRing, ring_bytes};
use crate::warpgroup::PerWarpGroupTile;

/// The words of a parameter.
#[doc(hidden)]
pub struct Words<P: Parameter> {
    pub(crate) first: P::First,
    pub(crate) second: P::Second,
    pub(crate) third: P::Third,
}

/// A value that a launch can pass for the parameter `P` of a kernel.
///
/// | parameter | argument |
/// |---|---|
/// | a [`ByValue`] type | exactly that type |
/// | `&[T]` | `&buffer`, `&view`, or a view |
/// | `PerThread<T>`, `PerThreadChunk<T, N>`, `PerBlock<T>`, `PerBlockChunk<T, N>`, `PerWarpChunk<T, N>`, `PerWarpTile<…>`, `&[Atomic<T>]`, `GridShared<T>`, `GridPerBlock<T>` | `&mut buffer`, or a mutable view |
/// | `Matrix<T>`, `TensorMap<…>` | [`RowMajor`] of what `&[T]` takes |
/// | `PerBlockRow<T>`, `PerBlockTile<…>`, `PerWarpPlaneTile<…>`, `PerWarpGroupTile<…>`, `PerBlockTensor<…>` | [`RowMajor`] of what `PerThread<T>` takes |
/// | `Texture2D<T>`, … | `&Texture` |
/// | `Surface2D<T>` | `&Surface` |
/// | `DynamicShared<T>` | the number of elements in each block, as `usize` |
/// | `TmaRing<S>` | the number of stages, as `usize`, at least 2 |
///
/// # Safety
///
/// The prepared argument satisfies the contract of the parameter while the kernel runs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the kernel parameter `{P}`",
    label = "does not match the parameter `{P}`",
    note = "for `&[T]`, pass `&buffer` or a view; for an output or `&[Atomic<T>]`, pass `&mut buffer` or a mutable view; the element type must be `T`",
    note = "for `Matrix<T>`, `TensorMap<…>`, `PerBlockRow<T>` and `PerBlockTile<…>`, pass `RowMajor::new(…, rows, columns)`",
    note = "for a number, pass exactly that type: `3_u32` for `u32`, `1.0_f32` for `f32`"
)]
pub unsafe trait Argument<P: Parameter> {
    /// The argument, once its size was checked.
    #[doc(hidden)]
    type Prepared: PreparedArgument<P>;

    /// Checks the size of the argument. The error is the reason.
    #[doc(hidden)]
    fn prepare(self) -> Result<Self::Prepared, String>;
}

/// An argument whose size was checked.
///
/// # Safety
///
/// [`PreparedArgument::bind`] returns words for which the parameter is sound while the kernel runs
/// on the operation's stream.
#[doc(hidden)]
pub unsafe trait PreparedArgument<P: Parameter> {
    /// Makes the operation's stream wait for conflicting accesses, and returns the words.
    ///
    /// # Safety
    ///
    /// As for [`curium_driver::Argument::bind`].
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<Words<P>>;

    /// Records that the kernel was enqueued.
    ///
    /// # Safety
    ///
    /// As for [`curium_driver::Argument::launched`].
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);

    /// The dynamic shared memory that the argument requests, in bytes.
    fn shared_bytes(&self) -> u32 {
        0
    }

    /// The array behind a texture or a surface.
    fn image(&self) -> Option<ImageAccess> {
        None
    }
}

/// An array behind a texture or a surface. Arrays are shared, so that the borrow does not show that
/// two arguments are of the same.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ImageAccess {
    pub(crate) array: usize,
    pub(crate) is_written: bool,
}

/// A buffer or view with `rows * columns` elements, stored row by row: the argument for matrices.
#[derive(Clone, Copy, Debug)]
pub struct RowMajor<B> {
    buffer: B,
    rows: usize,
    columns: usize,
}

impl<B> RowMajor<B> {
    /// Creates the argument from `&buffer`, `&mut buffer` or a view. The launch checks the number
    /// of elements.
    #[must_use]
    pub fn new(buffer: B, rows: usize, columns: usize) -> Self {
        Self {
            buffer,
            rows,
            columns,
        }
    }
}

impl<B> RowMajor<B> {
    /// Returns the buffer, the rows and the columns.
    pub(super) fn into_parts(self) -> (B, usize, usize) {
        (self.buffer, self.rows, self.columns)
    }
}

/// A number that is passed by value.
#[doc(hidden)]
pub struct Value<T>(T);

// SAFETY: the value is passed unchanged, which `ByValue` allows.
unsafe impl<T: ByValue> Argument<T> for T {
    type Prepared = Value<T>;

    fn prepare(self) -> Result<Value<T>, String> {
        Ok(Value(self))
    }
}

// SAFETY: the value is passed unchanged, which `ByValue` allows.
unsafe impl<T: ByValue> PreparedArgument<T> for Value<T> {
    unsafe fn bind(&mut self, _: &mut Operation<'_>) -> Result<Words<T>> {
        Ok(Words {
            first: self.0,
            second: (),
            third: (),
        })
    }

    unsafe fn launched(&mut self, _: &mut Operation<'_>) {}
}

/// The number of bytes of dynamic shared memory.
#[doc(hidden)]
pub struct SharedBytes(u32);

// SAFETY: the launch reserves the bytes.
unsafe impl<T: AnyBitPattern> Argument<DynamicShared<T>> for usize {
    type Prepared = SharedBytes;

    fn prepare(self) -> Result<SharedBytes, String> {
        let bytes = self
            .checked_mul(size_of::<T>())
            .and_then(|bytes| u32::try_from(bytes).ok());
        bytes.map(SharedBytes).ok_or_else(|| {
            format!(
                "{self} elements of {} bytes do not fit in shared memory",
                size_of::<T>()
            )
        })
    }
}

// SAFETY: the kernel reads the size from a special register.
unsafe impl<T: AnyBitPattern> PreparedArgument<DynamicShared<T>> for SharedBytes {
    unsafe fn bind(&mut self, _: &mut Operation<'_>) -> Result<Words<DynamicShared<T>>> {
        Ok(Words {
            first: (),
            second: (),
            third: (),
        })
    }

    unsafe fn launched(&mut self, _: &mut Operation<'_>) {}

    fn shared_bytes(&self) -> u32 {
        self.0
    }
}

// SAFETY: the launch reserves the bytes of the stages.
unsafe impl<S: RingStage> Argument<TmaRing<S>> for usize {
    type Prepared = SharedBytes;

    fn prepare(self) -> Result<SharedBytes, String> {
        if self < 2 {
            return Err(format!("{self} stages: a ring has at least two"));
        }
        ring_bytes::<S>(self)
            .map(SharedBytes)
            .ok_or_else(|| format!("{self} stages do not fit in shared memory"))
    }
}

// SAFETY: the kernel computes the number of stages from the size, which it reads from a special
// register.
unsafe impl<S: RingStage> PreparedArgument<TmaRing<S>> for SharedBytes {
    unsafe fn bind(&mut self, _: &mut Operation<'_>) -> Result<Words<TmaRing<S>>> {
        Ok(Words {
            first: (),
            second: (),
            third: (),
        })
    }

    unsafe fn launched(&mut self, _: &mut Operation<'_>) {}

    fn shared_bytes(&self) -> u32 {
        self.0
    }
}

/// A view of device memory, of which a kernel receives the address and the length or the sizes.
///
/// # Safety
///
/// `bind` and `launched` track accesses of the kind that the view allows, to memory of `len`
/// elements.
#[doc(hidden)]
pub unsafe trait View {
    /// Returns the number of elements.
    fn len(&self) -> usize;

    /// Returns the address.
    ///
    /// # Safety
    ///
    /// As for [`PreparedArgument::bind`].
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<u64>;

    /// # Safety
    ///
    /// As for [`PreparedArgument::launched`].
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);
}

// SAFETY: the memory is borrowed, and the driver's argument tracks reads.
unsafe impl<T> View for DeviceView<'_, T> {
    fn len(&self) -> usize {
        DeviceSlice::len(self)
    }

    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<u64> {
        // SAFETY: the caller calls `launched` before it uses the argument again, if the kernel is
        // enqueued.
        unsafe { DriverArgument::<&[T]>::bind(self, operation) }
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller has bound the argument with the same operation, and not used it since.
        unsafe { DriverArgument::<&[T]>::launched(self, operation) };
    }
}

// SAFETY: the memory is borrowed mutably, and the driver's argument tracks writes.
unsafe impl<T> View for DeviceViewMut<'_, T> {
    fn len(&self) -> usize {
        DeviceSlice::len(self)
    }

    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<u64> {
        // SAFETY: the caller calls `launched` before it uses the argument again, if the kernel is
        // enqueued.
        unsafe { DriverArgument::<&mut [T]>::bind(self, operation) }
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: the caller has bound the argument with the same operation, and not used it since.
        unsafe { DriverArgument::<&mut [T]>::launched(self, operation) };
    }
}

/// A view, passed as its address and its length.
#[doc(hidden)]
pub struct Linear<V>(V);

/// A view, passed as its address and the sizes of a matrix.
#[doc(hidden)]
pub struct MatrixView<V> {
    view: V,
    rows: u32,
    columns: u32,
}

/// Returns the address that a kernel receives. Empty memory has none, but a slice is never null.
fn non_null<T>(address: u64) -> usize {
    if address == 0 {
        return align_of::<T>();
    }
    address as usize
}

/// Returns an error unless the memory is aligned for `T`.
fn check_alignment<T>(address: u64) -> Result<(), String> {
    if address.is_multiple_of(align_of::<T>() as u64) {
        return Ok(());
    }
    Err(format!(
        "the address {address:#x} is not aligned to {} bytes",
        align_of::<T>()
    ))
}

/// Returns an error unless the elements are whole rows.
fn check_rows(len: usize, columns: usize) -> Result<(), String> {
    if len.is_multiple_of(columns) {
        return Ok(());
    }
    Err(format!(
        "{len} elements are not whole rows of {columns} columns"
    ))
}

impl<V: View> MatrixView<V> {
    /// Checks the sizes of a matrix.
    fn new(view: V, rows: usize, columns: usize) -> Result<Self, String> {
        if rows.checked_mul(columns) != Some(view.len()) {
            return Err(format!(
                "{rows} rows of {columns} columns are not the buffer's {} elements",
                view.len()
            ));
        }
        match (u32::try_from(rows), u32::try_from(columns)) {
            (Ok(rows), Ok(columns)) => Ok(Self {
                view,
                rows,
                columns,
            }),
            _ => Err(format!(
                "{rows} rows of {columns} columns: a size is at most {}",
                u32::MAX
            )),
        }
    }
}

/// Implements arguments for a parameter that is passed as address and length.
macro_rules! linear {
    ([$($generics:tt)*] $parameter:ty, $element:ty, rows of $columns:expr, $view:ident, $trait:ident, $method:ident, $whole:ident, $($reference:tt)*) => {
        // SAFETY: the view borrows the memory as the parameter requires.
        unsafe impl<'b, $($generics)*, B: $trait<DeviceSlice<$element>> + ?Sized> Argument<$parameter> for $($reference)* B {
            type Prepared = Linear<$view<'b, $element>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                Argument::<$parameter>::prepare(self.$method().$whole())
            }
        }

        // SAFETY: the view borrows the memory as the parameter requires.
        unsafe impl<'b, $($generics)*> Argument<$parameter> for $view<'b, $element> {
            type Prepared = Linear<$view<'b, $element>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                check_alignment::<$element>(self.as_pointer().as_raw())?;
                check_rows(View::len(&self), $columns)?;
                Ok(Linear(self))
            }
        }

        // SAFETY: the words are the address and the length of the view.
        unsafe impl<'b, $($generics)*> PreparedArgument<$parameter> for Linear<$view<'b, $element>> {
            unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<Words<$parameter>> {
                Ok(Words {
                    // SAFETY: the caller calls `launched` before it uses the argument again, if the
                    // kernel is enqueued.
                    first: non_null::<$element>(unsafe { View::bind(&mut self.0, operation) }?) as _,
                    second: View::len(&self.0),
                    third: (),
                })
            }

            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                // SAFETY: the caller has bound the argument with the same operation, and not used
                // it since.
                unsafe { View::launched(&mut self.0, operation) };
            }
        }
    };
}

linear!(['k, T: AnyBitPattern] &'k [T], T, rows of 1, DeviceView, AsRef, as_ref, view, &'b);
linear!([T: AnyBitPattern] PerThread<T>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern, const N: usize] PerThreadChunk<T, N>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern, const N: usize] PerBlockChunk<T, N>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern, const N: usize] PerWarpChunk<T, N>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern] GridPerBlock<T>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern] GridShared<T>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!([T: AnyBitPattern] PerBlock<T>, T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
linear!(['k, T: AtomicNumber, S: GridScope] &'k [Atomic<T, S>], T, rows of 1, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);

linear!([T: AnyBitPattern, const R: usize, const C: usize] PerWarpTile<T, R, C>, T, rows of C, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);

/// Implements arguments for a parameter that is passed as address, rows and columns.
macro_rules! matrix {
    ([$($generics:tt)*] $parameter:ty, $view:ident, $trait:ident, $method:ident, $whole:ident, $($reference:tt)*) => {
        // SAFETY: the view borrows the memory as the parameter requires.
        unsafe impl<'b, $($generics)*, B: $trait<DeviceSlice<T>> + ?Sized> Argument<$parameter> for RowMajor<$($reference)* B> {
            type Prepared = MatrixView<$view<'b, T>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                let view = RowMajor::new(self.buffer.$method().$whole(), self.rows, self.columns);
                Argument::<$parameter>::prepare(view)
            }
        }

        // SAFETY: the view borrows the memory as the parameter requires.
        unsafe impl<'b, $($generics)*> Argument<$parameter> for RowMajor<$view<'b, T>> {
            type Prepared = MatrixView<$view<'b, T>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                check_alignment::<T>(self.buffer.as_pointer().as_raw())?;
                MatrixView::new(self.buffer, self.rows, self.columns)
            }
        }

        // SAFETY: the words are the address of the view and the sizes, whose product is its length.
        unsafe impl<'b, $($generics)*> PreparedArgument<$parameter> for MatrixView<$view<'b, T>> {
            unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<Words<$parameter>> {
                Ok(Words {
                    // SAFETY: the caller calls `launched` before it uses the argument again, if the
                    // kernel is enqueued.
                    first: non_null::<T>(unsafe { View::bind(&mut self.view, operation) }?) as _,
                    second: self.rows,
                    third: self.columns,
                })
            }

            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                // SAFETY: the caller has bound the argument with the same operation, and not used
                // it since.
                unsafe { View::launched(&mut self.view, operation) };
            }
        }
    };
}

matrix!([T: AnyBitPattern] Matrix<T>, DeviceView, AsRef, as_ref, view, &'b);
matrix!([T: AnyBitPattern, const C: usize] PerWarpGroupTile<T, C>, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
matrix!([T: AnyBitPattern] PerBlockRow<T>, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
matrix!([T: AnyBitPattern, const R: usize, const C: usize] PerBlockTile<T, R, C>, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);
matrix!([T: AnyBitPattern, const R: usize, const C: usize, const A: usize] PerWarpPlaneTile<T, R, C, A>, DeviceViewMut, AsMut, as_mut, view_mut, &'b mut);

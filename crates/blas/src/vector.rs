//! Views of vectors in device memory.

use std::fmt;

use curium_memory::{DeviceSlice, DeviceView, DeviceViewMut};

use crate::error::{Result, ShapeError};
use crate::operand::operand;

/// A vector in device memory that an operation reads: elements at equal distances.
pub struct Vector<'a, T> {
    slice: DeviceView<'a, T>,
    len: usize,
    stride: usize,
}

/// A vector in device memory that an operation writes.
pub struct VectorMut<'a, T> {
    slice: DeviceViewMut<'a, T>,
    len: usize,
    stride: usize,
}

impl<'a, T> Vector<'a, T> {
    /// Creates a view of all elements of `memory`.
    #[must_use]
    pub fn new(memory: &'a DeviceSlice<T>) -> Self {
        let slice = memory.view();
        Self {
            slice,
            len: slice.len(),
            stride: 1,
        }
    }

    /// Creates a view of `len` elements at a distance of `stride`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the distance is 0 or the last element is out of
    /// bounds.
    pub fn strided(memory: &'a DeviceSlice<T>, len: usize, stride: usize) -> Result<Self> {
        let slice = memory.view();
        check("Vector::strided", slice.len(), len, stride)?;
        Ok(Self { slice, len, stride })
    }
}

impl<'a, T> VectorMut<'a, T> {
    /// Creates a view of all elements of `memory`.
    #[must_use]
    pub fn new(memory: &'a mut DeviceSlice<T>) -> Self {
        let slice = memory.view_mut();
        Self {
            len: slice.len(),
            slice,
            stride: 1,
        }
    }

    /// Creates a view of `len` elements at a distance of `stride`.
    ///
    /// # Errors
    ///
    /// As for [`Vector::strided`].
    pub fn strided(memory: &'a mut DeviceSlice<T>, len: usize, stride: usize) -> Result<Self> {
        let slice = memory.view_mut();
        check("VectorMut::strided", slice.len(), len, stride)?;
        Ok(Self { slice, len, stride })
    }
}

/// Methods that both kinds of views have.
macro_rules! vector {
    ($view:ident, $slice:ty, $name:literal) => {
        impl<T> $view<'_, T> {
            /// Returns the number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.len
            }

            /// Returns `true` if there is no element.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns the distance of the elements.
            #[must_use]
            pub fn stride(&self) -> usize {
                self.stride
            }
        }

        impl<T> fmt::Debug for $view<'_, T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    formatter,
                    concat!($name, "({} elements, stride {})"),
                    self.len, self.stride
                )
            }
        }

        operand!($view, $slice);
    };
}

vector!(Vector, &[T], "Vector");
vector!(VectorMut, &mut [T], "VectorMut");

impl<T> Clone for Vector<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Vector<'_, T> {}

fn check(operation: &'static str, available: usize, len: usize, stride: usize) -> Result<()> {
    if stride == 0 {
        return Err(ShapeError::refused(operation, "the stride is 0"));
    }
    let span = len
        .checked_sub(1)
        .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(1));
    if span.is_some_and(|span| span <= available) {
        return Ok(());
    }
    let problem = format!(
        "memory too small for the vector ({len} elements, stride {stride}, {available} available)"
    );
    Err(ShapeError::refused(operation, problem))
}

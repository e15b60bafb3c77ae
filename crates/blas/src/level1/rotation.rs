//! Rotations of points, whose coordinates are the elements of two vectors.

use super::{HOST, same_len};
use crate::Blas;
use crate::element::{Element, RealElement};
use crate::error::Result;
use crate::operand::Aligned;
use crate::operand::sealed::Factor as _;
use crate::vector::VectorMut;

/// A Givens rotation, as [`Blas::rotg`] computes it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rotation<T: Element> {
    /// The cosine.
    pub cosine: T::Real,
    /// The sine.
    pub sine: T,
    /// The first coordinate of the rotated point. The second is 0.
    pub length: T,
}

/// The matrix of a modified Givens rotation, as [`Blas::rotmg`] computes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModifiedRotation<T> {
    /// The identity.
    Identity,
    /// A matrix with four stored elements.
    Full {
        /// The element in the first row and the first column.
        h11: T,
        /// The element in the second row and the first column.
        h21: T,
        /// The element in the first row and the second column.
        h12: T,
        /// The element in the second row and the second column.
        h22: T,
    },
    /// A matrix whose diagonal elements are 1.
    UnitDiagonal {
        /// The element in the second row and the first column.
        h21: T,
        /// The element in the first row and the second column.
        h12: T,
    },
    /// A matrix whose other elements are 1 in the first row and −1 in the second.
    UnitAntidiagonal {
        /// The element in the first row and the first column.
        h11: T,
        /// The element in the second row and the second column.
        h22: T,
    },
}

impl<T: RealElement> ModifiedRotation<T> {
    /// Returns the elements of the matrix by rows.
    #[must_use]
    pub fn matrix(self) -> [[T; 2]; 2] {
        match self {
            Self::Identity => [[T::ONE, T::ZERO], [T::ZERO, T::ONE]],
            Self::Full { h11, h21, h12, h22 } => [[h11, h12], [h21, h22]],
            Self::UnitDiagonal { h21, h12 } => [[T::ONE, h12], [h21, T::ONE]],
            Self::UnitAntidiagonal { h11, h22 } => [[h11, T::ONE], [T::from(-1_i8), h22]],
        }
    }

    /// Converts to cuBLAS's array: a flag, and the elements by columns.
    fn to_parameters(self) -> [T; 5] {
        let flag: i8 = match self {
            Self::Identity => -2,
            Self::Full { .. } => -1,
            Self::UnitDiagonal { .. } => 0,
            Self::UnitAntidiagonal { .. } => 1,
        };
        let [[h11, h12], [h21, h22]] = self.matrix();
        [T::from(flag), h11, h21, h12, h22]
    }

    /// Converts from cuBLAS's array, which does not contain the elements that the flag determines.
    fn from_parameters([flag, h11, h21, h12, h22]: [T; 5]) -> Self {
        if flag == T::from(-2_i8) {
            Self::Identity
        } else if flag == T::from(-1_i8) {
            Self::Full { h11, h21, h12, h22 }
        } else if flag == T::ZERO {
            Self::UnitDiagonal { h21, h12 }
        } else {
            Self::UnitAntidiagonal { h11, h22 }
        }
    }
}

impl Blas {
    /// Rotates the points (`x`, `y`): `x` becomes `cosine` · `x` + `sine` · `y`, and `y` becomes
    /// `cosine` · `y` − conj(`sine`) · `x`.
    ///
    /// CUDA: `cublas<t>rot`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasSrot")]
    pub fn rot<T: Element>(
        &mut self,
        x: &mut VectorMut<'_, T>,
        y: &mut VectorMut<'_, T>,
        cosine: T::Real,
        sine: T,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::rot";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        let cosine = Aligned(cosine);
        let sine = Aligned(sine);
        let cosine = cosine.pointer();
        let sine = sine.pointer();
        self.enqueue(OPERATION, HOST, (x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the factors are on this
            // stack.
            unsafe { T::rot(api, raw, n, x_ptr, incx, y_ptr, incy, cosine, sine) }
        })
    }

    /// Rotates the points (`x`, `y`) by a real sine: `x` becomes `cosine` · `x` + `sine` · `y`, and
    /// `y` becomes `cosine` · `y` − `sine` · `x`.
    ///
    /// CUDA: `cublas<t>rot`, `cublasCsrot`, `cublasZdrot`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasCsrot")]
    pub fn rot_real<T: Element>(
        &mut self,
        x: &mut VectorMut<'_, T>,
        y: &mut VectorMut<'_, T>,
        cosine: T::Real,
        sine: T::Real,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::rot_real";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        let cosine = cosine.pointer();
        let sine = sine.pointer();
        self.enqueue(OPERATION, HOST, (x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the factors are on this
            // stack.
            unsafe { T::rot_real(api, raw, n, x_ptr, incx, y_ptr, incy, cosine, sine) }
        })
    }

    /// Returns the rotation that turns the point (`a`, `b`) to a second coordinate of 0. The host
    /// computes it.
    ///
    /// CUDA: `cublas<t>rotg`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasSrotg")]
    pub fn rotg<T: Element>(&mut self, a: T, b: T) -> Result<Rotation<T>> {
        let mut a = Aligned(a);
        let mut b = Aligned(b);
        let mut cosine = Aligned(T::Real::ZERO);
        let mut sine = Aligned(T::ZERO);
        let first = (&raw mut a.0).cast();
        let second = (&raw mut b.0).cast();
        let to_cosine = (&raw mut cosine.0).cast();
        let to_sine = (&raw mut sine.0).cast();
        self.set_pointer_mode(HOST)?;
        // SAFETY: the coordinates and the results are on this stack.
        self.configure(|api, raw| unsafe { T::rotg(api, raw, first, second, to_cosine, to_sine) })?;
        Ok(Rotation {
            cosine: cosine.0,
            sine: sine.0,
            length: a.0,
        })
    }

    /// Multiplies the points (`x`, `y`) by the matrix of a modified rotation.
    ///
    /// CUDA: `cublas<t>rotm`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the lengths differ.
    #[doc(alias = "cublasSrotm")]
    pub fn rotm<T: RealElement>(
        &mut self,
        x: &mut VectorMut<'_, T>,
        y: &mut VectorMut<'_, T>,
        rotation: ModifiedRotation<T>,
    ) -> Result<()> {
        const OPERATION: &str = "Blas::rotm";
        same_len(OPERATION, x.len(), y.len())?;
        if x.is_empty() {
            return Ok(());
        }
        let n = x.len();
        let x_ptr = x.as_ptr();
        let y_ptr = y.as_ptr();
        let incx = x.stride();
        let incy = y.stride();
        let parameters = rotation.to_parameters();
        let parameters = (&raw const parameters).cast();
        self.enqueue(OPERATION, HOST, (x, y), |api, raw| {
            // SAFETY: both vectors have `n` elements in live memory, and the five parameters are on
            // this stack.
            unsafe { T::rotm(api, raw, n, x_ptr, incx, y_ptr, incy, parameters) }
        })
    }

    /// Returns the modified rotation that turns the point (√`d1` · `x1`, √`d2` · `y1`) to a second
    /// coordinate of 0, and updates the scale factors `d1` and `d2` and the coordinate `x1`. The
    /// host computes it.
    ///
    /// CUDA: `cublas<t>rotmg`.
    ///
    /// # Errors
    ///
    /// An error of the library. `d1`, `d2` and `x1` may be changed then.
    #[doc(alias = "cublasSrotmg")]
    pub fn rotmg<T: RealElement>(
        &mut self,
        d1: &mut T,
        d2: &mut T,
        x1: &mut T,
        y1: T,
    ) -> Result<ModifiedRotation<T>> {
        let d1 = (&raw mut *d1).cast();
        let d2 = (&raw mut *d2).cast();
        let x1 = (&raw mut *x1).cast();
        let mut parameters = [T::ZERO; 5];
        let y1 = y1.pointer();
        let to = (&raw mut parameters).cast();
        self.set_pointer_mode(HOST)?;
        // SAFETY: the scale factors and the coordinates are valid for reads and writes, and the
        // five parameters are on this stack.
        self.configure(|api, raw| unsafe { T::rotmg(api, raw, d1, d2, x1, y1, to) })?;
        Ok(ModifiedRotation::from_parameters(parameters))
    }
}

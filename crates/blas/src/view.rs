//! The methods that several kinds of views of matrices have.

/// Implements the methods of a view with the fields `slice` and `stored` whose transposition
/// changes `stored` only.
macro_rules! matrix_view {
    ($view:ident) => {
        impl<T> $view<'_, T> {
            /// Returns the number of rows.
            #[must_use]
            pub fn rows(&self) -> usize {
                self.stored.rows()
            }

            /// Returns the number of columns.
            #[must_use]
            pub fn columns(&self) -> usize {
                self.stored.columns()
            }

            /// Returns the transposition.
            #[must_use]
            pub fn transposed(mut self) -> Self {
                self.stored.is_transposed ^= true;
                self
            }
        }
    };
}
pub(crate) use matrix_view;

/// Implements the conjugation of a view with a field `stored`.
macro_rules! conjugation {
    ($view:ident) => {
        impl<T: $crate::Element> $view<'_, T> {
            /// Returns the matrix of the complex conjugates; the same for real elements.
            ///
            /// cuBLAS conjugates a matrix only if it also transposes it: a product accepts the
            /// conjugates of a matrix by rows, or of a transposition.
            #[must_use]
            pub fn conjugated(mut self) -> Self {
                self.stored.is_conjugated ^= T::IS_COMPLEX;
                self
            }

            /// Returns the conjugate transposition, also called adjoint.
            #[must_use]
            pub fn adjoint(self) -> Self {
                self.transposed().conjugated()
            }
        }
    };
}
pub(crate) use conjugation;

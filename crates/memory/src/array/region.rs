//! A box of an array.

use curium_driver::{Error, Result};

use super::ArrayShape;

/// A box of an array: its first element, row and layer, and how many of each there are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayRegion {
    /// The first element of a row, the first row, the first layer.
    pub origin: [usize; 3],
    /// The elements of a row, the rows, the layers.
    pub extent: [usize; 3],
}

impl ArrayRegion {
    /// All of a shape.
    #[must_use]
    #[inline]
    pub const fn whole(shape: ArrayShape) -> Self {
        Self { origin: [0; 3], extent: [shape.width(), shape.rows(), shape.layers()] }
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        let [width, rows, layers] = self.extent;
        width.saturating_mul(rows).saturating_mul(layers)
    }

    /// Whether there is no element.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An error unless the region has elements, all of which lie in the shape.
    #[inline]
    pub(super) fn check(&self, operation: &'static str, shape: ArrayShape) -> Result<()> {
        let bounds = [shape.width(), shape.rows(), shape.layers()];
        let ends = self.origin.iter().zip(self.extent).map(|(origin, extent)| origin.checked_add(extent));
        let is_within = ends.zip(bounds).all(|(end, bound)| end.is_some_and(|end| end <= bound));
        if is_within && !self.is_empty() {
            return Ok(());
        }
        let (extent, origin) = (self.extent, self.origin);
        Err(Error::argument(operation, format!("region out of bounds ({extent:?} elements at {origin:?} of {shape})")))
    }
}

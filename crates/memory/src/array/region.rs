//! Regions of arrays.

use curium_driver::{Error, Result};

use super::ArrayShape;

/// A region of an array: its first element, row and layer, and its extent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ArrayRegion {
    /// The first element, row and layer.
    pub origin: [usize; 3],
    /// The number of elements per row, rows, and layers.
    pub extent: [usize; 3],
}

impl ArrayRegion {
    /// Returns the region that covers a shape.
    #[must_use]
    pub const fn whole(shape: ArrayShape) -> Self {
        Self {
            origin: [0; 3],
            extent: [shape.width(), shape.rows(), shape.layers()],
        }
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        let [width, rows, layers] = self.extent;
        width.saturating_mul(rows).saturating_mul(layers)
    }

    /// Returns `true` if the region is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an error unless the region is not empty and in bounds.
    pub(super) fn check(&self, operation: &'static str, shape: ArrayShape) -> Result<()> {
        let bounds = [shape.width(), shape.rows(), shape.layers()];
        let ends = self
            .origin
            .iter()
            .zip(self.extent)
            .map(|(origin, extent)| origin.checked_add(extent));
        let is_within = ends
            .zip(bounds)
            .all(|(end, bound)| end.is_some_and(|end| end <= bound));
        if is_within && !self.is_empty() {
            return Ok(());
        }
        let extent = self.extent;
        let origin = self.origin;
        Err(Error::argument(
            operation,
            format!("region out of bounds ({extent:?} elements at {origin:?} of {shape})"),
        ))
    }
}

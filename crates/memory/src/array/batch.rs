//! Batched copies of array regions.

use curium_driver::{Error, Result};

use super::array_copy::ArrayCopy;
use super::{Array, ArrayRegion, Texel};
use crate::copy::CopyBatch;
use crate::transfer::pitched;
use crate::{PitchedSlice, PitchedSliceMut};

impl<'a> CopyBatch<'a> {
    /// Adds a copy of `source` to the region of `array` that starts at element, row and layer
    /// `origin` and has the same extent.
    ///
    /// # Errors
    ///
    /// An argument error if the region is out of bounds, or if a row of `source` starts inside an
    /// element.
    pub fn copy_to_array<T: Texel>(
        self,
        array: &'a Array<T>,
        origin: [usize; 3],
        source: PitchedSlice<'a, T>,
    ) -> Result<Self> {
        self.with_array(
            "CopyBatch::copy_to_array",
            array,
            origin,
            source.end(),
            true,
        )
    }

    /// Adds a copy of the region of `array` that starts at element, row and layer `origin` to
    /// `target`, which must have the same extent.
    ///
    /// # Errors
    ///
    /// As for [`CopyBatch::copy_to_array`].
    pub fn copy_from_array<T: Texel>(
        self,
        target: PitchedSliceMut<'a, T>,
        array: &'a Array<T>,
        origin: [usize; 3],
    ) -> Result<Self> {
        self.with_array(
            "CopyBatch::copy_from_array",
            array,
            origin,
            target.into_end(),
            false,
        )
    }

    fn with_array<T: Texel>(
        self,
        operation: &'static str,
        array: &'a Array<T>,
        origin: [usize; 3],
        memory: pitched::PitchedOperand<'a>,
        is_to_array: bool,
    ) -> Result<Self> {
        let element = size_of::<T>();
        let layout = &memory.layout;
        if layout.is_empty() {
            return Ok(self);
        }
        array
            .driver()
            .check_same(memory.end.stream().driver(), operation)?;
        ArrayRegion {
            origin,
            extent: [layout.width / element, layout.height, layout.depth],
        }
        .check(operation, array.shape())?;
        if !layout.pitch.is_multiple_of(element) {
            let reason = format!(
                "misaligned pitch ({} bytes, elements of {element} bytes)",
                layout.pitch
            );
            return Err(Error::argument(operation, reason));
        }
        Ok(self.with_box(ArrayCopy::new(array, origin, memory, is_to_array)))
    }
}

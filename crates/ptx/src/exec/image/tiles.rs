//! Sparse images: the tiles with physical memory.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::Image;

/// The tiles of a sparse image.
#[derive(Debug)]
pub struct Tiles {
    image: Image,
    /// The number of bytes of an element.
    element: u64,
    /// The elements, rows and layers of a tile.
    extent: [u32; 3],
    /// The coordinates of the mapped tiles.
    mapped: Mutex<HashSet<[u32; 3]>>,
}

impl Tiles {
    /// Creates the tiles of an image without physical memory. An element has `element` bytes. A tile has `extent` elements, rows and
    /// layers, at least one of each.
    #[must_use]
    pub fn new(image: Image, element: u64, extent: [u32; 3]) -> Self {
        Self {
            image,
            element,
            extent,
            mapped: Mutex::default(),
        }
    }

    /// Maps or unmaps a box of elements.
    pub fn set(&self, origin: [u32; 3], extent: [u32; 3], is_mapped: bool) {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let range = |axis: usize| {
            let first = origin[axis] / self.extent[axis];
            first..(origin[axis].saturating_add(extent[axis])).div_ceil(self.extent[axis])
        };
        for (z, y, x) in
            range(2).flat_map(|z| range(1).flat_map(move |y| range(0).map(move |x| (z, y, x))))
        {
            if is_mapped {
                mapped.insert([x, y, z]);
            } else {
                mapped.remove(&[x, y, z]);
            }
        }
    }

    /// Returns `true` if an address has physical memory, or is outside the image.
    pub(crate) fn has_memory(&self, address: u64) -> bool {
        let Image {
            base,
            height,
            depth,
            pitch,
            ..
        } = self.image;
        let Some(offset) = address
            .checked_sub(base)
            .filter(|it| *it < pitch * u64::from(height) * u64::from(depth))
        else {
            return true;
        };
        let (row, column) = (offset / pitch, offset % pitch / self.element);
        let place = [column, row % u64::from(height), row / u64::from(height)];
        let tile = std::array::from_fn(|axis| place[axis] as u32 / self.extent[axis]);
        self.mapped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_elements_of_mapped_tiles_have_memory() {
        let image = Image {
            base: 0x1000,
            width: 20,
            height: 10,
            depth: 2,
            pitch: 96,
        };
        let tiles = Tiles::new(image, 4, [8, 4, 1]);
        let at = |x: u64, y: u64, z: u64| tiles.has_memory(0x1000 + (z * 10 + y) * 96 + x * 4);
        assert!(!at(0, 0, 0));
        tiles.set([8, 4, 1], [12, 6, 1], true);
        assert_eq!(
            [
                at(7, 4, 1),
                at(8, 4, 1),
                at(19, 9, 1),
                at(8, 3, 1),
                at(8, 4, 0)
            ],
            [false, true, true, false, false]
        );
        tiles.set([8, 4, 1], [8, 4, 1], false);
        assert_eq!(
            [at(8, 4, 1), at(16, 4, 1), at(8, 8, 1)],
            [false, true, true]
        );
        assert!(
            tiles.has_memory(0xfff) && tiles.has_memory(0x1000 + 20 * 96),
            "of another image"
        );
    }
}

//! Sparse images: the tiles with physical memory.

use std::collections::HashSet;
use std::ops::Range;

use parking_lot::Mutex;

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
    /// Creates the tiles of an image without physical memory. An element has `element` bytes. A
    /// tile has `extent` elements, rows and layers, at least one of each.
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
        let [xs, ys, zs]: [Range<u32>; 3] = std::array::from_fn(|axis| {
            let first = origin[axis] / self.extent[axis];
            let end = origin[axis].saturating_add(extent[axis]);
            first..end.div_ceil(self.extent[axis])
        });
        let mut mapped = self.mapped.lock();
        for z in zs {
            for y in ys.clone() {
                for x in xs.clone() {
                    if is_mapped {
                        mapped.insert([x, y, z]);
                    } else {
                        mapped.remove(&[x, y, z]);
                    }
                }
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
        let size = pitch * u64::from(height) * u64::from(depth);
        let Some(offset) = address.checked_sub(base).filter(|offset| *offset < size) else {
            return true;
        };
        let row = offset / pitch;
        let column = offset % pitch / self.element;
        let coordinates = [column, row % u64::from(height), row / u64::from(height)];
        let tile = std::array::from_fn(|axis| coordinates[axis] as u32 / self.extent[axis]);
        self.mapped.lock().contains(&tile)
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::image::tiles::*;

    #[test]
    fn only_mapped_tiles_have_memory() {
        let image = Image {
            base: 0x1000,
            width: 20,
            height: 10,
            depth: 2,
            pitch: 96,
        };
        let tiles = Tiles::new(image, 4, [8, 4, 1]);
        assert!(!has_memory(&tiles, [0, 0, 0]));
        tiles.set([8, 4, 1], [12, 6, 1], true);
        for (element, expected) in [
            ([7, 4, 1], false),
            ([8, 4, 1], true),
            ([19, 9, 1], true),
            ([8, 3, 1], false),
            ([8, 4, 0], false),
        ] {
            assert_eq!(has_memory(&tiles, element), expected, "{element:?}");
        }
        tiles.set([8, 4, 1], [8, 4, 1], false);
        for (element, expected) in [([8, 4, 1], false), ([16, 4, 1], true), ([8, 8, 1], true)] {
            assert_eq!(has_memory(&tiles, element), expected, "{element:?}");
        }
        for address in [0xfff, 0x1000 + 20 * 96] {
            assert!(tiles.has_memory(address), "{address:#x} is outside");
        }
    }

    fn has_memory(tiles: &Tiles, [x, y, z]: [u64; 3]) -> bool {
        tiles.has_memory(0x1000 + (z * 10 + y) * 96 + x * 4)
    }
}

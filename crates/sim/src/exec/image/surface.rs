//! Addresses on surfaces.

use super::{Geometry, Query, Surface};

/// The behavior of accesses beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// They end the launch.
    Trap,
    /// They access the nearest element.
    Clamp,
    /// They read zeros, and write nothing.
    Zero,
}

impl Surface {
    /// Returns the address of `bytes` bytes. Beyond the edges, returns `None`, or the nearest address if accesses are clamped. The first
    /// coordinate counts bytes.
    #[inline]
    pub(crate) fn place(
        &self,
        geometry: Geometry,
        (layer, at): (u32, [u32; 3]),
        bytes: u64,
        beyond: Beyond,
    ) -> Option<u64> {
        let image = &self.image;
        let width = (u64::from(image.width) * self.element.bytes()).cast_signed();
        let signed = |coordinate: u32| i64::from(coordinate.cast_signed());
        let dimensions = geometry.dimensions();
        let third = if dimensions == 3 { signed(at[2]) } else { signed(layer) };
        let second = if dimensions >= 2 { signed(at[1]) } else { 0 };
        let wanted = [signed(at[0]), second, third];
        let ends = [width - bytes.cast_signed(), i64::from(image.height) - 1, i64::from(image.depth) - 1];
        let is_inside = wanted.iter().zip(ends).all(|(wanted, end)| (0..=end).contains(wanted));
        if !is_inside && beyond != Beyond::Clamp {
            return None;
        }
        let [x, y, z] = std::array::from_fn(|axis| wanted[axis].clamp(0, ends[axis].max(0)).cast_unsigned());
        Some(image.base + (z * u64::from(image.height) + y) * image.pitch + x)
    }

    /// Returns the property of a surface.
    pub(crate) fn query(&self, query: Query) -> u32 {
        match query {
            Query::Width => self.image.width,
            Query::Height => self.image.height,
            Query::Depth | Query::ArraySize => self.image.depth,
            Query::Levels => 1,
            Query::NormalizedCoordinates => 0,
        }
    }
}

//! Addresses on surfaces.

use super::{Geometry, Query, Surface};
use crate::exec::values::lane::{FULL, LANES, lanes_where};

/// The behavior of accesses beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfBounds {
    /// They end the launch.
    Trap,
    /// They access the nearest element.
    Clamp,
    /// They read zeros, and write nothing.
    Zero,
}

impl Surface {
    /// Returns the address of `bytes` bytes. Beyond the edges, returns `None`, or the nearest
    /// address if accesses are clamped. The first coordinate counts bytes.
    #[inline]
    pub(crate) fn address(
        &self,
        geometry: Geometry,
        layer: u32,
        coordinates: [u32; 3],
        bytes: u64,
        out_of_bounds: OutOfBounds,
    ) -> Option<u64> {
        let image = &self.image;
        let width = (u64::from(image.width) * self.element.bytes()).cast_signed();
        let [x, y, z] = coordinates;
        let coordinates = match geometry.dimensions() {
            1 => [x, 0, layer],
            2 => [x, y, layer],
            _ => [x, y, z],
        }
        .map(|coordinate| i64::from(coordinate.cast_signed()));
        let last = [
            width - bytes.cast_signed(),
            i64::from(image.height) - 1,
            i64::from(image.depth) - 1,
        ];
        let is_inside = coordinates
            .iter()
            .zip(last)
            .all(|(coordinate, last)| (0..=last).contains(coordinate));
        if !is_inside && out_of_bounds != OutOfBounds::Clamp {
            return None;
        }
        let [x, y, z] = std::array::from_fn(|axis| {
            coordinates[axis]
                .clamp(0, last[axis].max(0))
                .cast_unsigned()
        });
        Some(image.base + (z * u64::from(image.height) + y) * image.pitch + x)
    }

    /// Returns the addresses of `bytes` bytes for the lanes of a warp, and the mask of the lanes
    /// inside the edges. The address of a lane outside the edges is the nearest one inside. If
    /// accesses are clamped, the mask has all lanes.
    #[inline(always)]
    pub(crate) fn warp_addresses(
        &self,
        geometry: Geometry,
        layers: &[u32; LANES],
        coordinates: [&[u32; LANES]; 3],
        bytes: u64,
        out_of_bounds: OutOfBounds,
    ) -> ([u64; LANES], u32) {
        const FIRST: [u32; LANES] = [0; LANES];
        let image = &self.image;
        let width = (u64::from(image.width) * self.element.bytes()).cast_signed();
        let dimensions = geometry.dimensions();
        let xs = coordinates[0];
        let ys = if dimensions >= 2 {
            coordinates[1]
        } else {
            &FIRST
        };
        let zs = if dimensions == 3 {
            coordinates[2]
        } else {
            layers
        };
        // Coordinates have 32 bits, so the last ones are clamped to that range.
        let [last_x, last_y, last_z] = [
            width - bytes.cast_signed(),
            i64::from(image.height) - 1,
            i64::from(image.depth) - 1,
        ]
        .map(|last| last.clamp(-1, i32::MAX.into()) as i32);
        let rows = u64::from(image.height);
        let pitch = image.pitch;
        let mut addresses = [0; LANES];
        let mut outside = [0; LANES];
        for lane in 0..LANES {
            let [x, y, z] = [xs[lane], ys[lane], zs[lane]].map(u32::cast_signed);
            // Negative if a coordinate, or its distance from the last one, is negative.
            outside[lane] = x
                | y
                | z
                | last_x.wrapping_sub(x)
                | last_y.wrapping_sub(y)
                | last_z.wrapping_sub(z);
            let row = clamped(z, last_z) * rows + clamped(y, last_y);
            addresses[lane] = image.base + row * pitch + clamped(x, last_x);
        }
        let inside = if out_of_bounds == OutOfBounds::Clamp {
            FULL
        } else {
            lanes_where(|lane| outside[lane] >= 0)
        };
        (addresses, inside)
    }

    /// Returns a property of the surface.
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

/// Returns the coordinate between 0 and `last` that is nearest to another.
#[inline(always)]
fn clamped(coordinate: i32, last: i32) -> u64 {
    coordinate.min(last).max(0).cast_unsigned().into()
}

#[cfg(test)]
mod tests {
    use crate::exec::image::surface::*;
    use crate::exec::image::{Channel, Element, Image};

    #[test]
    fn warp_addresses_equal_lane_addresses() {
        let image = Image {
            base: 0x1000,
            width: 5,
            height: 3,
            depth: 2,
            pitch: 32,
        };
        let surface = Surface {
            image,
            element: Element {
                channel: Channel::U32,
                channels: 1,
            },
        };
        let numbers = [
            0,
            1,
            2,
            3,
            4,
            12,
            16,
            17,
            20,
            u32::MAX,
            1 << 31,
            i32::MAX as u32,
        ];
        let [layers, xs, ys, zs]: [[u32; LANES]; 4] = [1, 5, 7, 11].map(|seed| {
            std::array::from_fn(|lane| numbers[(lane * seed + lane / 7) % numbers.len()])
        });
        let geometries = [
            Geometry::Line,
            Geometry::Plane,
            Geometry::Volume,
            Geometry::PlaneOfLayer,
        ];
        for geometry in geometries {
            for bytes in [1, 4, 8, 16, 64] {
                for out_of_bounds in [OutOfBounds::Clamp, OutOfBounds::Zero] {
                    let (addresses, inside) = surface.warp_addresses(
                        geometry,
                        &layers,
                        [&xs, &ys, &zs],
                        bytes,
                        out_of_bounds,
                    );
                    for lane in 0..LANES {
                        let layer = layers[lane];
                        let coordinates = [xs[lane], ys[lane], zs[lane]];
                        assert_eq!(
                            (inside >> lane & 1 == 1).then_some(addresses[lane]),
                            surface.address(geometry, layer, coordinates, bytes, out_of_bounds),
                            "{geometry:?} {layer} {coordinates:?} {bytes}"
                        );
                    }
                }
            }
        }
    }
}

//! Seeded random tiles of tensors, and the location of each element in the tensor and in shared
//! memory.

use curium_driver::{Result, Stream};
use curium_memory::{
    DeviceBuffer, Im2col, TensorDataType, TensorFill, TensorInterleave, TensorLayout, TensorMap,
    TensorSwizzle,
};

use crate::block::Prepared;
use crate::operands::Random;

/// The maximum size of a tile in shared memory in bytes.
pub(super) const ROOM: usize = 2048;

/// The element types, each with its size in bytes.
pub(super) const TYPES: [(TensorDataType, usize); 13] = [
    (TensorDataType::Uint8, 1),
    (TensorDataType::Uint16, 2),
    (TensorDataType::Uint32, 4),
    (TensorDataType::Int32, 4),
    (TensorDataType::Uint64, 8),
    (TensorDataType::Int64, 8),
    (TensorDataType::Float16, 2),
    (TensorDataType::Float32, 4),
    (TensorDataType::Float64, 8),
    (TensorDataType::Bfloat16, 2),
    (TensorDataType::Float32FlushToZero, 4),
    (TensorDataType::TensorFloat32, 4),
    (TensorDataType::TensorFloat32FlushToZero, 4),
];
const SWIZZLES: [TensorSwizzle; 4] = [
    TensorSwizzle::None,
    TensorSwizzle::Bytes32,
    TensorSwizzle::Bytes64,
    TensorSwizzle::Bytes128,
];
const INTERLEAVES: [TensorInterleave; 3] = [
    TensorInterleave::None,
    TensorInterleave::Bytes16,
    TensorInterleave::Bytes32,
];

/// The mode of a copy.
#[derive(Clone, Debug)]
pub(super) enum Taken {
    /// The box in elements per dimension, before element strides.
    Box(Vec<u32>),
    /// Im2col mode: channels, pixels, the corners of the bounding box, and the offsets.
    Pixels {
        channels: u32,
        count: u32,
        lower: Vec<i32>,
        upper: Vec<i32>,
        offsets: Vec<i32>,
    },
}

/// A tensor and a tile of it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The index into [`TYPES`].
    pub(super) kind: usize,
    pub(super) extents: Vec<u64>,
    strides: Vec<u64>,
    steps: Vec<u32>,
    /// The interleave, the swizzle, and whether out-of-bounds elements are NaN.
    pub(super) interleave: usize,
    pub(super) swizzle: usize,
    pub(super) fills: bool,
    pub(super) taken: Taken,
    pub(super) at: Vec<i32>,
}

/// An element of a tile, or a slice of channels: its location in shared memory, and in the tensor
/// if it is in bounds.
pub(super) struct Piece {
    pub(super) shared: usize,
    pub(super) tensor: Option<usize>,
    /// `true` for the last one in a row of the tensor.
    pub(super) is_last: bool,
}

/// The requirements for a tile.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) kind: usize,
    pub(super) rank: usize,
    pub(super) swizzle: usize,
    pub(super) interleave: usize,
    /// `true` if it is stored, so that it does not start before the tensor.
    pub(super) writes: bool,
}

impl Part {
    /// Creates a box.
    pub(super) fn boxed(wanted: Wanted, seed: u64) -> Self {
        let random = &mut Random(seed);
        let mut part = Self::outline(wanted, random);
        let (inner, counts) = part.counts(random);
        let mut boxed = vec![inner as u32];
        for (dimension, count) in counts.iter().enumerate() {
            let step = part.steps[dimension + 1] as usize;
            boxed.push(((count - 1) * step + 1 + random.below(step)) as u32);
        }
        part.extents = std::iter::once(inner)
            .chain(
                counts
                    .iter()
                    .zip(&part.steps[1..])
                    .map(|(count, step)| count * *step as usize),
            )
            .map(|most| 1 + random.below(most + most / 2 + 1) as u64)
            .collect();
        part.at = (0..wanted.rank)
            .map(|dimension| part.coordinate(dimension, boxed[dimension], wanted, random))
            .collect();
        part.taken = Taken::Box(boxed);
        part.spread(random);
        part
    }

    /// Creates an im2col tile.
    pub(super) fn pixels(wanted: Wanted, seed: u64) -> Self {
        let random = &mut Random(seed);
        let mut part = Self::outline(wanted, random);
        // Element strides apply only to the pixel dimensions.
        let spatial = if wanted.interleave == 0 {
            1..wanted.rank - 1
        } else {
            0..wanted.rank - 2
        };
        (0..wanted.rank)
            .filter(|dimension| !spatial.contains(dimension))
            .for_each(|dimension| part.steps[dimension] = 1);
        let (inner, _) = part.counts(random);
        let count = 1 + random.below((ROOM / part.row_pitch(inner)).min(40));
        part.extents = (0..wanted.rank)
            .map(|_| 1 + random.below(6) as u64)
            .collect();
        if wanted.interleave == 0 {
            part.extents[0] = 1 + random.below(2 * inner) as u64;
        }
        let mut lower = Vec::new();
        let mut upper = Vec::new();
        let mut offsets = Vec::new();
        part.at = vec![0; wanted.rank];
        for dimension in spatial {
            let extent = part.extents[dimension] as i32;
            // A stored tile starts and ends within the tensor, and at least one pixel lies in the
            // bounding box.
            let least = if wanted.writes { 0 } else { -2 };
            let low = (random.below(5) as i32 - 2).clamp(least, extent - 1);
            let high = (random.below(5) as i32 - 2).clamp(low + 1 - extent, -least);
            part.at[dimension] = low + random.below((extent + high - low) as usize) as i32;
            lower.push(low);
            upper.push(high);
            offsets.push(random.below(4) as i32);
        }
        let batch = wanted.rank - 1;
        part.at[batch] = random.below(part.extents[batch] as usize) as i32;
        if wanted.interleave == 0 {
            part.at[0] = (random.below(3) * 16 / TYPES[wanted.kind].1) as i32;
        } else {
            part.at[batch - 1] = random.below(part.extents[batch - 1] as usize) as i32;
        }
        part.taken = Taken::Pixels {
            channels: inner as u32,
            count: count as u32,
            lower,
            upper,
            offsets,
        };
        part.spread(random);
        part
    }

    /// Returns a row of a matrix, and the coordinates of a gather of four such rows in random
    /// order.
    pub(super) fn four_rows(seed: u64) -> (Self, Vec<i32>) {
        let random = &mut Random(seed);
        let wanted = Wanted {
            kind: 2 + random.below(8),
            rank: 2,
            swizzle: random.below(4),
            interleave: 0,
            writes: true,
        };
        let mut part = Self::boxed(wanted, seed);
        let (Taken::Box(boxed), column) = (&mut part.taken, part.at[0]) else {
            unreachable!("it is a box")
        };
        boxed[1] = 1;
        part.steps = vec![1; 2];
        let rows = std::iter::once(column)
            .chain((0..4).map(|_| random.below(part.extents[1] as usize + 2) as i32));
        let rows = rows.collect();
        (part, rows)
    }

    /// Returns the tile at other coordinates.
    pub(super) fn beginning_at(self, at: Vec<i32>) -> Self {
        Self { at, ..self }
    }

    /// Returns the tile without im2col offsets, which stores do not have.
    pub(super) fn without_offsets(mut self) -> Self {
        if let Taken::Pixels { offsets, .. } = &mut self.taken {
            offsets.fill(0);
        }
        self
    }

    /// Returns the strides in bytes of all dimensions except the first.
    pub(super) fn strides(&self) -> &[u64] {
        &self.strides
    }

    /// Returns the box and the element stride of each dimension.
    pub(super) fn box_and_steps(&self) -> Vec<(u32, u32)> {
        let Taken::Box(boxed) = &self.taken else {
            return Vec::new();
        };
        boxed
            .iter()
            .copied()
            .zip(self.steps.iter().copied())
            .collect()
    }

    fn outline(wanted: Wanted, random: &mut Random) -> Self {
        let Wanted {
            kind,
            rank,
            swizzle,
            interleave,
            ..
        } = wanted;
        let steps = (0..rank).map(|_| [1, 1, 2, 3][random.below(4)]).collect();
        let steps: Vec<u32> = steps;
        let fills = kind >= 6 && random.below(2) == 0;
        let extents = Vec::new();
        let strides = Vec::new();
        let coordinates = Vec::new();
        Self {
            kind,
            extents,
            strides,
            steps,
            interleave,
            swizzle,
            fills,
            taken: Taken::Box(Vec::new()),
            at: coordinates,
        }
    }

    /// Returns the number of elements in a row, and of rows along each further dimension.
    fn counts(&self, random: &mut Random) -> (usize, Vec<usize>) {
        let size = TYPES[self.kind].1;
        let most = [16, 2, 4, 8][self.swizzle].min(256 * size / 16);
        let inner = (1 + random.below(most)) * 16 / size;
        if self.interleave > 0 {
            // Slices are counted instead of elements.
            let inner = [16, 32][random.below(2)];
            return (inner, vec![1; self.steps.len() - 1]);
        }
        let mut remaining = ROOM / self.row_pitch(inner);
        let counts = self.steps[1..].iter().map(|_| {
            let count = 1 + random.below(remaining.min(6));
            remaining /= count;
            count
        });
        (inner, counts.collect())
    }

    fn coordinate(&self, dimension: usize, boxed: u32, wanted: Wanted, random: &mut Random) -> i32 {
        let extent = self.extents[dimension] as i32;
        let near = random.below((extent + boxed as i32 + 2) as usize) as i32 - boxed as i32;
        let far = if random.below(24) == 0 {
            [-1_000_000, 1_000_000][random.below(2)]
        } else {
            near
        };
        let step = if dimension == 0 && self.interleave == 0 {
            16 / TYPES[self.kind].1 as i32
        } else {
            1
        };
        let start = far / step * step;
        if wanted.writes { start.max(0) } else { start }
    }

    /// Chooses the strides of the tensor.
    fn spread(&mut self, random: &mut Random) {
        let unit = self.unit();
        let least = if self.interleave == 2 { 32 } else { 16 };
        let mut stride = (self.extents[0] as usize * unit).next_multiple_of(least);
        for extent in &self.extents[1..] {
            stride += least * [0, 0, 1][random.below(3)];
            self.strides.push(stride as u64);
            stride *= *extent as usize;
        }
    }

    /// Returns the size in bytes of an element or a slice.
    pub(super) fn unit(&self) -> usize {
        [TYPES[self.kind].1, 16, 32][self.interleave]
    }

    fn row_pitch(&self, inner: usize) -> usize {
        match (self.interleave, &self.taken) {
            // The swizzle spans a complete line.
            (0, _) => (inner * self.unit()).max([0, 32, 64, 128][self.swizzle]),
            (_, Taken::Pixels { .. }) => self.unit(),
            _ => inner * self.unit(),
        }
    }

    fn spatial(&self) -> std::ops::Range<usize> {
        let rank = self.extents.len();
        if self.interleave == 0 {
            1..rank - 1
        } else {
            0..rank - 2
        }
    }

    /// Returns the number of bytes that complete on a barrier object.
    pub(super) fn bytes(&self) -> usize {
        self.pieces().len() * self.unit()
    }

    /// Returns the size of the tensor in bytes, including the bytes that stores write past the last
    /// element.
    fn size(&self) -> usize {
        let last: usize = self.extents[1..]
            .iter()
            .zip(&self.strides)
            .map(|(extent, stride)| (extent - 1) as usize * *stride as usize)
            .sum();
        (last + self.extents[0] as usize * self.unit()).next_multiple_of(16)
    }

    /// Returns the pieces of the tile in order.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        match &self.taken {
            Taken::Box(boxed) => self.box_pieces(boxed),
            Taken::Pixels {
                channels,
                count,
                lower,
                upper,
                offsets,
            } => self.pixel_pieces([*channels, *count], lower, upper, offsets),
        }
    }

    fn box_pieces(&self, boxed: &[u32]) -> Vec<Piece> {
        let rank = boxed.len();
        if self.at.len() > rank {
            return self.row_pieces(boxed[0] as usize);
        }
        let count = |dimension: usize| match dimension {
            0 if self.interleave == 0 => boxed[0] as usize,
            _ if self.interleave > 0 && dimension == rank - 2 => 1,
            _ => boxed[dimension].div_ceil(self.steps[dimension]) as usize,
        };
        let pitch = self.row_pitch(count(0));
        let rows: usize = (1..rank).map(count).product();
        let mut pieces = Vec::new();
        for row in 0..rows {
            let mut remaining = row;
            let mut coordinates: Vec<i64> = self.at.iter().map(|start| i64::from(*start)).collect();
            for (dimension, at) in coordinates.iter_mut().enumerate().skip(1) {
                *at += (remaining % count(dimension)) as i64 * i64::from(self.steps[dimension]);
                remaining /= count(dimension);
            }
            for column in 0..count(0) {
                let step = if self.interleave == 0 {
                    1
                } else {
                    i64::from(self.steps[0])
                };
                let mut coordinates = coordinates.clone();
                coordinates[0] += column as i64 * step;
                pieces.push(self.piece(row * pitch + column * self.unit(), &coordinates));
            }
        }
        pieces
    }

    /// Returns the pieces of individually selected rows, given after the first coordinate.
    fn row_pieces(&self, columns: usize) -> Vec<Piece> {
        let piece = |row: usize, column: usize| {
            let coordinates = [
                i64::from(self.at[0]) + column as i64,
                self.at[1 + row].into(),
            ];
            self.piece(
                row * self.row_pitch(columns) + column * self.unit(),
                &coordinates,
            )
        };
        (0..4)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| piece(row, column))
            .collect()
    }

    fn pixel_pieces(
        &self,
        [channels, count]: [u32; 2],
        lower: &[i32],
        upper: &[i32],
        offsets: &[i32],
    ) -> Vec<Piece> {
        let rank = self.extents.len();
        let mut walk: Vec<i64> = self.at.iter().map(|start| i64::from(*start)).collect();
        let mut pieces = Vec::new();
        let columns = if self.interleave == 0 {
            channels as usize
        } else {
            1
        };
        for pixel in 0..count as usize {
            let mut coordinates = walk.clone();
            self.spatial()
                .zip(offsets)
                .for_each(|(dimension, offset)| coordinates[dimension] += i64::from(*offset));
            for column in 0..columns {
                let mut coordinates = coordinates.clone();
                coordinates[0] += column as i64;
                pieces.push(self.piece(
                    pixel * self.row_pitch(channels as usize) + column * self.unit(),
                    &coordinates,
                ));
            }
            let mut carries = true;
            for (index, dimension) in self.spatial().enumerate() {
                if !carries {
                    break;
                }
                walk[dimension] += i64::from(self.steps[dimension]);
                carries =
                    walk[dimension] >= self.extents[dimension] as i64 + i64::from(upper[index]);
                if carries {
                    walk[dimension] = lower[index].into();
                }
            }
            walk[rank - 1] += i64::from(carries);
        }
        pieces
    }

    fn piece(&self, linear: usize, coordinates: &[i64]) -> Piece {
        let inside = coordinates
            .iter()
            .zip(&self.extents)
            .all(|(at, extent)| (0..*extent as i64).contains(at));
        let strides = std::iter::once(self.unit() as i64)
            .chain(self.strides.iter().map(|stride| *stride as i64));
        let tensor: i64 = if inside {
            coordinates
                .iter()
                .zip(strides)
                .map(|(at, stride)| at * stride)
                .sum()
        } else {
            0
        };
        let is_last = coordinates[0] + 1 == self.extents[0] as i64;
        Piece {
            shared: linear,
            tensor: inside.then_some(tensor as usize),
            is_last,
        }
    }

    /// Returns the swizzled location of a byte of the tile in shared memory: 16-byte units are
    /// permuted in each line by its number.
    pub(super) fn swizzled(&self, linear: usize) -> usize {
        let line = linear / 128;
        let chunk = linear / 16 % 8;
        let number = [0, line % 2, line % 4, line % 8][self.swizzle];
        line * 128 + (chunk ^ number) * 16 + linear % 16
    }

    /// Returns the content of the tensor before the copy.
    pub(super) fn content(&self) -> Vec<u8> {
        let mut random = Random(self.size() as u64 ^ 0x7e_5012);
        let words = (0..self.size().div_ceil(8)).map(|_| random.next());
        // Numbers of both signs without NaN and infinities.
        let words = words.map(|word| {
            if self.kind < 6 {
                word
            } else {
                word & 0xbfff_bfff_bfff_bfff
            }
        });
        words.flat_map(u64::to_le_bytes).take(self.size()).collect()
    }

    /// Creates the tile's tensor map and tensor on the device.
    pub(super) fn prepare(&self, stream: &Stream, content: &[u8]) -> Result<Prepared> {
        let tensor = DeviceBuffer::from_slice(stream, content)?;
        let mut layout = TensorLayout::new(TYPES[self.kind].0, tensor.as_pointer(), &self.extents)
            .with_element_strides(&self.steps)
            .with_interleave(INTERLEAVES[self.interleave])
            .with_swizzle(SWIZZLES[self.swizzle])
            .with_fill(if self.fills {
                TensorFill::Nan
            } else {
                TensorFill::Zero
            });
        if self.extents.len() > 1 {
            layout = layout.with_strides(&self.strides);
        }
        let map = match &self.taken {
            Taken::Box(boxed) => TensorMap::tiled(stream.context(), &layout, boxed),
            Taken::Pixels {
                channels,
                count,
                lower,
                upper,
                ..
            } => {
                let pixels = Im2col {
                    lower,
                    upper,
                    channels_per_pixel: *channels,
                    pixels_per_column: *count,
                };
                TensorMap::im2col(stream.context(), &layout, &pixels)
            }
        }?;
        let words = DeviceBuffer::from_slice(stream, &map.to_words())?;
        let table = [
            words.as_pointer().as_raw(),
            tensor.as_pointer().as_raw(),
            0,
            0,
        ];
        Ok(Prepared {
            table,
            _kept: Box::new((tensor, words)),
        })
    }
}

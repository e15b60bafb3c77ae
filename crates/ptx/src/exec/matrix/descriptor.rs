//! Matrices in shared memory, as the descriptors of `wgmma` and `tcgen05` describe them.

/// The number of bytes that swizzling keeps together: of a row along the inner extent, or of eight
/// neighbors across it.
pub(crate) const PIECE: u64 = 16;

/// The size of the shared memory that a descriptor can address.
const ADDRESSES: u64 = 1 << 18;

/// The location of a matrix in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    start: u64,
    /// The leading and the stride dimension's byte offsets.
    leading: u64,
    stride: u64,
    /// The start of the swizzling pattern, in rows of 128 bytes.
    base: u64,
    /// The width of the swizzling in bytes; [`PIECE`] without swizzling.
    width: u64,
    /// The number of bytes that swizzling keeps together: 16 or 32.
    atom: u64,
}

impl Descriptor {
    /// Decodes the bits of a descriptor of `wgmma`.
    pub(crate) fn from_bits(bits: u64) -> Self {
        let width = match bits >> 62 {
            0 => PIECE,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        Self::with_swizzling(bits, width, PIECE)
    }

    /// Decodes the bits of a descriptor of `tcgen05`.
    pub(crate) fn from_tensor_bits(bits: u64) -> Result<Self, &'static str> {
        if bits >> 52 & 1 == 1 {
            return Err("matrix descriptor: absolute leading addresses are not supported");
        }
        match bits >> 61 {
            0 => Ok(Self::with_swizzling(bits, PIECE, PIECE)),
            1 => Ok(Self::with_swizzling(bits, 128, 2 * PIECE)),
            2 => Ok(Self::with_swizzling(bits, 128, PIECE)),
            4 => Ok(Self::with_swizzling(bits, 64, PIECE)),
            6 => Ok(Self::with_swizzling(bits, 32, PIECE)),
            _ => Err("matrix descriptor: the swizzling mode is not 0, 1, 2, 4 or 6"),
        }
    }

    fn with_swizzling(bits: u64, width: u64, atom: u64) -> Self {
        let [start, leading, stride] = [0, 16, 32].map(|shift| (bits >> shift & 0x3fff) * PIECE);
        Self {
            start,
            leading,
            stride,
            base: bits >> 49 & 7,
            width,
            atom,
        }
    }

    /// Returns `true` if swizzling keeps 32 bytes together. Such a matrix has pieces across the
    /// inner extent.
    pub(crate) fn is_only_across(&self) -> bool {
        self.atom != PIECE
    }

    /// Returns the number of 128-byte rows after which the swizzling pattern repeats.
    fn pattern_rows(&self) -> u64 {
        if self.is_only_across() { 4 } else { 8 }
    }

    /// Returns the address of a piece along the inner extent, in the row `across`.
    pub(crate) fn along(&self, across: u64, piece: u64) -> u64 {
        let pieces = self.width / PIECE;
        let row = across % 8 * self.width + across / 8 * self.stride;
        self.address(row + piece / pieces * self.leading + piece % pieces * PIECE)
    }

    /// Returns the address of a piece across, at the position `inner` along the inner extent.
    pub(crate) fn across(&self, piece: u64, inner: u64) -> u64 {
        let pieces = self.width / PIECE;
        let (next, rows) = if pieces == 1 {
            (self.stride, self.leading)
        } else {
            (self.leading, self.stride)
        };
        self.address(
            piece % pieces * PIECE
                + piece / pieces * next
                + inner % self.pattern_rows() * self.width
                + inner / self.pattern_rows() * rows,
        )
    }

    /// Returns the address at an offset from the start. Swizzling exchanges pieces within rows of
    /// 128 bytes, by the row's index.
    fn address(&self, offset: u64) -> u64 {
        let linear = (self.start + offset) % ADDRESSES;
        let row = (linear >> 7).wrapping_sub(self.base);
        linear ^ ((row & (self.width / self.atom - 1)) * self.atom)
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::matrix::descriptor::*;

    fn bits(start: u64, leading: u64, stride: u64, mode: u64) -> u64 {
        (start / 16) | ((leading / 16) << 16) | ((stride / 16) << 32) | (mode << 62)
    }

    #[test]
    fn eight_rows_are_contiguous_without_swizzling() {
        let descriptor = Descriptor::from_bits(bits(1024, 128, 256, 0));
        assert_eq!(
            [
                descriptor.along(0, 0),
                descriptor.along(3, 0),
                descriptor.along(0, 1),
                descriptor.along(9, 1)
            ],
            [1024, 1072, 1152, 1424]
        );
        assert_eq!(
            [
                descriptor.across(0, 3),
                descriptor.across(1, 0),
                descriptor.across(0, 8)
            ],
            [1072, 1280, 1152]
        );
    }

    #[test]
    fn pieces_are_permuted_by_their_row_index() {
        let descriptor = Descriptor::from_bits(bits(2048, 0, 1024, 1));
        assert_eq!(
            [
                descriptor.along(0, 1),
                descriptor.along(3, 0),
                descriptor.along(3, 1),
                descriptor.along(8, 1)
            ],
            [2064, 2480, 2464, 3088]
        );
        let descriptor = Descriptor::from_bits(bits(512, 2048, 512, 2));
        assert_eq!(
            [
                descriptor.across(0, 2),
                descriptor.across(1, 3),
                descriptor.across(4, 0),
                descriptor.across(0, 8)
            ],
            [656, 704, 2560, 1024]
        );
    }
}

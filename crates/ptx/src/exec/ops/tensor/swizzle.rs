//! Swizzling of boxes in shared memory, which spreads a column over all banks.

use crate::exec::ops::tensor_map::Field;

/// A swizzle that exchanges 16, 32 or 64 bytes within lines of 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swizzle {
    /// The mask of the bits of a line's index that select the exchange.
    mask: u64,
    /// The position in the address that they are applied to.
    shift: u32,
    /// `true` if every other line exchanges the halves of its 16 bytes.
    flips: bool,
    /// The minimum number of bytes of a row in shared memory.
    pub(super) span: u64,
}

impl Swizzle {
    /// Returns the swizzle of a map, if it is valid.
    pub(super) fn from_map(words: &[u64; 16]) -> Option<Self> {
        let kind = Field::SWIZZLE.get(words);
        let atomicity = Field::ATOMICITY.get(words);
        let (mask, shift, span) = match (kind, atomicity) {
            (0, _) => (0, 0, 0),
            (1, _) => (1, 4, 32),
            (2, _) => (3, 4, 64),
            (3, 0) => (7, 4, 128),
            (3, 1 | 2) => (3, 5, 128),
            (3, 3) => (1, 6, 128),
            _ => return None,
        };
        Some(Self {
            mask,
            shift,
            flips: kind == 3 && atomicity == 2,
            span,
        })
    }

    /// Returns the swizzled address of 8 bytes in shared memory.
    pub(super) fn apply(self, address: u64) -> u64 {
        let line = address >> 7;
        let swizzled = address ^ (line & self.mask) << self.shift;
        if self.flips {
            swizzled ^ (line & 1) << 3
        } else {
            swizzled
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swizzle(kind: u64, atomicity: u64) -> Option<Swizzle> {
        let mut words = [0; 16];
        words[2] = Field::ATOMICITY.set(Field::SWIZZLE.set(0, kind), atomicity);
        Swizzle::from_map(&words)
    }

    #[test]
    fn swizzle_depends_on_the_line() {
        for (kind, atomicity, address, expected) in [
            (0, 0, 0x1f8, 0x1f8),
            (1, 0, 0x080, 0x090),
            (1, 0, 0x110, 0x110),
            (2, 0, 0x188, 0x1b8),
            (3, 0, 0x3f8, 0x388),
            (3, 1, 0x180, 0x1e0),
            (3, 2, 0x180, 0x1e8),
            (3, 2, 0x100, 0x140),
            (3, 3, 0x0c0, 0x080),
        ] {
            let swizzled = swizzle(kind, atomicity).map(|swizzle| swizzle.apply(address));
            assert_eq!(swizzled, Some(expected), "{kind} {atomicity} {address:#x}");
        }
    }

    #[test]
    fn invalid_swizzle_is_none() {
        assert_eq!(swizzle(4, 0), None);
    }
}

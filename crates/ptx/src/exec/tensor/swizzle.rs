//! Swizzling of boxes in shared memory, which spreads a column over all banks.

use crate::exec::tensor_map::Field;

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
    pub(super) fn of(words: &[u64; 16]) -> Option<Self> {
        let new = |mask, shift, span| Self {
            mask,
            shift,
            flips: false,
            span,
        };
        Some(
            match (Field::SWIZZLE.get(words), Field::ATOMICITY.get(words)) {
                (0, _) => new(0, 0, 0),
                (1, _) => new(1, 4, 32),
                (2, _) => new(3, 4, 64),
                (3, 0) => new(7, 4, 128),
                (3, 1) => new(3, 5, 128),
                (3, 2) => Self {
                    flips: true,
                    ..new(3, 5, 128)
                },
                (3, 3) => new(1, 6, 128),
                _ => return None,
            },
        )
    }

    /// Returns the swizzled address of 8 bytes in shared memory.
    pub(super) fn place(self, address: u64) -> u64 {
        let line = address >> 7;
        let moved = address ^ (line & self.mask) << self.shift;
        if self.flips {
            moved ^ (line & 1) << 3
        } else {
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u64, atomicity: u64) -> Swizzle {
        let mut words = [0; 16];
        words[2] = Field::ATOMICITY.put(Field::SWIZZLE.put(0, kind), atomicity);
        Swizzle::of(&words).expect("there is such a swizzle")
    }

    #[test]
    fn swizzle_moves_parts_of_a_line_by_its_number() {
        for (kind, atomicity, address, place) in [
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
            assert_eq!(
                of(kind, atomicity).place(address),
                place,
                "{kind} {atomicity} {address:#x}"
            );
        }
    }

    #[test]
    fn invalid_swizzle_is_none() {
        let words = std::array::from_fn(|word| {
            if word == 2 {
                Field::SWIZZLE.put(0, 4)
            } else {
                0
            }
        });
        assert_eq!(Swizzle::of(&words), None);
    }
}

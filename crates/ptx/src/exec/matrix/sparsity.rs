//! Structured sparsity of `mma.sp`: the columns of the stored elements, which the metadata selects.

use super::Element;

/// The number of rows of a sparse matrix in a warp.
const ROWS: usize = 16;

/// The metadata of a sparse matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sparsity {
    /// The row of its register.
    pub(crate) metadata: u32,
    /// The sparsity selector: the number of the group of lanes in each quad that holds the
    /// metadata.
    pub(crate) selector: u32,
}

/// Returns the number of lanes of a quad that hold the metadata of a matrix with `inner` columns,
/// including zeros.
pub(crate) fn lanes(element: Element, inner: u32) -> u32 {
    groups(element, inner).div_ceil(4)
}

/// Returns the number of groups of columns. Each group has four bits of metadata.
fn groups(element: Element, inner: u32) -> u32 {
    match element {
        // One of every two.
        Element::Tf32 => inner / 2,
        // Two pairs of every four.
        Element::S4 | Element::U4 => inner / 8,
        _ => inner / 4,
    }
}

impl Sparsity {
    /// Returns the columns of the matrix's elements, row by row.
    pub(crate) fn columns(&self, words: &[u32; 32], element: Element, inner: u32) -> Vec<u16> {
        let first = self.selector * lanes(element, inner);
        let mut columns = Vec::with_capacity(ROWS * inner as usize / 2);
        for row in 0..ROWS as u32 {
            for group in 0..groups(element, inner) {
                let (lane, shift) = position(element, row / 8, group);
                let bits = words[(row % 8 * 4 + first + lane) as usize & 31] >> shift & 0xf;
                columns.extend(
                    selected_columns(element, bits)
                        .map(|column| (group * width(element) + column) as u16),
                );
            }
        }
        columns
    }
}

/// Returns the lane and the bit of a group's metadata. The lane is relative to the first selected
/// lane of the quad; `half` is 1 for the lower eight rows.
fn position(element: Element, half: u32, group: u32) -> (u32, u32) {
    if element.bits() <= 8 {
        // A lane holds eight groups of one row.
        (group / 8 * 2 + half, group % 8 * 4)
    } else {
        // A lane holds four groups of each of two rows.
        (group / 4, half * 16 + group % 4 * 4)
    }
}

/// Returns the number of columns in a group.
fn width(element: Element) -> u32 {
    match element {
        Element::Tf32 => 2,
        Element::S4 | Element::U4 => 8,
        _ => 4,
    }
}

/// Returns the columns in a group that four bits of metadata select.
fn selected_columns(element: Element, bits: u32) -> impl Iterator<Item = u32> {
    let [low, high] = [bits & 3, bits >> 2];
    let (columns, count) = match element {
        // The metadata names both halves of an element.
        Element::Tf32 => ([low / 2, 0, 0, 0], 1),
        Element::S4 | Element::U4 => ([2 * low, 2 * low + 1, 2 * high, 2 * high + 1], 4),
        _ => ([low, high, 0, 0], 2),
    };
    columns.into_iter().take(count)
}

#[cfg(test)]
mod tests {
    use crate::exec::matrix::sparsity::*;

    #[test]
    fn metadata_selects_two_elements_in_four() {
        // Every group selects its first and last column, except the second group of row 9.
        let mut words = [0xcccc_cccc; 32];
        words[4 + 2] = 0xcc4c_cccc;
        let columns = Sparsity {
            metadata: 0,
            selector: 2,
        }
        .columns(&words, Element::F16, 16);
        assert_eq!(columns[..8], [0, 3, 4, 7, 8, 11, 12, 15]);
        assert_eq!(columns[9 * 8..][..8], [0, 3, 4, 5, 8, 11, 12, 15]);
    }

    #[test]
    fn one_lane_has_a_row_of_bytes() {
        let mut words = [0x4444_4444; 32];
        words[4 * 3 + 2 + 1] = 0x4444_44e4;
        let columns = Sparsity {
            metadata: 0,
            selector: 1,
        }
        .columns(&words, Element::U8, 32);
        assert_eq!(columns[11 * 16..][..6], [0, 1, 6, 7, 8, 9]);
        assert_eq!(columns[3 * 16..][..4], [0, 1, 4, 5]);
    }

    #[test]
    fn tf32_selects_elements_and_u4_selects_pairs() {
        let words = [0x4e4e_4e4e; 32];
        let sparsity = Sparsity {
            metadata: 0,
            selector: 0,
        };
        let tf32 = sparsity.columns(&words, Element::Tf32, 8);
        assert_eq!(tf32[..4], [1, 2, 5, 6]);
        let u4 = sparsity.columns(&words, Element::U4, 64);
        assert_eq!(u4[..8], [4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(
            (
                lanes(Element::S8, 64),
                lanes(Element::S4, 64),
                lanes(Element::Tf32, 8)
            ),
            (4, 2, 1)
        );
    }
}

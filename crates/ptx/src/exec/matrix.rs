//! Matrices: their distribution over the lanes of a warp, their products, and the rounding of sums.

pub(crate) mod descriptor;
pub(crate) mod fixed_point;
pub(crate) mod multiply;
pub(crate) mod number;
pub(crate) mod rounding;
pub(crate) mod sparsity;
pub(crate) mod workspace;

use smallvec::SmallVec;

use crate::exec::values::lane::LANES;

/// The format of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
    S32,
}

impl Element {
    /// Returns the number of bits of an element in a register.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::S4 | Self::U4 => 4,
            Self::B1 => 1,
        }
    }

    /// Returns `true` if products of the elements are integers.
    pub(crate) const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1 | Self::S32
        )
    }
}

/// The role of a matrix in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    A,
    B,
    /// The addend and the result.
    C,
}

/// The distribution of a matrix's elements over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// Four lanes share a row of A, a column of B, or eight elements of a row of C: `mma`, `wgmma`
    /// and `wmma`. For `wmma`, PTX does not define it; an H200 does it so.
    Rows,
    /// Over two quads, sixteen lanes apart. Each pair of quads has its own matrices.
    QuadPair {
        /// `true` if lanes hold columns of A or rows of B.
        is_transposed: bool,
    },
}

/// A matrix in the registers of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) role: Role,
    pub(crate) element: Element,
    /// The number of rows and of columns: `m × k` for A, `k × n` for B, `m × n` for C.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) distribution: Distribution,
    /// The number of registers of each lane.
    pub(crate) registers: u32,
}

/// The position of an element: its lane, its register, and the lowest bit in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) lane: u32,
    pub(crate) register: u32,
    pub(crate) shift: u32,
}

impl Fragment {
    /// Returns the rows and columns of all elements, row by row.
    pub(crate) fn coordinates(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let columns = self.columns;
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }

    /// Returns the index of a location among the elements of all registers.
    pub(crate) fn slot_index(&self, position: Position) -> usize {
        let per_register = self.per_register();
        ((position.register * 32 + position.lane) * per_register
            + position.shift / self.element.bits()) as usize
    }

    /// Returns the number of times that a row has eight elements.
    pub(crate) fn octets(&self) -> usize {
        (self.columns as usize / OCTET).max(1)
    }

    /// Elements in a register.
    pub(crate) fn per_register(&self) -> u32 {
        if self.element == Element::F64 {
            1
        } else {
            32 / self.element.bits()
        }
    }

    /// Returns the position of an element. If several pairs of quads have matrices, it is that of
    /// the first pair.
    pub(crate) fn position(&self, row: u32, column: u32) -> Position {
        match (self.distribution, self.role) {
            (Distribution::Rows, Role::A) => self.factor_position(row, column, self.rows > 8),
            (Distribution::Rows, Role::B) => self.factor_position(column, row, self.is_wide()),
            (Distribution::Rows, Role::C) if self.is_wide() && self.rows == 8 => {
                self.result_position(column, row, self.columns)
            }
            (Distribution::Rows, Role::C) => self.result_position(row, column, self.rows),
            (Distribution::QuadPair { is_transposed }, Role::A) => {
                self.quad_pair_factor_position(row, column, is_transposed)
            }
            (Distribution::QuadPair { is_transposed }, Role::B) => {
                self.quad_pair_factor_position(column, row, is_transposed)
            }
            (Distribution::QuadPair { .. }, Role::C) => self.quad_pair_result_position(row, column),
        }
    }

    /// Returns `true` for B and C of `wmma.m8n32k16`. It computes the transposed product, for which
    /// B has the layout of A.
    pub(crate) fn is_wide(&self) -> bool {
        self.columns == 32
    }

    /// Returns the number of registers that hold different elements. The others of a lane are
    /// copies of them.
    pub(crate) fn distinct_registers(&self) -> u32 {
        let lanes = if matches!(self.distribution, Distribution::QuadPair { .. }) {
            8
        } else {
            LANES as u32
        };
        (self.rows * self.columns)
            .div_ceil(lanes * self.per_register())
            .max(1)
    }

    /// Returns the position of a lane's element by its index.
    pub(crate) fn slot(&self, lane: u32, slot: u32) -> Position {
        let per_register = self.per_register();
        Position {
            lane,
            register: slot / per_register,
            shift: slot % per_register * self.element.bits(),
        }
    }

    /// Returns the position of an element of A or B: four lanes share a row of A, and a register
    /// holds neighbors along `k`. If rows are in pairs, those of the second eight of sixteen rows
    /// follow those of the first in the next register.
    pub(crate) fn factor_position(&self, across: u32, along: u32, in_pairs: bool) -> Position {
        let per_register = self.per_register();
        let inner = if self.role == Role::A {
            self.columns
        } else {
            self.rows
        };
        let parts = (inner / (4 * per_register)).max(1);
        let part = along / (4 * per_register);
        let within = along % (4 * per_register);
        let lane = across % 8 * 4 + within / per_register;
        let register = if in_pairs {
            across / 16 * 2 * parts + part * 2 + across / 8 % 2
        } else {
            across / 8 * parts + part
        };
        Position {
            lane,
            register,
            shift: within % per_register * self.element.bits(),
        }
    }

    /// Returns the position of an element of C: four lanes share eight elements of a row, each with
    /// two neighbors.
    pub(crate) fn result_position(&self, row: u32, column: u32, rows: u32) -> Position {
        let lane = row % 8 * 4 + column % 8 / 2;
        self.slot(lane, column / 8 * (rows / 4) + row / 8 * 2 + column % 2)
    }

    /// Returns the position of an element of A or B of a quad pair: each lane has four neighbors
    /// along `k`, or four across.
    pub(crate) fn quad_pair_factor_position(
        &self,
        across: u32,
        along: u32,
        is_transposed: bool,
    ) -> Position {
        let (lane, slot) = if is_transposed {
            (along, across % 4)
        } else {
            (across % 4, along)
        };
        self.slot(lane + across / 4 * 16, slot)
    }

    /// Returns the position of an element of C of a quad pair: each lane has a row of f16, or two
    /// f32 of each of four squares.
    pub(crate) fn quad_pair_result_position(&self, row: u32, column: u32) -> Position {
        let (lane, slot) = if self.element.bits() == 16 {
            (row % 4, column)
        } else {
            (
                row % 2 + column / 2 % 2 * 2,
                row / 2 % 2 * 2 + column / 4 * 4 + column % 2,
            )
        };
        self.slot(lane + row / 4 * 16, slot)
    }
}

/// Elements that [`Numbers`] hold without an allocation: more than any matrix of a warp's 16-bit
/// product has.
const INLINE: usize = 512;

/// Elements of a matrix or of registers.
pub(crate) type Numbers<T> = SmallVec<[T; INLINE]>;

/// A fragment, and the locations of its elements, row by row.
#[derive(Clone, Debug)]
pub(crate) struct FragmentLayout {
    pub(crate) fragment: Fragment,
    /// The index of each element among the elements of the registers, which are ordered by
    /// register, lane and bit.
    pub(crate) slots: Vec<[u16; OCTET]>,
    pub(crate) order: Order,
}

/// The order of eight neighbors in a row among the elements of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// They are neighbors.
    Octet,
    /// The first four are neighbors, and the others.
    Quads,
    /// The elements with even numbers are neighbors, and so are those with odd numbers.
    Interleaved,
    /// They are at this distance from each other, and each is followed by those of the next three
    /// rows.
    Transposed(u16),
    Any,
}

/// Elements that are copied together where they are neighbors. Every matrix has a multiple of them.
pub(crate) const OCTET: usize = 8;

/// Half of them.
pub(crate) const QUAD: usize = OCTET / 2;

impl FragmentLayout {
    pub(crate) fn new(fragment: Fragment) -> Self {
        let slots: Vec<u16> = fragment
            .coordinates()
            .map(|(row, column)| fragment.slot_index(fragment.position(row, column)) as u16)
            .collect();
        let slots = slots.as_chunks().0.to_vec();
        let order = Order::detect(&slots, fragment.octets());
        Self {
            fragment,
            slots,
            order,
        }
    }

    /// Returns the number of elements in a register of all lanes.
    pub(crate) fn in_register(&self) -> usize {
        LANES * self.fragment.per_register() as usize
    }
}

impl Order {
    /// Returns the order of the elements of a matrix whose rows have `octets` times eight elements.
    pub(crate) fn detect(slots: &[[u16; OCTET]], octets: usize) -> Self {
        let are_quads = slots.iter().all(|&[a, b, c, d, e, f, g, h]| {
            are_neighbors([a, b, c, d]) && are_neighbors([e, f, g, h])
        });
        if are_quads {
            let are_octets = slots.iter().all(|octet| octet[3] + 1 == octet[4]);
            return if are_octets { Self::Octet } else { Self::Quads };
        }
        let are_interleaved = slots.iter().all(|&[a, b, c, d, e, f, g, h]| {
            are_neighbors([a, c, e, g]) && are_neighbors([b, d, f, h])
        });
        if are_interleaved {
            return Self::Interleaved;
        }
        let distance = slots[0][1].wrapping_sub(slots[0][0]);
        for (number, octet) in slots.iter().enumerate() {
            let row = number / octets;
            let first_row = row / QUAD * QUAD * octets;
            let mut expected = slots[first_row + number % octets][0] + (row % QUAD) as u16;
            for slot in octet {
                if *slot != expected {
                    return Self::Any;
                }
                expected = expected.wrapping_add(distance);
            }
        }
        Self::Transposed(distance)
    }
}

fn are_neighbors(slots: [u16; QUAD]) -> bool {
    slots.is_sorted_by(|slot, next| slot + 1 == *next)
}

/// The accumulation of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulation {
    /// Sum of products.
    Sum,
    /// The number of bits set in both operands, or in exactly one.
    PopulationOfAnd,
    PopulationOfXor,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(
        role: Role,
        element: Element,
        rows: u32,
        columns: u32,
        registers: u32,
        distribution: Distribution,
    ) -> Fragment {
        Fragment {
            role,
            element,
            rows,
            columns,
            distribution,
            registers,
        }
    }

    #[test]
    fn every_element_has_a_distinct_position() {
        let fragments = [
            fragment(Role::A, Element::F16, 16, 16, 4, Distribution::Rows),
            fragment(Role::B, Element::F16, 16, 8, 2, Distribution::Rows),
            fragment(Role::C, Element::F32, 16, 8, 4, Distribution::Rows),
            fragment(Role::C, Element::F16, 16, 8, 2, Distribution::Rows),
            fragment(Role::A, Element::S4, 16, 64, 4, Distribution::Rows),
            fragment(Role::B, Element::B1, 256, 8, 2, Distribution::Rows),
            fragment(Role::A, Element::F64, 8, 4, 1, Distribution::Rows),
            fragment(Role::C, Element::F64, 8, 8, 2, Distribution::Rows),
            fragment(Role::A, Element::F16, 32, 16, 8, Distribution::Rows),
            fragment(Role::B, Element::F16, 16, 16, 4, Distribution::Rows),
            fragment(Role::B, Element::S8, 16, 32, 4, Distribution::Rows),
            fragment(Role::C, Element::F32, 8, 32, 8, Distribution::Rows),
            fragment(Role::C, Element::F16, 32, 8, 4, Distribution::Rows),
        ];
        for fragment in fragments {
            let mut positions = std::collections::HashSet::new();
            for (row, column) in fragment.coordinates() {
                let position = fragment.position(row, column);
                assert!(
                    position.lane < 32 && position.register < fragment.registers,
                    "{fragment:?} {row} {column}: {position:?}"
                );
                assert!(
                    positions.insert(position),
                    "{fragment:?} {row} {column}: {position:?}"
                );
            }
        }
    }

    #[test]
    fn orders_are_detected() {
        use Distribution::Rows;
        for (role, element, rows, columns, registers, order) in [
            (Role::A, Element::F16, 16, 16, 4, Order::Octet),
            (Role::A, Element::Tf32, 16, 8, 4, Order::Quads),
            (Role::C, Element::F32, 16, 8, 4, Order::Interleaved),
            (Role::B, Element::F16, 16, 8, 2, Order::Transposed(8)),
            (Role::B, Element::Tf32, 8, 8, 2, Order::Transposed(4)),
            (Role::B, Element::F16, 16, 16, 4, Order::Transposed(8)),
            (Role::B, Element::F16, 16, 32, 8, Order::Transposed(8)),
            (Role::C, Element::F32, 32, 8, 8, Order::Interleaved),
            (Role::C, Element::F16, 16, 16, 4, Order::Octet),
            (Role::C, Element::F32, 8, 32, 8, Order::Any),
        ] {
            let fragment = fragment(role, element, rows, columns, registers, Rows);
            assert_eq!(FragmentLayout::new(fragment).order, order, "{fragment:?}");
        }
    }

    #[test]
    fn positions_follow_the_isa() {
        let a = fragment(Role::A, Element::F16, 16, 16, 4, Distribution::Rows);
        assert_eq!(
            a.position(9, 3),
            Position {
                lane: 5,
                register: 1,
                shift: 16
            }
        );
        assert_eq!(
            a.position(1, 10),
            Position {
                lane: 5,
                register: 2,
                shift: 0
            }
        );
        let b = fragment(Role::B, Element::S8, 32, 8, 2, Distribution::Rows);
        assert_eq!(
            b.position(17, 2),
            Position {
                lane: 8,
                register: 1,
                shift: 8
            }
        );
        let c = fragment(Role::C, Element::F32, 16, 8, 4, Distribution::Rows);
        assert_eq!(
            c.position(8, 7),
            Position {
                lane: 3,
                register: 3,
                shift: 0
            }
        );
    }
}

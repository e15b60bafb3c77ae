//! Matrix fragments: the distribution of a matrix's elements over the lanes of a warp.

pub(crate) mod dense;
pub(crate) mod descriptor;
mod fixed_point;
pub(crate) mod multiply;
pub(crate) mod number;
pub(crate) mod product;
mod quads;
pub(crate) mod registers;
mod rounding;
pub(crate) mod sparsity;

use smallvec::SmallVec;

use super::lane::LANES;

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
pub(crate) enum Spread {
    /// Four lanes share a row of A, a column of B, or eight elements of a row of C: `mma`, `wgmma` and `wmma`. For `wmma`, PTX does not
    /// define it; an H200 does it so.
    Rows,
    /// Over two quads, sixteen lanes apart. Each pair of quads has its own matrices.
    QuadPair {
        /// `true` if lanes hold columns of A or rows of B.
        is_turned: bool,
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
    pub(crate) spread: Spread,
    /// The number of registers of each lane.
    pub(crate) registers: u32,
}

/// The position of an element: its lane, its register, and the lowest bit in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) lane: u32,
    pub(crate) register: u32,
    pub(crate) shift: u32,
}

impl Fragment {
    /// Returns the rows and columns of all elements, row by row.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let columns = self.columns;
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }

    /// Returns the index of a location among the elements of all registers.
    fn slot_of(&self, home: Home) -> usize {
        let each = self.per_register();
        ((home.register * 32 + home.lane) * each + home.shift / self.element.bits()) as usize
    }

    /// Returns the number of times that a row has eight elements.
    fn octets(&self) -> usize {
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

    /// Returns the position of an element. If several pairs of quads have matrices, it is that of the first pair.
    pub(crate) fn home(&self, row: u32, column: u32) -> Home {
        match (self.spread, self.role) {
            (Spread::Rows, Role::A) => self.home_along(row, column, self.rows > 8),
            (Spread::Rows, Role::B) => self.home_along(column, row, self.is_wide()),
            (Spread::Rows, Role::C) if self.is_wide() && self.rows == 8 => {
                self.home_of_result(column, row, self.columns)
            }
            (Spread::Rows, Role::C) => self.home_of_result(row, column, self.rows),
            (Spread::QuadPair { is_turned }, Role::A) => self.home_in_pair(row, column, is_turned),
            (Spread::QuadPair { is_turned }, Role::B) => self.home_in_pair(column, row, is_turned),
            (Spread::QuadPair { .. }, Role::C) => self.home_of_result_in_pair(row, column),
        }
    }

    /// Returns `true` for B and C of `wmma.m8n32k16`. It computes the transposed product, for which B has the layout of A.
    fn is_wide(&self) -> bool {
        self.columns == 32
    }

    /// Returns the number of registers that hold different elements. The others of a lane are copies of them.
    pub(crate) fn distinct_registers(&self) -> u32 {
        let lanes = if matches!(self.spread, Spread::QuadPair { .. }) {
            8
        } else {
            LANES as u32
        };
        (self.rows * self.columns)
            .div_ceil(lanes * self.per_register())
            .max(1)
    }

    /// Returns the position of a lane's element by its index.
    fn slot(&self, lane: u32, slot: u32) -> Home {
        let each = self.per_register();
        Home {
            lane,
            register: slot / each,
            shift: slot % each * self.element.bits(),
        }
    }

    /// Returns the position of an element of A or B: four lanes share a row of A, and a register holds neighbors along `k`. If rows are in
    /// pairs, those of the second eight of sixteen rows follow those of the first in the next register.
    fn home_along(&self, across: u32, along: u32, in_pairs: bool) -> Home {
        let each = self.per_register();
        let inner = if self.role == Role::A {
            self.columns
        } else {
            self.rows
        };
        let parts = (inner / (4 * each)).max(1);
        let (part, within) = (along / (4 * each), along % (4 * each));
        let lane = across % 8 * 4 + within / each;
        let register = if in_pairs {
            across / 16 * 2 * parts + part * 2 + across / 8 % 2
        } else {
            across / 8 * parts + part
        };
        Home {
            lane,
            register,
            shift: within % each * self.element.bits(),
        }
    }

    /// Returns the position of an element of C: four lanes share eight elements of a row, each with two neighbors.
    fn home_of_result(&self, row: u32, column: u32, rows: u32) -> Home {
        let lane = row % 8 * 4 + column % 8 / 2;
        self.slot(lane, column / 8 * (rows / 4) + row / 8 * 2 + column % 2)
    }

    /// Returns the position of an element of A or B of a quad pair: each lane has four neighbors along `k`, or four across.
    fn home_in_pair(&self, across: u32, along: u32, is_turned: bool) -> Home {
        let (lane, slot) = if is_turned {
            (along, across % 4)
        } else {
            (across % 4, along)
        };
        self.slot(lane + across / 4 * 16, slot)
    }

    /// Returns the position of an element of C of a quad pair: each lane has a row of f16, or two f32 of each of four squares.
    fn home_of_result_in_pair(&self, row: u32, column: u32) -> Home {
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

/// Elements that [`Numbers`] hold without an allocation: more than any matrix of a warp's 16-bit product has.
const INLINE: usize = 512;

/// Elements of a matrix or of registers.
pub(crate) type Numbers<T> = SmallVec<[T; INLINE]>;

/// A fragment, and the locations of its elements, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) fragment: Fragment,
    /// Of each element its index among the elements of the registers, which are ordered by register, lane and bit.
    slots: Vec<[u16; OCTET]>,
    order: Order,
}

/// The order of eight neighbors in a row among the elements of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// They are neighbors.
    Octet,
    /// The first four are neighbors, and the others.
    Quads,
    /// Every other one is a neighbor, from the first and from the second on.
    Woven,
    /// They are at this distance from each other, and followed by those of the next three rows.
    Transposed(u16),
    Any,
}

/// Elements that are copied together where they are neighbors. Every matrix has a multiple of them.
const OCTET: usize = 8;

/// Half of them.
const QUAD: usize = OCTET / 2;

impl Placed {
    pub(crate) fn new(fragment: Fragment) -> Self {
        let slot = |(row, column)| fragment.slot_of(fragment.home(row, column)) as u16;
        let all: Vec<u16> = fragment.places().map(slot).collect();
        let slots = all.as_chunks().0.to_vec();
        let order = Order::of(&slots, fragment.octets());
        Self {
            fragment,
            slots,
            order,
        }
    }

    /// Returns the number of elements in a register of all lanes.
    fn in_register(&self) -> usize {
        LANES * self.fragment.per_register() as usize
    }
}

impl Order {
    /// Returns the order of elements, of which rows have `octets` times eight.
    fn of(slots: &[[u16; OCTET]], octets: usize) -> Self {
        let are_neighbors = |slots: [u16; 4]| slots.is_sorted_by(|slot, next| slot + 1 == *next);
        let has = |halves: fn([u16; OCTET]) -> [[u16; 4]; 2]| {
            slots
                .iter()
                .all(|&octet| halves(octet).into_iter().all(are_neighbors))
        };
        if has(|[a, b, c, d, e, f, g, h]| [[a, b, c, d], [e, f, g, h]]) {
            let are_octets = slots.iter().all(|octet| octet[3] + 1 == octet[4]);
            return if are_octets { Self::Octet } else { Self::Quads };
        }
        if has(|[a, b, c, d, e, f, g, h]| [[a, c, e, g], [b, d, f, h]]) {
            return Self::Woven;
        }
        let distance = slots[0][1].wrapping_sub(slots[0][0]);
        let is_transposed = |(number, octet): (usize, &[u16; OCTET])| {
            let row = number / octets;
            let first =
                slots[row / QUAD * QUAD * octets + number % octets][0] + (row % QUAD) as u16;
            octet
                .iter()
                .zip(0..)
                .all(|(slot, at)| *slot == first.wrapping_add(distance.wrapping_mul(at)))
        };
        if slots.iter().enumerate().all(is_transposed) {
            Self::Transposed(distance)
        } else {
            Self::Any
        }
    }
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
        spread: Spread,
    ) -> Fragment {
        Fragment {
            role,
            element,
            rows,
            columns,
            spread,
            registers,
        }
    }

    #[test]
    fn every_element_has_a_distinct_position() {
        let fragments = [
            fragment(Role::A, Element::F16, 16, 16, 4, Spread::Rows),
            fragment(Role::B, Element::F16, 16, 8, 2, Spread::Rows),
            fragment(Role::C, Element::F32, 16, 8, 4, Spread::Rows),
            fragment(Role::C, Element::F16, 16, 8, 2, Spread::Rows),
            fragment(Role::A, Element::S4, 16, 64, 4, Spread::Rows),
            fragment(Role::B, Element::B1, 256, 8, 2, Spread::Rows),
            fragment(Role::A, Element::F64, 8, 4, 1, Spread::Rows),
            fragment(Role::C, Element::F64, 8, 8, 2, Spread::Rows),
            fragment(Role::A, Element::F16, 32, 16, 8, Spread::Rows),
            fragment(Role::B, Element::F16, 16, 16, 4, Spread::Rows),
            fragment(Role::B, Element::S8, 16, 32, 4, Spread::Rows),
            fragment(Role::C, Element::F32, 8, 32, 8, Spread::Rows),
            fragment(Role::C, Element::F16, 32, 8, 4, Spread::Rows),
        ];
        for it in fragments {
            let mut seen = std::collections::HashSet::new();
            for (row, column) in
                (0..it.rows).flat_map(|row| (0..it.columns).map(move |column| (row, column)))
            {
                let home = it.home(row, column);
                assert!(
                    home.lane < 32 && home.register < it.registers,
                    "{it:?} {row} {column}: {home:?}"
                );
                assert!(
                    seen.insert((home.lane, home.register, home.shift)),
                    "{it:?} {row} {column}"
                );
            }
        }
    }

    #[test]
    fn orders_are_those_of_the_registers() {
        let order = |role, element, rows, columns, registers, spread| {
            Placed::new(fragment(role, element, rows, columns, registers, spread)).order
        };
        assert_eq!(
            order(Role::A, Element::F16, 16, 16, 4, Spread::Rows),
            Order::Octet
        );
        assert_eq!(
            order(Role::A, Element::Tf32, 16, 8, 4, Spread::Rows),
            Order::Quads
        );
        assert_eq!(
            order(Role::C, Element::F32, 16, 8, 4, Spread::Rows),
            Order::Woven
        );
        assert_eq!(
            order(Role::B, Element::F16, 16, 8, 2, Spread::Rows),
            Order::Transposed(8)
        );
        assert_eq!(
            order(Role::B, Element::Tf32, 8, 8, 2, Spread::Rows),
            Order::Transposed(4)
        );
        assert_eq!(
            order(Role::B, Element::F16, 16, 16, 4, Spread::Rows),
            Order::Transposed(8)
        );
        assert_eq!(
            order(Role::B, Element::F16, 16, 32, 8, Spread::Rows),
            Order::Transposed(8)
        );
        assert_eq!(
            order(Role::C, Element::F32, 32, 8, 8, Spread::Rows),
            Order::Woven
        );
        assert_eq!(
            order(Role::C, Element::F16, 16, 16, 4, Spread::Rows),
            Order::Octet
        );
        assert_eq!(
            order(Role::C, Element::F32, 8, 32, 8, Spread::Rows),
            Order::Any
        );
    }

    #[test]
    fn positions_are_those_of_the_isa() {
        let a = fragment(Role::A, Element::F16, 16, 16, 4, Spread::Rows);
        assert_eq!(
            a.home(9, 3),
            Home {
                lane: 5,
                register: 1,
                shift: 16
            }
        );
        assert_eq!(
            a.home(1, 10),
            Home {
                lane: 5,
                register: 2,
                shift: 0
            }
        );
        let b = fragment(Role::B, Element::S8, 32, 8, 2, Spread::Rows);
        assert_eq!(
            b.home(17, 2),
            Home {
                lane: 8,
                register: 1,
                shift: 8
            }
        );
        let c = fragment(Role::C, Element::F32, 16, 8, 4, Spread::Rows);
        assert_eq!(
            c.home(8, 7),
            Home {
                lane: 3,
                register: 3,
                shift: 0
            }
        );
    }
}

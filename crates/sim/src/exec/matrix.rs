//! Matrices spread over the lanes of a warp: which lane holds which element, and their products.

/// What the elements of a matrix are.
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
    /// Bits that an element takes in a register.
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

    /// Whether products are of integers.
    pub(crate) const fn is_integer(self) -> bool {
        matches!(self, Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1 | Self::S32)
    }
}

/// Which of the three matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    A,
    B,
    /// The addend and the result.
    C,
}

/// How a matrix lies in the registers of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) role: Role,
    pub(crate) element: Element,
    /// Rows and columns: of A `m × k`, of B `k × n`, of C `m × n`.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    /// Whether the place of an element is ours to choose, as for `wmma`.
    pub(crate) opaque: bool,
    /// Registers of each lane.
    pub(crate) registers: u32,
}

/// An element's place: its lane, its register, and the bit in the register where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) lane: u32,
    pub(crate) register: u32,
    pub(crate) shift: u32,
}

impl Fragment {
    /// Elements in a register.
    fn per_register(&self) -> u32 {
        if self.element == Element::F64 { 1 } else { 32 / self.element.bits() }
    }

    /// Where an element is.
    pub(crate) fn home(&self, row: u32, column: u32) -> Home {
        let each = self.per_register();
        if self.opaque {
            let number = row * self.columns + column;
            let slots = self.registers * each;
            let (lane, slot) = (number / slots, number % slots);
            return Home { lane, register: slot / each, shift: slot % each * self.element.bits() };
        }
        match self.role {
            Role::A => self.home_along(row, column, self.rows > 8),
            Role::B => self.home_along(column, row, false),
            Role::C => self.home_of_result(row, column),
        }
    }

    /// A and B: four lanes share a row of A, each with as many neighbours along `k` as a register holds.
    fn home_along(&self, across: u32, along: u32, two_halves: bool) -> Home {
        let each = self.per_register();
        let (part, within) = (along / (4 * each), along % (4 * each));
        let lane = across % 8 * 4 + within / each;
        let register = if two_halves { part * 2 + across / 8 } else { part };
        Home { lane, register, shift: within % each * self.element.bits() }
    }

    /// C: four lanes share a row, each with two neighbours.
    fn home_of_result(&self, row: u32, column: u32) -> Home {
        let lane = row % 8 * 4 + column / 2;
        let slot = row / 8 * 2 + column % 2;
        let each = self.per_register();
        Home { lane, register: slot / each, shift: slot % each * self.element.bits() }
    }
}

/// How a product of a matrix is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulation {
    /// Sum of products.
    Sum,
    /// The number of bits set in both, or in one of both.
    PopulationOfAnd,
    PopulationOfXor,
}

/// `c + Σ a·b` of floating-point numbers, for one element of the result.
///
/// Tensor cores add the products of a block in a wide accumulator and round once; the sum in f64 is as close as
/// hardware's, and exact for products of 16-bit numbers of like magnitude.
pub(crate) fn dot(c: f64, pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    pairs.fold(c, |sum, (a, b)| a.mul_add(b, sum))
}

/// `c + Σ a·b` of integers, clamped to 32 bits if it saturates.
pub(crate) fn dot_integers(c: i32, pairs: impl Iterator<Item = (i64, i64)>, saturates: bool) -> i32 {
    let sum = pairs.fold(i64::from(c), |sum, (a, b)| sum + a * b);
    if saturates { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 } else { sum as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(role: Role, element: Element, rows: u32, columns: u32, registers: u32, opaque: bool) -> Fragment {
        Fragment { role, element, rows, columns, opaque, registers }
    }

    #[test]
    fn every_element_has_a_home_of_its_own() {
        let fragments = [
            fragment(Role::A, Element::F16, 16, 16, 4, false),
            fragment(Role::B, Element::F16, 16, 8, 2, false),
            fragment(Role::C, Element::F32, 16, 8, 4, false),
            fragment(Role::C, Element::F16, 16, 8, 2, false),
            fragment(Role::A, Element::S4, 16, 64, 4, false),
            fragment(Role::B, Element::B1, 256, 8, 2, false),
            fragment(Role::A, Element::F64, 8, 4, 1, false),
            fragment(Role::C, Element::F64, 8, 8, 2, false),
            fragment(Role::A, Element::F16, 16, 16, 8, true),
        ];
        for it in fragments {
            let mut seen = std::collections::HashSet::new();
            for (row, column) in (0..it.rows).flat_map(|row| (0..it.columns).map(move |column| (row, column))) {
                let home = it.home(row, column);
                assert!(home.lane < 32 && home.register < it.registers, "{it:?} {row} {column}: {home:?}");
                assert!(seen.insert((home.lane, home.register, home.shift)), "{it:?} {row} {column}");
            }
        }
    }

    #[test]
    fn homes_are_those_of_the_instruction_set() {
        let a = fragment(Role::A, Element::F16, 16, 16, 4, false);
        assert_eq!(a.home(9, 3), Home { lane: 5, register: 1, shift: 16 });
        assert_eq!(a.home(1, 10), Home { lane: 5, register: 2, shift: 0 });
        let b = fragment(Role::B, Element::S8, 32, 8, 2, false);
        assert_eq!(b.home(17, 2), Home { lane: 8, register: 1, shift: 8 });
        let c = fragment(Role::C, Element::F32, 16, 8, 4, false);
        assert_eq!(c.home(8, 7), Home { lane: 3, register: 3, shift: 0 });
    }

    #[test]
    fn integer_sums_wrap_or_saturate() {
        let pairs = || [(127_i64, 127_i64)].into_iter();
        assert_eq!(dot_integers(i32::MAX, pairs(), true), i32::MAX);
        assert_eq!(dot_integers(i32::MAX, pairs(), false), i32::MIN + 127 * 127 - 1);
    }
}

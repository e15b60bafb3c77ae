//! Reads of matrices of 16-bit numbers, TF32 and f32: four words at a time, wherever the order of the elements permits.

use super::number::Number as _;
use super::registers::{gather, unpack};
use super::{Element, Numbers, OCTET, Order, Placed, QUAD};
use crate::exec::lane::LANES;
use crate::exec::narrow::rows::Narrow;
use crate::exec::narrow::{Bfloat, Half};
use crate::exec::unit::Unit;

/// Words of neighboring lanes.
type Quad = [u32; QUAD];

/// Eight neighbors in a row of a matrix.
type Octet = [f32; OCTET];

/// The most registers of a fragment that [`read`] can read.
pub(super) const REGISTERS: usize = 8;

/// The registers of a fragment, each with `EACH` elements.
struct Registers<'u, const EACH: usize>([&'u [Quad; LANES / QUAD]; REGISTERS]);

impl<'u, const EACH: usize> Registers<'u, EACH> {
    #[inline(always)]
    fn new(unit: &'u Unit<'_>, rows: &[u32]) -> Self {
        let mut registers = [&[[0; QUAD]; LANES / QUAD]; REGISTERS];
        for (register, &row) in registers.iter_mut().zip(rows) {
            if let Some(quads) = unit.frame.row::<u32>(row).as_chunks().0.first_chunk() {
                *register = quads;
            }
        }
        Self(registers)
    }

    /// Returns the words that begin with an element, given by its slot.
    #[inline(always)]
    fn at(&self, slot: u16) -> Quad {
        let quad = usize::from(slot) / (EACH * QUAD);
        self.0[quad / (LANES / QUAD) % REGISTERS][quad % (LANES / QUAD)]
    }
}

/// Reads the matrix in the rows `rows`. The functions are not inlined, because they are long and serve all three operands.
#[inline(always)]
pub(super) fn read<const WIDE: bool>(
    unit: &Unit<'_>,
    placed: &Placed,
    rows: &[u32],
    values: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline(never)]
    fn read_wide(unit: &Unit<'_>, placed: &Placed, rows: &[u32], values: &mut [f32]) {
        read_any::<true>(unit, placed, rows, values);
    }

    #[inline(never)]
    fn read_base(unit: &Unit<'_>, placed: &Placed, rows: &[u32], values: &mut [f32]) {
        read_any::<false>(unit, placed, rows, values);
    }

    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only handlers selected for AVX2, FMA and F16C call it.
        return unsafe { read_wide(unit, placed, rows, values) };
    }
    read_base(unit, placed, rows, values);
}

#[inline(always)]
fn read_any<const WIDE: bool>(unit: &Unit<'_>, placed: &Placed, rows: &[u32], values: &mut [f32]) {
    let octets = values.as_chunks_mut().0;
    let is_read = match placed.fragment.element {
        Element::F16 => read_halves::<Half, WIDE>(&Registers::new(unit, rows), placed, octets),
        Element::Bf16 => read_halves::<Bfloat, WIDE>(&Registers::new(unit, rows), placed, octets),
        // The low bits of the fraction do not count.
        Element::Tf32 => read_words::<0x1fff, WIDE>(&Registers::new(unit, rows), placed, octets),
        _ => read_words::<0, WIDE>(&Registers::new(unit, rows), placed, octets),
    };
    if !is_read {
        let mut numbers = Numbers::from_elem(0.0, rows.len() * placed.in_register());
        unpack::<f32, WIDE>(unit, placed, rows, &mut numbers);
        gather::<f32, WIDE>(placed, &numbers, values);
    }
}

/// Reads 16-bit elements. Returns `false`, with nothing done, if their order requires them to be read one by one.
#[inline(always)]
fn read_halves<T: Narrow, const WIDE: bool>(
    registers: &Registers<'_, 2>,
    placed: &Placed,
    octets: &mut [Octet],
) -> bool {
    match placed.order {
        Order::Octet => {
            for (octet, slots) in octets.iter_mut().zip(&placed.slots) {
                *octet = T::octet::<WIDE>(registers.at(slots[0]));
            }
        }
        // A quad has eight elements of a column.
        Order::Transposed(distance) if usize::from(distance) == OCTET => {
            let across = placed.fragment.octets();
            let tiles = octets
                .chunks_exact_mut(OCTET * across)
                .zip(placed.slots.chunks_exact(OCTET * across));
            for (octets, slots) in tiles {
                for at in 0..across {
                    let (mut upper, mut lower) = ([[0.0; QUAD]; OCTET], [[0.0; QUAD]; OCTET]);
                    for (column, &slot) in slots[at].iter().enumerate() {
                        let [a, b, c, d, e, f, g, h] = T::octet::<WIDE>(registers.at(slot));
                        (upper[column], lower[column]) = ([a, b, c, d], [e, f, g, h]);
                    }
                    let (upper, lower) = (
                        f32::transpose::<WIDE>(&upper),
                        f32::transpose::<WIDE>(&lower),
                    );
                    for row in 0..QUAD {
                        octets[row * across + at] = upper[row];
                        octets[(row + QUAD) * across + at] = lower[row];
                    }
                }
            }
        }
        _ => return false,
    }
    true
}

/// Reads f32 without the bits of a mask. Returns `false` as [`read_halves`] does.
#[inline(always)]
fn read_words<const DROPPED: u32, const WIDE: bool>(
    registers: &Registers<'_, 1>,
    placed: &Placed,
    octets: &mut [Octet],
) -> bool {
    let single = |word: u32| f32::from_bits(word & !DROPPED);
    match placed.order {
        Order::Octet | Order::Quads => {
            for (octet, slots) in octets.iter_mut().zip(&placed.slots) {
                let ([a, b, c, d], [e, f, g, h]) =
                    (registers.at(slots[0]), registers.at(slots[QUAD]));
                *octet = [
                    single(a),
                    single(b),
                    single(c),
                    single(d),
                    single(e),
                    single(f),
                    single(g),
                    single(h),
                ];
            }
        }
        Order::Woven => {
            for (octet, slots) in octets.iter_mut().zip(&placed.slots) {
                let ([a, c, e, g], [b, d, f, h]) = (registers.at(slots[0]), registers.at(slots[1]));
                *octet = [
                    single(a),
                    single(b),
                    single(c),
                    single(d),
                    single(e),
                    single(f),
                    single(g),
                    single(h),
                ];
            }
        }
        // A quad has four elements of a column.
        Order::Transposed(distance) if usize::from(distance) == QUAD => {
            let across = placed.fragment.octets();
            let tiles = octets
                .chunks_exact_mut(QUAD * across)
                .zip(placed.slots.chunks_exact(QUAD * across));
            for (octets, slots) in tiles {
                for at in 0..across {
                    let mut tile = [[0.0; QUAD]; OCTET];
                    for (column, &slot) in tile.iter_mut().zip(&slots[at]) {
                        let [a, b, c, d] = registers.at(slot);
                        *column = [single(a), single(b), single(c), single(d)];
                    }
                    for (row, octet) in f32::transpose::<WIDE>(&tile).into_iter().enumerate() {
                        octets[row * across + at] = octet;
                    }
                }
            }
        }
        _ => return false,
    }
    true
}

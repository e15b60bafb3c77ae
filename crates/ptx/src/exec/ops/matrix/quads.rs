//! Reads of matrices of 16-bit numbers, TF32 and f32: four words at a time, wherever the order of
//! the elements permits.

use super::registers::{gather, unpack};
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::number::Number as _;
use crate::exec::matrix::{Element, FragmentLayout, Numbers, OCTET, Order, QUAD};
use crate::exec::values::lane::LANES;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::exec::values::narrow_rows::Narrow;

/// Words of neighboring lanes.
type Quad = [u32; QUAD];

/// Eight neighbors in a row of a matrix.
type Octet = [f32; OCTET];

/// The most registers of a fragment that [`read`] can read.
pub(super) const REGISTERS: usize = 8;

/// The registers of a fragment, each with `ELEMENTS` elements.
struct Registers<'u, const ELEMENTS: usize>([&'u [Quad; LANES / QUAD]; REGISTERS]);

impl<'u, const ELEMENTS: usize> Registers<'u, ELEMENTS> {
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
        let quad = usize::from(slot) / (ELEMENTS * QUAD);
        self.0[quad / (LANES / QUAD) % REGISTERS][quad % (LANES / QUAD)]
    }
}

/// Reads the matrix in the rows `rows`. The functions are not inlined, because they are long and
/// serve all three operands.
#[inline(always)]
pub(super) fn read<const WIDE: bool>(
    unit: &Unit<'_>,
    layout: &FragmentLayout,
    rows: &[u32],
    values: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline(never)]
    fn read_wide(unit: &Unit<'_>, layout: &FragmentLayout, rows: &[u32], values: &mut [f32]) {
        read_any::<true>(unit, layout, rows, values);
    }

    #[inline(never)]
    fn read_base(unit: &Unit<'_>, layout: &FragmentLayout, rows: &[u32], values: &mut [f32]) {
        read_any::<false>(unit, layout, rows, values);
    }

    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only handlers selected for AVX2, FMA and F16C call it.
        return unsafe { read_wide(unit, layout, rows, values) };
    }
    read_base(unit, layout, rows, values);
}

#[inline(always)]
fn read_any<const WIDE: bool>(
    unit: &Unit<'_>,
    layout: &FragmentLayout,
    rows: &[u32],
    values: &mut [f32],
) {
    let octets = values.as_chunks_mut().0;
    let is_read = match layout.fragment.element {
        Element::F16 => read_halves::<Half, WIDE>(&Registers::new(unit, rows), layout, octets),
        Element::Bf16 => read_halves::<Bfloat, WIDE>(&Registers::new(unit, rows), layout, octets),
        // The low bits of the fraction do not count.
        Element::Tf32 => read_words::<0x1fff, WIDE>(&Registers::new(unit, rows), layout, octets),
        _ => read_words::<0, WIDE>(&Registers::new(unit, rows), layout, octets),
    };
    if !is_read {
        let mut numbers = Numbers::from_elem(0.0, rows.len() * layout.in_register());
        unpack::<f32, WIDE>(unit, layout, rows, &mut numbers);
        gather::<f32, WIDE>(layout, &numbers, values);
    }
}

/// Reads 16-bit elements. Returns `false`, without reading any, if their order requires them to be
/// read one by one.
#[inline(always)]
fn read_halves<T: Narrow, const WIDE: bool>(
    registers: &Registers<'_, 2>,
    layout: &FragmentLayout,
    octets: &mut [Octet],
) -> bool {
    match layout.order {
        Order::Octet => {
            for (octet, slots) in octets.iter_mut().zip(&layout.slots) {
                *octet = T::octet::<WIDE>(registers.at(slots[0]));
            }
        }
        // A quad has eight elements of a column.
        Order::Transposed(distance) if usize::from(distance) == OCTET => {
            let across = layout.fragment.octets();
            let tiles = octets
                .chunks_exact_mut(OCTET * across)
                .zip(layout.slots.chunks_exact(OCTET * across));
            for (octets, slots) in tiles {
                for octet in 0..across {
                    let mut upper = [[0.0; QUAD]; OCTET];
                    let mut lower = [[0.0; QUAD]; OCTET];
                    for (column, &slot) in slots[octet].iter().enumerate() {
                        let [a, b, c, d, e, f, g, h] = T::octet::<WIDE>(registers.at(slot));
                        upper[column] = [a, b, c, d];
                        lower[column] = [e, f, g, h];
                    }
                    let upper = f32::transpose::<WIDE>(&upper);
                    let lower = f32::transpose::<WIDE>(&lower);
                    for row in 0..QUAD {
                        octets[row * across + octet] = upper[row];
                        octets[(row + QUAD) * across + octet] = lower[row];
                    }
                }
            }
        }
        _ => return false,
    }
    true
}

/// Returns the f32 in words, without the bits of a mask.
#[inline(always)]
fn singles<const DROPPED: u32, const N: usize>(words: [u32; N]) -> [f32; N] {
    let mut values = [0.0; N];
    for index in 0..N {
        values[index] = f32::from_bits(words[index] & !DROPPED);
    }
    values
}

/// Reads f32 without the bits of a mask. Returns `false` as [`read_halves`] does.
#[inline(always)]
fn read_words<const DROPPED: u32, const WIDE: bool>(
    registers: &Registers<'_, 1>,
    layout: &FragmentLayout,
    octets: &mut [Octet],
) -> bool {
    match layout.order {
        Order::Octet | Order::Quads => {
            for (octet, slots) in octets.iter_mut().zip(&layout.slots) {
                let [a, b, c, d] = registers.at(slots[0]);
                let [e, f, g, h] = registers.at(slots[QUAD]);
                *octet = singles::<DROPPED, OCTET>([a, b, c, d, e, f, g, h]);
            }
        }
        Order::Interleaved => {
            for (octet, slots) in octets.iter_mut().zip(&layout.slots) {
                let [a, c, e, g] = registers.at(slots[0]);
                let [b, d, f, h] = registers.at(slots[1]);
                *octet = singles::<DROPPED, OCTET>([a, b, c, d, e, f, g, h]);
            }
        }
        // A quad has four elements of a column.
        Order::Transposed(distance) if usize::from(distance) == QUAD => {
            let across = layout.fragment.octets();
            let tiles = octets
                .chunks_exact_mut(QUAD * across)
                .zip(layout.slots.chunks_exact(QUAD * across));
            for (octets, slots) in tiles {
                for octet in 0..across {
                    let mut tile = [[0.0; QUAD]; OCTET];
                    for (column, &slot) in tile.iter_mut().zip(&slots[octet]) {
                        *column = singles::<DROPPED, QUAD>(registers.at(slot));
                    }
                    for (row, values) in f32::transpose::<WIDE>(&tile).into_iter().enumerate() {
                        octets[row * across + octet] = values;
                    }
                }
            }
        }
        _ => return false,
    }
    true
}

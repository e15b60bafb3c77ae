//! `mma` and `wmma`: products of matrices spread over a warp.

use super::address::scalar;
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::exact::{self, Rounding};
use crate::exec::float::{Real, canonical};
use crate::exec::matrix::{Accumulation, Element, Fragment, Role, dot, dot_integers};
use crate::exec::narrow::{Bfloat, Half};
use crate::exec::op::{Control, Op};
use crate::exec::program::Product;
use crate::exec::small_float::{E4M3, E5M2};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Opcode, Operand, Operation, ScalarType, Shape};

impl Lowerer<'_> {
    /// `mma`, `wmma.mma`.
    pub(super) fn multiply_matrices(&mut self, instruction: &Instruction) -> Lowered {
        let [d, a, b, c] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let product = product(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let opaque = instruction.opcode == Opcode::Wmma;
        let Shape { m, n, k } = product.shape;
        let (m, n, k) = (u32::from(m), u32::from(n), u32::from(k));
        let [to, left, right, addend] = product.elements;
        let mut rows = Vec::new();
        let sides =
            [(d, Role::C, to, m, n), (a, Role::A, left, m, k), (b, Role::B, right, k, n), (c, Role::C, addend, m, n)];
        let mut fragments = Vec::new();
        for (operand, role, element, height, width) in sides {
            let list = self.fragment_rows(operand, element)?;
            let registers = list.len() as u32;
            let fragment = Fragment { role, element, rows: height, columns: width, opaque, registers };
            let needed = (height * width * element.bits()).div_ceil(32 * if element == Element::F64 { 64 } else { 32 });
            if registers < needed.max(1) || registers > 16 {
                return Err(Refusal::form(instruction));
            }
            fragments.push(fragment);
            rows.push(list);
        }
        let list = self.row_list(rows.concat());
        let fragments = <[Fragment; 4]>::try_from(fragments).map_err(|_| Refusal::form(instruction))?;
        self.out.products.push(Product { fragments, ..product.rest(list) });
        let number = self.out.products.len() as u64 - 1;
        self.diverging(run_product).imm = number;
        Ok(())
    }

    /// The rows of a fragment's registers.
    pub(super) fn fragment_rows(&mut self, operand: &Operand, element: Element) -> Lowered<Vec<u32>> {
        let elements = match operand {
            Operand::Vector(elements) => elements,
            single => std::slice::from_ref(single),
        };
        let double = element == Element::F64;
        let mut rows = Vec::new();
        for element in elements {
            let slot = match element {
                Operand::Register(register) => self.slot(*register),
                Operand::Element(register, index) => self.element(*register, *index),
                other => {
                    rows.push(self.source(other, if double { ScalarType::F64 } else { ScalarType::B32 })?);
                    continue;
                }
            };
            rows.push(match (slot, double) {
                (Slot::Word(row), false) | (Slot::Double(row), true) => row,
                _ => return Err(Refusal::operand("a register as wide as the matrix's elements need")),
            });
        }
        Ok(rows)
    }
}

/// What an instruction multiplies.
struct Decoded {
    shape: Shape,
    /// Of the result, A, B, and the addend.
    elements: [Element; 4],
    accumulation: Accumulation,
    saturates: bool,
}

impl Decoded {
    fn rest(&self, rows: u32) -> Product {
        let unset = Fragment { role: Role::C, element: Element::F32, rows: 0, columns: 0, opaque: false, registers: 0 };
        Product { fragments: [unset; 4], rows, accumulation: self.accumulation, saturates: self.saturates }
    }
}

fn product(instruction: &Instruction) -> Option<Decoded> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    if [Keyword::Sp, Keyword::SpOrderedMetadata, Keyword::BlockScale].into_iter().any(has) {
        return None;
    }
    let shape = shape(instruction)?;
    let mut elements = Vec::new();
    for scalar in instruction.types() {
        elements.push(element(scalar)?);
    }
    let elements = match elements[..] {
        [d, a, b, c] => [d, a, b, c],
        // `wmma` of f16 names the result and the addend only.
        [d, c] if instruction.opcode == Opcode::Wmma => [d, Element::F16, Element::F16, c],
        _ => return None,
    };
    let operation = |operation| instruction.has(Modifier::Operation(operation));
    let is_bits = elements[1] == Element::B1;
    let accumulation = match (is_bits, operation(Operation::And), operation(Operation::Xor)) {
        (true, true, _) => Accumulation::PopulationOfAnd,
        (true, _, true) => Accumulation::PopulationOfXor,
        (false, false, false) => Accumulation::Sum,
        _ => return None,
    };
    let saturates = instruction.has(Modifier::SaturateFinite);
    exists(instruction.opcode, shape, elements, saturates).then_some(Decoded {
        shape,
        elements,
        accumulation,
        saturates,
    })
}

/// Whether there are these elements, of the result, A, B and the addend, in a shape.
fn exists(opcode: Opcode, shape: Shape, [result, left, right, addend]: [Element; 4], saturates: bool) -> bool {
    use Element as E;
    let is_tile = opcode == Opcode::Wmma;
    let Some((shapes, results)) = (if is_tile { tiles(left) } else { products(left) }) else { return false };
    let mixed = [[E::E4m3, E::E5m2], [E::S8, E::U8], [E::S4, E::U4]];
    let fit = left == right || !is_tile && mixed.iter().any(|pair| pair.contains(&left) && pair.contains(&right));
    let may_saturate = [E::S8, E::U8, E::S4, E::U4].contains(&left);
    fit && (is_tile || result == addend)
        && [result, addend].iter().all(|element| results.contains(element))
        && (may_saturate || !saturates)
        && shapes.contains(&[shape.m, shape.n, shape.k])
}

/// The shapes that `mma` has for elements of A, and what the results are.
fn products(left: Element) -> Option<(&'static [[u16; 3]], &'static [Element])> {
    use Element as E;
    Some(match left {
        // The first form of the instruction, of 8 by 8 by 4, spreads its elements in a way of its own.
        E::F16 => (&[[16, 8, 8], [16, 8, 16]], &[E::F16, E::F32]),
        E::Bf16 => (&[[16, 8, 8], [16, 8, 16]], &[E::F32]),
        E::Tf32 => (&[[16, 8, 4], [16, 8, 8]], &[E::F32]),
        E::F64 => (&[[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]], &[E::F64]),
        E::E4m3 | E::E5m2 => (&[[16, 8, 16], [16, 8, 32]], &[E::F16, E::F32]),
        E::S8 | E::U8 => (&[[8, 8, 16], [16, 8, 16], [16, 8, 32]], &[E::S32]),
        E::S4 | E::U4 => (&[[8, 8, 32], [16, 8, 32], [16, 8, 64]], &[E::S32]),
        E::B1 => (&[[8, 8, 128], [16, 8, 128], [16, 8, 256]], &[E::S32]),
        E::F32 | E::S32 => return None,
    })
}

/// The same for `wmma`.
fn tiles(left: Element) -> Option<(&'static [[u16; 3]], &'static [Element])> {
    use Element as E;
    const EACH: &[[u16; 3]] = &[[16, 16, 16], [8, 32, 16], [32, 8, 16]];
    Some(match left {
        E::F16 => (EACH, &[E::F16, E::F32]),
        E::Bf16 => (EACH, &[E::F32]),
        E::S8 | E::U8 => (EACH, &[E::S32]),
        E::Tf32 => (&[[16, 16, 8]], &[E::F32]),
        E::F64 => (&[[8, 8, 4]], &[E::F64]),
        E::S4 | E::U4 => (&[[8, 8, 32]], &[E::S32]),
        E::B1 => (&[[8, 8, 128]], &[E::S32]),
        E::F32 | E::S32 | E::E4m3 | E::E5m2 => return None,
    })
}

/// The shape that an instruction names.
pub(super) fn shape(instruction: &Instruction) -> Option<Shape> {
    instruction.modifiers.iter().find_map(|modifier| match modifier {
        Modifier::Shape(shape) => Some(*shape),
        _ => None,
    })
}

/// The element of a matrix of a type.
pub(super) fn element(scalar: ScalarType) -> Option<Element> {
    use ScalarType as S;
    Some(match scalar {
        S::F16 => Element::F16,
        S::Bf16 => Element::Bf16,
        S::Tf32 => Element::Tf32,
        S::F32 => Element::F32,
        S::F64 => Element::F64,
        S::E4m3 => Element::E4m3,
        S::E5m2 => Element::E5m2,
        S::S8 => Element::S8,
        S::U8 => Element::U8,
        S::S4 => Element::S4,
        S::U4 => Element::U4,
        S::B1 => Element::B1,
        S::S32 => Element::S32,
        _ => return None,
    })
}

/// A matrix read out of the registers of a warp.
struct Values {
    bits: Vec<u64>,
    element: Element,
    columns: usize,
}

impl Values {
    fn read(unit: &Unit<'_>, fragment: &Fragment, rows: &[u32]) -> Self {
        let mut bits = Vec::with_capacity((fragment.rows * fragment.columns) as usize);
        let width = fragment.element.bits();
        for row in 0..fragment.rows {
            for column in 0..fragment.columns {
                let home = fragment.home(row, column);
                let (index, lane) = (rows[home.register as usize], home.lane as usize);
                bits.push(match fragment.element {
                    Element::F64 => unit.frame.row::<u64>(index)[lane],
                    _ => u64::from(unit.frame.row::<u32>(index)[lane] >> home.shift & (u32::MAX >> (32 - width))),
                });
            }
        }
        Self { bits, element: fragment.element, columns: fragment.columns as usize }
    }

    fn number(&self, row: usize, column: usize) -> f64 {
        let bits = self.bits[row * self.columns + column];
        match self.element {
            Element::F16 => Half(bits as u16).to_f64(),
            Element::Bf16 => Bfloat(bits as u16).to_f64(),
            // The low bits of the fraction do not count.
            Element::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
            Element::F64 => f64::from_bits(bits),
            Element::E4m3 => E4M3.widen(bits as u32),
            Element::E5m2 => E5M2.widen(bits as u32),
            _ => f64::from(f32::from_bits(bits as u32)),
        }
    }

    fn integer(&self, row: usize, column: usize) -> i64 {
        let bits = self.bits[row * self.columns + column];
        match self.element {
            Element::S8 => i64::from(bits as i8),
            Element::S4 => (bits << 60).cast_signed() >> 60,
            Element::S32 => i64::from(bits as i32),
            _ => bits.cast_signed(),
        }
    }
}

fn run_product(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The instruction is one of all lanes: those that are missing come first.
    unit.needed = u32::MAX;
    if unit.warp.live & !unit.active != 0 {
        return Control::Converge;
    }
    let program = unit.launch.program;
    let function = &program.functions[unit.frame.function as usize];
    let product = &function.products[op.imm as usize];
    let mut rows = function.row_lists[product.rows as usize].as_slice();
    let mut take = |fragment: &Fragment| {
        let (taken, rest) = rows.split_at(fragment.registers as usize);
        rows = rest;
        taken
    };
    let [to, left, right, addend] = &product.fragments;
    let to_rows = take(to);
    let a = Values::read(unit, left, take(left));
    let b = Values::read(unit, right, take(right));
    let c = Values::read(unit, addend, take(addend));
    clear(unit, to, to_rows);
    for row in 0..to.rows {
        for column in 0..to.columns {
            let bits = element_of_product(product, [&a, &b, &c], row as usize, column as usize);
            put(unit, to, to_rows, row, column, bits);
        }
    }
    Control::Next
}

/// The bits of one element of `a × b + c`.
fn element_of_product(product: &Product, [a, b, c]: [&Values; 3], row: usize, column: usize) -> u64 {
    let inner = a.columns;
    if a.element.is_integer() {
        let addend = c.integer(row, column) as i32;
        let pairs = (0..inner).map(|k| {
            let (a, b) = (a.integer(row, k), b.integer(k, column));
            match product.accumulation {
                Accumulation::Sum => (a, b),
                Accumulation::PopulationOfAnd => (a & b, 1),
                Accumulation::PopulationOfXor => (a ^ b, 1),
            }
        });
        return u64::from(dot_integers(addend, pairs, product.saturates).cast_unsigned());
    }
    let pair = |k| (a.number(row, k), b.number(k, column));
    let addend = c.number(row, column);
    let sum = || dot(addend, (0..inner).map(pair));
    match product.fragments[0].element {
        Element::F64 => sum().to_bits(),
        Element::F16 if a.element.bits() == 8 => sum_of_halves(addend, inner, pair),
        Element::F16 => half(sum()),
        _ => u64::from(canonical(sum() as f32).to_bits()),
    }
}

/// The bits of one element of a product of numbers of 8 bits as a number of 16: the driver makes two products of halves of it, one of every
/// four places' first two and one of the others, and adds what was to be added in the end.
fn sum_of_halves(addend: f64, inner: usize, pair: impl Fn(usize) -> (f64, f64) + Copy) -> u64 {
    let part = |sum, first| half(dot(sum, (0..inner).filter(|k| k % 4 / 2 == first).map(pair)));
    let number = |bits: u64| Half(bits as u16).to_f64();
    half(number(part(number(part(0.0, 0)), 1)) + addend)
}

/// The bits of the nearest number of 16 bits.
fn half(value: f64) -> u64 {
    if value.is_nan() { Half::nan(&[]).bits() } else { exact::narrow(value, exact::F16, Rounding::Nearest) }
}

/// Clears the registers that several elements share.
pub(super) fn clear(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32]) {
    if fragment.element.bits() < 32 {
        for &row in rows {
            unit.frame.row_mut::<u32>(row).0 = [0; 32];
        }
    }
}

/// Writes an element of a matrix whose registers were cleared; in opaque fragments, everywhere that it belongs.
pub(super) fn put(unit: &mut Unit<'_>, fragment: &Fragment, rows: &[u32], row: u32, column: u32, bits: u64) {
    let home = fragment.home(row, column);
    let (index, lane) = (rows[home.register as usize], home.lane as usize);
    match fragment.element.bits() {
        64 => unit.frame.row_mut::<u64>(index).0[lane] = bits,
        32 => unit.frame.row_mut::<u32>(index).0[lane] = bits as u32,
        _ => unit.frame.row_mut::<u32>(index).0[lane] |= (bits as u32) << home.shift,
    }
}

/// The type of the elements that `wmma.load` and `wmma.store` move.
pub(super) fn moved_element(instruction: &Instruction) -> Lowered<Element> {
    let scalar = scalar(instruction)?;
    element(scalar).ok_or_else(|| Refusal::scalar(instruction, scalar))
}

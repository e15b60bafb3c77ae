//! `wgmma`: products of matrices by warpgroups, and their waits.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::matrix::{SparsityOperands, accumulation, element, shape};
use crate::exec::machine::op::Op;
use crate::exec::matrix::multiply::{ComputeUnit, ProductKind};
use crate::exec::matrix::{Distribution, Element, Fragment, FragmentLayout, Role};
use crate::exec::operands::warpgroup::{Left, SharedFactor, WarpgroupProduct};
use crate::exec::ops::warpgroup::{ROWS, multiply, run_wait};
use crate::syntax::{Instruction, Keyword, Modifier, Operand, Shape};

impl Lowerer<'_> {
    /// `wgmma`.
    pub(super) fn warpgroup(&mut self, instruction: &Instruction) -> Lowered {
        if !(instruction.has_keyword(Keyword::Sync) && instruction.has_keyword(Keyword::Aligned)) {
            return Err(Refusal::form(instruction));
        }
        match &instruction.operands[..] {
            // Products are computed immediately, so fences and commits have no effect.
            [] if instruction.has_keyword(Keyword::Fence)
                || instruction.has_keyword(Keyword::CommitGroup) =>
            {
                Ok(())
            }
            [Operand::Integer(_)] if instruction.has_keyword(Keyword::WaitGroup) => {
                self.diverging(run_wait);
                Ok(())
            }
            operands if instruction.has_keyword(Keyword::MmaAsync) => {
                self.multiply_by_warpgroup(instruction, operands)
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    fn multiply_by_warpgroup(
        &mut self,
        instruction: &Instruction,
        operands: &[Operand],
    ) -> Lowered {
        let decoded = decode(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let [result, factor, right] = decoded.elements;
        let operands = Operands::parse(operands, decoded.is_sparse)
            .ok_or_else(|| Refusal::form(instruction))?;
        let is_shared = !matches!(operands.a, Operand::Vector(_));
        let [first, second] = sides(operands.rest, [factor, right], is_shared)
            .ok_or_else(|| Refusal::form(instruction))?;
        let inner = u32::from(decoded.shape.k);
        let to = part(Role::C, result, u32::from(decoded.shape.n));
        let mut rows = self.part_rows(instruction, operands.d, &to)?;
        let (a, left) = if is_shared {
            (self.descriptor(operands.a)?, Left::Shared(first))
        } else {
            let held = part(
                Role::A,
                factor,
                if decoded.is_sparse { inner / 2 } else { inner },
            );
            rows.extend(self.part_rows(instruction, operands.a, &held)?);
            (
                self.double(0),
                Left::Registers(FragmentLayout::new(held), first.is_negative),
            )
        };
        let b = self.descriptor(operands.b)?;
        let (c, negate) = self.predicate_source(operands.scale)?;
        let sparsity = operands
            .sparsity
            .map(|operands| self.sparsity(instruction, operands, right, inner))
            .transpose()?;
        let kind = ProductKind {
            factors: [factor, right],
            result,
            accumulation: accumulation(instruction, right)
                .ok_or_else(|| Refusal::form(instruction))?,
            saturates: instruction.has(Modifier::SaturateFinite),
            unit: ComputeUnit::Warpgroup,
        };
        let rows = self.row_list(rows);
        let to = FragmentLayout::new(to);
        let run = if right.is_integer() {
            multiply::<i32>()
        } else {
            multiply::<f32>()
        };
        self.out.warpgroup_products.push(WarpgroupProduct {
            to,
            rows,
            left,
            right: second,
            inner,
            kind,
            sparsity,
        });
        let imm = self.out.warpgroup_products.len() as u64 - 1;
        let op = self.diverging(run);
        *op = Op {
            a,
            b,
            c,
            e: negate,
            imm,
            ..*op
        };
        Ok(())
    }

    /// Returns the rows of the registers of a warp's part of a matrix.
    fn part_rows(
        &mut self,
        instruction: &Instruction,
        operand: &Operand,
        part: &Fragment,
    ) -> Lowered<Vec<u32>> {
        let rows = self.fragment_rows(operand, part.element)?;
        if rows.len() as u32 == part.registers {
            Ok(rows)
        } else {
            Err(Refusal::form(instruction))
        }
    }

    /// Returns the row of a descriptor.
    fn descriptor(&mut self, operand: &Operand) -> Lowered<u32> {
        let slot = match operand {
            Operand::Register(register) => self.slot(*register),
            Operand::Element(register, index) => self.element(*register, *index),
            _ => return Err(Refusal::operand("a descriptor in a register of 64 bits")),
        };
        match slot {
            Slot::Double(row) => Ok(row),
            _ => Err(Refusal::operand("a descriptor in a register of 64 bits")),
        }
    }
}

/// Returns a warp's part of a matrix with `columns` columns.
fn part(role: Role, element: Element, columns: u32) -> Fragment {
    let registers = ROWS * columns * element.bits() / (32 * 32);
    Fragment {
        role,
        element,
        rows: ROWS,
        columns,
        distribution: Distribution::Rows,
        registers,
    }
}

/// The operands of a product.
struct Operands<'a> {
    d: &'a Operand,
    a: &'a Operand,
    b: &'a Operand,
    sparsity: Option<SparsityOperands<'a>>,
    /// `true` if the product is added to the previous result.
    scale: &'a Operand,
    rest: &'a [Operand],
}

impl<'a> Operands<'a> {
    fn parse(operands: &'a [Operand], is_sparse: bool) -> Option<Self> {
        match operands {
            [d, a, b, metadata, selector, scale, rest @ ..] if is_sparse => Some(Self {
                d,
                a,
                b,
                sparsity: Some(SparsityOperands { metadata, selector }),
                scale,
                rest,
            }),
            [d, a, b, scale, rest @ ..] if !is_sparse => Some(Self {
                d,
                a,
                b,
                sparsity: None,
                scale,
                rest,
            }),
            _ => None,
        }
    }
}

/// Returns the properties of A and B from the immediate operands. Integers have none. Only 16-bit
/// numbers can be transposed, and A only in shared memory.
fn sides(
    operands: &[Operand],
    [left, right]: [Element; 2],
    is_shared: bool,
) -> Option<[SharedFactor; 2]> {
    let numbers = operands.iter().map(|operand| match operand {
        Operand::Integer(integer) => Some(integer.bits.cast_signed()),
        _ => None,
    });
    let numbers = numbers.collect::<Option<Vec<i64>>>()?;
    let (signs, turns) = match (&numbers[..], left.is_integer(), left.bits() == 16) {
        ([], true, _) => ([1, 1], [0, 0]),
        ([a, b], false, false) => ([*a, *b], [0, 0]),
        ([a, b, first, second], false, true) if is_shared => ([*a, *b], [*first, *second]),
        ([a, b, second], false, true) if !is_shared => ([*a, *b], [0, *second]),
        _ => return None,
    };
    let is_valid =
        signs.iter().all(|sign| sign.abs() == 1) && turns.iter().all(|turn| [0, 1].contains(turn));
    if !is_valid {
        return None;
    }
    Some([
        SharedFactor {
            element: left,
            is_negative: signs[0] < 0,
            is_transposed: turns[0] == 1,
        },
        SharedFactor {
            element: right,
            is_negative: signs[1] < 0,
            is_transposed: turns[1] == 1,
        },
    ])
}

/// A decoded product.
struct Decoded {
    shape: Shape,
    /// The elements of the result, A and B.
    elements: [Element; 3],
    is_sparse: bool,
}

fn decode(instruction: &Instruction) -> Option<Decoded> {
    use Element as E;
    let shape = shape(instruction)?;
    let elements = instruction
        .types()
        .map(element)
        .collect::<Option<Vec<_>>>()?;
    let [result, left, right] = elements[..] else {
        return None;
    };
    let is_sparse = instruction.has_keyword(Keyword::Sp);
    let mixed = [[E::E4m3, E::E5m2], [E::S8, E::U8]];
    let fit = left == right
        || mixed
            .iter()
            .any(|pair| pair.contains(&left) && pair.contains(&right));
    let results: &[Element] = match left {
        E::F16 | E::E4m3 | E::E5m2 => &[E::F16, E::F32],
        E::Bf16 | E::Tf32 => &[E::F32],
        E::S8 | E::U8 => &[E::S32],
        E::B1 if !is_sparse => &[E::S32],
        _ => return None,
    };
    // A row of A has 32 bytes, without the zeros of a sparse matrix.
    let inner = 256 / left.bits() * if is_sparse { 2 } else { 1 };
    let may_saturate = matches!(left, E::S8 | E::U8);
    let is_wide = left.is_integer() && shape.n > 32;
    let columns = (8..=256).contains(&shape.n) && shape.n % if is_wide { 16 } else { 8 } == 0;
    let exists = fit
        && results.contains(&result)
        && (shape.m, u32::from(shape.k)) == (64, inner)
        && columns
        && (may_saturate || !instruction.has(Modifier::SaturateFinite))
        && !instruction.has_operation(crate::syntax::Operation::Xor);
    exists.then_some(Decoded {
        shape,
        elements: [result, left, right],
        is_sparse,
    })
}

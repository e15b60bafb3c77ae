//! `mma` and `wmma`: products of matrix fragments.

use super::address::scalar;
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::program::Product;
use crate::exec::matrix::multiply::{ComputeUnit, ProductKind};
use crate::exec::matrix::sparsity::{Sparsity, lanes};
use crate::exec::matrix::{Accumulation, Distribution, Element, Fragment, FragmentLayout, Role};
use crate::exec::ops::matrix::dense;
use crate::exec::ops::matrix::product::multiply;
use crate::syntax::{
    Instruction, Keyword, Modifier, Opcode, Operand, Operation, ScalarType, Shape,
};

/// The shape of `mma.m8n8k4` on f16, whose fragments have their own layout.
const QUAD_PAIR_SHAPE: [u16; 3] = [8, 8, 4];

/// The operands that select the elements of a sparse matrix.
#[derive(Clone, Copy)]
pub(super) struct SparsityOperands<'i> {
    pub(super) metadata: &'i Operand,
    /// The selector of a quad's lanes.
    pub(super) selector: &'i Operand,
}

impl Lowerer<'_> {
    /// `mma`, `wmma.mma`.
    pub(super) fn multiply_matrices(&mut self, instruction: &Instruction) -> Lowered {
        let product = product(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let (matrices, metadata) = match &instruction.operands[..] {
            [matrices @ .., metadata, selector] if product.is_sparse => {
                (matrices, Some(SparsityOperands { metadata, selector }))
            }
            matrices => (matrices, None),
        };
        let Shape { m, n, k } = product.shape;
        let m = u32::from(m);
        let n = u32::from(n);
        let k = u32::from(k);
        let stored_k = if product.is_sparse { k / 2 } else { k };
        let sides = [
            (Role::C, m, n),
            (Role::A, m, stored_k),
            (Role::B, k, n),
            (Role::C, m, n),
        ];
        if matrices.len() != sides.len() {
            return Err(Refusal::form(instruction));
        }
        let mut fragments = Vec::new();
        let mut rows = Vec::new();
        for (index, (role, height, width)) in sides.into_iter().enumerate() {
            let element = product.elements[index];
            let mut list = self.fragment_rows(&matrices[index], element)?;
            let distribution = product.distribution(role);
            let registers = list.len() as u32;
            let mut fragment = Fragment {
                role,
                element,
                rows: height,
                columns: width,
                distribution,
                registers,
            };
            let distinct = fragment.distinct_registers();
            if registers != distinct && !(product.is_tile && has_copies(registers, distinct)) {
                return Err(Refusal::form(instruction));
            }
            list.truncate(distinct as usize);
            fragment.registers = distinct;
            fragments.push(fragment);
            rows.push(list);
        }
        let sparsity = metadata
            .map(|operands| self.sparsity(instruction, operands, product.elements[1], k))
            .transpose()?;
        let rows = self.row_list(rows.concat());
        let fragments = fragments
            .into_iter()
            .map(FragmentLayout::new)
            .collect::<Vec<_>>();
        let fragments =
            <[FragmentLayout; 4]>::try_from(fragments).map_err(|_| Refusal::form(instruction))?;
        let kind = product.kind();
        let product = Product {
            fragments,
            rows,
            kind,
            sparsity,
        };
        let handler = match kind.factors[0] {
            left if left.is_integer() => multiply::<i32>(),
            Element::F64 => multiply::<f64>(),
            _ => dense::handler(&product).unwrap_or_else(multiply::<f32>),
        };
        self.diverging(handler).imm = self.out.products.len() as u64;
        self.out.products.push(product);
        Ok(())
    }

    /// Returns the operands that select the elements of a sparse matrix.
    pub(super) fn sparsity(
        &mut self,
        instruction: &Instruction,
        operands: SparsityOperands<'_>,
        element: Element,
        inner: u32,
    ) -> Lowered<Sparsity> {
        let SparsityOperands { metadata, selector } = operands;
        let (Operand::Register(_), Operand::Integer(selector)) = (metadata, selector) else {
            return Err(Refusal::form(instruction));
        };
        if selector.bits >= u64::from(4 / lanes(element, inner)) {
            return Err(Refusal::operand("a valid selector of a quad's lanes"));
        }
        Ok(Sparsity {
            metadata: self.source(metadata, ScalarType::B32)?,
            selector: selector.bits as u32,
        })
    }

    /// Returns the rows of a fragment's registers.
    pub(super) fn fragment_rows(
        &mut self,
        operand: &Operand,
        element: Element,
    ) -> Lowered<Vec<u32>> {
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
                    rows.push(self.source(
                        other,
                        if double {
                            ScalarType::F64
                        } else {
                            ScalarType::B32
                        },
                    )?);
                    continue;
                }
            };
            rows.push(match (slot, double) {
                (Slot::Word(row), false) | (Slot::Double(row), true) => row,
                _ => {
                    return Err(Refusal::operand(
                        "a register of the width of the matrix's elements",
                    ));
                }
            });
        }
        Ok(rows)
    }
}

/// A decoded product.
struct Decoded {
    shape: Shape,
    /// The elements of the result, A, B, and the addend.
    elements: [Element; 4],
    /// `true` if A or B is column-major.
    by_columns: [bool; 2],
    accumulation: Accumulation,
    saturates: bool,
    is_sparse: bool,
    is_tile: bool,
}

impl Decoded {
    fn is_quad_pair_product(&self) -> bool {
        let Shape { m, n, k } = self.shape;
        self.elements[1] == Element::F16 && [m, n, k] == QUAD_PAIR_SHAPE && !self.is_tile
    }

    fn distribution(&self, role: Role) -> Distribution {
        if !self.is_quad_pair_product() {
            return Distribution::Rows;
        }
        let is_transposed = match role {
            Role::A => self.by_columns[0],
            Role::B => !self.by_columns[1],
            Role::C => false,
        };
        Distribution::QuadPair { is_transposed }
    }

    fn kind(&self) -> ProductKind {
        let [result, left, right, _] = self.elements;
        ProductKind {
            factors: [left, right],
            result,
            accumulation: self.accumulation,
            saturates: self.saturates,
            unit: if self.is_quad_pair_product() {
                ComputeUnit::QuadPair
            } else {
                ComputeUnit::Warp
            },
        }
    }
}

fn product(instruction: &Instruction) -> Option<Decoded> {
    let is_tile = instruction.opcode == Opcode::Wmma;
    let is_sparse =
        instruction.has_keyword(Keyword::Sp) || instruction.has_keyword(Keyword::SpOrderedMetadata);
    if instruction.has_keyword(Keyword::BlockScale) || is_sparse && is_tile {
        return None;
    }
    let shape = shape(instruction)?;
    let elements = instruction
        .types()
        .map(element)
        .collect::<Option<Vec<_>>>()?;
    let elements = match elements[..] {
        [d, a, b, c] => [d, a, b, c],
        // `wmma` of f16 names only the result and the addend.
        [d, c] if is_tile => [d, Element::F16, Element::F16, c],
        _ => return None,
    };
    let decoded = Decoded {
        shape,
        elements,
        by_columns: layouts(instruction)?,
        accumulation: accumulation(instruction, elements[1])?,
        saturates: instruction.has(Modifier::SaturateFinite),
        is_sparse,
        is_tile,
    };
    exists(&decoded).then_some(decoded)
}

/// Returns `true` for each of A and B that is column-major.
fn layouts(instruction: &Instruction) -> Option<[bool; 2]> {
    let layouts = instruction
        .modifiers
        .iter()
        .filter_map(|modifier| match modifier {
            Modifier::Keyword(Keyword::Row) => Some(false),
            Modifier::Keyword(Keyword::Col) => Some(true),
            _ => None,
        });
    <[bool; 2]>::try_from(layouts.collect::<Vec<_>>()).ok()
}

/// Returns the accumulation of an instruction's products.
pub(super) fn accumulation(instruction: &Instruction, left: Element) -> Option<Accumulation> {
    match (
        left == Element::B1,
        instruction.has_operation(Operation::And),
        instruction.has_operation(Operation::Xor),
    ) {
        (true, true, _) => Some(Accumulation::PopulationOfAnd),
        (true, _, true) => Some(Accumulation::PopulationOfXor),
        (false, false, false) => Some(Accumulation::Sum),
        _ => None,
    }
}

/// Returns `true` if the product exists with these elements and this shape.
fn exists(product: &Decoded) -> bool {
    use Element as E;
    let &Decoded {
        shape,
        elements: [result, left, right, addend],
        is_tile,
        is_sparse,
        ..
    } = product;
    let supported = if is_tile {
        tiles(left)
    } else if is_sparse {
        sparse_products(left)
    } else {
        products(left)
    };
    let Some((shapes, results)) = supported else {
        return false;
    };
    let mixed = [[E::E4m3, E::E5m2], [E::S8, E::U8], [E::S4, E::U4]];
    let fit = left == right
        || !is_tile
            && mixed
                .iter()
                .any(|pair| pair.contains(&left) && pair.contains(&right));
    let may_saturate = [E::S8, E::U8, E::S4, E::U4].contains(&left);
    let shape = [shape.m, shape.n, shape.k];
    let is_of_pairs = product.is_quad_pair_product();
    // `mma.m8n8k4` also adds f16 to f32, and accepts both layouts of both matrices.
    let is_widening = is_of_pairs && [result, addend] == [E::F32, E::F16];
    fit && (is_tile || is_widening || result == addend)
        && (is_tile || is_of_pairs || product.by_columns == [false, true])
        && [result, addend]
            .iter()
            .all(|element| results.contains(element))
        && (may_saturate || !product.saturates)
        && shapes.contains(&shape)
}

/// Returns `true` if the registers of a fragment of `wmma` hold its elements, once or several
/// times.
pub(super) fn has_copies(registers: u32, distinct: u32) -> bool {
    registers.is_multiple_of(distinct) && registers <= 16
}

/// Returns the shapes of `mma` for elements of A, and the possible results.
fn products(left: Element) -> Option<(&'static [[u16; 3]], &'static [Element])> {
    use Element as E;
    Some(match left {
        E::F16 => (
            &[QUAD_PAIR_SHAPE, [16, 8, 8], [16, 8, 16]],
            &[E::F16, E::F32],
        ),
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

/// Returns the shapes of `mma.sp` for elements of A, and the possible results.
fn sparse_products(left: Element) -> Option<(&'static [[u16; 3]], &'static [Element])> {
    use Element as E;
    Some(match left {
        E::F16 => (&[[16, 8, 16], [16, 8, 32]], &[E::F16, E::F32]),
        E::Bf16 => (&[[16, 8, 16], [16, 8, 32]], &[E::F32]),
        E::Tf32 => (&[[16, 8, 8], [16, 8, 16]], &[E::F32]),
        E::E4m3 | E::E5m2 => (&[[16, 8, 64]], &[E::F32]),
        E::S8 | E::U8 => (&[[16, 8, 32], [16, 8, 64]], &[E::S32]),
        E::S4 | E::U4 => (&[[16, 8, 64], [16, 8, 128]], &[E::S32]),
        E::F32 | E::F64 | E::S32 | E::B1 => return None,
    })
}

/// Returns the shapes of `wmma` for elements of A, and the possible results.
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

/// Returns the shape that an instruction names.
pub(super) fn shape(instruction: &Instruction) -> Option<Shape> {
    instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Shape(shape) => Some(*shape),
            _ => None,
        })
}

/// Returns the matrix element of a type.
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

/// Returns the element type of `wmma.load` and `wmma.store`.
pub(super) fn moved_element(instruction: &Instruction) -> Lowered<Element> {
    let scalar = scalar(instruction)?;
    element(scalar).ok_or_else(|| Refusal::scalar(instruction, scalar))
}

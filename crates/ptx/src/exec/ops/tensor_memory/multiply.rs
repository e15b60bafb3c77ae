//! `tcgen05.mma` and `tcgen05.commit`: products of matrices with sums in tensor memory, issued by
//! single threads.

use super::instruction_descriptor::InstructionDescriptor;
use super::{allocated, illegal, race, uninitialized};
use crate::exec::check::report::Trap;
use crate::exec::machine::cluster::{address_in, block_rank};
use crate::exec::machine::op::{Control, Handler, NO_REGISTER, Op};
use crate::exec::machine::tensor_memory::order::TensorAccess;
use crate::exec::machine::tensor_memory::{Region, TensorAddress, WHOLE};
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::descriptor::Descriptor;
use crate::exec::matrix::multiply::{ComputeUnit, Matrix, Multiply, Problem, ProductKind};
use crate::exec::matrix::number::Number;
use crate::exec::matrix::{Accumulation, Element, Numbers};
use crate::exec::memory::AccessMode;
use crate::exec::memory::window::{BLOCK_STRIDE, resolve};
use crate::exec::operands::tensor_memory::{TensorKind, TensorProduct};
use crate::exec::operands::warpgroup::SharedFactor;
use crate::exec::ops::access::update_at;
use crate::exec::ops::handler::versions;
use crate::exec::ops::mbarrier::Mbarrier;
use crate::exec::ops::warpgroup::{Part, load, transposed_matrix};
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The lanes of the rows of A and D.
#[derive(Clone, Copy, Debug)]
struct RowLanes {
    rows: u32,
    first: TensorAddress,
}

impl RowLanes {
    /// Returns the lanes of a matrix of 64 or 128 rows at an address, or the reason why it cannot
    /// be there.
    fn new(rows: u32, first: TensorAddress) -> Result<Self, &'static str> {
        // 64 rows occupy half of the lanes of each warp: the first or the second.
        let is_valid = first.lane == 0 || rows == 64 && first.lane == 16;
        if is_valid {
            Ok(Self { rows, first })
        } else {
            Err("tcgen05.mma: a matrix in tensor memory begins at lane 0, or 16 if it has 64 rows")
        }
    }

    /// Returns the address of a row's cell in a column, relative to the first.
    fn cell(self, row: u32, column: u32) -> TensorAddress {
        let lane = if self.rows == 64 {
            row / 16 * 32 + row % 16
        } else {
            row
        };
        self.first.offset(lane, column)
    }

    fn region(self, columns: u32) -> Region {
        let lanes = (0..self.rows).fold(0, |mask, row| mask | 1 << self.cell(row, 0).lane);
        Region {
            lanes,
            columns: self.first.column..self.first.column + columns,
        }
    }
}

versions! {
    /// Returns the handler of `tcgen05.mma`.
    multiply() = run_product [T; WIDE] where T: Number, Problem<T>: Multiply<Bits = u32>
}

#[inline(always)]
fn run_product<T: Number, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    Problem<T>: Multiply<Bits = u32>,
{
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let product = &function.tensor_products[op.table_index()];
    for thread in Lanes(unit.active) {
        if let Err(trap) = add_product::<T, WIDE>(unit, op, product, thread) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn add_product<T: Number, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    product: &TensorProduct,
    thread: usize,
) -> Result<(), Trap>
where
    Problem<T>: Multiply<Bits = u32>,
{
    let bits = unit.frame.row::<u32>(product.descriptor)[thread];
    let descriptor = InstructionDescriptor::decode(bits, product.kind)
        .map_err(|reason| illegal(thread, reason))?;
    let to = TensorAddress::from_bits(unit.frame.row::<u64>(op.a)[thread] as u32);
    let to = RowLanes::new(descriptor.rows, to).map_err(|reason| illegal(thread, reason))?;
    let left = unit.frame.row::<u64>(op.b)[thread];
    let right = unit.frame.row::<u64>(op.d)[thread];
    let disabled = disabled_lanes(unit, product, thread);
    let mut problem = Problem::<T> {
        a: if product.is_left_in_tensor_memory {
            left_in_tensor_memory(unit, thread, left as u32, &descriptor)?
        } else {
            let part = Part {
                first: 0,
                count: descriptor.rows,
                inner: descriptor.inner,
            };
            transposed_matrix(&shared_factor(unit, thread, left, descriptor.left, part)?)
        },
        ..Problem::default()
    };
    let part = Part {
        first: 0,
        count: descriptor.columns,
        inner: descriptor.inner,
    };
    problem.b = shared_factor(unit, thread, right, descriptor.right, part)?;
    problem.addend = Matrix::zeroes(descriptor.rows as usize, descriptor.columns as usize);
    let region = to.region(descriptor.columns);
    record(unit, thread, &region, AccessMode::Write)?;
    if (unit.frame.predicate(op.c) ^ op.e) >> thread & 1 == 1 {
        let checks = unit.launch.program.checking.uninitialized;
        let memory = allocated(unit.block, thread, &region, AccessMode::Read)?;
        let defined = defined_bytes(descriptor.result);
        for (index, value) in problem.addend.values.iter_mut().enumerate() {
            let row = index as u32 / descriptor.columns;
            let cell = to.cell(row, index as u32 % descriptor.columns);
            if disabled >> cell.lane & 1 == 1 {
                continue;
            }
            if checks && memory.unwritten(cell) & defined != 0 {
                return Err(uninitialized(thread, cell));
            }
            *value = addend(descriptor.result, memory.read(cell), product.scale);
        }
    }
    let kind = ProductKind {
        factors: [descriptor.left.element, descriptor.right.element],
        result: descriptor.result,
        accumulation: Accumulation::Sum,
        saturates: descriptor.saturates,
        unit: ComputeUnit::TensorMemory,
    };
    let mut results = Numbers::new();
    problem.multiply::<WIDE>(kind, &mut results);
    let memory = allocated(unit.block, thread, &region, AccessMode::Write)?;
    for (index, &value) in results.iter().enumerate() {
        let row = index as u32 / descriptor.columns;
        let cell = to.cell(row, index as u32 % descriptor.columns);
        if disabled >> cell.lane & 1 == 0 {
            memory.write(cell, value, defined_bytes(descriptor.result));
        }
    }
    Ok(())
}

/// Returns the mask of the bytes of a cell that hold a result. The upper half of a cell with an f16
/// is undefined.
fn defined_bytes(result: Element) -> u8 {
    if result == Element::F16 { 3 } else { WHOLE }
}

/// Returns the addend in a cell, divided by a power of two.
fn addend<T: Number>(result: Element, bits: u32, scale: u32) -> T {
    let bits = if result == Element::F16 {
        bits & 0xffff
    } else {
        bits
    };
    if scale == 0 {
        return T::read(result, bits.into());
    }
    let factor = 1.0 / (1_u32 << scale) as f32;
    let scaled = f32::read(result, bits.into()) * factor;
    T::read(Element::F32, scaled.to_bits().into())
}

/// Returns the mask of the lanes that keep their values.
fn disabled_lanes(unit: &Unit<'_>, product: &TensorProduct, thread: usize) -> u128 {
    let rows = product.disabled_lanes.iter().flatten();
    rows.rev().fold(0, |mask, &row| {
        mask << 32 | u128::from(unit.frame.row::<u32>(row)[thread])
    })
}

/// Reads a factor in shared memory, by rows along the inner extent.
fn shared_factor<T: Number>(
    unit: &mut Unit<'_>,
    thread: usize,
    bits: u64,
    factor: SharedFactor,
    part: Part,
) -> Result<Matrix<T>, Trap> {
    let descriptor =
        Descriptor::from_tensor_bits(bits).map_err(|reason| illegal(thread, reason))?;
    if descriptor.is_only_across() && !factor.is_transposed {
        return Err(illegal(
            thread,
            "matrix descriptor: swizzling of 32-byte atoms requires a transposed matrix",
        ));
    }
    load(unit, descriptor, factor, part)
}

/// Reads A in tensor memory, by rows.
fn left_in_tensor_memory<T: Number>(
    unit: &mut Unit<'_>,
    thread: usize,
    address: u32,
    descriptor: &InstructionDescriptor,
) -> Result<Matrix<T>, Trap> {
    let SharedFactor {
        element,
        is_negative,
        is_transposed,
    } = descriptor.left;
    if is_transposed {
        return Err(illegal(
            thread,
            "tcgen05.mma: A in tensor memory cannot be transposed",
        ));
    }
    let from = RowLanes::new(descriptor.rows, TensorAddress::from_bits(address))
        .map_err(|reason| illegal(thread, reason))?;
    let bits = element.bits();
    let region = from.region(descriptor.inner * bits / 32);
    record(unit, thread, &region, AccessMode::Read)?;
    let checks = unit.launch.program.checking.uninitialized;
    let memory = allocated(unit.block, thread, &region, AccessMode::Read)?;
    let mut matrix = Matrix::zeroes(descriptor.rows as usize, descriptor.inner as usize);
    for (index, value) in matrix.values.iter_mut().enumerate() {
        let row = index as u32 / descriptor.inner;
        let bit = index as u32 % descriptor.inner * bits;
        let cell = from.cell(row, bit / 32);
        if checks && memory.unwritten(cell) != 0 {
            return Err(uninitialized(thread, cell));
        }
        let word = memory.read(cell) >> (bit % 32) & u32::MAX >> (32 - bits);
        *value = T::read(element, word.into());
    }
    if is_negative {
        matrix.negate();
    }
    Ok(matrix)
}

/// Checks that a region is allocated, and records the access if races are checked.
pub(super) fn record(
    unit: &mut Unit<'_>,
    thread: usize,
    region: &Region,
    mode: AccessMode,
) -> Result<(), Trap> {
    let memory = allocated(unit.block, thread, region, mode)?;
    if !unit.launch.program.checking.races {
        return Ok(());
    }
    let access = TensorAccess {
        thread: thread_number(unit.warp.index, thread),
        region: region.clone(),
        is_write: mode == AccessMode::Write,
    };
    match memory.order.record_product(access) {
        Some(other) => Err(race(unit, thread, &other, region, mode)),
        None => Ok(()),
    }
}

/// Returns the linear number of a thread in its block.
fn thread_number(warp: u32, lane: usize) -> u16 {
    (warp * 32) as u16 + lane as u16
}

/// `tcgen05.commit`: arrives at mbarrier objects. Row `b` has the mask of blocks of a multicast.
pub(crate) fn run_commit(unit: &mut Unit<'_>, op: &Op) -> Control {
    for thread in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[thread];
        if let Err(trap) = commit_to_all(unit, op, thread, address) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn commit_to_all(unit: &mut Unit<'_>, op: &Op, thread: usize, address: u64) -> Result<(), Trap> {
    if op.b == NO_REGISTER {
        return commit(unit, op.space, thread, address);
    }
    let (_, offset) = resolved(op.space, address);
    for rank in Lanes(unit.frame.row::<u32>(op.b)[thread] & 0xffff) {
        let target = address_in(offset, rank as u32);
        commit(unit, Space::Shared, thread, target)?;
    }
    Ok(())
}

fn commit(unit: &mut Unit<'_>, space: Space, thread: usize, address: u64) -> Result<(), Trap> {
    update_at(unit, space, thread, address, |bits| {
        Mbarrier::from_bits(bits).arrive(1).bits()
    })?;
    let number = thread_number(unit.warp.index, thread);
    let barrier = own_barrier(unit, space, address);
    if let Some(memory) = &mut unit.block.tensor_memory {
        memory.order.commit(number, barrier);
    }
    Ok(())
}

/// Completes the accesses that an mbarrier object tracks, whose phase a thread has observed to be
/// complete.
pub(crate) fn observe_barrier(unit: &mut Unit<'_>, space: Space, address: u64) {
    if unit.block.tensor_memory.is_none() {
        return;
    }
    let barrier = own_barrier(unit, space, address);
    if let (Some(memory), Some(barrier)) = (&mut unit.block.tensor_memory, barrier) {
        memory.order.observe(barrier);
    }
}

/// Returns the offset of an mbarrier object in the block's own shared memory, or `None` if it is in
/// another block's.
fn own_barrier(unit: &Unit<'_>, space: Space, address: u64) -> Option<u64> {
    let (resolved_space, offset) = resolved(space, address);
    let rank = unit.block.rank;
    let is_own = resolved_space == Space::Shared && block_rank(offset, rank) == rank;
    is_own.then_some(offset % BLOCK_STRIDE)
}

fn resolved(space: Space, address: u64) -> (Space, u64) {
    match space {
        Space::Generic => resolve(address),
        space => (space, address),
    }
}

/// Returns the handler of a kind of products.
pub(crate) fn handler(kind: TensorKind) -> Handler {
    match kind {
        TensorKind::I8 => multiply::<i32>(),
        TensorKind::F16 | TensorKind::Tf32 | TensorKind::F8f6f4 => multiply::<f32>(),
    }
}

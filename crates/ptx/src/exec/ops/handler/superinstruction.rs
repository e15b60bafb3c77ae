//! Superinstructions: loads from shared memory and arithmetic on f32 that one handler executes.
//!
//! A kernel that computes on tiles in shared memory mostly loads two elements, multiplies them, and
//! adds the product to a sum. One by one, each of these instructions checks its addresses and moves
//! whole rows between registers and memory. A superinstruction checks all addresses before it
//! begins. Its operands come from shared memory directly, and results that only the next
//! instruction uses stay in registers of the processor.
//!
//! No kernel can observe the difference. If a lane is inactive, an address is misaligned or out of
//! bounds, or a check might report an access, then only the first instruction is executed, and the
//! others follow one by one.

#[cfg_attr(target_arch = "x86_64", path = "superinstruction/avx2.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "superinstruction/portable.rs")]
mod values;

use std::ops::Range;

use crate::exec::frame::Frame;
use crate::exec::machine::op::{Control, Handler, NO_REGISTER, Op, Operation};
use crate::exec::machine::superinstruction::{
    AddressRegister, MAX_ADDRESSES, Operand, Step, Superinstruction,
};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::StridedMemory;
use crate::exec::memory::access_pattern::AccessPattern;
use crate::exec::ops::race::RegisterReads;
use crate::exec::ops::{race, uninitialized};
use crate::exec::values::lane::FULL;
use values::Values;

/// Returns the handler of superinstructions, or `None` if they would not be faster on this
/// processor.
pub(crate) fn handler() -> Option<Handler> {
    #[cfg(target_arch = "x86_64")]
    return crate::exec::ops::handler::wide_vectors().then_some(run as Handler);
    #[cfg(not(target_arch = "x86_64"))]
    return Some(run as Handler);
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
fn run(unit: &mut Unit<'_>, op: &Op) -> Control {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let superinstruction = &function.superinstructions[op.superinstruction as usize];
    let Some(memory) = superinstruction.resolve(unit) else {
        // SAFETY: `first` was selected by the features of the processor.
        return unsafe { (superinstruction.first)(unit, op) };
    };
    superinstruction.execute(unit.frame, &memory);
    Control::Skip(superinstruction.ops)
}

/// The memory of each address register of a superinstruction.
type Memory = [StridedMemory; MAX_ADDRESSES];

/// A factor's memory with its stride, which is a constant where the loop is specialized for it.
#[derive(Clone, Copy)]
struct Factor<'m> {
    memory: &'m StridedMemory,
    stride: u64,
}

impl<'m> Factor<'m> {
    #[inline(always)]
    fn with_stride(memory: &'m StridedMemory, stride: u64) -> Self {
        Self { memory, stride }
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
    #[inline]
    fn load(self, offset: i32) -> Values {
        // SAFETY: `Superinstruction::resolve` found both half warps aligned and in bounds at this
        // offset. They are in the block's shared memory, which only this worker accesses.
        unsafe { Values::load(self.memory.starts(offset), self.stride) }
    }
}

/// Adds the products of pairs of factors to a sum.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
#[inline]
fn add_products([a, b]: [&StridedMemory; 2], factors: &[[i32; 2]], sum: Values) -> Values {
    // The loops for the usual strides have no branches.
    let with_stride = Factor::with_stride;
    match (a.stride, b.stride) {
        (0, 4) => add_products_strided(with_stride(a, 0), with_stride(b, 4), factors, sum),
        (4, 0) => add_products_strided(with_stride(a, 4), with_stride(b, 0), factors, sum),
        (4, 4) => add_products_strided(with_stride(a, 4), with_stride(b, 4), factors, sum),
        (first, second) => {
            let a = with_stride(a, first);
            let b = with_stride(b, second);
            add_products_strided(a, b, factors, sum)
        }
    }
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
#[inline]
fn add_products_strided(
    a: Factor<'_>,
    b: Factor<'_>,
    factors: &[[i32; 2]],
    mut sum: Values,
) -> Values {
    for [first, second] in factors {
        sum = a.load(*first).multiply_add(b.load(*second), sum);
    }
    sum
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
#[inline]
fn fetch(frame: &Frame, memory: &Memory, last: Values, operand: Operand) -> Values {
    match operand {
        Operand::Last => last,
        Operand::Row(row) => Values::from_row(frame.row::<u32>(row)),
        Operand::Memory(address, offset) => {
            let memory = register_memory(memory, address);
            Factor::with_stride(memory, memory.stride).load(offset)
        }
    }
}

/// Returns the memory of an address register.
#[inline(always)]
fn register_memory(memory: &Memory, address: u8) -> &StridedMemory {
    &memory[usize::from(address) % MAX_ADDRESSES]
}

impl AddressRegister {
    /// Returns the address ranges that the loads access, from the lowest offset to the highest.
    /// They are in bounds.
    fn ranges(&self, pattern: &AccessPattern) -> [Range<u64>; 2] {
        let [lowest, highest] = self.offsets;
        let length = u64::from(highest.abs_diff(lowest)) + u64::from(self.op.align_mask) + 1;
        pattern.at(lowest).ranges(length)
    }
}

impl Operation {
    /// Returns the number of sources.
    pub(crate) fn sources(self) -> usize {
        match self {
            Self::Load => 1,
            Self::Add | Self::Subtract | Self::Multiply => 2,
            Self::MultiplyAdd => 3,
        }
    }
}

impl Superinstruction {
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c"))]
    #[inline]
    fn execute(&self, frame: &mut Frame, memory: &Memory) {
        let mut last = Values::zero();
        for step in &self.steps {
            let d = match step {
                Step::Products {
                    d,
                    addend,
                    addresses,
                    factors,
                } => {
                    let sum = fetch(frame, memory, last, *addend);
                    last = add_products(
                        addresses.map(|address| register_memory(memory, address)),
                        &self.factors[factors.clone()],
                        sum,
                    );
                    *d
                }
                Step::One {
                    operation,
                    d,
                    sources: [a, b, c],
                } => {
                    let a = fetch(frame, memory, last, *a);
                    last = match operation {
                        Operation::Load => a,
                        Operation::Add => a.add(fetch(frame, memory, last, *b)),
                        Operation::Subtract => a.subtract(fetch(frame, memory, last, *b)),
                        Operation::Multiply => a.multiply(fetch(frame, memory, last, *b)),
                        Operation::MultiplyAdd => a.multiply_add(
                            fetch(frame, memory, last, *b),
                            fetch(frame, memory, last, *c),
                        ),
                    };
                    if *operation == Operation::Load && *d != NO_REGISTER {
                        // Loaded values are not changed.
                        last.write_to(&mut frame.row_mut::<u32>(*d).0);
                        continue;
                    }
                    *d
                }
            };
            if d != NO_REGISTER {
                // A NaN stays a NaN from step to step, so only results in rows must be canonical.
                last.canonical().write_to(&mut frame.row_mut::<u32>(d).0);
            }
        }
    }

    /// Resolves the address registers. Returns `None` if a lane is inactive, if a load has no
    /// access pattern or is misaligned or out of bounds, or if a check may report a load.
    #[inline(always)]
    fn resolve(&self, unit: &mut Unit<'_>) -> Option<Memory> {
        if unit.active != FULL || unit.frame.undefined.is_some() {
            return None;
        }
        let mut resolved = [StridedMemory::default(); MAX_ADDRESSES];
        let mut patterns = [AccessPattern::default(); MAX_ADDRESSES];
        let segment = unit.block.shared.segment(0);
        for ((address, memory), pattern) in
            self.addresses.iter().zip(&mut resolved).zip(&mut patterns)
        {
            let align_mask = u64::from(address.op.align_mask);
            *pattern = AccessPattern::for_register(unit, &address.op)?;
            *memory = StridedMemory::new(&segment, *pattern, align_mask + 1)?;
            let is_aligned = (pattern.starts[0] | pattern.starts[1]) & align_mask == 0;
            if !is_aligned || !memory.covers(address.offsets) {
                return None;
            }
        }
        if self.finds_uninitialized {
            let ranges = self
                .addresses
                .iter()
                .zip(&patterns)
                .flat_map(|(address, pattern)| address.ranges(pattern));
            if !uninitialized::are_written_in_shared(unit, ranges) {
                return None;
            }
            unit.warp.uninitialized = None;
        }
        if self.checked != 0 {
            let mut reads = [RegisterReads::default(); MAX_ADDRESSES];
            for ((address, pattern), reads) in self.addresses.iter().zip(patterns).zip(&mut reads) {
                *reads = RegisterReads {
                    pattern,
                    bytes: u64::from(address.op.align_mask) + 1,
                    checked: &address.checked,
                    are_consecutive: address.are_consecutive,
                    offset_range: address.offsets,
                };
            }
            if !race::record_reads(unit, self.checked, &reads[..self.addresses.len()]) {
                return None;
            }
        }
        for ((address, memory), pattern) in self.addresses.iter().zip(&resolved).zip(patterns) {
            if let Some(slot) = address.pattern_slot {
                unit.patterns.insert_resolved(slot, pattern, memory);
            }
        }
        Some(resolved)
    }
}

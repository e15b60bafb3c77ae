//! Propagation of undefined values through registers.
//!
//! A load of uninitialized memory is no error: compilers load speculatively and discard values.
//! Undefined bytes are tracked through registers and through shared and local memory. They are
//! reported where they affect an address, a guard or an operand of an atomic, and in stores to
//! device memory. A frame without undefined bytes, the usual case, costs one comparison per
//! instruction.

use crate::exec::check::report::{Access, ReportKind, Resume, Trap};
use crate::exec::check::undefined::{
    Bytes, Cause, Flow, Origin, Propagation, RegisterRow, Shift, Source, Undefined, Value,
};
use crate::exec::frame::Frame;
use crate::exec::machine::members::Members;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::ops::uninitialized;
use crate::exec::ops::warp_wide::shuffle_source;
use crate::exec::values::lane::{LANES, Lanes};

/// A load of tensor memory with unwritten bytes.
#[derive(Debug)]
pub(crate) struct UndefinedLoad {
    /// The number of bytes that each thread loads.
    pub(crate) size: u32,
    pub(crate) addresses: [u64; LANES],
    pub(crate) registers: Vec<UndefinedRegister>,
}

/// A 32-bit register with undefined bytes.
#[derive(Debug)]
pub(crate) struct UndefinedRegister {
    pub(crate) row: u32,
    pub(crate) bytes: [u8; LANES],
}

impl UndefinedLoad {
    /// Marks the registers as undefined in the active lanes.
    #[cold]
    pub(crate) fn add_to(&self, unit: &mut Unit<'_>, op: &Op) {
        let undefined = unit.frame.undefined.get_or_insert_default();
        let origin = undefined.add_origin(Origin {
            line: op.line,
            cause: Cause::Load {
                space: None,
                size: self.size,
                addresses: self.addresses,
            },
        });
        for register in &self.registers {
            let row = RegisterRow::Word(register.row);
            undefined.set(row, &register.bytes, unit.active, origin);
        }
    }
}

/// Returns the masks of the undefined bytes of a 32-bit register.
pub(crate) fn undefined_bytes(frame: &Frame, row: u32) -> [u8; LANES] {
    match &frame.undefined {
        Some(undefined) => undefined.bytes(RegisterRow::Word(row)),
        None => [0; LANES],
    }
}

/// Reports an instruction whose guard is undefined in one of the lanes.
#[cold]
#[inline(never)]
pub(crate) fn check_guard(unit: &mut Unit<'_>, op: &Op, lanes: u32) -> Option<Control> {
    unit.active = lanes;
    check(unit, op, RegisterRow::Predicate(op.guard), 1)
}

/// Propagates undefined bytes through an instruction before it runs, and reports those that are an
/// error.
#[cold]
#[inline(never)]
pub(crate) fn follow(unit: &mut Unit<'_>, op: &Op, flow: &Flow) -> Option<Control> {
    for &(register, bytes) in &flow.sinks {
        if let Some(control) = check(unit, op, register, bytes) {
            return Some(control);
        }
    }
    let lanes = match flow.propagation {
        Propagation::Nothing => return None,
        Propagation::Store => return store(unit, op, flow),
        Propagation::WholeWarp if unit.active != unit.warp.live => return None,
        Propagation::AllLanes | Propagation::Shuffle(_) => {
            let members = Members::new(unit, op);
            if members.complete == 0 {
                return None;
            }
            members.complete
        }
        _ => unit.active,
    };
    let mut undefined = unit.frame.undefined.take()?;
    let origin = match flow.propagation {
        Propagation::Load => undefined.add_origin(load_origin(unit, op, flow)),
        _ => undefined.first_origin(&flow.sources),
    };
    let results = results(unit, &undefined, flow, lanes);
    for ((register, _), bytes) in flow.destinations.iter().zip(&results) {
        if let Some(register) = register {
            undefined.set(*register, bytes, lanes, origin);
        }
    }
    unit.frame.undefined = (!undefined.taints.is_empty()).then_some(undefined);
    None
}

/// Reports bytes of a register that are undefined in an active lane, and marks them as defined.
fn check(unit: &mut Unit<'_>, op: &Op, register: RegisterRow, bytes: u8) -> Option<Control> {
    let undefined = unit.frame.undefined.as_mut()?;
    let taint = undefined.taints.get(&register)?;
    let lane = Lanes(unit.active).find(|&lane| taint.bytes[lane] & bytes != 0)?;
    let origin = undefined.origins[taint.origin];
    undefined.taints.remove(&register);
    let trap = match origin.cause {
        Cause::Load {
            space,
            size,
            addresses,
        } => Trap {
            access: Some(Access {
                address: addresses[lane],
                size,
                write: false,
            }),
            space,
            ..Trap::new(ReportKind::Uninitialized, lane)
        },
        Cause::Shuffle { source } => Trap::new(ReportKind::InactiveLane(source), lane),
    };
    let loaded_at = if origin.line == op.line {
        0
    } else {
        origin.line
    };
    Some(unit.fault(Trap {
        loaded_at,
        resume: Resume::Again,
        ..trap
    }))
}

fn load_origin(unit: &Unit<'_>, op: &Op, flow: &Flow) -> Origin {
    let size = flow.destinations.iter().map(|(_, bytes)| bytes).sum();
    let addresses = unit
        .warp
        .uninitialized
        .as_ref()
        .map_or([0; LANES], |load| load.addresses);
    Origin {
        line: op.line,
        cause: Cause::Load {
            space: Some(op.space),
            size,
            addresses,
        },
    }
}

/// Marks the undefined bytes of a store as uninitialized in shared and local memory, and reports
/// them in device memory.
fn store(unit: &mut Unit<'_>, op: &Op, flow: &Flow) -> Option<Control> {
    let addresses = uninitialized::store_addresses(unit, op);
    let mut offset = 0;
    for source in &flow.sources {
        if let Some(register) = source.value.register() {
            let undefined = unit.frame.undefined.as_ref()?;
            let mask = low(source.bytes);
            let bytes = undefined.bytes(register).map(|bytes| bytes & mask);
            let mut lanes = Lanes(unit.active).filter(|lane| bytes[*lane] != 0);
            if lanes.any(|lane| uninitialized::is_global(op.space, addresses[lane])) {
                return check(unit, op, register, mask);
            }
            for lane in Lanes(unit.active).filter(|lane| bytes[*lane] != 0) {
                for byte in (0..8).filter(|byte| bytes[lane] >> byte & 1 == 1) {
                    uninitialized::remove(
                        unit,
                        op.space,
                        lane,
                        addresses[lane].wrapping_add(offset + byte),
                        1,
                    );
                }
            }
        }
        offset += u64::from(source.bytes);
    }
    None
}

/// Returns the undefined bytes of the results, in all lanes that take part.
fn results(unit: &Unit<'_>, undefined: &Undefined, flow: &Flow, lanes: u32) -> Vec<Bytes> {
    let sources: Vec<Bytes> = flow
        .sources
        .iter()
        .map(|source| source_bytes(undefined, source))
        .collect();
    let is_any_lane_undefined =
        Lanes(lanes).any(|lane| sources.iter().any(|bytes| bytes[lane] != 0));
    let mut results = vec![[0; LANES]; flow.destinations.len()];
    for lane in Lanes(lanes) {
        let sources = LaneSources {
            unit,
            sources: &flow.sources,
            undefined: &sources,
            lane,
        };
        let mut stream = match flow.propagation {
            Propagation::Load => match &unit.warp.uninitialized {
                Some(load) => u64::from(load.bytes[lane]),
                None => 0,
            },
            Propagation::Bytes { signed } => sources.concatenated(signed),
            propagation => {
                let bytes = sources.result(propagation, is_any_lane_undefined);
                for (result, (_, size)) in results.iter_mut().zip(&flow.destinations) {
                    result[lane] = bytes & low(*size);
                }
                continue;
            }
        };
        for (result, (_, size)) in results.iter_mut().zip(&flow.destinations) {
            result[lane] = stream as u8 & low(*size);
            stream = stream.checked_shr(*size).unwrap_or(0);
        }
    }
    results
}

/// The sources of an instruction in one lane.
struct LaneSources<'s, 'u> {
    unit: &'s Unit<'u>,
    sources: &'s [Source],
    /// The undefined bytes of each source.
    undefined: &'s [Bytes],
    lane: usize,
}

impl LaneSources<'_, '_> {
    /// Returns the undefined bytes of a source; none if the source is missing.
    fn undefined(&self, index: usize) -> u8 {
        self.undefined
            .get(index)
            .map_or(0, |bytes| bytes[self.lane])
    }

    /// Returns the value of a source; 0 if the source is missing.
    fn value(&self, index: usize) -> u64 {
        self.sources
            .get(index)
            .map_or(0, |source| value(self.unit, source, self.lane))
    }

    /// Returns the bytes that are undefined in one of the sources.
    fn union(&self) -> u8 {
        self.undefined
            .iter()
            .fold(0, |union, bytes| union | bytes[self.lane])
    }

    /// Returns the undefined bytes of all sources, in order, extended by zeros or by the last byte.
    fn concatenated(&self, signed: bool) -> u64 {
        let mut concatenated = 0;
        let mut length = 0;
        for (source, bytes) in self.sources.iter().zip(self.undefined) {
            concatenated |= u64::from(bytes[self.lane]).checked_shl(length).unwrap_or(0);
            length += source.bytes;
        }
        if signed && length < 8 && concatenated >> (length - 1) & 1 == 1 {
            concatenated |= u64::MAX << length;
        }
        concatenated
    }

    /// Returns the defined bytes of a source that have the dominant value.
    fn dominant_bytes(&self, index: usize, dominant: u8) -> u8 {
        let mut bytes = 0;
        for (byte, value) in self.value(index).to_le_bytes().into_iter().enumerate() {
            bytes |= u8::from(value == dominant) << byte;
        }
        bytes & !self.undefined(index)
    }

    /// Returns the undefined bytes of a result of eight bytes.
    fn result(&self, propagation: Propagation, is_any_lane_undefined: bool) -> u8 {
        match propagation {
            // Loads and copies of bytes have results of their own.
            Propagation::Nothing
            | Propagation::Store
            | Propagation::Defined
            | Propagation::Load
            | Propagation::Bytes { .. } => 0,
            Propagation::All => all_if(self.union() != 0),
            Propagation::AllLanes | Propagation::WholeWarp => all_if(is_any_lane_undefined),
            Propagation::Bytewise => self.union(),
            Propagation::Dominant(dominant) => {
                (self.undefined(0) | self.undefined(1))
                    & !self.dominant_bytes(0, dominant)
                    & !self.dominant_bytes(1, dominant)
            }
            Propagation::Compare(decisive) => {
                let is_decided = self.undefined(2) == 0
                    && decisive.is_some_and(|decisive| (self.value(2) != 0) == decisive);
                let is_comparison_undefined = self.undefined(0) | self.undefined(1) != 0;
                u8::from(is_comparison_undefined && !is_decided || self.undefined(2) != 0)
            }
            Propagation::Select if self.undefined(2) != 0 => u8::MAX,
            Propagation::Select if self.value(2) != 0 => self.undefined(0),
            Propagation::Select => self.undefined(1),
            Propagation::Shift(kind) => {
                if self.undefined(1) != 0 {
                    return u8::MAX;
                }
                let size = self.sources[0].bytes;
                shift(self.undefined(0), size, self.value(1), kind) as u8
            }
            Propagation::Extract => {
                if self.undefined(1) | self.undefined(2) != 0 {
                    return u8::MAX;
                }
                let bits = spread(self.undefined(0))
                    .checked_shr(self.value(1) as u32 & 0xff)
                    .unwrap_or(0);
                let length = self.value(2) as u32 & 0xff;
                let extracted = if length >= 64 {
                    bits
                } else {
                    bits & ((1 << length) - 1)
                };
                all_if(extracted != 0)
            }
            Propagation::Permute => {
                if self.undefined(2) != 0 {
                    return u8::MAX;
                }
                let bytes = (self.undefined(0) & 0xf) | (self.undefined(1) & 0xf) << 4;
                (0..4).fold(0, |result, byte| {
                    let selected = self.value(2) >> (4 * byte) & 7;
                    result | (bytes >> selected & 1) << byte
                })
            }
            Propagation::Shuffle(mode) => {
                if self.undefined(1) | self.undefined(2) != 0 {
                    return u8::MAX;
                }
                let [lane_operand, clamp] = [self.value(1) as u32, self.value(2) as u32];
                let (source, _) = shuffle_source(mode, self.lane as u32, lane_operand, clamp);
                self.undefined[0][source as usize & 31]
            }
        }
    }
}

/// Returns all bytes if a condition holds, and otherwise none.
fn all_if(is_undefined: bool) -> u8 {
    if is_undefined { u8::MAX } else { 0 }
}

fn source_bytes(undefined: &Undefined, source: &Source) -> Bytes {
    let bytes = source
        .value
        .register()
        .map_or([0; LANES], |register| undefined.bytes(register));
    bytes.map(|bytes| bytes & low(source.bytes))
}

fn value(unit: &Unit<'_>, source: &Source, lane: usize) -> u64 {
    let register = match source.value {
        Value::Immediate(bits) => return bits,
        Value::Register(register) | Value::Not(register) => register,
    };
    match register {
        RegisterRow::Word(row) => u64::from(unit.frame.row::<u32>(row)[lane]),
        RegisterRow::Double(row) => unit.frame.row::<u64>(row)[lane],
        RegisterRow::Predicate(number) => {
            let holds = unit.frame.predicate(number) >> lane & 1 == 1;
            u64::from(holds != matches!(source.value, Value::Not(_)))
        }
    }
}

/// Returns the mask of the first `bytes` bytes.
fn low(bytes: u32) -> u8 {
    if bytes >= 8 {
        u8::MAX
    } else {
        (1 << bytes) - 1
    }
}

/// Returns the bits of undefined bytes.
fn spread(bytes: u8) -> u64 {
    (0..8)
        .filter(|byte| bytes >> byte & 1 == 1)
        .fold(0, |bits, byte| bits | 0xff << (8 * byte))
}

/// Returns the bytes that contain undefined bits.
fn gather(bits: u64) -> u64 {
    (0..8)
        .filter(|byte| bits >> (8 * byte) & 0xff != 0)
        .fold(0, |bytes, byte| bytes | 1 << byte)
}

/// Returns the undefined bytes of a register of `size` bytes after a shift.
fn shift(bytes: u8, size: u32, amount: u64, kind: Shift) -> u64 {
    let width = size * 8;
    let bits = spread(bytes);
    let amount = (amount as u32).min(width);
    if kind == Shift::Left {
        return gather(bits.checked_shl(amount).unwrap_or(0));
    }
    let is_top_undefined = kind == Shift::ArithmeticRight && bits >> (width - 1) & 1 == 1;
    let filled = if is_top_undefined && width < 64 {
        bits | u64::MAX << width
    } else {
        bits
    };
    let shifted = if is_top_undefined {
        filled.cast_signed() >> amount.min(63)
    } else {
        filled.checked_shr(amount).unwrap_or(0).cast_signed()
    };
    gather(shifted.cast_unsigned())
}

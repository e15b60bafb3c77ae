//! Propagation of undefined values through registers.
//!
//! A load of uninitialized memory is no error: compilers load speculatively and discard values. Undefined bytes are tracked through
//! registers and through shared and local memory. They are reported where they affect an address, a guard or an operand of an atomic, and
//! in stores to device memory. A frame without undefined bytes, the usual case, costs one comparison per instruction.

use std::collections::BTreeMap;

use super::lane::{LANES, Lanes};
use super::members::Members;
use super::op::{Control, Op, Space};
use super::report::{Access, ReportKind, Resume, Trap};
use super::undefined_bytes::{low, shift, spread};
use super::uninitialized;
use super::unit::Unit;
use super::warp_wide::shuffle_source;

/// A register, or one row of a wide one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A row of the 32-bit file.
    Word(u32),
    /// A row of the 64-bit file.
    Double(u32),
    /// A predicate.
    Predicate(u32),
}

/// Undefined bytes of each lane, as a mask.
type Bytes = [u8; LANES];

/// The registers of a frame with undefined bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undefined {
    taints: BTreeMap<Place, UndefinedBytes>,
    origins: Vec<Origin>,
}

#[derive(Clone, Copy, Debug)]
struct UndefinedBytes {
    bytes: Bytes,
    /// Index of the load from which they originate.
    origin: usize,
}

/// A load of uninitialized memory.
#[derive(Clone, Copy, Debug)]
struct Origin {
    line: u32,
    space: Space,
    size: u32,
    addresses: [u64; LANES],
}

/// The uninitialized bytes that the current load found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The bytes from the start of the load, as a mask.
    pub(crate) bytes: [u32; LANES],
    pub(crate) addresses: [u64; LANES],
}

/// The propagation of undefined bytes through an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Registers in which undefined bytes are an error, each with the relevant bytes.
    pub(crate) sinks: Vec<(Place, u8)>,
    pub(crate) how: How,
    pub(crate) sources: Vec<Source>,
    /// Results, each with its bytes; `None` if the result is discarded.
    pub(crate) destinations: Vec<(Option<Place>, u32)>,
}

/// An operand: a register or an immediate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) value: Value,
    /// The number of bytes that are read.
    pub(crate) bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Immediate(u64),
    Place(Place),
    /// A negated predicate.
    Not(Place),
}

/// The dependence of results on sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// No results.
    Nothing,
    /// The results are defined.
    Defined,
    /// Every byte of the results depends on all sources.
    All,
    /// Every byte of the results depends on all sources in all lanes of a member mask.
    AllLanes,
    /// Every byte of the results depends on all sources in all lanes of the warp.
    WholeWarp,
    /// The results are the bytes of the sources, in order, extended by zeros or by the sign.
    Bytes { signed: bool },
    /// Each byte depends on the same byte of the sources.
    Bytewise,
    /// A byte with this value in one source determines the result: zero for `and`, all ones for `or`.
    Dominant(u8),
    /// A comparison of the first two sources, combined with the third. This value of the third determines the result.
    Compare(Option<bool>),
    /// The first source where the third is true, otherwise the second.
    Select,
    /// A shift of the first source by the second.
    Shift { left: bool, signed: bool },
    /// The bits of the second source from the position in the third, as many as the fourth.
    Extract,
    /// Bytes of the first two sources, selected by the third.
    Permute,
    /// A shuffle of the first source among the lanes that the others select.
    Shuffle(u8),
    /// The bytes that the last check of a load found.
    Load,
    /// The sources are stored, in order.
    Store,
}

impl Undefined {
    fn bytes(&self, place: Place) -> Bytes {
        self.taints
            .get(&place)
            .map_or([0; LANES], |taint| taint.bytes)
    }

    /// Marks the bytes of a register as undefined in some lanes.
    fn set(&mut self, place: Place, bytes: &Bytes, lanes: u32, origin: usize) {
        let mut merged = self.bytes(place);
        Lanes(lanes).for_each(|lane| merged[lane] = bytes[lane]);
        if merged == [0; LANES] {
            self.taints.remove(&place);
        } else {
            self.taints.insert(
                place,
                UndefinedBytes {
                    bytes: merged,
                    origin,
                },
            );
        }
    }

    /// Records a load. It replaces the last one by the same instruction.
    fn add_origin(&mut self, origin: Origin) -> usize {
        let known = self.origins.iter().position(|it| it.line == origin.line);
        let index = known.unwrap_or(self.origins.len());
        match self.origins.get_mut(index) {
            Some(known) => *known = origin,
            None => self.origins.push(origin),
        }
        index
    }

    /// Returns the load from which the first undefined source originates.
    fn origin_of(&self, sources: &[Source]) -> usize {
        let places = sources.iter().filter_map(|source| source.value.place());
        places
            .filter_map(|place| self.taints.get(&place))
            .map(|taint| taint.origin)
            .next()
            .unwrap_or(0)
    }
}

impl Value {
    fn place(self) -> Option<Place> {
        match self {
            Self::Immediate(_) => None,
            Self::Place(place) | Self::Not(place) => Some(place),
        }
    }
}

/// Reports an instruction whose guard is undefined in one of the lanes.
#[cold]
#[inline(never)]
pub(crate) fn check_guard(unit: &mut Unit<'_>, op: &Op, lanes: u32) -> Option<Control> {
    unit.active = lanes;
    check(unit, op, Place::Predicate(op.guard), 1)
}

/// Propagates undefined bytes through an instruction before it runs, and reports those that are an error.
#[cold]
#[inline(never)]
pub(crate) fn follow(unit: &mut Unit<'_>, op: &Op, flow: &Flow) -> Option<Control> {
    for &(place, bytes) in &flow.sinks {
        if let Some(control) = check(unit, op, place, bytes) {
            return Some(control);
        }
    }
    let lanes = match flow.how {
        How::Nothing => return None,
        How::Store => return store(unit, op, flow),
        How::WholeWarp if unit.active != unit.warp.live => return None,
        How::AllLanes | How::Shuffle(_) => {
            let members = Members::of(unit, op);
            if members.complete == 0 {
                return None;
            }
            members.complete
        }
        _ => unit.active,
    };
    let mut undefined = unit.frame.undefined.take()?;
    let origin = match flow.how {
        How::Load => undefined.add_origin(load_origin(unit, op, flow)),
        _ => undefined.origin_of(&flow.sources),
    };
    let results = results(unit, &undefined, flow, lanes);
    for ((place, _), bytes) in flow.destinations.iter().zip(&results) {
        if let Some(place) = place {
            undefined.set(*place, bytes, lanes, origin);
        }
    }
    unit.frame.undefined = (!undefined.taints.is_empty()).then_some(undefined);
    None
}

/// Reports bytes of a register that are undefined in an active lane, and marks them as defined.
fn check(unit: &mut Unit<'_>, op: &Op, place: Place, bytes: u8) -> Option<Control> {
    let undefined = unit.frame.undefined.as_mut()?;
    let taint = undefined.taints.get(&place)?;
    let lane = Lanes(unit.active).find(|&lane| taint.bytes[lane] & bytes != 0)?;
    let origin = undefined.origins[taint.origin];
    undefined.taints.remove(&place);
    let access = Access {
        address: origin.addresses[lane],
        size: origin.size,
        write: false,
    };
    let loaded_at = if origin.line == op.line {
        0
    } else {
        origin.line
    };
    let trap = Trap {
        access: Some(access),
        loaded_at,
        resume: Resume::Again,
        ..Trap::new(ReportKind::Uninitialized, lane)
    };
    Some(unit.fault(trap.in_space(origin.space)))
}

fn load_origin(unit: &Unit<'_>, op: &Op, flow: &Flow) -> Origin {
    let size = flow.destinations.iter().map(|(_, bytes)| bytes).sum();
    let addresses = unit
        .warp
        .found
        .as_ref()
        .map_or([0; LANES], |found| found.addresses);
    Origin {
        line: op.line,
        space: op.space,
        size,
        addresses,
    }
}

/// Marks the undefined bytes of a store as uninitialized in shared and local memory, and reports them in device memory.
fn store(unit: &mut Unit<'_>, op: &Op, flow: &Flow) -> Option<Control> {
    let addresses = uninitialized::store_addresses(unit, op);
    let mut offset = 0;
    for source in &flow.sources {
        if let Some(place) = source.value.place() {
            let undefined = unit.frame.undefined.as_ref()?;
            let mask = low(source.bytes);
            let bytes = undefined.bytes(place).map(|bytes| bytes & mask);
            let is_global = |lane: &usize| {
                bytes[*lane] != 0 && uninitialized::is_global(op.space, addresses[*lane])
            };
            if Lanes(unit.active).any(|lane| is_global(&lane)) {
                return check(unit, op, place, mask);
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
    let mut results = vec![[0; LANES]; flow.destinations.len()];
    let whole = |any: bool, bytes: u32| if any { low(bytes) } else { 0 };
    let any_lane = Lanes(lanes).any(|lane| sources.iter().any(|bytes| bytes[lane] != 0));
    for lane in Lanes(lanes) {
        let at = |index: usize| sources.get(index).map_or(0, |bytes| bytes[lane]);
        let value = |index: usize| {
            flow.sources
                .get(index)
                .map_or(0, |source| value(unit, source, lane))
        };
        let any = sources.iter().any(|bytes| bytes[lane] != 0);
        let one: u64 = match flow.how {
            How::Nothing | How::Store | How::Defined => 0,
            How::All => {
                for (result, (_, bytes)) in results.iter_mut().zip(&flow.destinations) {
                    result[lane] = whole(any, *bytes);
                }
                continue;
            }
            How::AllLanes | How::WholeWarp => {
                for (result, (_, bytes)) in results.iter_mut().zip(&flow.destinations) {
                    result[lane] = whole(any_lane, *bytes);
                }
                continue;
            }
            How::Load | How::Bytes { .. } => {
                let mut stream = match (&unit.warp.found, flow.how) {
                    (Some(found), How::Load) => u64::from(found.bytes[lane]),
                    (None, How::Load) => 0,
                    _ => concatenate(&flow.sources, &sources, lane),
                };
                let total: u32 = flow.sources.iter().map(|source| source.bytes).sum();
                let is_signed = flow.how == How::Bytes { signed: true };
                if is_signed && total < 8 && stream >> (total - 1) & 1 == 1 {
                    stream |= u64::MAX << total;
                }
                for (result, (_, bytes)) in results.iter_mut().zip(&flow.destinations) {
                    result[lane] = stream as u8 & low(*bytes);
                    stream = stream.checked_shr(*bytes).unwrap_or(0);
                }
                continue;
            }
            How::Bytewise => u64::from(sources.iter().fold(0, |all, bytes| all | bytes[lane])),
            How::Dominant(dominant) => {
                let decided = |index: usize| {
                    let (value, dominant) = (value(index), u64::from(dominant));
                    let bytes = (0..8).filter(|byte| value >> (8 * byte) & 0xff == dominant);
                    bytes.fold(0_u8, |all, byte| all | 1 << byte) & !at(index)
                };
                u64::from((at(0) | at(1)) & !decided(0) & !decided(1))
            }
            How::Compare(decides) => {
                let third = decides.is_some_and(|decides| at(2) == 0 && (value(2) != 0) == decides);
                u64::from((at(0) | at(1)) != 0 && !third || at(2) != 0)
            }
            How::Select if at(2) != 0 => u64::from(u8::MAX),
            How::Select => u64::from(if value(2) != 0 { at(0) } else { at(1) }),
            How::Shift { .. } | How::Extract | How::Permute
                if any && is_selector_undefined(flow.how, at) =>
            {
                u64::from(u8::MAX)
            }
            How::Shift { left, signed } => {
                shift(at(0), flow.sources[0].bytes, value(1), left, signed)
            }
            How::Extract => {
                let bits = spread(at(0))
                    .checked_shr(value(1) as u32 & 0xff)
                    .unwrap_or(0);
                let length = value(2) as u32 & 0xff;
                let extracted = if length >= 64 {
                    bits
                } else {
                    bits & ((1 << length) - 1)
                };
                u64::from(if extracted == 0 { 0 } else { u8::MAX })
            }
            How::Permute => {
                let bytes = u64::from(at(0) & 0xf) | u64::from(at(1) & 0xf) << 4;
                (0..4).fold(0, |all, byte| {
                    all | (bytes >> (value(2) >> (4 * byte) & 7) & 1) << byte
                })
            }
            How::Shuffle(mode) => {
                let (from, _) = shuffle_source(mode, lane as u32, value(1) as u32, value(2) as u32);
                let from = from as usize & 31;
                u64::from(sources[0][from] | if at(1) | at(2) == 0 { 0 } else { u8::MAX })
            }
        };
        for (result, (_, bytes)) in results.iter_mut().zip(&flow.destinations) {
            result[lane] = one as u8 & low(*bytes);
        }
    }
    results
}

/// Returns `true` if a selector of bits is undefined.
fn is_selector_undefined(how: How, at: impl Fn(usize) -> u8) -> bool {
    match how {
        How::Shift { .. } => at(1) != 0,
        How::Permute => at(2) != 0,
        _ => at(1) | at(2) != 0,
    }
}

fn source_bytes(undefined: &Undefined, source: &Source) -> Bytes {
    let bytes = source
        .value
        .place()
        .map_or([0; LANES], |place| undefined.bytes(place));
    bytes.map(|bytes| bytes & low(source.bytes))
}

/// Returns the undefined bytes of all sources, in order.
fn concatenate(sources: &[Source], bytes: &[Bytes], lane: usize) -> u64 {
    let mut at = 0;
    sources.iter().zip(bytes).fold(0, |all, (source, bytes)| {
        let shifted = u64::from(bytes[lane]).checked_shl(at).unwrap_or(0);
        at += source.bytes;
        all | shifted
    })
}

fn value(unit: &Unit<'_>, source: &Source, lane: usize) -> u64 {
    let place = match source.value {
        Value::Immediate(bits) => return bits,
        Value::Place(place) | Value::Not(place) => place,
    };
    match place {
        Place::Word(row) => u64::from(unit.frame.row::<u32>(row)[lane]),
        Place::Double(row) => unit.frame.row::<u64>(row)[lane],
        Place::Predicate(number) => {
            let holds = unit.frame.predicate(number) >> lane & 1 == 1;
            u64::from(holds != matches!(source.value, Value::Not(_)))
        }
    }
}

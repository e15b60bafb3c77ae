//! Accesses of a warp that go to many places of one allocation: checked together, then made one by one.

use super::access::Load;
use super::frame::InFile;
use super::lane::{LANES, Lanes};
use super::memory::{HostBytes, Word};
use super::op::{Op, Space};
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, resolve};

/// The places of a warp's access: the bytes from the lowest to the highest, and each lane's offset from the lowest.
struct Span {
    bytes: HostBytes,
    offsets: [u64; LANES],
}

impl Span {
    /// The span of the active lanes' addresses, if all of it is in one allocation and every address is aligned.
    #[inline(always)]
    fn new<T: Word>(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES], write: bool) -> Option<Self> {
        let leader = addresses[unit.leader()];
        let (mut low, mut high, mut misaligned) = (leader, leader, 0);
        let mut offsets = [0; LANES];
        for (lane, offset) in offsets.iter_mut().enumerate() {
            let address = if unit.active >> lane & 1 == 1 { addresses[lane] } else { leader };
            low = low.min(address);
            high = high.max(address);
            misaligned |= address.wrapping_sub(u64::from(op.e));
            *offset = address;
        }
        if misaligned & u64::from(op.align_mask) != 0 || leader & (T::SIZE - 1) != 0 {
            return None;
        }
        for offset in &mut offsets {
            *offset -= low;
        }
        let length = (high - low).checked_add(T::SIZE)?;
        let (space, start) = match op.space {
            Space::Generic => {
                let (space, start) = resolve(low);
                if resolve(high).0 != space {
                    return None;
                }
                (space, start)
            }
            space => (space, low),
        };
        let bytes = match space {
            Space::Global => unit.cache.place(unit.launch.memory, start, length, write),
            Space::Shared if start + length <= BLOCK_STRIDE => unit.block.shared.place(start, length),
            _ => None,
        };
        bytes.map(|bytes| Self { bytes, offsets })
    }
}

/// Loads each active lane's value; false if the lanes must be looked at one by one.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES]) -> bool {
    let Some(span) = Span::new::<T::Word>(unit, op, addresses, false) else {
        return false;
    };
    let mut values = [D::default(); LANES];
    let (lower, upper) = values.split_at_mut(HALF);
    load_half::<T, D>(&span, 0, lower);
    load_half::<T, D>(&span, HALF, upper);
    unit.frame.row_mut::<D>(op.d).merge(&values, unit.active);
    true
}

/// Lanes that tiles of shared memory give the same row or the same column.
const HALF: usize = LANES / 2;

/// Loads the values of sixteen lanes, of which all often have one address.
#[inline(always)]
fn load_half<T: Load, D: InFile>(span: &Span, first: usize, values: &mut [D]) {
    let offsets = &span.offsets[first..first + HALF];
    let start = offsets[0];
    if offsets.iter().fold(0, |differs, offset| differs | (offset ^ start)) == 0 {
        values.fill(D::truncate(T::extend(span.bytes.load_at(start))));
        return;
    }
    for (value, &offset) in values.iter_mut().zip(offsets) {
        *value = D::truncate(T::extend(span.bytes.load_at(offset)));
    }
}

/// Stores each active lane's value, the lowest lane first; false if the lanes must be looked at one by one.
#[inline(always)]
pub(crate) fn store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op, addresses: &[u64; LANES]) -> bool {
    let Some(span) = Span::new::<T>(unit, op, addresses, true) else {
        return false;
    };
    let values = unit.frame.row::<S>(op.b);
    for lane in Lanes(unit.active) {
        span.bytes.store_at(span.offsets[lane], T::truncate(values[lane].extend()));
    }
    true
}

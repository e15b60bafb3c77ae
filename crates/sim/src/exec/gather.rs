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
    for (value, offset) in values.iter_mut().zip(span.offsets) {
        *value = D::truncate(T::extend(span.bytes.load_at(offset)));
    }
    unit.frame.row_mut::<D>(op.d).merge(&values, unit.active);
    true
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

//! Loads, stores and atomics: address resolution, and transfers between registers and memory.

pub(crate) mod atomic_handler;
pub(crate) mod gather;
pub(crate) mod local;
pub(crate) mod pattern;

use crate::exec::check::fact::LaneAccesses;
use crate::exec::check::report::{Access, ReportKind, Trap};
use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::window::{BLOCK_STRIDE, SHARED_WINDOW, resolve};
use crate::exec::memory::{AccessMode, HostBytes, Segment, Word};
use crate::exec::ops::handler::{recreate, versions};
use crate::exec::ops::uninitialized;
use crate::exec::space::Space;
use crate::exec::values::lane::{LANES, Lanes};

/// The resolved address of one lane's access, checked for bounds and alignment.
#[derive(Clone, Copy)]
enum Location {
    Host(HostBytes),
    Local(u64),
    Param(u64),
}

/// The conversion of a value in memory to the value of a register.
pub(crate) trait Load: 'static {
    /// The type of the value in memory.
    type Word: Word;
    /// Returns the value, sign- or zero-extended as its type requires.
    fn extend(word: Self::Word) -> u64;
}

macro_rules! loads {
    ($($ty:ty: $word:ty as $wide:ty),*) => {$(
        impl Load for $ty {
            type Word = $word;
            #[inline(always)]
            fn extend(word: $word) -> u64 {
                word as $ty as $wide as u64
            }
        }
    )*};
}

loads!(u8: u8 as u64, u16: u16 as u64, u32: u32 as u64, u64: u64 as u64, i8: u8 as i64, i16: u16 as i64, i32: u32 as i64);

versions! {
    /// `d = [a + imm]`.
    load() = run_load [T, D; WIDE] where T: Load, D: InFile
}

versions! {
    /// `[a + imm] = b`.
    store() = run_store [T, S; WIDE] where T: Word, S: InFile
}

versions! {
    /// [`load`] for an instruction that may reuse the access pattern of its address register.
    load_again() = run_load_again [T, D; WIDE] where T: Load, D: InFile
}

versions! {
    /// The same for [`store`].
    store_again() = run_store_again [T, S; WIDE] where T: Word, S: InFile
}

versions! {
    /// `d = [imm]` in the kernel's parameters, the same in every lane.
    load_param() = run_load_param [T, D] where T: Load, D: InFile
}

versions! {
    /// `d = [a + imm]; [a + imm] = f(d, b, c)`, atomically.
    atomic(operation: F) = run_atomic [T, R, F; WIDE] where T: Word, R: InFile, F: Fn(T, T, T) -> T + Copy + Send + 'static
}

#[inline(always)]
fn run_load<T: Load, D: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if let Some(offset) = local::offset(unit, op) {
        return local::load::<T, D>(unit, op, offset);
    }
    if pattern::load::<T, D, WIDE>(unit, op) {
        Control::Next
    } else {
        scattered_load::<T, D>(unit, op)
    }
}

#[inline(always)]
fn run_load_again<T: Load, D: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if pattern::load_again::<T, D, WIDE>(unit, op) {
        Control::Next
    } else {
        load_anywhere::<T, D>(unit, op)
    }
}

/// Loads from any addresses. A separate function, so that the handler need not save registers for
/// it.
#[inline(never)]
fn load_anywhere<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    // SAFETY: `load` picks the handler by the features of the processor.
    unsafe { load::<T, D>()(unit, op) }
}

#[inline(always)]
fn run_store_again<T: Word, S: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if pattern::store_again::<T, S, WIDE>(unit, op) {
        Control::Next
    } else {
        store_anywhere::<T, S>(unit, op)
    }
}

/// Stores to any addresses. A separate function for the same reason as [`load_anywhere`].
#[inline(never)]
fn store_anywhere<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    // SAFETY: `store` picks the handler by the features of the processor.
    unsafe { store::<T, S>()(unit, op) }
}

/// Loads from addresses without an access pattern.
#[inline(never)]
fn scattered_load<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if gather::load::<T, D>(unit, op) {
        return Control::Next;
    }
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let value = match locate_element(
            unit,
            op,
            lane,
            addresses[lane],
            T::Word::SIZE,
            AccessMode::Read,
        ) {
            Ok(location) => read::<T::Word>(unit, location, lane),
            Err(trap) => {
                return fault(unit, op, &addresses, T::Word::SIZE, AccessMode::Read, trap);
            }
        };
        unit.frame.row_mut::<D>(op.d).0[lane] = D::truncate(T::extend(value));
    }
    Control::Next
}

#[inline(always)]
fn run_load_param<T: Load, D: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let Some(bits) = param(unit, op.imm, T::Word::SIZE) else {
        let leader = unit.leader();
        let trap = trap(
            ReportKind::IllegalAddress,
            leader,
            op.imm,
            T::Word::SIZE,
            AccessMode::Read,
        );
        return unit.fault(trap.in_space(Space::Param));
    };
    let value = D::truncate(T::extend(T::Word::truncate(bits)));
    let active = unit.active;
    unit.frame.row_mut::<D>(op.d).merge(&[value; LANES], active);
    Control::Next
}

#[inline(always)]
fn run_store<T: Word, S: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if let Some(offset) = local::offset(unit, op) {
        return local::store::<T, S>(unit, op, offset);
    }
    if pattern::store::<T, S, WIDE>(unit, op) {
        Control::Next
    } else {
        scattered_store::<T, S>(unit, op)
    }
}

/// Stores to addresses without an access pattern.
#[inline(never)]
fn scattered_store<T: Word, S: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    if gather::store::<T, S>(unit, op) {
        return Control::Next;
    }
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let value = T::truncate(unit.frame.row::<S>(op.b)[lane].extend());
        match locate_element(unit, op, lane, addresses[lane], T::SIZE, AccessMode::Write) {
            Ok(location) => write(unit, location, lane, value),
            Err(trap) => {
                return fault(unit, op, &addresses, T::SIZE, AccessMode::Write, trap);
            }
        }
    }
    Control::Next
}

/// Converts an operation without state to a function pointer.
fn ternary_pointer<T, F>(_operation: F) -> fn(T, T, T) -> T
where
    F: Fn(T, T, T) -> T + Copy + Send + 'static,
{
    // SAFETY: this function received a value of `F`.
    |old, b, c| unsafe { recreate::<F>() }(old, b, c)
}

#[inline(always)]
fn run_atomic<T, R, F, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op, f: F) -> Control
where
    T: Word,
    R: InFile,
    F: Fn(T, T, T) -> T + Copy + Send + 'static,
{
    // The addresses are borrowed, because moving them out of the option would copy them.
    let lanes = gather::resolve_in_shared::<T, WIDE>(unit, op);
    let Some(lanes) = &lanes else {
        // Without a pointer, each operation would have its own copy of this function.
        return atomic_anywhere::<T, R>(unit, op, ternary_pointer(f));
    };
    let b = *unit.frame.row::<R>(op.b);
    let c = *unit.frame.row::<R>(op.c);
    let active = unit.active;
    let olds = &mut unit.frame.row_mut::<R>(op.d).0;
    // Only this worker accesses the block's shared memory, so that nothing comes in between.
    if lanes.are_equal(0, LANES) {
        let mut value = lanes.load(0);
        for lane in Lanes(active) {
            olds[lane] = R::truncate(value.extend());
            let b = T::truncate(b[lane].extend());
            let c = T::truncate(c[lane].extend());
            value = f(value, b, c);
        }
        lanes.store(0, value);
    } else {
        for lane in Lanes(active) {
            let old = lanes.load(lane);
            let b = T::truncate(b[lane].extend());
            let c = T::truncate(c[lane].extend());
            lanes.store(lane, f(old, b, c));
            olds[lane] = R::truncate(old.extend());
        }
    }
    Control::Next
}

/// Changes values at any addresses.
#[inline(never)]
fn atomic_anywhere<T: Word, R: InFile>(
    unit: &mut Unit<'_>,
    op: &Op,
    f: fn(T, T, T) -> T,
) -> Control {
    let addresses = addresses(unit, op);
    for lane in Lanes(unit.active) {
        let location =
            match locate_element(unit, op, lane, addresses[lane], T::SIZE, AccessMode::Write) {
                Ok(location) => location,
                Err(trap) => {
                    return fault(unit, op, &addresses, T::SIZE, AccessMode::Write, trap);
                }
            };
        let b = T::truncate(unit.frame.row::<R>(op.b)[lane].extend());
        let c = T::truncate(unit.frame.row::<R>(op.c)[lane].extend());
        let old = match location {
            Location::Host(bytes) => bytes.update(|old| f(old, b, c)),
            _ => {
                let old = read::<T>(unit, location, lane);
                write(unit, location, lane, f(old, b, c));
                old
            }
        };
        unit.frame.row_mut::<R>(op.d).0[lane] = R::truncate(old.extend());
    }
    Control::Next
}

/// Returns the lanes' addresses.
#[inline(always)]
pub(crate) fn addresses(unit: &Unit<'_>, op: &Op) -> [u64; LANES] {
    let mut result = [0; LANES];
    if op.narrow_address {
        let row = unit.frame.row::<u32>(op.a);
        for lane in 0..LANES {
            // A 32-bit address wraps at 32 bits, as negative offsets require.
            result[lane] = u64::from(row[lane].wrapping_add(op.imm as u32));
        }
    } else {
        let row = unit.frame.row::<u64>(op.a);
        for lane in 0..LANES {
            result[lane] = row[lane].wrapping_add(op.imm);
        }
    }
    result
}

/// Returns the segment of a lane's address, if the segment serves whole warps: device memory, or
/// the block's own shared memory.
#[inline(always)]
pub(crate) fn segment(
    unit: &mut Unit<'_>,
    space: Space,
    address: u64,
    mode: AccessMode,
) -> Option<Segment> {
    match space {
        Space::Global => unit.cache.segment(unit.launch.memory, address, mode),
        Space::Shared => Some(unit.block.shared.segment(0)),
        Space::Generic if address < SHARED_WINDOW => {
            unit.cache.segment(unit.launch.memory, address, mode)
        }
        Space::Generic if address - SHARED_WINDOW < BLOCK_STRIDE => {
            Some(unit.block.shared.segment(SHARED_WINDOW))
        }
        _ => None,
    }
}

/// Checks and resolves one lane's access.
#[inline(always)]
fn locate_element(
    unit: &mut Unit<'_>,
    op: &Op,
    lane: usize,
    address: u64,
    bytes: u64,
    mode: AccessMode,
) -> Result<Location, Trap> {
    // The elements of a vector are accessed separately.
    let start = address.wrapping_sub(op.element_offset());
    if start & u64::from(op.align_mask) != 0 {
        let whole = u64::from(op.align_mask) + 1;
        let kind = ReportKind::MisalignedAddress;
        return Err(trap(kind, lane, start, whole, mode).in_space(op.space));
    }
    locate(unit, op.space, lane, address, bytes, mode)
}

/// Stops the launch at the first lane whose access fails, and describes the accesses of the others.
#[cold]
fn fault(
    unit: &mut Unit<'_>,
    op: &Op,
    addresses: &[u64; LANES],
    bytes: u64,
    mode: AccessMode,
    trap: Trap,
) -> Control {
    let mut failed = 0;
    for lane in Lanes(unit.active) {
        let located = locate_element(unit, op, lane, addresses[lane], bytes, mode);
        if located.is_err_and(|other| other.kind == trap.kind) {
            failed |= 1 << lane;
        }
    }
    // The alignment is that of the whole vector.
    let offset = match trap.kind {
        ReportKind::MisalignedAddress => op.element_offset(),
        _ => 0,
    };
    let addresses = addresses.map(|address| address.wrapping_sub(offset));
    let size = trap.access.map_or(0, |access| access.size);
    let accesses = LaneAccesses::new(&addresses, size, unit.active, failed);
    unit.warp.failed_accesses = accesses.map(Box::new);
    unit.fault(trap)
}

/// Resolves the address of one lane's access.
#[inline(always)]
fn locate(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
    mode: AccessMode,
) -> Result<Location, Trap> {
    let (resolved_space, offset) = match space {
        Space::Generic => resolve(address),
        space => (space, address),
    };
    let location = match resolved_space {
        Space::Shared => unit.block.shared_bytes(offset, bytes).map(Location::Host),
        Space::Local => local::is_inside(unit, offset, bytes).then_some(Location::Local(offset)),
        Space::Param if mode == AccessMode::Write => None,
        Space::Param => param(unit, offset, bytes).map(Location::Param),
        _ => unit
            .cache
            .host_bytes(unit.launch.memory, offset, bytes, mode)
            .map(Location::Host),
    };
    location
        .ok_or_else(|| trap(ReportKind::IllegalAddress, lane, address, bytes, mode).in_space(space))
}

/// Checks that a lane may access an address.
pub(crate) fn check_reach(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    mode: AccessMode,
) -> Result<(), Trap> {
    locate(unit, space, lane, address, 1, mode).map(|_| ())
}

/// Checks that an address is a multiple of `bytes`, a power of two.
#[inline]
pub(crate) fn check_alignment(
    address: u64,
    bytes: u64,
    lane: usize,
    mode: AccessMode,
) -> Result<(), Trap> {
    if address & (bytes - 1) == 0 {
        return Ok(());
    }
    Err(trap(
        ReportKind::MisalignedAddress,
        lane,
        address,
        bytes,
        mode,
    ))
}

/// Reads the value at one lane's address, which must be aligned.
#[inline]
pub(crate) fn read_at<T: Word>(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
) -> Result<T, Trap> {
    check_alignment(address, T::SIZE, lane, AccessMode::Read)?;
    let location = locate(unit, space, lane, address, T::SIZE, AccessMode::Read)?;
    uninitialized::check(unit, space, lane, address, T::SIZE)?;
    Ok(read(unit, location, lane))
}

/// Writes a value to one lane's address, which must be aligned.
#[inline]
pub(crate) fn write_at<T: Word>(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    value: T,
) -> Result<(), Trap> {
    check_alignment(address, T::SIZE, lane, AccessMode::Write)?;
    let location = locate(unit, space, lane, address, T::SIZE, AccessMode::Write)?;
    uninitialized::record_write(unit, space, lane, address, T::SIZE);
    write(unit, location, lane, value);
    Ok(())
}

/// Atomically replaces the value at one lane's address, and returns the old value.
pub(crate) fn update_at<T: Word>(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    change: impl Fn(T) -> T,
) -> Result<T, Trap> {
    check_alignment(address, T::SIZE, lane, AccessMode::Write)?;
    let location = locate(unit, space, lane, address, T::SIZE, AccessMode::Write)?;
    uninitialized::check(unit, space, lane, address, T::SIZE)?;
    match location {
        Location::Host(bytes) => Ok(bytes.update(change)),
        location => {
            let old = read(unit, location, lane);
            write(unit, location, lane, change(old));
            Ok(old)
        }
    }
}

#[inline(always)]
fn read<T: Word>(unit: &Unit<'_>, location: Location, lane: usize) -> T {
    match location {
        Location::Host(bytes) => bytes.load(0),
        Location::Local(offset) => {
            let word = unit.warp.local[(offset >> 3) as usize].0[lane];
            T::truncate(word >> ((offset & 7) * 8))
        }
        Location::Param(bits) => T::truncate(bits),
    }
}

#[inline(always)]
fn write<T: Word>(unit: &mut Unit<'_>, location: Location, lane: usize, value: T) {
    match location {
        Location::Host(bytes) => bytes.store(0, value),
        Location::Local(offset) => {
            let word = &mut unit.warp.local[(offset >> 3) as usize].0[lane];
            *word = local::insert(*word, offset, value);
        }
        // `locate` rejects writes to parameters.
        Location::Param(_) => {}
    }
}

/// Returns up to eight bytes of the kernel's parameters, or `None` if they are out of bounds.
fn param(unit: &Unit<'_>, offset: u64, bytes: u64) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(bytes as usize)?;
    let source = unit.launch.params.get(start..end)?;
    let mut buffer = [0; 8];
    buffer[..source.len()].copy_from_slice(source);
    Some(u64::from_le_bytes(buffer))
}

#[cold]
pub(crate) fn trap(
    kind: ReportKind,
    lane: usize,
    address: u64,
    bytes: u64,
    mode: AccessMode,
) -> Trap {
    let access = Access {
        address,
        size: bytes as u32,
        write: mode == AccessMode::Write,
    };
    Trap {
        access: Some(access),
        ..Trap::new(kind, lane)
    }
}

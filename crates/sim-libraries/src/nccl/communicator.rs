//! Creating and ending communicators.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{ptr, thread};

use curium_nccl::sys::{
    Api, NCCL_SHRINK_ABORT, NCCL_SPLIT_NOCOLOR, ncclComm_t, ncclConfig_t, ncclResult_t, ncclUniqueId,
};
use curium_sim::current_device;

use super::clique::{Channel, Device};
use super::link::Link;
use super::registry::{self, Identifier, Member, look_up};
use super::{LAST_ERROR, Result, VERSION, code, failed, group, lock, raised, write};

/// The pause between queries of operations that have not run.
const PAUSE: Duration = Duration::from_micros(200);

unsafe extern "C" fn get_version(version: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the version.
    code(unsafe { write(version, VERSION) })
}

unsafe extern "C" fn get_unique_id(id: *mut ncclUniqueId) -> ncclResult_t {
    // SAFETY: the caller passes a place for the identifier.
    code(unsafe { write(id, raw(&Identifier::new())) })
}

/// Returns an identifier as C has it.
fn raw(identifier: &Identifier) -> ncclUniqueId {
    ncclUniqueId { internal: identifier.bytes().map(|byte| c_char::from_ne_bytes([byte])) }
}

/// Returns the bytes of an identifier of C.
fn bytes(id: &ncclUniqueId) -> [u8; 128] {
    id.internal.map(|byte| byte.to_ne_bytes()[0])
}

unsafe extern "C" fn get_last_error(_communicator: ncclComm_t) -> *const c_char {
    // Messages are few, and outlive the next error.
    let text = lock(&LAST_ERROR).clone().leak();
    if text.is_empty() { c"".as_ptr() } else { text.as_ptr().cast() }
}

unsafe extern "C" fn init_rank(place: *mut ncclComm_t, size: c_int, id: ncclUniqueId, rank: c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the communicator.
    code(unsafe { create(place, size, &id, rank, true) })
}

unsafe extern "C" fn init_rank_config(
    place: *mut ncclComm_t,
    size: c_int,
    id: ncclUniqueId,
    rank: c_int,
    config: *mut ncclConfig_t,
) -> ncclResult_t {
    // SAFETY: the caller passes null or a configuration.
    let is_blocking = unsafe { config.as_ref() }.is_none_or(|config| config.blocking != 0);
    // SAFETY: the caller passes a place for the communicator.
    let created = unsafe { create(place, size, &id, rank, is_blocking) };
    if created.is_ok() && !is_blocking { ncclResult_t::ncclInProgress } else { code(created) }
}

/// Creates a rank on the current device.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn create(place: *mut ncclComm_t, size: c_int, id: &ncclUniqueId, rank: c_int, is_blocking: bool) -> Result {
    let numbers = usize::try_from(size).ok().zip(usize::try_from(rank).ok()).filter(|(size, rank)| rank < size);
    let (size, rank) =
        numbers.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("rank {rank} of {size}")))?;
    let device = device()?;
    let identifier = Identifier::from_bytes(bytes(id))?;
    let link = Link::open(&identifier, size, rank, device)?;
    // SAFETY: the caller guarantees the place.
    unsafe { write(place, registry::add(Member::new(link.clone(), rank, device, is_blocking))) }?;
    if is_blocking { group::wait_for_ranks(link) } else { Ok(()) }
}

fn device() -> Result<Device> {
    let (ordinal, simulator) =
        current_device().ok_or_else(|| failed(ncclResult_t::ncclUnhandledCudaError, "no context is current"))?;
    Ok(Device { ordinal, process: std::process::id(), simulator })
}

unsafe extern "C" fn init_all(places: *mut ncclComm_t, count: c_int, devices: *const c_int) -> ncclResult_t {
    let create = || {
        let size = usize::try_from(count).ok().filter(|size| *size > 0 && !places.is_null());
        let size = size.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("{count} devices")))?;
        let (link, device) = (Link::of_process(size), device()?);
        // SAFETY: the caller passes a place for each communicator.
        let places = unsafe { std::slice::from_raw_parts_mut(places, size) };
        // SAFETY: the caller passes null, or the number of each device.
        let devices = (!devices.is_null()).then(|| unsafe { std::slice::from_raw_parts(devices, size) });
        for (rank, place) in places.iter_mut().enumerate() {
            let device = Device { ordinal: devices.map_or(rank as c_int, |devices| devices[rank]), ..device };
            link.arrive(rank, device)?;
            *place = registry::add(Member::new(link.clone(), rank, device, true));
        }
        Ok(())
    };
    code(create())
}

unsafe extern "C" fn split(
    communicator: ncclComm_t,
    color: c_int,
    key: c_int,
    place: *mut ncclComm_t,
    _config: *mut ncclConfig_t,
) -> ncclResult_t {
    let split = || {
        let member = look_up(communicator)?;
        let call = member.number(Channel::Creation, false);
        let part = [color.to_le_bytes(), key.to_le_bytes()].concat();
        let parts = member.link.meet(call, member.rank, member.link.size(), &part)?;
        let number = |part: &[u8]| c_int::from_le_bytes(part.try_into().unwrap_or_default());
        let all = parts.iter().map(|(rank, part)| (number(&part[..4]), number(&part[4..]), *rank));
        let mut same: Vec<_> = all.filter(|(other, ..)| *other == color).map(|(_, key, rank)| (key, rank)).collect();
        same.sort_unstable();
        let ranks: Vec<usize> = same.into_iter().map(|(_, rank)| rank).collect();
        if color == NCCL_SPLIT_NOCOLOR {
            // SAFETY: the caller passes a place for the communicator.
            return unsafe { write(place, ptr::null_mut()) };
        }
        // SAFETY: as above.
        unsafe { derive(&member, call, &ranks, place) }
    };
    code(split())
}

unsafe extern "C" fn shrink(
    communicator: ncclComm_t,
    excluded: *mut c_int,
    count: c_int,
    place: *mut ncclComm_t,
    _config: *mut ncclConfig_t,
    flags: c_int,
) -> ncclResult_t {
    let shrink = || {
        let member = look_up(communicator)?;
        let count = usize::try_from(count).unwrap_or_default();
        // SAFETY: the caller passes this many ranks.
        let excluded = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(excluded, count) } };
        let ranks: Vec<usize> = (0..member.link.size()).filter(|rank| !excluded.contains(&(*rank as c_int))).collect();
        if flags & NCCL_SHRINK_ABORT as c_int != 0 {
            member.is_aborted.store(true, Relaxed);
        }
        let call = member.number(Channel::Creation, false);
        // SAFETY: the caller passes a place for the communicator.
        unsafe { derive(&member, call, &ranks, place) }
    };
    code(shrink())
}

/// Creates a communicator of `ranks`, which all call this.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn derive(member: &Arc<Member>, call: u64, ranks: &[usize], place: *mut ncclComm_t) -> Result {
    let position = ranks.iter().position(|rank| *rank == member.rank);
    let rank = position.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "the rank is excluded"))?;
    // The first of the ranks creates the identifier under which they meet.
    let own = if rank == 0 { Identifier::new().bytes().to_vec() } else { Vec::new() };
    let number = call | 1 << 63 | (ranks[0] as u64) << 32;
    let parts = member.link.meet(number, member.rank, ranks.len(), &own)?;
    let first = parts.into_iter().find(|(rank, _)| *rank == ranks[0]).map(|(_, part)| part);
    // SAFETY: the caller guarantees the place.
    unsafe { open(member, first.as_deref(), ranks.len(), rank, place) }
}

/// Creates a communicator with the identifier that one rank of another has sent, and waits for its ranks.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn open(
    member: &Arc<Member>,
    identifier: Option<&[u8]>,
    size: usize,
    rank: usize,
    place: *mut ncclComm_t,
) -> Result {
    let bytes = identifier.and_then(|part| part.try_into().ok()).ok_or(ncclResult_t::ncclInternalError)?;
    let link = Link::open(&Identifier::from_bytes(bytes)?, size, rank, member.device)?;
    let child = Member::new(link.clone(), rank, member.device, member.is_blocking);
    // SAFETY: the caller guarantees the place.
    unsafe { write(place, registry::add(child)) }?;
    link.wait_for_ranks()
}

unsafe extern "C" fn comm_get_unique_id(communicator: ncclComm_t, id: *mut ncclUniqueId) -> ncclResult_t {
    // SAFETY: the caller passes a place for the identifier.
    code(look_up(communicator).and_then(|_| unsafe { write(id, raw(&Identifier::new())) }))
}

unsafe extern "C" fn grow(
    communicator: ncclComm_t,
    size: c_int,
    id: *const ncclUniqueId,
    rank: c_int,
    place: *mut ncclComm_t,
    config: *mut ncclConfig_t,
) -> ncclResult_t {
    // SAFETY: the caller passes null or an identifier.
    let id = unsafe { id.as_ref() };
    let unsuitable = |message: &str| failed(ncclResult_t::ncclInvalidArgument, message);
    if communicator.is_null() {
        let Some(id) = id else { return unsuitable("a new rank needs the identifier") };
        // SAFETY: the caller passes a place for the communicator, and null or a configuration.
        return unsafe { init_rank_config(place, size, *id, rank, config) };
    }
    let grow = || {
        let member = look_up(communicator)?;
        let size = usize::try_from(size).ok().filter(|size| *size > member.link.size() && rank == -1);
        let size = size.ok_or_else(|| unsuitable("existing ranks pass a larger number of ranks, and the rank -1"))?;
        // The rank with the identifier sends it to the existing ones.
        let own = id.map_or(Vec::new(), |id| bytes(id).to_vec());
        let call = member.number(Channel::Creation, false);
        let parts = member.link.meet(call, member.rank, member.link.size(), &own)?;
        let mut given = parts.iter().filter(|(_, part)| !part.is_empty());
        let first = given.next().ok_or_else(|| unsuitable("no existing rank passed the identifier"))?;
        // SAFETY: the caller passes a place for the communicator.
        unsafe { open(&member, Some(&first.1), size, member.rank, place) }
    };
    code(grow())
}

unsafe extern "C" fn finalize(communicator: ncclComm_t) -> ncclResult_t {
    let finalize = || {
        let member = look_up(communicator)?;
        if member.is_finalized.swap(true, Relaxed) {
            return Err(failed(ncclResult_t::ncclInvalidUsage, "the communicator was finalized before"));
        }
        if member.is_blocking {
            finish(&member);
        }
        Ok(())
    };
    code(finalize())
}

/// Waits until the operations of a rank have run.
fn finish(member: &Member) {
    while member.pending.load(Relaxed) > 0 && !member.is_aborted.load(Relaxed) {
        thread::sleep(PAUSE);
    }
}

unsafe extern "C" fn destroy(communicator: ncclComm_t) -> ncclResult_t {
    let destroy = |member: Arc<Member>| {
        finish(&member);
        member.link.leave(member.rank, true);
    };
    code(registry::remove(communicator).map(destroy))
}

unsafe extern "C" fn abort(communicator: ncclComm_t) -> ncclResult_t {
    let abort = |member: Arc<Member>| {
        member.is_aborted.store(true, Relaxed);
        member.link.leave(member.rank, false);
        // As the library does, which waits until its operations have ended, and graphs with them are destroyed.
        while Arc::strong_count(&member) > 1 {
            thread::sleep(PAUSE);
        }
    };
    code(registry::remove(communicator).map(abort))
}

unsafe extern "C" fn get_async_error(communicator: ncclComm_t, place: *mut ncclResult_t) -> ncclResult_t {
    let state = |member: Arc<Member>| match member.link.error() {
        Some(failure) => raised(failure),
        None if !member.link.is_complete() => ncclResult_t::ncclInProgress,
        None if member.is_finalized.load(Relaxed) && member.pending.load(Relaxed) > 0 => ncclResult_t::ncclInProgress,
        None => ncclResult_t::ncclSuccess,
    };
    // SAFETY: the caller passes a place for the code.
    code(look_up(communicator).and_then(|member| unsafe { write(place, state(member)) }))
}

unsafe extern "C" fn count(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.link.size() as c_int) }))
}

unsafe extern "C" fn device_of(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.device.ordinal) }))
}

unsafe extern "C" fn rank_of(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.rank as c_int) }))
}

/// Adds the functions on communicators.
pub(super) fn add_to(api: &mut Api) {
    api.ncclGetVersion = Some(get_version);
    api.ncclGetUniqueId = Some(get_unique_id);
    api.ncclGetLastError = Some(get_last_error);
    api.ncclCommInitRank = Some(init_rank);
    api.ncclCommInitRankConfig = Some(init_rank_config);
    api.ncclCommInitAll = Some(init_all);
    api.ncclCommSplit = Some(split);
    api.ncclCommShrink = Some(shrink);
    api.ncclCommFinalize = Some(finalize);
    api.ncclCommDestroy = Some(destroy);
    api.ncclCommAbort = Some(abort);
    api.ncclCommGetAsyncError = Some(get_async_error);
    api.ncclCommCount = Some(count);
    api.ncclCommCuDevice = Some(device_of);
    api.ncclCommUserRank = Some(rank_of);
    api.ncclCommGetUniqueId = Some(comm_get_unique_id);
    api.ncclCommGrow = Some(grow);
}

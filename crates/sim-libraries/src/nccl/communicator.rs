//! Creating and ending communicators.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{ptr, thread};

use curium_nccl::sys::{
    Api, NCCL_SHRINK_ABORT, NCCL_SPLIT_NOCOLOR, ncclComm_t, ncclConfig_t, ncclResult_t, ncclUniqueId,
};
use curium_sim::current_device;

use super::clique::{Channel, Clique, Device};
use super::registry::{self, Member, look_up};
use super::{LAST_ERROR, Result, VERSION, code, failed, group, lock, write};

/// The pause between queries of operations that have not run.
const PAUSE: Duration = Duration::from_micros(200);

unsafe extern "C" fn get_version(version: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the version.
    code(unsafe { write(version, VERSION) })
}

unsafe extern "C" fn get_unique_id(id: *mut ncclUniqueId) -> ncclResult_t {
    let internal = registry::new_identifier().map(|byte| c_char::from_ne_bytes([byte]));
    // SAFETY: the caller passes a place for the identifier.
    code(unsafe { write(id, ncclUniqueId { internal }) })
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
    let clique = registry::clique(&id.internal.map(|byte| byte.to_ne_bytes()[0]), size)?;
    clique.arrive(rank, device)?;
    if clique.is_complete() {
        registry::forget(&clique);
    }
    let member = Member::new(Arc::clone(&clique), rank, device.0, is_blocking);
    // SAFETY: the caller guarantees the place.
    unsafe { write(place, registry::add(member)) }?;
    if is_blocking { group::wait_for_ranks(clique) } else { Ok(()) }
}

fn device() -> Result<Device> {
    current_device().ok_or_else(|| failed(ncclResult_t::ncclUnhandledCudaError, "no context is current"))
}

unsafe extern "C" fn init_all(places: *mut ncclComm_t, count: c_int, devices: *const c_int) -> ncclResult_t {
    let create = || {
        let size = usize::try_from(count).ok().filter(|size| *size > 0 && !places.is_null());
        let size = size.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("{count} devices")))?;
        let (clique, simulator) = (Clique::new(size), device()?.1);
        // SAFETY: the caller passes a place for each communicator.
        let places = unsafe { std::slice::from_raw_parts_mut(places, size) };
        // SAFETY: the caller passes null, or the number of each device.
        let devices = (!devices.is_null()).then(|| unsafe { std::slice::from_raw_parts(devices, size) });
        for (rank, place) in places.iter_mut().enumerate() {
            let device = devices.map_or(rank as c_int, |devices| devices[rank]);
            clique.arrive(rank, (device, simulator))?;
            *place = registry::add(Member::new(Arc::clone(&clique), rank, device, true));
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
        let parts = member.clique.meet(call, member.rank, member.clique.size, &part)?;
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
        let ranks: Vec<usize> = (0..member.clique.size).filter(|rank| !excluded.contains(&(*rank as c_int))).collect();
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
    let own = registry::new_identifier();
    let number = call | 1 << 63 | (ranks[0] as u64) << 32;
    let parts = member.clique.meet(number, member.rank, ranks.len(), &own)?;
    let first = parts.into_iter().find(|(rank, _)| *rank == ranks[0]).map(|(_, part)| part);
    let id: [u8; 128] = first.and_then(|part| part.try_into().ok()).ok_or(ncclResult_t::ncclInternalError)?;
    let clique = registry::clique(&id, ranks.len())?;
    clique.arrive(rank, (member.device, 0))?;
    if clique.is_complete() {
        registry::forget(&clique);
    }
    let child = Member::new(Arc::clone(&clique), rank, member.device, member.is_blocking);
    // SAFETY: the caller guarantees the place.
    unsafe { write(place, registry::add(child)) }?;
    clique.wait_for_ranks()
}

unsafe extern "C" fn finalize(communicator: ncclComm_t) -> ncclResult_t {
    let finalize = |member: Arc<Member>| {
        if member.is_blocking {
            finish(&member);
        }
    };
    code(look_up(communicator).map(finalize))
}

/// Waits until the operations of a rank have run.
fn finish(member: &Member) {
    while member.pending.load(Relaxed) > 0 && !member.is_aborted.load(Relaxed) {
        thread::sleep(PAUSE);
    }
}

unsafe extern "C" fn destroy(communicator: ncclComm_t) -> ncclResult_t {
    code(registry::remove(communicator).map(|member| finish(&member)))
}

unsafe extern "C" fn abort(communicator: ncclComm_t) -> ncclResult_t {
    code(registry::remove(communicator).map(|member| member.is_aborted.store(true, Relaxed)))
}

unsafe extern "C" fn get_async_error(communicator: ncclComm_t, place: *mut ncclResult_t) -> ncclResult_t {
    let state = |member: Arc<Member>| match member.clique.error() {
        Some(error) => error,
        None if !member.clique.is_complete() => ncclResult_t::ncclInProgress,
        None => ncclResult_t::ncclSuccess,
    };
    // SAFETY: the caller passes a place for the code.
    code(look_up(communicator).and_then(|member| unsafe { write(place, state(member)) }))
}

unsafe extern "C" fn count(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.clique.size as c_int) }))
}

unsafe extern "C" fn device_of(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.device) }))
}

unsafe extern "C" fn rank_of(communicator: ncclComm_t, place: *mut c_int) -> ncclResult_t {
    // SAFETY: the caller passes a place for the number.
    code(look_up(communicator).and_then(|member| unsafe { write(place, member.rank as c_int) }))
}

unsafe extern "C" fn register(
    communicator: ncclComm_t,
    memory: *mut c_void,
    _bytes: usize,
    handle: *mut *mut c_void,
) -> ncclResult_t {
    // SAFETY: the caller passes a place for the handle.
    code(look_up(communicator).and_then(|_| unsafe { write(handle, memory) }))
}

unsafe extern "C" fn deregister(communicator: ncclComm_t, _handle: *mut c_void) -> ncclResult_t {
    code(look_up(communicator).map(drop))
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
    api.ncclCommRegister = Some(register);
    api.ncclCommDeregister = Some(deregister);
}

//! Creating and ending communicators.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{ptr, thread};

use curium_nccl::sys::{
    NCCL_SHRINK_ABORT, NCCL_SPLIT_NOCOLOR, ncclComm_t, ncclConfig_t, ncclResult_t, ncclUniqueId,
};
use curium_sim::{current_device, with_device};

use super::clique::{Channel, Device};
use super::error::raised;
use super::group::Step;
use super::link::Link;
use super::message::Parts;
use super::registry::{self, Identifier, Member, look_up};
use super::{Result, VERSION, failed, group, write};

/// The pause between queries of operations that have not run.
const PAUSE: Duration = Duration::from_micros(200);

/// Returns an identifier as C has it.
fn raw(identifier: &Identifier) -> ncclUniqueId {
    ncclUniqueId {
        internal: identifier.bytes().map(|byte| c_char::from_ne_bytes([byte])),
    }
}

/// Returns the bytes of an identifier of C.
fn bytes(id: &ncclUniqueId) -> [u8; 128] {
    id.internal.map(|byte| byte.to_ne_bytes()[0])
}

/// Creates a rank on the current device. The result of a non-blocking communicator is `ncclInProgress`.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn create(
    place: *mut ncclComm_t,
    size: c_int,
    id: &ncclUniqueId,
    rank: c_int,
    is_blocking: bool,
) -> Result {
    if place.is_null() {
        return Err(failed(
            ncclResult_t::ncclInvalidArgument,
            "the place for the communicator is null",
        ));
    }
    let numbers = usize::try_from(size)
        .ok()
        .zip(usize::try_from(rank).ok())
        .filter(|(size, rank)| rank < size);
    let (size, rank) = numbers.ok_or_else(|| {
        failed(
            ncclResult_t::ncclInvalidArgument,
            format!("rank {rank} of {size}"),
        )
    })?;
    let device = device()?;
    let identifier = Identifier::from_bytes(bytes(id))?;
    let link = Link::open(&identifier, size, rank, device)?;
    // SAFETY: the caller guarantees the place.
    unsafe {
        write(
            place,
            add(Member::new(link.clone(), rank, device, is_blocking)),
        )
    }?;
    if is_blocking {
        group::take(wait_for_ranks(link))
    } else {
        Err(ncclResult_t::ncclInProgress)
    }
}

/// Returns `true` unless a configuration is passed that requests a non-blocking communicator.
///
/// # Safety
///
/// `config` is null or valid for reads.
unsafe fn is_blocking(config: *const ncclConfig_t) -> bool {
    // SAFETY: the caller guarantees the pointer.
    unsafe { config.as_ref() }.is_none_or(|config| config.blocking != 0)
}

fn device() -> Result<Device> {
    let (ordinal, simulator) = current_device().ok_or_else(|| {
        failed(
            ncclResult_t::ncclUnhandledCudaError,
            "no context is current, and there are several simulators or none",
        )
    })?;
    Ok(Device {
        ordinal,
        process: std::process::id(),
        simulator,
    })
}

/// Adds a rank, and returns its handle.
fn add(member: Arc<Member>) -> ncclComm_t {
    let handle = registry::new_handle();
    registry::add(handle, member);
    handle
}

fn wait_for_ranks(link: Link) -> Step {
    Step::new(move || link.wait_for_ranks().map(|()| None))
}

/// Begins to create a communicator of `ranks`, which all call this, and returns the next step.
fn derive(member: Arc<Member>, call: u64, ranks: &[usize], handle: ncclComm_t) -> Result<Step> {
    let position = ranks.iter().position(|rank| *rank == member.rank);
    let rank = position
        .ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "the rank is excluded"))?;
    // The first of the ranks creates the identifier under which they meet.
    let own = if rank == 0 {
        Identifier::new().bytes().to_vec()
    } else {
        Vec::new()
    };
    let number = call | 1 << 63 | (ranks[0] as u64) << 32;
    let (size, first) = (ranks.len(), ranks[0]);
    let key = member.link.join_meeting(number, member.rank, size, &own);
    Ok(Step::new(move || {
        let parts = member.link.wait_for(key)?;
        let identifier = parts
            .into_iter()
            .find(|(rank, _)| *rank == first)
            .map(|(_, part)| part);
        open(&member, identifier.as_deref(), size, rank, handle).map(Some)
    }))
}

/// Creates a communicator with the identifier that one rank of another has sent, and returns the step that waits for its ranks.
fn open(
    member: &Arc<Member>,
    identifier: Option<&[u8]>,
    size: usize,
    rank: usize,
    handle: ncclComm_t,
) -> Result<Step> {
    let bytes = identifier
        .and_then(|part| part.try_into().ok())
        .ok_or(ncclResult_t::ncclInternalError)?;
    let link = Link::open(&Identifier::from_bytes(bytes)?, size, rank, member.device)?;
    registry::add(
        handle,
        Member::new(link.clone(), rank, member.device, member.is_blocking),
    );
    Ok(wait_for_ranks(link))
}

/// Returns the ranks of the same color, in the order of their keys. Each part is the color and the key of a rank.
fn ranks_of_color(color: c_int, parts: &Parts) -> Vec<usize> {
    let number = |part: &[u8]| c_int::from_le_bytes(part.try_into().unwrap_or_default());
    let all = parts
        .iter()
        .map(|(rank, part)| (number(&part[..4]), number(&part[4..]), *rank));
    let mut same: Vec<_> = all
        .filter(|(other, ..)| *other == color)
        .map(|(_, key, rank)| (key, rank))
        .collect();
    same.sort_unstable();
    same.into_iter().map(|(_, rank)| rank).collect()
}

/// Waits until the operations of a rank have run.
fn finish(member: &Member) {
    while member.pending.load(Relaxed) > 0 && !member.is_aborted.load(Relaxed) {
        thread::sleep(PAUSE);
    }
}

functions! {
    fn ncclGetVersion(version: *mut c_int) {
        // SAFETY: the caller passes a place for the version.
        unsafe { write(version, VERSION) }
    }

    fn ncclGetUniqueId(id: *mut ncclUniqueId) {
        // SAFETY: the caller passes a place for the identifier.
        unsafe { write(id, raw(&Identifier::new())) }
    }

    fn ncclCommInitRank(place: *mut ncclComm_t, size: c_int, id: ncclUniqueId, rank: c_int) {
        // SAFETY: the caller passes a place for the communicator.
        unsafe { create(place, size, &id, rank, true) }
    }

    fn ncclCommInitRankConfig(
        place: *mut ncclComm_t,
        size: c_int,
        id: ncclUniqueId,
        rank: c_int,
        config: *mut ncclConfig_t,
    ) {
        // SAFETY: the caller passes null or a configuration.
        let is_blocking = unsafe { is_blocking(config) };
        // SAFETY: the caller passes a place for the communicator.
        unsafe { create(place, size, &id, rank, is_blocking) }
    }

    fn ncclCommInitRankScalable(
        place: *mut ncclComm_t,
        size: c_int,
        rank: c_int,
        count: c_int,
        ids: *mut ncclUniqueId,
        config: *mut ncclConfig_t,
    ) {
        if count < 1 || ids.is_null() {
            return Err(failed(ncclResult_t::ncclInvalidArgument, format!("{count} identifiers")));
        }
        // SAFETY: the caller passes null or a configuration.
        let is_blocking = unsafe { is_blocking(config) };
        // SAFETY: the caller passes `count` identifiers, in the same order on every rank: the ranks meet under the first.
        let id = unsafe { *ids };
        // SAFETY: the caller passes a place for the communicator.
        unsafe { create(place, size, &id, rank, is_blocking) }
    }

    fn ncclCommInitAll(places: *mut ncclComm_t, count: c_int, devices: *const c_int) {
        let size = usize::try_from(count).ok().filter(|size| *size > 0 && !places.is_null());
        let size = size.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("{count} devices")))?;
        let (link, device) = (Link::of_process(size), device()?);
        // SAFETY: the caller passes a place for each communicator.
        let places = unsafe { std::slice::from_raw_parts_mut(places, size) };
        // SAFETY: the caller passes null, or the number of each device.
        let devices = (!devices.is_null()).then(|| unsafe { std::slice::from_raw_parts(devices, size) });
        let arrive = |rank: usize| {
            let device = Device { ordinal: devices.map_or(rank as c_int, |devices| devices[rank]), ..device };
            with_device((device.ordinal, device.simulator), || ()).map_err(|error| {
                let code = devices.map_or(ncclResult_t::ncclUnhandledCudaError, |_| ncclResult_t::ncclInvalidArgument);
                failed(code, format!("device {}: {error:?}", device.ordinal))
            })?;
            link.arrive(rank, device)?;
            Ok(Member::new(link.clone(), rank, device, true))
        };
        let members = (0..size).map(arrive).collect::<Result<Vec<_>>>()?;
        places.iter_mut().zip(members).for_each(|(place, member)| *place = add(member));
        Ok(())
    }

    fn ncclCommSplit(
        communicator: ncclComm_t,
        color: c_int,
        key: c_int,
        place: *mut ncclComm_t,
        _config: *mut ncclConfig_t,
    ) {
        let member = look_up(communicator)?;
        let is_in_part = color != NCCL_SPLIT_NOCOLOR;
        let handle = if is_in_part { registry::new_handle() } else { ptr::null_mut() };
        // SAFETY: the caller passes a place for the communicator.
        unsafe { write(place, handle) }?;
        let call = member.number(Channel::Creation, false);
        let part = [color.to_le_bytes(), key.to_le_bytes()].concat();
        let meeting = member.link.join_meeting(call, member.rank, member.link.size(), &part);
        group::take(Step::new(move || {
            let parts = member.link.wait_for(meeting)?;
            let derive = || derive(member, call, &ranks_of_color(color, &parts), handle);
            is_in_part.then(derive).transpose()
        }))
    }

    fn ncclCommShrink(
        communicator: ncclComm_t,
        excluded: *mut c_int,
        count: c_int,
        place: *mut ncclComm_t,
        _config: *mut ncclConfig_t,
        flags: c_int,
    ) {
        let member = look_up(communicator)?;
        let size = member.link.size() as c_int;
        let count = usize::try_from(count).ok().filter(|count| *count > 0 && !excluded.is_null());
        let count = count.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "no rank is excluded"))?;
        // SAFETY: the caller passes this many ranks.
        let excluded = unsafe { std::slice::from_raw_parts(excluded, count) };
        if let Some(rank) = excluded.iter().find(|rank| !(0..size).contains(*rank)) {
            return Err(failed(ncclResult_t::ncclInvalidArgument, format!("rank {rank} of {size}")));
        }
        let ranks: Vec<usize> = (0..member.link.size()).filter(|rank| !excluded.contains(&(*rank as c_int))).collect();
        if flags & NCCL_SHRINK_ABORT as c_int != 0 {
            member.is_aborted.store(true, Relaxed);
        }
        let handle = registry::new_handle();
        // SAFETY: the caller passes a place for the communicator.
        unsafe { write(place, handle) }?;
        let call = member.number(Channel::Creation, false);
        group::take(derive(member, call, &ranks, handle)?)
    }

    fn ncclCommGetUniqueId(communicator: ncclComm_t, id: *mut ncclUniqueId) {
        look_up(communicator)?;
        // SAFETY: the caller passes a place for the identifier.
        unsafe { write(id, raw(&Identifier::new())) }
    }

    fn ncclCommGrow(
        communicator: ncclComm_t,
        size: c_int,
        id: *const ncclUniqueId,
        rank: c_int,
        place: *mut ncclComm_t,
        config: *mut ncclConfig_t,
    ) {
        // SAFETY: the caller passes null or an identifier.
        let id = unsafe { id.as_ref() };
        let unsuitable = |message: &str| failed(ncclResult_t::ncclInvalidArgument, message);
        if communicator.is_null() {
            let id = id.ok_or_else(|| unsuitable("a new rank needs the identifier"))?;
            // SAFETY: the caller passes null or a configuration.
            let is_blocking = unsafe { is_blocking(config) };
            // SAFETY: the caller passes a place for the communicator.
            return unsafe { create(place, size, id, rank, is_blocking) };
        }
        let member = look_up(communicator)?;
        let size = usize::try_from(size).ok().filter(|size| *size > member.link.size() && rank == -1);
        let size = size.ok_or_else(|| unsuitable("existing ranks pass a larger number of ranks, and the rank -1"))?;
        // The rank with the identifier sends it to the existing ones.
        let own = id.map_or(Vec::new(), |id| bytes(id).to_vec());
        let call = member.number(Channel::Creation, false);
        let handle = registry::new_handle();
        // SAFETY: the caller passes a place for the communicator.
        unsafe { write(place, handle) }?;
        let key = member.link.join_meeting(call, member.rank, member.link.size(), &own);
        group::take(Step::new(move || {
            let parts = member.link.wait_for(key)?;
            let mut given = parts.iter().filter(|(_, part)| !part.is_empty());
            let first = given.next().ok_or_else(|| unsuitable("no existing rank passed the identifier"))?;
            open(&member, Some(&first.1), size, member.rank, handle).map(Some)
        }))
    }

    fn ncclCommFinalize(communicator: ncclComm_t) {
        if communicator.is_null() {
            return Ok(());
        }
        let member = look_up(communicator)?;
        if member.is_finalized.swap(true, Relaxed) {
            return Err(failed(ncclResult_t::ncclInvalidArgument, "the communicator was finalized before"));
        }
        if member.is_blocking {
            finish(&member);
        }
        Ok(())
    }

    fn ncclCommDestroy(communicator: ncclComm_t) {
        if communicator.is_null() {
            return Ok(());
        }
        let member = registry::remove(communicator)?;
        finish(&member);
        member.link.leave(member.rank, true);
        Ok(())
    }

    fn ncclCommAbort(communicator: ncclComm_t) {
        if communicator.is_null() {
            return Ok(());
        }
        let member = registry::remove(communicator)?;
        member.is_aborted.store(true, Relaxed);
        member.link.leave(member.rank, false);
        // As the library does, which waits until its operations have ended, and graphs with them are destroyed.
        while Arc::strong_count(&member) > 1 {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn ncclCommGetAsyncError(communicator: ncclComm_t, place: *mut ncclResult_t) {
        let member = look_up(communicator)?;
        let state = match member.link.error() {
            Some(failure) => raised(failure),
            None if !member.link.is_complete() => ncclResult_t::ncclInProgress,
            None if member.is_finalized.load(Relaxed) && member.pending.load(Relaxed) > 0 => {
                ncclResult_t::ncclInProgress
            }
            None => ncclResult_t::ncclSuccess,
        };
        // SAFETY: the caller passes a place for the code.
        unsafe { write(place, state) }
    }

    fn ncclCommCount(communicator: ncclComm_t, place: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: the caller passes a place for the number.
        unsafe { write(place, member.link.size() as c_int) }
    }

    fn ncclCommCuDevice(communicator: ncclComm_t, place: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: the caller passes a place for the number.
        unsafe { write(place, member.device.ordinal) }
    }

    fn ncclCommUserRank(communicator: ncclComm_t, place: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: the caller passes a place for the number.
        unsafe { write(place, member.rank as c_int) }
    }
}

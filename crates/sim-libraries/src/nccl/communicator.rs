//! Creating and ending communicators.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{ptr, thread};

use curium_sim::{current_device, with_device};
use curium_sys::nccl::{
    NCCL_SHRINK_ABORT, NCCL_SPLIT_NOCOLOR, ncclComm_t, ncclConfig_t, ncclResult_t, ncclUniqueId,
};

use super::clique::{Channel, Device};
use super::error::raised;
use super::group::Step;
use super::link::Link;
use super::message::Parts;
use super::registry::{self, Creation, Identifier, Member, look_up};
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

/// Creates a rank on the current device. The result of a non-blocking communicator is
/// `ncclInProgress`.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn create(
    output: *mut ncclComm_t,
    size: c_int,
    id: &ncclUniqueId,
    rank: c_int,
    is_blocking: bool,
) -> Result {
    if output.is_null() {
        return Err(failed(
            ncclResult_t::ncclInvalidArgument,
            "the address for the communicator is null",
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
    // SAFETY: the caller guarantees the output.
    unsafe {
        write(
            output,
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

/// The handle of a communicator that is being created.
#[derive(Clone, Copy)]
struct NewHandle(usize);

impl NewHandle {
    fn new() -> Self {
        Self(registry::new_handle().addr())
    }

    fn raw(self) -> ncclComm_t {
        ptr::without_provenance_mut(self.0)
    }
}

/// Begins to create a communicator of `ranks`, which all call this, and returns the next step.
fn derive(member: Arc<Member>, call: u64, ranks: &[usize], handle: NewHandle) -> Result<Step> {
    let position = ranks.iter().position(|rank| *rank == member.rank);
    let rank = position
        .ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "the rank is excluded"))?;
    // The first of the ranks creates the identifier under which they meet.
    let part = if rank == 0 {
        Identifier::new().bytes().to_vec()
    } else {
        Vec::new()
    };
    let number = call | 1 << 63 | (ranks[0] as u64) << 32;
    let size = ranks.len();
    let first = ranks[0];
    let key = member.link.join_meeting(number, member.rank, size, &part);
    Ok(Step::new(move || {
        let parts = member.wait_for(key)?;
        let identifier = parts
            .into_iter()
            .find(|(rank, _)| *rank == first)
            .map(|(_, part)| part);
        open(&member, identifier.as_deref(), size, rank, handle).map(Some)
    }))
}

/// Creates a communicator with the identifier that one rank of another has sent, and returns the
/// step that waits for its ranks.
fn open(
    member: &Arc<Member>,
    identifier: Option<&[u8]>,
    size: usize,
    rank: usize,
    handle: NewHandle,
) -> Result<Step> {
    let bytes = identifier
        .and_then(|part| part.try_into().ok())
        .ok_or(ncclResult_t::ncclInternalError)?;
    let link = Link::open(&Identifier::from_bytes(bytes)?, size, rank, member.device)?;
    registry::add(
        handle.raw(),
        Member::new(link.clone(), rank, member.device, member.is_blocking),
    );
    let member = Arc::clone(member);
    Ok(Step::new(move || {
        let result = member.wait_for_ranks(&link);
        if member.has_ended.load(Relaxed) && registry::remove(handle.raw()).is_ok() {
            link.leave(rank, false);
        }
        result.map(|()| None)
    }))
}

/// Returns the ranks of the same color, in the order of their keys. Each part is the color and the
/// key of a rank.
fn same_color_ranks(color: c_int, parts: &Parts) -> Vec<usize> {
    let mut ranks = Vec::new();
    for (rank, part) in parts {
        let (other_color, key) = part.split_at(4);
        if number(other_color) == color {
            ranks.push((number(key), *rank));
        }
    }
    ranks.sort_unstable();
    ranks.into_iter().map(|(_, rank)| rank).collect()
}

fn number(bytes: &[u8]) -> c_int {
    c_int::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn unsuitable(message: &str) -> ncclResult_t {
    failed(ncclResult_t::ncclInvalidArgument, message)
}

/// Waits until the operations of a rank have run.
fn finish(member: &Member) {
    while member.pending.load(Relaxed) > 0 && !member.is_aborted.load(Relaxed) {
        thread::sleep(PAUSE);
    }
}

functions! {
    fn ncclGetVersion(version: *mut c_int) {
        // SAFETY: by the contract of the C function, `version` is null or valid for writes.
        unsafe { write(version, VERSION) }
    }

    fn ncclGetUniqueId(id: *mut ncclUniqueId) {
        // SAFETY: by the contract of the C function, `id` is null or valid for writes.
        unsafe { write(id, raw(&Identifier::new())) }
    }

    fn ncclCommInitRank(output: *mut ncclComm_t, size: c_int, id: ncclUniqueId, rank: c_int) {
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { create(output, size, &id, rank, true) }
    }

    fn ncclCommInitRankConfig(
        output: *mut ncclComm_t,
        size: c_int,
        id: ncclUniqueId,
        rank: c_int,
        config: *mut ncclConfig_t,
    ) {
        // SAFETY: by the contract of the C function, `config` is null or valid for reads.
        let is_blocking = unsafe { is_blocking(config) };
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { create(output, size, &id, rank, is_blocking) }
    }

    fn ncclCommInitRankScalable(
        output: *mut ncclComm_t,
        size: c_int,
        rank: c_int,
        count: c_int,
        ids: *mut ncclUniqueId,
        config: *mut ncclConfig_t,
    ) {
        if count < 1 || ids.is_null() {
            return Err(failed(ncclResult_t::ncclInvalidArgument, format!("{count} identifiers")));
        }
        // SAFETY: by the contract of the C function, `config` is null or valid for reads.
        let is_blocking = unsafe { is_blocking(config) };
        // The ranks meet under the first identifier, which is the same on every rank.
        // SAFETY: by the contract of the C function, `ids` has `count` elements, which is at least 1.
        let id = unsafe { *ids };
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { create(output, size, &id, rank, is_blocking) }
    }

    fn ncclCommInitAll(handles: *mut ncclComm_t, count: c_int, devices: *const c_int) {
        let size = usize::try_from(count).ok().filter(|size| *size > 0 && !handles.is_null());
        let size = size.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("{count} devices")))?;
        let link = Link::local(size);
        let device = device()?;
        // SAFETY: by the contract of the C function, `handles` has `count` elements.
        let handles = unsafe { std::slice::from_raw_parts_mut(handles, size) };
        // SAFETY: by the contract of the C function, `devices` is null or has `count` elements.
        let devices = (!devices.is_null()).then(|| unsafe { std::slice::from_raw_parts(devices, size) });
        let mut members = Vec::with_capacity(size);
        for rank in 0..size {
            let device = Device { ordinal: devices.map_or(rank as c_int, |devices| devices[rank]), ..device };
            with_device((device.ordinal, device.simulator), || ()).map_err(|error| {
                let code = devices.map_or(ncclResult_t::ncclUnhandledCudaError, |_| ncclResult_t::ncclInvalidArgument);
                failed(code, format!("device {}: {error:?}", device.ordinal))
            })?;
            link.arrive(rank, device)?;
            members.push(Member::new(link.clone(), rank, device, true));
        }
        for (handle, member) in handles.iter_mut().zip(members) {
            *handle = add(member);
        }
        Ok(())
    }

    fn ncclCommSplit(
        communicator: ncclComm_t,
        color: c_int,
        key: c_int,
        output: *mut ncclComm_t,
        _config: *mut ncclConfig_t,
    ) {
        let member = look_up(communicator)?;
        let is_in_part = color != NCCL_SPLIT_NOCOLOR;
        let handle = is_in_part.then(NewHandle::new);
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, handle.map_or(ptr::null_mut(), NewHandle::raw)) }?;
        let call = member.number(Channel::Creation);
        let part = [color.to_le_bytes(), key.to_le_bytes()].concat();
        let meeting = member.link.join_meeting(call, member.rank, member.link.size(), &part);
        let parent = Arc::clone(&member);
        group::create_from(&parent, Step::new(move || {
            let parts = member.wait_for(meeting)?;
            let Some(handle) = handle else { return Ok(None) };
            derive(member, call, &same_color_ranks(color, &parts), handle).map(Some)
        }))
    }

    fn ncclCommShrink(
        communicator: ncclComm_t,
        excluded: *mut c_int,
        count: c_int,
        output: *mut ncclComm_t,
        _config: *mut ncclConfig_t,
        flags: c_int,
    ) {
        let member = look_up(communicator)?;
        let size = member.link.size() as c_int;
        let count = usize::try_from(count).ok().filter(|count| *count > 0 && !excluded.is_null());
        let count = count.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "no rank is excluded"))?;
        // SAFETY: by the contract of the C function, `excluded` has `count` elements.
        let excluded = unsafe { std::slice::from_raw_parts(excluded, count) };
        if let Some(rank) = excluded.iter().find(|rank| !(0..size).contains(*rank)) {
            return Err(failed(ncclResult_t::ncclInvalidArgument, format!("rank {rank} of {size}")));
        }
        let ranks: Vec<usize> = (0..member.link.size()).filter(|rank| !excluded.contains(&(*rank as c_int))).collect();
        if flags & NCCL_SHRINK_ABORT as c_int != 0 {
            member.is_aborted.store(true, Relaxed);
        }
        let handle = NewHandle::new();
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, handle.raw()) }?;
        let call = member.number(Channel::Creation);
        group::create_from(&member, derive(Arc::clone(&member), call, &ranks, handle)?)
    }

    fn ncclCommGetUniqueId(communicator: ncclComm_t, id: *mut ncclUniqueId) {
        look_up(communicator)?;
        // SAFETY: by the contract of the C function, `id` is null or valid for writes.
        unsafe { write(id, raw(&Identifier::new())) }
    }

    fn ncclCommGrow(
        communicator: ncclComm_t,
        size: c_int,
        id: *const ncclUniqueId,
        rank: c_int,
        output: *mut ncclComm_t,
        config: *mut ncclConfig_t,
    ) {
        // SAFETY: by the contract of the C function, `id` is null or valid for reads.
        let id = unsafe { id.as_ref() };
        if communicator.is_null() {
            let id = id.ok_or_else(|| unsuitable("a new rank needs the identifier"))?;
            // SAFETY: by the contract of the C function, `config` is null or valid for reads.
            let is_blocking = unsafe { is_blocking(config) };
            // SAFETY: by the contract of the C function, `output` is null or valid for writes.
            return unsafe { create(output, size, id, rank, is_blocking) };
        }
        let member = look_up(communicator)?;
        let size = usize::try_from(size).ok().filter(|size| *size > member.link.size() && rank == -1);
        let size = size.ok_or_else(|| unsuitable("existing ranks pass a larger number of ranks, and the rank -1"))?;
        // The rank with the identifier sends it to the existing ones.
        let part = id.map_or(Vec::new(), |id| bytes(id).to_vec());
        let call = member.number(Channel::Creation);
        let handle = NewHandle::new();
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, handle.raw()) }?;
        let key = member.link.join_meeting(call, member.rank, member.link.size(), &part);
        let parent = Arc::clone(&member);
        group::create_from(&parent, Step::new(move || {
            let parts = member.wait_for(key)?;
            let (_, identifier) = parts
                .iter()
                .find(|(_, part)| !part.is_empty())
                .ok_or_else(|| unsuitable("no existing rank passed the identifier"))?;
            open(&member, Some(identifier), size, member.rank, handle).map(Some)
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
        member.has_ended.store(true, Relaxed);
        member.link.leave(member.rank, false);
        // As the library does, which waits until its operations have ended, and graphs with them
        // are destroyed.
        while Arc::strong_count(&member) > 1 {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn ncclCommGetAsyncError(communicator: ncclComm_t, output: *mut ncclResult_t) {
        let member = look_up(communicator)?;
        let state = match member.link.error() {
            Some(failure) => raised(failure),
            None if !member.link.is_complete() => ncclResult_t::ncclInProgress,
            None if member.is_finalized.load(Relaxed) && member.pending.load(Relaxed) > 0 => {
                ncclResult_t::ncclInProgress
            }
            None => match member.creation() {
                Creation::None => ncclResult_t::ncclSuccess,
                Creation::Running => ncclResult_t::ncclInProgress,
                Creation::Failed(error) => error,
            },
        };
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, state) }
    }

    fn ncclCommCount(communicator: ncclComm_t, output: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, member.link.size() as c_int) }
    }

    fn ncclCommCuDevice(communicator: ncclComm_t, output: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, member.device.ordinal) }
    }

    fn ncclCommUserRank(communicator: ncclComm_t, output: *mut c_int) {
        let member = look_up(communicator)?;
        // SAFETY: by the contract of the C function, `output` is null or valid for writes.
        unsafe { write(output, member.rank as c_int) }
    }
}

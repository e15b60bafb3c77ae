//! The operations on streams.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use curium_nccl::sys::{
    Api, cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclScalarResidence_t,
};
use curium_sim::{LibraryOperation, Operand};

use super::clique::{Channel, Key};
use super::fault::NcclFault;
use super::operation::{Kind, Operation};
use super::reduce::width;
use super::registry::{Member, look_up};
use super::{Result, code, failed, group, lock, write};

/// An operation of one rank, before it is enqueued.
pub(super) struct Transfer {
    member: Arc<Member>,
    operation: Operation,
    channel: Channel,
    /// The number of the call, once it is started.
    call: u64,
    source: u64,
    target: u64,
    stream: usize,
}

/// The operands of a call.
#[derive(Clone, Copy)]
struct Memory {
    source: *const c_void,
    target: *mut c_void,
    count: usize,
    element: ncclDataType_t,
    stream: cudaStream_t,
}

/// Creates an operation, and starts it.
fn start(
    communicator: ncclComm_t,
    memory: Memory,
    kind: impl FnOnce(&Member) -> Result<(Kind, Channel)>,
) -> ncclResult_t {
    let transfer = || {
        let member = look_up(communicator)?;
        if !member.link.is_complete() {
            return Err(failed(ncclResult_t::ncclInvalidUsage, "the communicator is not connected"));
        }
        if member.is_finalized.load(Relaxed) {
            return Err(failed(ncclResult_t::ncclInvalidUsage, "the communicator was finalized"));
        }
        let (kind, channel) = kind(&member)?;
        let unknown = || failed(ncclResult_t::ncclInvalidArgument, format!("elements of {:?}", memory.element));
        let operation = Operation {
            kind,
            count: memory.count,
            element: memory.element,
            width: width(memory.element).ok_or_else(unknown)?,
        };
        let (source, target) = (memory.source.addr() as u64, memory.target.addr() as u64);
        Ok(Transfer { member, operation, channel, call: 0, source, target, stream: memory.stream.addr() })
    };
    group::record(transfer().and_then(group::start))
}

impl Transfer {
    /// Numbers the call, and compares it with those of the other ranks.
    pub(super) fn agree(&mut self) -> Result {
        self.call = self.member.number(self.channel, self.operation.kind == Kind::Receive);
        self.member.link.agree(self.channel, self.call, self.member.rank, &self.operation)
    }

    /// Returns the number of the rank among those that contribute.
    fn place(&self) -> usize {
        let after_all = self.operation.kind == Kind::Receive;
        self.member.rank + if after_all { self.member.link.size() } else { 0 }
    }

    /// Returns the key of a run.
    fn key(&self, run: u64) -> Key {
        Key { channel: self.channel, call: self.call, run }
    }

    /// Enqueues the contribution of the rank.
    pub(super) fn enqueue_contribution(&self) -> Result {
        let fault = *lock(&self.member.fault);
        if fault == Some(NcclFault::Silence) {
            return Ok(());
        }
        let (rank, size) = (self.member.rank, self.member.link.size());
        let len = self.operation.source_len(rank, size);
        let (member, operation, first, place) =
            (Arc::clone(&self.member), self.operation.clone(), self.key(0), self.place());
        let runs = AtomicU64::new(0);
        let contribute = move |operands: &mut [Vec<u8>]| {
            let key = Key { run: runs.fetch_add(1, Relaxed), ..first };
            // As on hardware, operations of an aborted communicator end without an exchange.
            if !member.is_aborted.load(Relaxed) {
                member.link.contribute(key, place, operation.prepared(&operands[0]).into());
            }
        };
        let source = Operand::read().with_run(self.source, len);
        let operation = LibraryOperation::new(self.operation.kind.name(), [source], contribute);
        self.enqueue(match fault {
            Some(NcclFault::Delay(delay)) => {
                let start = Instant::now();
                operation.with_condition(move || start.elapsed() >= delay)
            }
            _ => operation,
        })
    }

    /// Enqueues the wait for the other ranks, and the result.
    pub(super) fn enqueue_result(self) -> Result {
        let (rank, size) = (self.member.rank, self.member.link.size());
        let len = self.operation.target_len(rank, size);
        let (first, operation) = (self.key(0), self.operation.clone());
        let runs = Arc::new(AtomicU64::new(0));
        let (waiting, waiting_runs) = (Arc::clone(&self.member), Arc::clone(&runs));
        let is_ready = move || {
            let key = Key { run: waiting_runs.load(Relaxed), ..first };
            waiting.is_aborted.load(Relaxed) || waiting.link.is_ready(key)
        };
        self.member.pending.fetch_add(1, Relaxed);
        let member = Arc::clone(&self.member);
        let finish = move |operands: &mut [Vec<u8>]| {
            let run = runs.fetch_add(1, Relaxed);
            let parts = member.link.take(Key { run, ..first });
            // The results of an aborted communicator are unspecified.
            if !parts.is_empty() && !operands[0].is_empty() {
                let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
                operands[0].copy_from_slice(&operation.result(rank, &parts));
            }
            if run == 0 {
                member.pending.fetch_sub(1, Relaxed);
            }
        };
        let target = Operand::write().with_run(self.target, len);
        let operation = LibraryOperation::new(self.operation.kind.name(), [target], finish).with_condition(is_ready);
        self.enqueue(operation)
    }

    fn enqueue(&self, operation: LibraryOperation) -> Result {
        // SAFETY: the caller of the library guarantees the memory, as that of a kernel.
        let enqueued = unsafe { operation.enqueue(std::ptr::without_provenance_mut(self.stream)) };
        enqueued.map_err(|error| failed(ncclResult_t::ncclUnhandledCudaError, format!("{error:?}")))
    }
}

/// Returns a rank that a call names.
fn rank(member: &Member, rank: c_int) -> Result<usize> {
    let found = usize::try_from(rank).ok().filter(|rank| *rank < member.link.size());
    found.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, format!("rank {rank} of {}", member.link.size())))
}

macro_rules! collectives {
    ($($name:ident: $function:ident($($extra:ident: $ty:ty),*), $kind:expr;)*) => {
        $(
            unsafe extern "C" fn $function(
                source: *const c_void,
                target: *mut c_void,
                count: usize,
                element: ncclDataType_t,
                $($extra: $ty,)*
                communicator: ncclComm_t,
                stream: cudaStream_t,
            ) -> ncclResult_t {
                let memory = Memory { source, target, count, element, stream };
                let kind: fn(&Member, $($ty),*) -> Result<Kind> = $kind;
                start(communicator, memory, |member| Ok((kind(member, $($extra),*)?, Channel::Collective)))
            }
        )*

        /// Adds the functions that transfer data.
        pub(super) fn add_to(api: &mut Api) {
            $(api.$name = Some($function);)*
            api.ncclSend = Some(send);
            api.ncclRecv = Some(receive);
            api.ncclRedOpCreatePreMulSum = Some(create_operator);
            api.ncclRedOpDestroy = Some(destroy_operator);
        }
    };
}

collectives! {
    ncclAllReduce: all_reduce(operator: ncclRedOp_t), |member, operator| Ok(Kind::AllReduce(member.operator(operator)?));
    ncclReduce: reduce(operator: ncclRedOp_t, root: c_int),
        |member, operator, root| Ok(Kind::Reduce(member.operator(operator)?, rank(member, root)?));
    ncclReduceScatter: reduce_scatter(operator: ncclRedOp_t), |member, operator| Ok(Kind::ReduceScatter(member.operator(operator)?));
    ncclBroadcast: broadcast(root: c_int), |member, root| Ok(Kind::Broadcast(rank(member, root)?));
    ncclAllGather: all_gather(), |_| Ok(Kind::AllGather);
    ncclAlltoAll: all_to_all(), |_| Ok(Kind::AllToAll);
    ncclGather: gather(root: c_int), |member, root| Ok(Kind::Gather(rank(member, root)?));
    ncclScatter: scatter(root: c_int), |member, root| Ok(Kind::Scatter(rank(member, root)?));
}

unsafe extern "C" fn send(
    source: *const c_void,
    count: usize,
    element: ncclDataType_t,
    peer: c_int,
    communicator: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let memory = Memory { source, target: std::ptr::null_mut(), count, element, stream };
    start(communicator, memory, |member| Ok((Kind::Send, Channel::Pair { from: member.rank, to: rank(member, peer)? })))
}

unsafe extern "C" fn receive(
    target: *mut c_void,
    count: usize,
    element: ncclDataType_t,
    peer: c_int,
    communicator: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let memory = Memory { source: std::ptr::null(), target, count, element, stream };
    start(communicator, memory, |member| {
        Ok((Kind::Receive, Channel::Pair { from: rank(member, peer)?, to: member.rank }))
    })
}

unsafe extern "C" fn create_operator(
    operator: *mut ncclRedOp_t,
    factor: *mut c_void,
    element: ncclDataType_t,
    residence: ncclScalarResidence_t,
    communicator: ncclComm_t,
) -> ncclResult_t {
    let create = || {
        let member = look_up(communicator)?;
        let width =
            width(element).ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown type of elements"))?;
        if factor.is_null() || residence != ncclScalarResidence_t::ncclScalarHostImmediate {
            return Err(failed(ncclResult_t::ncclInvalidArgument, "factors are on the host in the simulation"));
        }
        let mut bytes = [0; 8];
        // SAFETY: the caller passes a number of this type.
        let given = unsafe { std::slice::from_raw_parts(factor.cast::<u8>(), width) };
        bytes[..width].copy_from_slice(given);
        // SAFETY: the caller passes a place for the operator.
        unsafe { write(operator, member.add_operator(bytes)) }
    };
    code(create())
}

unsafe extern "C" fn destroy_operator(operator: ncclRedOp_t, communicator: ncclComm_t) -> ncclResult_t {
    code(look_up(communicator).and_then(|member| member.remove_operator(operator)))
}

//! The operations on streams.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use curium_sim::{LibraryOperation, Operand, is_stream_captured, stream_number, with_device};
use curium_sys::CU_STREAM_PER_THREAD;
use curium_sys::nccl::{
    cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclScalarResidence_t,
};
use parking_lot::Mutex;

use super::clique::{Channel, Clique, Device, Key};
use super::error::raised;
use super::fault::NcclFault;
use super::operation::{Kind, Operation};
use super::order::{OperationKey, Ordered};
use super::reduce::{Factor, width};
use super::registry::{Member, look_up};
use super::{Result, failed, group, write};

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
    /// The place of the operation on its stream, once it is started.
    ordered: Option<Ordered>,
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
) -> Result {
    group::record(Transfer::new(communicator, memory, kind).and_then(group::start))
}

impl Transfer {
    fn new(
        communicator: ncclComm_t,
        memory: Memory,
        kind: impl FnOnce(&Member) -> Result<(Kind, Channel)>,
    ) -> Result<Self> {
        let member = look_up(communicator)?;
        if !member.link.is_complete() {
            return Err(failed(
                ncclResult_t::ncclInvalidUsage,
                "the communicator is not connected",
            ));
        }
        if member.is_finalized.load(Relaxed) {
            return Err(failed(
                ncclResult_t::ncclInvalidUsage,
                "the communicator was finalized",
            ));
        }
        let (kind, channel) = kind(&member)?;
        let width = width(memory.element).ok_or_else(|| {
            failed(
                ncclResult_t::ncclInvalidArgument,
                format!("elements of {:?}", memory.element),
            )
        })?;
        Ok(Self {
            member,
            operation: Operation {
                kind,
                count: memory.count,
                element: memory.element,
                width,
            },
            channel,
            call: 0,
            source: memory.source.addr() as u64,
            target: memory.target.addr() as u64,
            stream: memory.stream.addr(),
            ordered: None,
        })
    }

    /// Returns the communicator and the difference that the transfer makes to its numbers of sends
    /// and receives to itself.
    pub(super) fn transfer_to_self(&self) -> Option<(usize, isize)> {
        let is_to_self = matches!(self.channel, Channel::Pair { from, to } if from == to);
        let difference = if self.operation.kind == Kind::Send {
            1
        } else {
            -1
        };
        is_to_self.then(|| (Arc::as_ptr(&self.member).addr(), difference))
    }

    /// Numbers the call, and compares it with those of the other ranks.
    pub(super) fn agree(&mut self, group: u64) -> Result {
        self.call = if self.operation.kind == Kind::Receive {
            self.member.receive_number(self.channel)
        } else {
            self.member.number(self.channel)
        };
        self.member
            .link
            .agree(self.channel, self.call, self.member.rank, &self.operation)?;
        self.order(group)
    }

    /// Orders the operation on its stream. Returns an error if it can never run.
    fn order(&mut self, group: u64) -> Result {
        let Some(communicator) = self.member.link.number() else {
            return Ok(());
        };
        // A default stream depends on the current context.
        if self.stream <= CU_STREAM_PER_THREAD.addr() {
            return Ok(());
        }
        let stream = std::ptr::without_provenance_mut(self.stream);
        // Operations that are captured have the order of the graph.
        if is_stream_captured(stream) != Ok(false) {
            return Ok(());
        }
        let Ok(stream) = stream_number(stream) else {
            return Ok(());
        };
        let operation = OperationKey {
            communicator,
            channel: self.channel,
            call: self.call,
        };
        // Streams of different simulators have the same numbers.
        let stream = stream ^ (self.member.device.simulator as u64).rotate_left(32);
        let rank = self.member.rank;
        match Ordered::new(stream, operation, self.operation.to_string(), rank, group) {
            Ok(ordered) => {
                self.ordered = Some(ordered);
                Ok(())
            }
            Err((message, communicators)) => {
                let failure = (ncclResult_t::ncclInvalidUsage, message);
                Clique::fail_all(&communicators, &failure);
                Err(raised(failure))
            }
        }
    }

    /// Returns the number of the rank among those that contribute.
    fn contributor(&self) -> usize {
        // In a transfer from a rank to itself, the receiving end is numbered after all ranks.
        let offset = if self.operation.kind == Kind::Receive {
            self.member.link.size()
        } else {
            0
        };
        self.member.rank + offset
    }

    /// Returns the key of a run.
    fn key(&self, run: u64) -> Key {
        Key {
            channel: self.channel,
            call: self.call,
            run,
        }
    }

    /// Enqueues the contribution of the rank.
    pub(super) fn enqueue_contribution(&self) -> Result {
        let fault = *self.member.fault.lock();
        if fault == Some(NcclFault::Silence) {
            return Ok(());
        }
        let rank = self.member.rank;
        let size = self.member.link.size();
        let len = self.operation.source_len(rank, size);
        let member = Arc::clone(&self.member);
        let operation = self.operation.clone();
        let first = self.key(0);
        let contributor = self.contributor();
        let runs = AtomicU64::new(0);
        let source = Operand::read().with_run(self.source, len);
        let factor = self.operation.factor_address();
        let factor = factor.map_or(Operand::read(), |address| {
            Operand::read().with_run(address, self.operation.width)
        });
        let operation = LibraryOperation::new(
            self.operation.kind.name(),
            [source, factor],
            move |operands| {
                let key = Key {
                    run: runs.fetch_add(1, Relaxed),
                    ..first
                };
                // As on hardware, operations of an aborted communicator end without an exchange.
                if !member.is_aborted.load(Relaxed) {
                    let part = operation.prepared(&operands[0], &operands[1]);
                    member.link.contribute(key, contributor, part.into());
                }
            },
        );
        self.enqueue(match fault {
            Some(NcclFault::Delay(delay)) => {
                let start = Instant::now();
                operation.with_condition(move || start.elapsed() >= delay)
            }
            _ => operation,
        })
    }

    /// Enqueues the wait for the other ranks, and the result.
    pub(super) fn enqueue_result(mut self) -> Result {
        let rank = self.member.rank;
        let size = self.member.link.size();
        let len = self.operation.target_len(rank, size);
        let first = self.key(0);
        let operation = self.operation.clone();
        let runs = Arc::new(AtomicU64::new(0));
        let waiting = Arc::clone(&self.member);
        let waiting_runs = Arc::clone(&runs);
        let pending = Mutex::new(Some((Pending::new(&self.member), self.ordered.take())));
        let member = Arc::clone(&self.member);
        let target = Operand::write().with_run(self.target, len);
        let operation =
            LibraryOperation::new(self.operation.kind.name(), [target], move |operands| {
                let run = runs.fetch_add(1, Relaxed);
                let key = Key { run, ..first };
                // An aborted communicator may lack the data of some ranks. Its results are
                // unspecified.
                let parts = if member.link.is_ready(key) {
                    member.link.take(key)
                } else {
                    Vec::new()
                };
                if !parts.is_empty() && !operands[0].is_empty() {
                    let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
                    operands[0].copy_from_slice(&operation.result(rank, &parts));
                }
                pending.lock().take();
            });
        self.enqueue(operation.with_condition(move || {
            let key = Key {
                run: waiting_runs.load(Relaxed),
                ..first
            };
            waiting.is_aborted.load(Relaxed) || waiting.link.is_ready(key)
        }))
    }

    /// Enqueues an operation. A default stream is that of the communicator's device, whichever
    /// context is current.
    fn enqueue(&self, operation: LibraryOperation) -> Result {
        let stream = std::ptr::without_provenance_mut(self.stream);
        let Device {
            ordinal, simulator, ..
        } = self.member.device;
        let is_default = self.stream <= CU_STREAM_PER_THREAD.addr();
        let enqueued = if is_default {
            // SAFETY: the caller of the library guarantees the memory, as that of a kernel.
            with_device((ordinal, simulator), || unsafe {
                operation.enqueue(stream)
            })
            .unwrap_or_else(Err)
        } else {
            // SAFETY: the caller of the library guarantees the memory, as that of a kernel.
            unsafe { operation.enqueue(stream) }
        };
        enqueued.map_err(|error| failed(ncclResult_t::ncclUnhandledCudaError, format!("{error:?}")))
    }
}

/// An operation that was enqueued and has not run. It ends with its first run, or with the graph
/// that was never launched.
struct Pending(Arc<Member>);

impl Pending {
    fn new(member: &Arc<Member>) -> Self {
        member.pending.fetch_add(1, Relaxed);
        Self(Arc::clone(member))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Relaxed);
    }
}

/// Returns a rank that a call names.
fn rank(member: &Member, rank: c_int) -> Result<usize> {
    let size = member.link.size();
    usize::try_from(rank)
        .ok()
        .filter(|rank| *rank < size)
        .ok_or_else(|| {
            failed(
                ncclResult_t::ncclInvalidArgument,
                format!("rank {rank} of {size}"),
            )
        })
}

/// Starts a collective.
fn collective(
    communicator: ncclComm_t,
    memory: Memory,
    kind: impl FnOnce(&Member, ncclDataType_t) -> Result<Kind>,
) -> Result {
    start(communicator, memory, |member| {
        Ok((kind(member, memory.element)?, Channel::Collective))
    })
}

/// Defines collectives, and further functions.
macro_rules! collectives {
    ({ $($name:ident($($extra:ident: $ty:ty),*) = $kind:expr;)* } $($functions:tt)*) => {
        functions! {
            $(fn $name(
                source: *const c_void,
                target: *mut c_void,
                count: usize,
                element: ncclDataType_t,
                $($extra: $ty,)*
                communicator: ncclComm_t,
                stream: cudaStream_t,
            ) {
                collective(communicator, Memory { source, target, count, element, stream }, $kind)
            })*

            $($functions)*
        }
    };
}

collectives! {
    {
        ncclAllReduce(operator: ncclRedOp_t) = |member, element| Ok(Kind::AllReduce(member.operator(operator, element)?));
        ncclReduce(operator: ncclRedOp_t, root: c_int) = |member, element| Ok(Kind::Reduce(member.operator(operator, element)?, rank(member, root)?));
        ncclReduceScatter(operator: ncclRedOp_t) = |member, element| Ok(Kind::ReduceScatter(member.operator(operator, element)?));
        ncclBroadcast(root: c_int) = |member, _| Ok(Kind::Broadcast(rank(member, root)?));
        ncclAllGather() = |_, _| Ok(Kind::AllGather);
        ncclAlltoAll() = |_, _| Ok(Kind::AllToAll);
        ncclGather(root: c_int) = |member, _| Ok(Kind::Gather(rank(member, root)?));
        ncclScatter(root: c_int) = |member, _| Ok(Kind::Scatter(rank(member, root)?));
    }

    fn ncclBcast(
        memory: *mut c_void,
        count: usize,
        element: ncclDataType_t,
        root: c_int,
        communicator: ncclComm_t,
        stream: cudaStream_t,
    ) {
        let memory = Memory { source: memory, target: memory, count, element, stream };
        collective(communicator, memory, |member, _| Ok(Kind::Broadcast(rank(member, root)?)))
    }

    fn ncclSend(
        source: *const c_void,
        count: usize,
        element: ncclDataType_t,
        peer: c_int,
        communicator: ncclComm_t,
        stream: cudaStream_t,
    ) {
        let memory = Memory { source, target: std::ptr::null_mut(), count, element, stream };
        start(communicator, memory, |member| {
            Ok((Kind::Send, Channel::Pair { from: member.rank, to: rank(member, peer)? }))
        })
    }

    fn ncclRecv(
        target: *mut c_void,
        count: usize,
        element: ncclDataType_t,
        peer: c_int,
        communicator: ncclComm_t,
        stream: cudaStream_t,
    ) {
        let memory = Memory { source: std::ptr::null(), target, count, element, stream };
        start(communicator, memory, |member| {
            Ok((Kind::Receive, Channel::Pair { from: rank(member, peer)?, to: member.rank }))
        })
    }

    fn ncclRedOpCreatePreMulSum(
        operator: *mut ncclRedOp_t,
        factor: *mut c_void,
        element: ncclDataType_t,
        residence: ncclScalarResidence_t,
        communicator: ncclComm_t,
    ) {
        let member = look_up(communicator)?;
        let width =
            width(element).ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown type of elements"))?;
        if factor.is_null() {
            return Err(failed(ncclResult_t::ncclInvalidArgument, "the address of the factor is null"));
        }
        let factor = match residence {
            ncclScalarResidence_t::ncclScalarHostImmediate => {
                let mut bytes = [0; 8];
                // SAFETY: by the contract of the C function, `factor` is a number of this type on
                // the host.
                let number = unsafe { std::slice::from_raw_parts(factor.cast::<u8>(), width) };
                bytes[..width].copy_from_slice(number);
                Factor::Value(bytes)
            }
            _ => Factor::Address(factor.addr() as u64),
        };
        // SAFETY: by the contract of the C function, `operator` is null or valid for writes.
        unsafe { write(operator, member.add_operator(factor, element)) }
    }

    fn ncclRedOpDestroy(operator: ncclRedOp_t, communicator: ncclComm_t) {
        look_up(communicator)?.remove_operator(operator)
    }
}

//! The calls of NCCL that enqueue operations.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::{Form, Kind, Membership, Operation, Parts};
use crate::error::{Result, call};
use crate::reduction::{CreatedOperator, Operator};
use crate::sys::{Api, cudaStream_t, ncclComm_t, ncclRedOp_t};

/// The call of an operation: the library, the communicator, the stream and the memory.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Api,
    pub(crate) communicator: ncclComm_t,
    pub(crate) stream: cudaStream_t,
    pub(crate) membership: Membership,
    /// The number of elements.
    pub(crate) count: usize,
    /// The addresses of the source and of the target.
    pub(crate) addresses: (*const c_void, *mut c_void),
}

impl Form {
    /// Enqueues the operation. The operator that is returned is destroyed after the group that the
    /// call is part of.
    ///
    /// # Safety
    ///
    /// The communicator and the stream are live, `count` is the one that the lengths were checked
    /// for, the addresses are those of the operation, and the memory is bound until the operation
    /// has run.
    #[inline(always)]
    pub(crate) unsafe fn call(self, call: Call<'_>) -> Result<CreatedOperator> {
        match self.operator.existing() {
            // SAFETY: as the caller guarantees; NCCL has the operator.
            Ok(raw) => unsafe { self.start(call, raw) }.map(|()| CreatedOperator::NONE),
            // SAFETY: as the caller guarantees.
            Err(operator) => unsafe { self.call_with_operator(call, operator) },
        }
    }

    /// Calls the function of the operation with a created operator, which it returns.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`].
    #[cold]
    unsafe fn call_with_operator(
        self,
        call: Call<'_>,
        operator: Operator,
    ) -> Result<CreatedOperator> {
        let Call {
            api, communicator, ..
        } = call;
        // SAFETY: the caller guarantees the communicator.
        let (raw, created) = unsafe { operator.create(api, communicator) }?;
        // SAFETY: as the caller guarantees, and the operator exists.
        if let Err(error) = unsafe { self.start(call, raw) } {
            // SAFETY: the only call with the operator has failed.
            unsafe { created.destroy(api, communicator) }?;
            return Err(error);
        }
        Ok(created)
    }

    /// Calls the function of the operation.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`], and `operator` is one of the communicator.
    #[inline(always)]
    unsafe fn start(self, call: Call<'_>, operator: ncclRedOp_t) -> Result<()> {
        let Call {
            api,
            communicator,
            stream,
            membership,
            count,
            addresses: (source, target),
        } = call;
        let element = self.element;
        let peer = rank(self.peer.unwrap_or(membership.rank));
        match self.kind {
            // SAFETY: both memories have `count` elements, and the rest is as the caller
            // guarantees.
            Kind::AllReduce => unsafe {
                call!(
                    api,
                    ncclAllReduce(
                        source,
                        target,
                        count,
                        element,
                        operator,
                        communicator,
                        stream
                    )
                )
            },
            // SAFETY: the source has `count` elements, and that of the root, which alone writes,
            // has a target of as many.
            Kind::Reduce | Kind::ReduceInto => unsafe {
                call!(
                    api,
                    ncclReduce(
                        source,
                        target,
                        count,
                        element,
                        operator,
                        peer,
                        communicator,
                        stream
                    )
                )
            },
            // SAFETY: the source has `count` elements for each rank, and the target for one.
            Kind::ReduceScatter => unsafe {
                call!(
                    api,
                    ncclReduceScatter(
                        source,
                        target,
                        count,
                        element,
                        operator,
                        communicator,
                        stream
                    )
                )
            },
            // SAFETY: the memory has `count` elements; that of the root is only read, because both
            // addresses are the same.
            Kind::Broadcast | Kind::BroadcastFrom => unsafe {
                call!(
                    api,
                    ncclBroadcast(source, target, count, element, peer, communicator, stream)
                )
            },
            // SAFETY: the source has `count` elements, and the target for each rank.
            Kind::AllGather => unsafe {
                call!(
                    api,
                    ncclAllGather(source, target, count, element, communicator, stream)
                )
            },
            // SAFETY: both memories have `count` elements for each rank.
            Kind::AllToAll if api.ncclAlltoAll.is_some() => unsafe {
                call!(
                    api,
                    ncclAlltoAll(source, target, count, element, communicator, stream)
                )
            },
            // SAFETY: the target of the root has `count` elements for each rank, and the source for
            // one.
            Kind::Gather | Kind::GatherInto if api.ncclGather.is_some() => unsafe {
                call!(
                    api,
                    ncclGather(source, target, count, element, peer, communicator, stream)
                )
            },
            // SAFETY: the source of the root has `count` elements for each rank, and the target for
            // one.
            Kind::Scatter | Kind::ScatterFrom if api.ncclScatter.is_some() => unsafe {
                call!(
                    api,
                    ncclScatter(source, target, count, element, peer, communicator, stream)
                )
            },
            Kind::AllToAll
            | Kind::Gather
            | Kind::GatherInto
            | Kind::Scatter
            | Kind::ScatterFrom => {
                // SAFETY: the caller guarantees the communicator, the stream and the memory.
                unsafe { self.transfers(call) }
            }
            // SAFETY: the source has `count` elements.
            Kind::Send => unsafe {
                call!(
                    api,
                    ncclSend(source, count, element, peer, communicator, stream)
                )
            },
            // SAFETY: the target has `count` elements.
            Kind::Receive => unsafe {
                call!(
                    api,
                    ncclRecv(target, count, element, peer, communicator, stream)
                )
            },
        }
    }

    /// Enqueues the transfers that a collective of newer versions consists of.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`].
    unsafe fn transfers(self, call: Call<'_>) -> Result<()> {
        let Membership {
            rank: this_rank,
            size,
        } = call.membership;
        let api = call.api;
        // SAFETY: the group ends below.
        unsafe { call!(api, ncclGroupStart()) }?;
        // SAFETY: the parts are those of the memory that the caller guarantees.
        let transfer_result = unsafe { self.enqueue_transfers(&call, this_rank, size) };
        // SAFETY: the group was started above.
        let end_result = unsafe { call!(api, ncclGroupEnd()) };
        transfer_result.and(end_result)
    }

    /// Enqueues the transfers of an operation within a group.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`].
    unsafe fn enqueue_transfers(
        self,
        call: &Call<'_>,
        this_rank: usize,
        size: usize,
    ) -> Result<()> {
        let send = |part, peer| {
            // SAFETY: each part is within the source that the caller guarantees.
            unsafe { self.send(call, part, peer) }
        };
        let receive = |part, peer| {
            // SAFETY: each part is within the target that the caller guarantees.
            unsafe { self.receive(call, part, peer) }
        };
        match self.kind {
            Kind::Gather => send(0, self.peer.unwrap_or(this_rank)),
            Kind::Scatter => receive(0, self.peer.unwrap_or(this_rank)),
            Kind::GatherInto => {
                send(0, this_rank)?;
                (0..size).try_for_each(|peer| receive(peer, peer))
            }
            Kind::ScatterFrom => {
                receive(0, this_rank)?;
                (0..size).try_for_each(|peer| send(peer, peer))
            }
            _ => (0..size).try_for_each(|peer| {
                send(peer, peer)?;
                receive(peer, peer)
            }),
        }
    }

    /// Sends a part of the source.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`], and the source has this part.
    unsafe fn send(self, call: &Call<'_>, part: usize, peer: usize) -> Result<()> {
        let (source, _) = call.addresses;
        let source = source.wrapping_byte_add(part * call.count * self.width);
        // SAFETY: the caller guarantees the part and the communicator.
        unsafe {
            call!(
                call.api,
                ncclSend(
                    source,
                    call.count,
                    self.element,
                    rank(peer),
                    call.communicator,
                    call.stream
                )
            )
        }
    }

    /// Receives a part of the target.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`], and the target has this part.
    unsafe fn receive(self, call: &Call<'_>, part: usize, peer: usize) -> Result<()> {
        let (_, target) = call.addresses;
        let target = target.wrapping_byte_add(part * call.count * self.width);
        // SAFETY: the caller guarantees the part and the communicator.
        unsafe {
            call!(
                call.api,
                ncclRecv(
                    target,
                    call.count,
                    self.element,
                    rank(peer),
                    call.communicator,
                    call.stream
                )
            )
        }
    }
}

impl Operation<'_> {
    /// Returns the addresses of the source and of the target; 0 if there is none. In place, one of
    /// them is within the other.
    #[inline]
    pub(crate) fn addresses(
        &self,
        Membership { rank, .. }: Membership,
        count: usize,
    ) -> (*const c_void, *mut c_void) {
        let source = self
            .operands
            .source
            .as_ref()
            .map(|source| source.as_pointer().as_raw());
        let target = self
            .operands
            .target
            .as_ref()
            .map(|target| target.as_pointer().as_raw());
        let offset = (rank * count * self.form.width) as u64;
        let Parts {
            in_source,
            in_target,
            may_be_in_place,
        } = self.form.parts;
        let (source, target) = match (source, target) {
            (None, Some(memory)) if may_be_in_place => {
                // The part of this rank, on the side that has parts.
                let source = if in_target { memory + offset } else { memory };
                let target = if in_source { memory + offset } else { memory };
                (source, target)
            }
            (Some(memory), None) if may_be_in_place => (memory, memory),
            (source, target) => (source.unwrap_or(0), target.unwrap_or(0)),
        };
        (
            ptr::without_provenance(source as usize),
            ptr::without_provenance_mut(target as usize),
        )
    }
}

/// Converts a rank, which is below the number of ranks that NCCL was given.
fn rank(rank: usize) -> c_int {
    c_int::try_from(rank).unwrap_or(c_int::MAX)
}

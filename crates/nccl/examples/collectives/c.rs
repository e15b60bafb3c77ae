//! The same operations by NCCL's C functions.

use std::error::Error;
use std::ffi::{c_int, c_void};

use curium_driver::sys::CUresult;
use curium_driver::{GraphExec, Stream};
use curium_nccl::sys::{Api, cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use curium_nccl::{Communicator, Nccl};

use crate::{Kind, Operands};

/// A call with its arguments. The operands, the communicator and the stream outlive it.
pub(crate) struct Call {
    nccl: Nccl,
    kind: Kind,
    source: *const c_void,
    target: *mut c_void,
    /// The numbers of elements of the source and of the target.
    counts: (usize, usize),
    root: c_int,
    place: (c_int, c_int),
    communicator: ncclComm_t,
    stream: cudaStream_t,
}

impl Call {
    pub(crate) fn new(
        kind: Kind,
        communicator: &mut Communicator,
        stream: &Stream,
        operands: &Operands,
        root: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let Operands { source, target } = operands;
        let address = |raw| std::ptr::with_exposed_provenance_mut(raw as usize);
        Ok(Self {
            nccl: communicator.library().clone(),
            kind,
            source: address(source.as_pointer().as_raw()),
            target: address(target.as_pointer().as_raw()),
            counts: (source.len(), target.len()),
            root: c_int::try_from(root)?,
            place: (communicator.rank().try_into()?, communicator.size().try_into()?),
            communicator: communicator.as_raw()?,
            stream: stream.as_raw().cast(),
        })
    }

    /// Enqueues the operation.
    #[inline(always)]
    pub(crate) fn enqueue(&self) -> Result<(), Box<dyn Error>> {
        // SAFETY: the operands have these lengths and live until the stream is synchronized, the communicator is live, and its context
        // is current.
        match unsafe { self.call(self.nccl.api()) } {
            Some(ncclResult_t::ncclSuccess) => Ok(()),
            Some(code) => Err(format!("{:?}: {code:?}", self.kind).into()),
            None => Err(format!("this NCCL has no function for {:?}", self.kind).into()),
        }
    }

    /// Calls the function. Returns `None` if the library lacks it.
    ///
    /// # Safety
    ///
    /// The operands, the communicator and the stream are live, and the context of the communicator is current.
    #[inline(always)]
    unsafe fn call(&self, api: &Api) -> Option<ncclResult_t> {
        let Self { source, target, counts: (from, to), root, communicator, stream, .. } = *self;
        let (element, sum) = (ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum);
        Some(match self.kind {
            // SAFETY: as the caller guarantees.
            Kind::AllReduce | Kind::Replay => unsafe {
                api.ncclAllReduce?(target, target, to, element, sum, communicator, stream)
            },
            // SAFETY: as above.
            Kind::Reduce => unsafe { api.ncclReduce?(source, target, to, element, sum, root, communicator, stream) },
            // SAFETY: as above.
            Kind::Broadcast => unsafe { api.ncclBroadcast?(target, target, to, element, root, communicator, stream) },
            // SAFETY: as above.
            Kind::AllGather => unsafe { api.ncclAllGather?(source, target, from, element, communicator, stream) },
            // SAFETY: as above.
            Kind::ReduceScatter => unsafe {
                api.ncclReduceScatter?(source, target, to, element, sum, communicator, stream)
            },
            // SAFETY: as above.
            Kind::AllToAll => unsafe {
                api.ncclAlltoAll?(source, target, self.part(from), element, communicator, stream)
            },
            // SAFETY: as above.
            Kind::Gather => unsafe { api.ncclGather?(source, target, from, element, root, communicator, stream) },
            // SAFETY: as above.
            Kind::Scatter => unsafe { api.ncclScatter?(source, target, to, element, root, communicator, stream) },
            // SAFETY: as above.
            Kind::SendReceive => return unsafe { self.send_and_receive(api) },
        })
    }

    /// Sends to the next rank and receives from the previous one, in a group.
    ///
    /// # Safety
    ///
    /// As for [`Call::call`].
    unsafe fn send_and_receive(&self, api: &Api) -> Option<ncclResult_t> {
        let Self { source, target, counts: (from, to), place: (rank, size), communicator, stream, .. } = *self;
        let (next, previous, element) = ((rank + 1) % size, (rank + size - 1) % size, ncclDataType_t::ncclFloat32);
        // SAFETY: the group ends below.
        let started = unsafe { api.ncclGroupStart?() };
        // SAFETY: as the caller guarantees.
        let sent = unsafe { api.ncclSend?(source, from, element, next, communicator, stream) };
        // SAFETY: as above.
        let received = unsafe { api.ncclRecv?(target, to, element, previous, communicator, stream) };
        // SAFETY: the group was started above.
        let ended = unsafe { api.ncclGroupEnd?() };
        let all = [started, sent, received, ended];
        Some(all.into_iter().find(|code| *code != ncclResult_t::ncclSuccess).unwrap_or(ncclResult_t::ncclSuccess))
    }

    /// Returns the number of elements for each rank.
    fn part(&self, count: usize) -> usize {
        count / usize::try_from(self.place.1).unwrap_or(1)
    }
}

/// Launches a graph. Its memory is used on this stream only.
pub(crate) fn launch(graph: &GraphExec, stream: &Stream) -> Result<(), Box<dyn Error>> {
    let launch = stream.driver().api().cuGraphLaunch.ok_or("the driver has no cuGraphLaunch")?;
    // SAFETY: the executable graph, the stream and the memory of its nodes are live, and used on this stream only.
    match unsafe { launch(graph.as_raw(), stream.as_raw()) } {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(format!("{code:?}").into()),
    }
}

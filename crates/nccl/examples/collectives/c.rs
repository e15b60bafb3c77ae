//! The same operations by NCCL's C functions.

use std::error::Error;
use std::ffi::{c_int, c_void};

use curium_driver::AsRawStream as _;
use curium_driver::sys::CUresult;
use curium_driver::{GraphExec, Stream};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::{Api, cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use curium_nccl::{Communicator, Nccl};

use crate::Operands;

type Result = std::result::Result<(), Box<dyn Error>>;

const ELEMENT: ncclDataType_t = ncclDataType_t::ncclFloat32;
const SUM: ncclRedOp_t = ncclRedOp_t::ncclSum;

/// The arguments of the calls. The operands, the communicator and the stream outlive it.
pub(crate) struct Call {
    nccl: Nccl,
    source: *const c_void,
    target: *mut c_void,
    /// The numbers of elements of the source and of the target.
    counts: (usize, usize),
    root: c_int,
    rank_and_size: (c_int, c_int),
    communicator: ncclComm_t,
    stream: cudaStream_t,
}

impl Call {
    pub(crate) fn new(
        communicator: &mut Communicator,
        stream: &Stream,
        operands: &Operands,
        root: usize,
    ) -> std::result::Result<Self, Box<dyn Error>> {
        let Operands { source, target } = operands;
        Ok(Self {
            nccl: communicator.library().clone(),
            source: address(source),
            target: address(target),
            counts: (source.len(), target.len()),
            root: c_int::try_from(root)?,
            rank_and_size: (
                communicator.rank().try_into()?,
                communicator.size().try_into()?,
            ),
            communicator: communicator.as_raw()?,
            stream: stream.as_raw().cast(),
        })
    }
}

fn address(buffer: &DeviceBuffer<f32>) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(buffer.as_pointer().as_raw() as usize)
}

/// The operations. Their contract: `Call::new` has set the lengths of the memory. The memory and
/// the stream live until the stream is synchronized, the communicator is live, and its context is
/// current.
impl Call {
    #[inline(always)]
    pub(crate) fn all_reduce(&self) -> Result {
        let Self {
            target,
            counts: (_, to),
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclAllReduce", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclAllReduce?(target, target, to, ELEMENT, SUM, communicator, stream)
            })
        })
    }

    #[inline(always)]
    pub(crate) fn reduce(&self) -> Result {
        let Self {
            source,
            target,
            counts: (_, to),
            root,
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclReduce", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclReduce?(source, target, to, ELEMENT, SUM, root, communicator, stream)
            })
        })
    }

    #[inline(always)]
    pub(crate) fn broadcast(&self) -> Result {
        let Self {
            target,
            counts: (_, to),
            root,
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclBroadcast", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclBroadcast?(target, target, to, ELEMENT, root, communicator, stream)
            })
        })
    }

    #[inline(always)]
    pub(crate) fn all_gather(&self) -> Result {
        let Self {
            source,
            target,
            counts: (from, _),
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclAllGather", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe { api.ncclAllGather?(source, target, from, ELEMENT, communicator, stream) })
        })
    }

    #[inline(always)]
    pub(crate) fn reduce_scatter(&self) -> Result {
        let Self {
            source,
            target,
            counts: (_, to),
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclReduceScatter", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclReduceScatter?(source, target, to, ELEMENT, SUM, communicator, stream)
            })
        })
    }

    #[inline(always)]
    pub(crate) fn all_to_all(&self) -> Result {
        let Self {
            source,
            target,
            counts: (from, _),
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclAlltoAll", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclAlltoAll?(
                    source,
                    target,
                    self.part(from),
                    ELEMENT,
                    communicator,
                    stream,
                )
            })
        })
    }

    #[inline(always)]
    pub(crate) fn gather(&self) -> Result {
        let Self {
            source,
            target,
            counts: (from, _),
            root,
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclGather", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclGather?(source, target, from, ELEMENT, root, communicator, stream)
            })
        })
    }

    #[inline(always)]
    pub(crate) fn scatter(&self) -> Result {
        let Self {
            source,
            target,
            counts: (_, to),
            root,
            communicator,
            stream,
            ..
        } = *self;
        self.checked("ncclScatter", |api| {
            // SAFETY: this is the contract of the `impl` block.
            Some(unsafe {
                api.ncclScatter?(source, target, to, ELEMENT, root, communicator, stream)
            })
        })
    }
}

impl Call {
    /// Sends to the next rank and receives from the previous one, in a group.
    #[inline(always)]
    pub(crate) fn send_and_receive(&self) -> Result {
        let Self {
            source,
            target,
            counts: (from, to),
            rank_and_size: (rank, size),
            communicator,
            stream,
            ..
        } = *self;
        let next = (rank + 1) % size;
        let previous = (rank + size - 1) % size;
        self.checked("function for groups", |api| {
            let start = api.ncclGroupStart?;
            let send = api.ncclSend?;
            let receive = api.ncclRecv?;
            let end = api.ncclGroupEnd?;
            // SAFETY: the group ends below.
            let started = unsafe { start() };
            // SAFETY: this is the contract of the `impl` block.
            let sent = unsafe { send(source, from, ELEMENT, next, communicator, stream) };
            // SAFETY: this is the contract of the `impl` block.
            let received = unsafe { receive(target, to, ELEMENT, previous, communicator, stream) };
            // SAFETY: the group was started above.
            let all = [started, sent, received, unsafe { end() }];
            Some(
                all.into_iter()
                    .find(|code| *code != ncclResult_t::ncclSuccess)
                    .unwrap_or(ncclResult_t::ncclSuccess),
            )
        })
    }

    /// Calls a function, which returns `None` if the library lacks it.
    #[inline(always)]
    fn checked(&self, function: &str, call: impl FnOnce(&Api) -> Option<ncclResult_t>) -> Result {
        match call(self.nccl.api()) {
            Some(ncclResult_t::ncclSuccess) => Ok(()),
            Some(code) => Err(format!("{function}: {code:?}").into()),
            None => Err(format!("this NCCL has no {function}").into()),
        }
    }

    /// Returns the number of elements for each rank.
    fn part(&self, count: usize) -> usize {
        count / usize::try_from(self.rank_and_size.1).unwrap_or(1)
    }
}

/// Launches a graph. Its memory is used on this stream only.
pub(crate) fn launch(graph: &GraphExec, stream: &Stream) -> Result {
    let launch = stream
        .driver()
        .api()
        .cuGraphLaunch
        .ok_or("no `cuGraphLaunch`")?;
    // SAFETY: the executable graph, the stream and the memory of its nodes are live, and used on
    // this stream only.
    match unsafe { launch(graph.as_raw(), stream.as_raw()) } {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(format!("{code:?}").into()),
    }
}

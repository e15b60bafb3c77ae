//! Operations: collectives and point-to-point transfers, with the memory that they access.

mod check;
mod enqueue;

use std::fmt;

use curium_driver::Argument;
use curium_driver::hazard::AccessGuard;
use curium_memory::{AsDeviceSlice, AsDeviceSliceMut, DeviceSlice, DeviceSliceMut};

pub(crate) use self::enqueue::Call;
use crate::element::Element;
use crate::error::Result;
use crate::reduction::{Operator, Reduction};
use crate::sys::ncclDataType_t;

/// A collective or a transfer between two ranks, with the memory that it accesses.
///
/// [`Communicator::enqueue`](crate::Communicator::enqueue) runs one, and [`Group::enqueue`](crate::Group::enqueue) several as one. Lengths,
/// ranks and types are checked there, before NCCL is called. They must agree on all ranks: every rank calls the same collectives in the
/// same order, with the same number and type of elements, and for every send there is a receive.
///
/// An operation with a root has a separate function for the root: `reduce_into` and `gather_into` receive the result, `broadcast_from` and
/// `scatter_from` send the data.
pub struct Operation<'a> {
    kind: Kind,
    element: ncclDataType_t,
    /// The size of an element in bytes.
    width: usize,
    /// The numbers of elements of the source and of the target; in place, both are those of the memory.
    lengths: (usize, usize),
    source: Option<DeviceSlice<'a, u8>>,
    target: Option<DeviceSliceMut<'a, u8>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    AllReduce(Operator),
    /// The root; `None` for the rank itself.
    Reduce(Operator, Option<usize>),
    Broadcast(Option<usize>),
    AllGather,
    ReduceScatter(Operator),
    AllToAll,
    Gather(Option<usize>),
    Scatter(Option<usize>),
    Send(usize),
    Receive(usize),
}

/// The rank and the number of ranks of a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl<'a> Operation<'a> {
    /// Reduces the elements of all ranks, and writes the result on every rank. All memory has the same length.
    #[doc(alias = "ncclAllReduce")]
    pub fn all_reduce<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(
            Kind::AllReduce(reduction.erased()),
            Some(source.as_device_slice()),
            Some(target.as_device_slice_mut()),
        )
    }

    /// Reduces the elements of all ranks in place.
    #[doc(alias = "ncclAllReduce")]
    pub fn all_reduce_in_place<T: Element>(
        memory: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::AllReduce(reduction.erased()), None, Some(memory.as_device_slice_mut()))
    }

    /// Sends the elements of this rank to a reduction, whose result is written on the rank `root`.
    #[doc(alias = "ncclReduce")]
    pub fn reduce<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        root: usize,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::Reduce(reduction.erased(), Some(root)), Some(source.as_device_slice()), None)
    }

    /// Reduces the elements of all ranks, and writes the result on this rank, the root. All memory has the same length.
    #[doc(alias = "ncclReduce")]
    pub fn reduce_into<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        let kind = Kind::Reduce(reduction.erased(), None);
        Self::new(kind, Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Reduces the elements of all ranks in place on this rank, the root.
    #[doc(alias = "ncclReduce")]
    pub fn reduce_in_place<T: Element>(
        memory: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::Reduce(reduction.erased(), None), None, Some(memory.as_device_slice_mut()))
    }

    /// Receives the elements of the rank `root`, which may be this one.
    #[doc(alias = "ncclBroadcast")]
    pub fn broadcast<T: Element>(memory: &'a mut impl AsDeviceSliceMut<Element = T>, root: usize) -> Self {
        Self::new(Kind::Broadcast(Some(root)), None, Some(memory.as_device_slice_mut()))
    }

    /// Sends the elements of this rank, the root, to all ranks.
    #[doc(alias = "ncclBroadcast")]
    pub fn broadcast_from<T: Element>(source: &'a impl AsDeviceSlice<Element = T>) -> Self {
        Self::new(Kind::Broadcast(None), Some(source.as_device_slice()), None)
    }

    /// Writes the elements of all ranks, in the order of the ranks. The length of `target` is that of `source` times the number of ranks.
    #[doc(alias = "ncclAllGather")]
    pub fn all_gather<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
    ) -> Self {
        Self::new(Kind::AllGather, Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Writes the elements of all ranks, in the order of the ranks. The part of this rank is already in its place.
    #[doc(alias = "ncclAllGather")]
    pub fn all_gather_in_place<T: Element>(memory: &'a mut impl AsDeviceSliceMut<Element = T>) -> Self {
        Self::new(Kind::AllGather, None, Some(memory.as_device_slice_mut()))
    }

    /// Reduces the elements of all ranks, and writes the part of this rank. The length of `source` is that of `target` times the number of
    /// ranks.
    #[doc(alias = "ncclReduceScatter")]
    pub fn reduce_scatter<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        let kind = Kind::ReduceScatter(reduction.erased());
        Self::new(kind, Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Reduces the elements of all ranks, and writes the part of this rank in its place. The other parts are unspecified afterwards.
    #[doc(alias = "ncclReduceScatter")]
    pub fn reduce_scatter_in_place<T: Element>(
        memory: &'a mut impl AsDeviceSliceMut<Element = T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::ReduceScatter(reduction.erased()), None, Some(memory.as_device_slice_mut()))
    }

    /// Sends part `r` of `source` to rank `r`, and writes the part that rank `r` sends to part `r` of `target`. Both have the same length,
    /// a multiple of the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclAlltoAll")]
    pub fn all_to_all<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
    ) -> Self {
        Self::new(Kind::AllToAll, Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Sends the elements of this rank to the rank `root`.
    ///
    /// Before NCCL 2.28, this is a transfer.
    #[doc(alias = "ncclGather")]
    pub fn gather<T: Element>(source: &'a impl AsDeviceSlice<Element = T>, root: usize) -> Self {
        Self::new(Kind::Gather(Some(root)), Some(source.as_device_slice()), None)
    }

    /// Writes the elements of all ranks, in the order of the ranks, on this rank, the root. The length of `target` is that of `source`
    /// times the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclGather")]
    pub fn gather_into<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
    ) -> Self {
        Self::new(Kind::Gather(None), Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Receives this rank's part of the elements of the rank `root`.
    ///
    /// Before NCCL 2.28, this is a transfer.
    #[doc(alias = "ncclScatter")]
    pub fn scatter<T: Element>(target: &'a mut impl AsDeviceSliceMut<Element = T>, root: usize) -> Self {
        Self::new(Kind::Scatter(Some(root)), None, Some(target.as_device_slice_mut()))
    }

    /// Sends part `r` of `source` to rank `r`, and writes the part of this rank, the root. The length of `source` is that of `target` times
    /// the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclScatter")]
    pub fn scatter_from<T: Element>(
        source: &'a impl AsDeviceSlice<Element = T>,
        target: &'a mut impl AsDeviceSliceMut<Element = T>,
    ) -> Self {
        Self::new(Kind::Scatter(None), Some(source.as_device_slice()), Some(target.as_device_slice_mut()))
    }

    /// Sends the elements to the rank `peer`, which must receive the same number. The stream waits until it has received them.
    #[doc(alias = "ncclSend")]
    pub fn send<T: Element>(source: &'a impl AsDeviceSlice<Element = T>, peer: usize) -> Self {
        Self::new(Kind::Send(peer), Some(source.as_device_slice()), None)
    }

    /// Receives elements from the rank `peer`. The stream waits until they have been sent.
    #[doc(alias = "ncclRecv")]
    pub fn receive<T: Element>(target: &'a mut impl AsDeviceSliceMut<Element = T>, peer: usize) -> Self {
        Self::new(Kind::Receive(peer), None, Some(target.as_device_slice_mut()))
    }

    #[inline]
    fn new<T: Element>(kind: Kind, source: Option<DeviceSlice<'a, T>>, target: Option<DeviceSliceMut<'a, T>>) -> Self {
        let lens = (source.as_ref().map(DeviceSlice::len), target.as_ref().map(DeviceSliceMut::len));
        let lengths = (lens.0.or(lens.1).unwrap_or(0), lens.1.or(lens.0).unwrap_or(0));
        let (source, target) = (source.map(DeviceSlice::as_bytes), target.map(DeviceSliceMut::into_bytes));
        Self { kind, element: T::TYPE, width: size_of::<T>(), lengths, source, target }
    }

    /// Returns the name of the operation.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::AllReduce(_) => "all_reduce",
            Kind::Reduce(_, Some(_)) => "reduce",
            Kind::Reduce(_, None) => "reduce_into",
            Kind::Broadcast(Some(_)) => "broadcast",
            Kind::Broadcast(None) => "broadcast_from",
            Kind::AllGather => "all_gather",
            Kind::ReduceScatter(_) => "reduce_scatter",
            Kind::AllToAll => "all_to_all",
            Kind::Gather(Some(_)) => "gather",
            Kind::Gather(None) => "gather_into",
            Kind::Scatter(Some(_)) => "scatter",
            Kind::Scatter(None) => "scatter_from",
            Kind::Send(_) => "send",
            Kind::Receive(_) => "receive",
        }
    }

    /// Returns the rank that the operation names.
    fn peer(&self) -> Option<usize> {
        match self.kind {
            Kind::Reduce(_, root) | Kind::Broadcast(root) | Kind::Gather(root) | Kind::Scatter(root) => root,
            Kind::Send(peer) | Kind::Receive(peer) => Some(peer),
            Kind::AllReduce(_) | Kind::AllGather | Kind::ReduceScatter(_) | Kind::AllToAll => None,
        }
    }

    /// Returns the larger of the numbers of elements of the source and of the target.
    pub(crate) fn len(&self) -> usize {
        self.lengths.0.max(self.lengths.1)
    }

    /// Returns the addresses and the numbers of bytes of the memory.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, usize)> {
        let source = self.source.as_ref().map(|source| (source.as_pointer().as_raw(), source.len()));
        let target = self.target.as_ref().map(|target| (target.as_pointer().as_raw(), target.len()));
        source.into_iter().chain(target)
    }

    /// Orders the guard's stream after the accesses that the operation must wait for.
    ///
    /// # Safety
    ///
    /// If the operation is enqueued, `launched` is called before the memory is used for anything else.
    #[inline]
    pub(crate) unsafe fn bind(&mut self, guard: &mut AccessGuard<'_>) -> Result<()> {
        if let Some(source) = &mut self.source {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&[u8]>::bind(source, guard) }?;
        }
        if let Some(target) = &mut self.target {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            unsafe { Argument::<&mut [u8]>::bind(target, guard) }?;
        }
        Ok(())
    }

    /// Records that the operation was enqueued on the guard's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same guard.
    #[inline]
    pub(crate) unsafe fn launched(&mut self, guard: &mut AccessGuard<'_>) {
        if let Some(source) = &mut self.source {
            // SAFETY: `bind` succeeded with this guard.
            unsafe { Argument::<&[u8]>::launched(source, guard) };
        }
        if let Some(target) = &mut self.target {
            // SAFETY: `bind` succeeded with this guard.
            unsafe { Argument::<&mut [u8]>::launched(target, guard) };
        }
    }
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, target) = self.lengths;
        write!(formatter, "{}({source} to {target} elements of {:?})", self.name(), self.element)
    }
}

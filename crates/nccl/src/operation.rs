//! Operations: collectives and point-to-point transfers, with the memory that they access.

mod check;
mod enqueue;
mod operands;

use std::fmt;

use curium_memory::DeviceSlice;

pub(crate) use self::check::GroupState;
pub(crate) use self::enqueue::Call;
pub(crate) use self::operands::{MemoryRange, Operands};
use crate::element::{Element, type_name};
use crate::reduction::{Operator, Reduction};
use crate::sys::ncclDataType_t;

/// A collective or a transfer between two ranks, with the memory that it accesses.
///
/// [`Communicator::enqueue`](crate::Communicator::enqueue) runs one, and
/// [`Group::enqueue`](crate::Group::enqueue) several as one. Lengths, ranks and types are checked
/// there, before NCCL is called. They must agree on all ranks: every rank calls the same
/// collectives in the same order, with the same number and type of elements, and for every send
/// there is a receive.
///
/// An operation with a root has a separate function for the root: `reduce_into` and `gather_into`
/// receive the result, `broadcast_from` and `scatter_from` send the data.
pub struct Operation<'a> {
    pub(crate) form: Form,
    pub(crate) operands: Operands<'a>,
}

/// An operation without its memory. It is passed by value: a reference to it would make every
/// operation write it to memory.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    kind: Kind,
    parts: Parts,
    name: &'static str,
    operator: Operator,
    /// The root or the other rank; `None` if this rank is the root, or there is none.
    peer: Option<usize>,
    element: ncclDataType_t,
    /// The size of an element in bytes.
    width: usize,
    /// The numbers of elements of the source and of the target; in place, both are those of the
    /// memory.
    lengths: (usize, usize),
    /// `true` if there is a source or a target only: the operation is in place, or the rank does
    /// not send or receive.
    is_single: bool,
}

/// An operation as errors describe it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    pub(crate) name: &'static str,
    /// The number of elements, as NCCL counts them.
    pub(crate) count: usize,
    /// The type of the elements.
    pub(crate) element: &'static str,
    /// The name of the reduction; `None` if the operation has none.
    pub(crate) reduction: Option<&'static str>,
    pub(crate) root: Option<usize>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    AllReduce,
    Reduce,
    ReduceInto,
    Broadcast,
    BroadcastFrom,
    AllGather,
    ReduceScatter,
    AllToAll,
    Gather,
    GatherInto,
    Scatter,
    ScatterFrom,
    Send,
    Receive,
}

/// The properties of a kind that checks and addresses depend on. They are stored, for speed: the
/// compiler merges tests of a kind that is not constant into tables of jumps, which the processor
/// mispredicts after a call of NCCL.
#[derive(Clone, Copy, Debug)]
struct Parts {
    /// `true` if the source has elements for each rank.
    in_source: bool,
    /// `true` if the target has elements for each rank.
    in_target: bool,
    /// `true` if the source and the target may be the same memory.
    may_be_in_place: bool,
}

/// The rank and the number of ranks of a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl<'a> Operation<'a> {
    /// Reduces the elements of all ranks, and writes the result on every rank. All memory has the
    /// same length.
    #[doc(alias = "ncclAllReduce")]
    #[inline]
    pub fn all_reduce<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::AllReduce, None, reduction, Some(source), Some(target))
    }

    /// Reduces the elements of all ranks in place.
    #[doc(alias = "ncclAllReduce")]
    #[inline]
    pub fn all_reduce_in_place<T: Element>(
        memory: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::AllReduce, None, reduction, None, Some(memory))
    }

    /// Sends the elements of this rank to a reduction, whose result is written on the rank `root`.
    #[doc(alias = "ncclReduce")]
    #[inline]
    pub fn reduce<T: Element>(
        source: &'a DeviceSlice<T>,
        root: usize,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::Reduce, Some(root), reduction, Some(source), None)
    }

    /// Reduces the elements of all ranks, and writes the result on this rank, the root. All memory
    /// has the same length.
    #[doc(alias = "ncclReduce")]
    #[inline]
    pub fn reduce_into<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(
            Kind::ReduceInto,
            None,
            reduction,
            Some(source),
            Some(target),
        )
    }

    /// Reduces the elements of all ranks in place on this rank, the root.
    #[doc(alias = "ncclReduce")]
    #[inline]
    pub fn reduce_in_place<T: Element>(
        memory: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::ReduceInto, None, reduction, None, Some(memory))
    }

    /// Receives the elements of the rank `root`, which may be this one.
    #[doc(alias = "ncclBroadcast")]
    #[inline]
    pub fn broadcast<T: Element>(memory: &'a mut DeviceSlice<T>, root: usize) -> Self {
        Self::new(
            Kind::Broadcast,
            Some(root),
            Reduction::Sum,
            None,
            Some(memory),
        )
    }

    /// Sends the elements of this rank, the root, to all ranks.
    #[doc(alias = "ncclBroadcast")]
    #[inline]
    pub fn broadcast_from<T: Element>(source: &'a DeviceSlice<T>) -> Self {
        Self::new(
            Kind::BroadcastFrom,
            None,
            Reduction::Sum,
            Some(source),
            None,
        )
    }

    /// Writes the elements of all ranks, in the order of the ranks. The length of `target` is that
    /// of `source` times the number of ranks.
    #[doc(alias = "ncclAllGather")]
    #[inline]
    pub fn all_gather<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
    ) -> Self {
        Self::new(
            Kind::AllGather,
            None,
            Reduction::Sum,
            Some(source),
            Some(target),
        )
    }

    /// Writes the elements of all ranks, in the order of the ranks. The part of this rank is
    /// already in its place.
    #[doc(alias = "ncclAllGather")]
    #[inline]
    pub fn all_gather_in_place<T: Element>(memory: &'a mut DeviceSlice<T>) -> Self {
        Self::new(Kind::AllGather, None, Reduction::Sum, None, Some(memory))
    }

    /// Reduces the elements of all ranks, and writes the part of this rank. The length of `source`
    /// is that of `target` times the number of ranks.
    #[doc(alias = "ncclReduceScatter")]
    #[inline]
    pub fn reduce_scatter<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(
            Kind::ReduceScatter,
            None,
            reduction,
            Some(source),
            Some(target),
        )
    }

    /// Reduces the elements of all ranks, and writes the part of this rank in its place. The other
    /// parts are unspecified afterwards.
    #[doc(alias = "ncclReduceScatter")]
    #[inline]
    pub fn reduce_scatter_in_place<T: Element>(
        memory: &'a mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Self {
        Self::new(Kind::ReduceScatter, None, reduction, None, Some(memory))
    }

    /// Sends part `r` of `source` to rank `r`, and writes the part that rank `r` sends to part `r`
    /// of `target`. Both have the same length, a multiple of the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclAlltoAll")]
    #[inline]
    pub fn all_to_all<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
    ) -> Self {
        Self::new(
            Kind::AllToAll,
            None,
            Reduction::Sum,
            Some(source),
            Some(target),
        )
    }

    /// Sends the elements of this rank to the rank `root`.
    ///
    /// Before NCCL 2.28, this is a transfer.
    #[doc(alias = "ncclGather")]
    #[inline]
    pub fn gather<T: Element>(source: &'a DeviceSlice<T>, root: usize) -> Self {
        Self::new(Kind::Gather, Some(root), Reduction::Sum, Some(source), None)
    }

    /// Writes the elements of all ranks, in the order of the ranks, on this rank, the root. The
    /// length of `target` is that of `source` times the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclGather")]
    #[inline]
    pub fn gather_into<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
    ) -> Self {
        Self::new(
            Kind::GatherInto,
            None,
            Reduction::Sum,
            Some(source),
            Some(target),
        )
    }

    /// Receives this rank's part of the elements of the rank `root`.
    ///
    /// Before NCCL 2.28, this is a transfer.
    #[doc(alias = "ncclScatter")]
    #[inline]
    pub fn scatter<T: Element>(target: &'a mut DeviceSlice<T>, root: usize) -> Self {
        Self::new(
            Kind::Scatter,
            Some(root),
            Reduction::Sum,
            None,
            Some(target),
        )
    }

    /// Sends part `r` of `source` to rank `r`, and writes the part of this rank, the root. The
    /// length of `source` is that of `target` times the number of ranks.
    ///
    /// Before NCCL 2.28, this is a group of transfers.
    #[doc(alias = "ncclScatter")]
    #[inline]
    pub fn scatter_from<T: Element>(
        source: &'a DeviceSlice<T>,
        target: &'a mut DeviceSlice<T>,
    ) -> Self {
        Self::new(
            Kind::ScatterFrom,
            None,
            Reduction::Sum,
            Some(source),
            Some(target),
        )
    }

    /// Sends the elements to the rank `peer`, which must receive the same number. The stream waits
    /// until it has received them.
    #[doc(alias = "ncclSend")]
    #[inline]
    pub fn send<T: Element>(source: &'a DeviceSlice<T>, peer: usize) -> Self {
        Self::new(Kind::Send, Some(peer), Reduction::Sum, Some(source), None)
    }

    /// Receives elements from the rank `peer`. The stream waits until they have been sent.
    #[doc(alias = "ncclRecv")]
    #[inline]
    pub fn receive<T: Element>(target: &'a mut DeviceSlice<T>, peer: usize) -> Self {
        Self::new(
            Kind::Receive,
            Some(peer),
            Reduction::Sum,
            None,
            Some(target),
        )
    }

    #[inline]
    fn new<T: Element>(
        kind: Kind,
        peer: Option<usize>,
        reduction: Reduction<T>,
        source: Option<&'a DeviceSlice<T>>,
        target: Option<&'a mut DeviceSlice<T>>,
    ) -> Self {
        let lens = (
            source.as_ref().map(|source| source.len()),
            target.as_ref().map(|target| target.len()),
        );
        let lengths = (
            lens.0.or(lens.1).unwrap_or(0),
            lens.1.or(lens.0).unwrap_or(0),
        );
        let is_single = lens.0.is_none() || lens.1.is_none();
        let operands = Operands {
            source: source.map(DeviceSlice::as_bytes),
            target: target.map(DeviceSlice::as_bytes_mut),
        };
        let name = kind.name();
        let operator = reduction.erased();
        let width = size_of::<T>();
        let parts = kind.parts();
        let element = T::TYPE;
        Self {
            form: Form {
                kind,
                parts,
                name,
                operator,
                peer,
                element,
                width,
                lengths,
                is_single,
            },
            operands,
        }
    }

    /// Returns the name of the operation.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'static str {
        self.form.name
    }
}

impl Form {
    /// Describes the operation of a rank.
    #[cold]
    pub(crate) fn description(self, rank: usize, count: usize) -> Description {
        let root = match self.kind {
            Kind::Reduce | Kind::Broadcast | Kind::Gather | Kind::Scatter => self.peer,
            Kind::ReduceInto | Kind::BroadcastFrom | Kind::GatherInto | Kind::ScatterFrom => {
                Some(rank)
            }
            _ => None,
        };
        let reduces = matches!(
            self.kind,
            Kind::AllReduce | Kind::Reduce | Kind::ReduceInto | Kind::ReduceScatter
        );
        Description {
            name: self.name,
            count,
            element: type_name(self.element),
            reduction: reduces.then(|| self.operator.name()),
            root,
        }
    }
}

impl Kind {
    #[inline]
    const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Reduce => "reduce",
            Self::ReduceInto => "reduce_into",
            Self::Broadcast => "broadcast",
            Self::BroadcastFrom => "broadcast_from",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Gather => "gather",
            Self::GatherInto => "gather_into",
            Self::Scatter => "scatter",
            Self::ScatterFrom => "scatter_from",
            Self::Send => "send",
            Self::Receive => "receive",
        }
    }

    #[inline]
    const fn parts(self) -> Parts {
        Parts {
            in_source: matches!(
                self,
                Self::ReduceScatter | Self::AllToAll | Self::ScatterFrom
            ),
            in_target: matches!(self, Self::AllGather | Self::AllToAll | Self::GatherInto),
            may_be_in_place: matches!(
                self,
                Self::AllReduce
                    | Self::ReduceInto
                    | Self::Broadcast
                    | Self::BroadcastFrom
                    | Self::AllGather
                    | Self::ReduceScatter
            ),
        }
    }
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Form {
            name,
            lengths: (source, target),
            element,
            ..
        } = self.form;
        write!(
            formatter,
            "{name}({source} to {target} elements of {element:?})"
        )
    }
}

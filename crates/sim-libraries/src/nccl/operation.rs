//! Operations: what the ranks must agree on, and the result of each rank.

use std::fmt;
use std::sync::Arc;

use curium_sys::nccl::ncclDataType_t;

use super::reduce::{self, Operator};

/// A collective or a transfer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// The number of elements, as NCCL counts them.
    pub(super) count: usize,
    pub(super) element: ncclDataType_t,
    /// The size of an element in bytes.
    pub(super) width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    AllReduce(Operator),
    Reduce(Operator, usize),
    Broadcast(usize),
    AllGather,
    ReduceScatter(Operator),
    AllToAll,
    Gather(usize),
    Scatter(usize),
    Send,
    Receive,
    /// The registration of a window, whose size is the number of elements. It moves no data.
    Window,
}

impl Operation {
    /// Returns `true` if another rank may call `other` as the same operation.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let kinds = match (self.kind, other.kind) {
            (Kind::Send | Kind::Receive, Kind::Send | Kind::Receive) => true,
            (Kind::AllReduce(first), Kind::AllReduce(second)) => first.matches(second),
            (Kind::ReduceScatter(first), Kind::ReduceScatter(second)) => first.matches(second),
            (Kind::Reduce(first, to), Kind::Reduce(second, other)) => {
                first.matches(second) && to == other
            }
            (first, second) => first == second,
        };
        kinds && (self.count, self.element) == (other.count, other.element)
    }

    /// Returns the number of bytes that a rank contributes.
    pub(super) fn source_len(&self, rank: usize, size: usize) -> usize {
        let part = self.count * self.width;
        match self.kind {
            Kind::AllReduce(_)
            | Kind::Reduce(..)
            | Kind::AllGather
            | Kind::Gather(_)
            | Kind::Send => part,
            Kind::ReduceScatter(_) | Kind::AllToAll => part * size,
            Kind::Broadcast(root) if root == rank => part,
            Kind::Scatter(root) if root == rank => part * size,
            Kind::Broadcast(_) | Kind::Scatter(_) | Kind::Receive | Kind::Window => 0,
        }
    }

    /// Returns the number of bytes that a rank writes.
    pub(super) fn target_len(&self, rank: usize, size: usize) -> usize {
        let part = self.count * self.width;
        match self.kind {
            Kind::AllReduce(_)
            | Kind::ReduceScatter(_)
            | Kind::Broadcast(_)
            | Kind::Scatter(_)
            | Kind::Receive => part,
            Kind::AllGather | Kind::AllToAll => part * size,
            Kind::Reduce(_, root) if root == rank => part,
            Kind::Gather(root) if root == rank => part * size,
            Kind::Reduce(..) | Kind::Gather(_) | Kind::Send | Kind::Window => 0,
        }
    }

    fn operator(&self) -> Option<Operator> {
        match self.kind {
            Kind::AllReduce(operator)
            | Kind::Reduce(operator, _)
            | Kind::ReduceScatter(operator) => Some(operator),
            _ => None,
        }
    }

    /// Returns the address of the factor in device memory, if there is one.
    pub(super) fn factor_address(&self) -> Option<u64> {
        self.operator().and_then(Operator::factor_address)
    }

    /// Returns the contribution of a rank to the result: its elements, multiplied by its factor.
    /// `factor` is the factor in device memory, if it is there.
    pub(super) fn prepared(&self, source: &[u8], factor: &[u8]) -> Vec<u8> {
        match self.operator() {
            Some(operator) => reduce::scaled(operator, self.element, source, factor),
            None => source.to_vec(),
        }
    }

    /// Returns what a rank writes, given the contributions of all ranks.
    pub(super) fn result(&self, rank: usize, parts: &[Arc<[u8]>]) -> Vec<u8> {
        let part = self.count * self.width;
        let range = rank * part..(rank + 1) * part;
        match self.kind {
            Kind::AllReduce(operator) => reduce::reduced(operator, self.element, parts),
            Kind::Reduce(operator, root) if root == rank => {
                reduce::reduced(operator, self.element, parts)
            }
            Kind::ReduceScatter(operator) => {
                reduce::reduced(operator, self.element, parts)[range].to_vec()
            }
            Kind::Broadcast(root) => parts[root].to_vec(),
            Kind::Scatter(root) => parts[root][range].to_vec(),
            Kind::AllGather => parts.concat(),
            Kind::Gather(root) if root == rank => parts.concat(),
            Kind::AllToAll => parts
                .iter()
                .flat_map(|from| from[range.clone()].iter().copied())
                .collect(),
            // Only the sender contributes data.
            Kind::Receive => parts.concat(),
            Kind::Reduce(..) | Kind::Gather(_) | Kind::Send | Kind::Window => Vec::new(),
        }
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AllReduce(_) => "ncclAllReduce",
            Self::Reduce(..) => "ncclReduce",
            Self::Broadcast(_) => "ncclBroadcast",
            Self::AllGather => "ncclAllGather",
            Self::ReduceScatter(_) => "ncclReduceScatter",
            Self::AllToAll => "ncclAlltoAll",
            Self::Gather(_) => "ncclGather",
            Self::Scatter(_) => "ncclScatter",
            Self::Send => "ncclSend",
            Self::Receive => "ncclRecv",
            Self::Window => "ncclCommWindowRegister",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}({} elements of {:?}",
            self.kind.name(),
            self.count,
            self.element
        )?;
        match self.kind {
            Kind::AllReduce(operator) | Kind::ReduceScatter(operator) => {
                write!(formatter, ", {operator})")
            }
            Kind::Reduce(operator, root) => write!(formatter, ", {operator}, root {root})"),
            Kind::Broadcast(root) | Kind::Gather(root) | Kind::Scatter(root) => {
                write!(formatter, ", root {root})")
            }
            _ => formatter.write_str(")"),
        }
    }
}

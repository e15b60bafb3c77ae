//! Checks of operations, before NCCL is called.

use curium_driver::sys::load::LibraryVersion;

use super::{Form, Kind, Membership, Parts};
use crate::error::{ArgumentError, Result};
use crate::library::Nccl;
use crate::sys::ncclDataType_t;

/// The version that introduced elements of 8 bits with an exponent.
const FLOAT8_SINCE: LibraryVersion = LibraryVersion {
    major: 2,
    minor: 24,
    patch: 0,
};

/// The state of the calling thread: a transfer from a rank to itself requires a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GroupState {
    InGroup,
    Ungrouped,
}

impl Form {
    /// Returns the number of elements as NCCL counts them.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths or the rank do not fit the operation.
    #[inline]
    pub(crate) fn count(self, membership: Membership, group: GroupState) -> Result<usize> {
        let (source, target) = self.lengths;
        let (sources, targets) = self.part_counts(membership);
        let count = if sources == 1 {
            source
        } else if targets == 1 {
            target
        } else {
            source / membership.size
        };
        let lengths_agree = count.checked_mul(sources) == Some(source)
            && count.checked_mul(targets) == Some(target);
        let is_peer = self.peer.is_none_or(|peer| {
            peer < membership.size && (peer != membership.rank || self.may_name_itself(group))
        });
        if lengths_agree && is_peer {
            Ok(count)
        } else {
            Err(self.mismatch(membership, is_peer))
        }
    }

    /// Returns the numbers of parts in the source and in the target. In place, both are those of
    /// the memory.
    #[inline]
    fn part_counts(self, Membership { size, .. }: Membership) -> (usize, usize) {
        let Self {
            parts:
                Parts {
                    in_source,
                    in_target,
                    ..
                },
            is_single,
            ..
        } = self;
        let sources = if in_source || is_single && in_target {
            size
        } else {
            1
        };
        let targets = if in_target || is_single && in_source {
            size
        } else {
            1
        };
        (sources, targets)
    }

    /// Returns `true` if the operation may name the rank itself.
    #[inline]
    fn may_name_itself(self, group: GroupState) -> bool {
        match self.kind {
            Kind::Reduce | Kind::Gather | Kind::Scatter => false,
            Kind::Send | Kind::Receive => group == GroupState::InGroup,
            _ => true,
        }
    }

    /// Returns an error if the library does not have the type of the elements.
    #[inline]
    pub(crate) fn check_element(self, library: &Nccl) -> Result<()> {
        let is_old = self.element.0 < ncclDataType_t::ncclFloat8e4m3.0;
        if is_old || library.version() >= FLOAT8_SINCE {
            Ok(())
        } else {
            Err(self.unknown_element(library))
        }
    }

    #[cold]
    fn unknown_element(self, library: &Nccl) -> crate::Error {
        let element = self.element;
        let version = library.version();
        self.refused(format!(
            "elements of {element:?} need NCCL 2.24 (this is {version})"
        ))
    }

    #[cold]
    #[inline(never)]
    fn mismatch(self, membership: Membership, is_peer: bool) -> crate::Error {
        let Membership { rank, size } = membership;
        let (source, target) = self.lengths;
        match self.peer {
            Some(peer) if peer >= size => self.refused(format!("rank out of range ({peer} of {size} ranks)")),
            Some(_) if !is_peer && matches!(self.kind, Kind::Send | Kind::Receive) => {
                self.refused(format!("transfer to the rank itself ({rank}); enqueue both ends in a group"))
            }
            Some(_) if !is_peer => self.refused(format!("this rank is the root ({rank}); call the form for the root")),
            _ if source == target && self.part_counts(membership) == (size, size) => self.refused(format!(
                "the length is not a multiple of the number of ranks ({source} elements, {size} ranks)"
            )),
            _ => self.refused(format!(
                "the lengths do not fit ({source} elements of the source, {target} of the target, {size} ranks)"
            )),
        }
    }

    fn refused(self, problem: String) -> crate::Error {
        ArgumentError::refused(self.name, problem)
    }
}

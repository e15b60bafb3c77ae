//! Checks of operations, before NCCL is called.

use curium_driver::sys::load::LibraryVersion;

use super::{Form, Kind, Parts, Place};
use crate::error::{ArgumentError, Result};
use crate::library::Nccl;
use crate::sys::ncclDataType_t;

/// The version that introduced elements of 8 bits with an exponent.
const FLOAT8_SINCE: LibraryVersion = LibraryVersion {
    major: 2,
    minor: 24,
    patch: 0,
};

impl Form {
    /// Returns the number of elements as NCCL counts them.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths or the rank do not fit the operation.
    #[inline]
    pub(crate) fn count(self, place: Place, in_group: bool) -> Result<usize> {
        let (source, target) = self.lengths;
        let (sources, targets) = self.numbers_of_parts(place);
        let count = if sources == 1 {
            source
        } else if targets == 1 {
            target
        } else {
            source / place.size
        };
        let fits = count.checked_mul(sources) == Some(source)
            && count.checked_mul(targets) == Some(target);
        let is_peer = self.peer.is_none_or(|peer| {
            peer < place.size && (peer != place.rank || self.may_be_own(in_group))
        });
        if fits && is_peer {
            Ok(count)
        } else {
            Err(self.misfit(place, is_peer))
        }
    }

    /// Returns the numbers of parts in the source and in the target. In place, both are those of the memory.
    #[inline]
    fn numbers_of_parts(self, Place { size, .. }: Place) -> (usize, usize) {
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
        let parts = |has_parts: bool| if has_parts { size } else { 1 };
        (
            parts(in_source || is_single && in_target),
            parts(in_target || is_single && in_source),
        )
    }

    /// Returns `true` if the rank that the operation names may be the own one.
    #[inline]
    fn may_be_own(self, in_group: bool) -> bool {
        match self.kind {
            Kind::Reduce | Kind::Gather | Kind::Scatter => false,
            Kind::Send | Kind::Receive => in_group,
            _ => true,
        }
    }

    /// Returns an error if the library does not have the type of the elements.
    #[inline]
    pub(crate) fn expect_element(self, library: &Nccl) -> Result<()> {
        let is_old = self.element.0 < ncclDataType_t::ncclFloat8e4m3.0;
        if is_old || library.version() >= FLOAT8_SINCE {
            Ok(())
        } else {
            Err(self.unknown_element(library))
        }
    }

    #[cold]
    fn unknown_element(self, library: &Nccl) -> crate::Error {
        let (element, version) = (self.element, library.version());
        self.refused(format!(
            "elements of {element:?} need NCCL 2.24 (this is {version})"
        ))
    }

    #[cold]
    #[inline(never)]
    fn misfit(self, place: Place, is_peer: bool) -> crate::Error {
        let (Place { rank, size }, (source, target)) = (place, self.lengths);
        match self.peer {
            Some(peer) if peer >= size => self.refused(format!("rank out of range ({peer} of {size} ranks)")),
            Some(_) if !is_peer && matches!(self.kind, Kind::Send | Kind::Receive) => {
                self.refused(format!("transfer to the rank itself ({rank}); enqueue both ends in a group"))
            }
            Some(_) if !is_peer => self.refused(format!("this rank is the root ({rank}); call the form for the root")),
            _ if source == target && self.numbers_of_parts(place) == (size, size) => self.refused(format!(
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

//! Checks of operations, before NCCL is called.

use curium_driver::sys::load::LibraryVersion;

use super::{Kind, Operation, Place};
use crate::error::{ArgumentError, Result};
use crate::library::Nccl;
use crate::sys::ncclDataType_t;

/// The version that introduced elements of 8 bits with an exponent.
const FLOAT8_SINCE: LibraryVersion = LibraryVersion { major: 2, minor: 24, patch: 0 };

impl Operation<'_> {
    /// Returns the number of elements as NCCL counts them.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths or the rank do not fit the operation.
    #[inline]
    pub(crate) fn count(&self, place: Place, in_group: bool) -> Result<usize> {
        // The most frequent one first.
        if let (Kind::AllReduce(_), (source, target)) = (self.kind, self.lengths)
            && source == target
        {
            return Ok(source);
        }
        self.checked_count(place, in_group)
    }

    fn checked_count(&self, place: Place, in_group: bool) -> Result<usize> {
        self.check_peer(place, in_group)?;
        let (source, target) = self.lengths;
        let is_in_place = self.source.is_none();
        match self.kind {
            Kind::AllReduce(_) | Kind::Reduce(..) => self.expect(source == target, place).map(|()| source),
            Kind::Broadcast(_) | Kind::Send(_) | Kind::Receive(_) | Kind::Gather(Some(_)) | Kind::Scatter(Some(_)) => {
                Ok(source)
            }
            Kind::AllGather if is_in_place => self.part(target, place),
            Kind::AllGather | Kind::Gather(None) => {
                self.expect(source.checked_mul(place.size) == Some(target), place).map(|()| source)
            }
            Kind::ReduceScatter(_) if is_in_place => self.part(source, place),
            Kind::ReduceScatter(_) | Kind::Scatter(None) => {
                self.expect(target.checked_mul(place.size) == Some(source), place).map(|()| target)
            }
            Kind::AllToAll => {
                self.expect(source == target, place)?;
                self.part(source, place)
            }
        }
    }

    /// Returns an error if the library does not have the type of the elements.
    #[inline]
    pub(crate) fn expect_element(&self, library: &Nccl) -> Result<()> {
        let is_old = self.element.0 < ncclDataType_t::ncclFloat8e4m3.0;
        if is_old || library.version() >= FLOAT8_SINCE { Ok(()) } else { Err(self.unknown_element(library)) }
    }

    #[cold]
    fn unknown_element(&self, library: &Nccl) -> crate::Error {
        let (element, version) = (self.element, library.version());
        self.refused(format!("elements of {element:?} need NCCL 2.24 (this is {version})"))
    }

    fn check_peer(&self, place: Place, in_group: bool) -> Result<()> {
        let Some(peer) = self.peer() else { return Ok(()) };
        let Place { rank, size } = place;
        if peer >= size {
            return Err(self.refused(format!("rank out of range ({peer} of {size} ranks)")));
        }
        match self.kind {
            Kind::Reduce(..) | Kind::Gather(_) | Kind::Scatter(_) if peer == rank => {
                Err(self.refused(format!("this rank is the root ({rank}); call the form for the root")))
            }
            Kind::Send(_) | Kind::Receive(_) if peer == rank && !in_group => {
                Err(self.refused(format!("transfer to the rank itself ({rank}); enqueue both ends in a group")))
            }
            _ => Ok(()),
        }
    }

    fn expect(&self, fits: bool, place: Place) -> Result<()> {
        let (source, target) = self.lengths;
        if fits {
            return Ok(());
        }
        let size = place.size;
        Err(self.refused(format!(
            "the lengths do not fit ({source} elements of the source, {target} of the target, {size} ranks)"
        )))
    }

    /// Returns the length of the part of each rank.
    fn part(&self, len: usize, Place { size, .. }: Place) -> Result<usize> {
        if len.is_multiple_of(size) {
            return Ok(len / size);
        }
        Err(self.refused(format!("the length is not a multiple of the number of ranks ({len} elements, {size} ranks)")))
    }

    fn refused(&self, problem: String) -> crate::Error {
        ArgumentError::refused(self.name(), problem)
    }
}

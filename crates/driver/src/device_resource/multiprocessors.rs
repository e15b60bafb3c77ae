//! Sets of multiprocessors, and their splitting.

use std::fmt;
use std::ptr;

use bitflags::bitflags;
use curium_sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUdevResource, CUdevResourceType, CUdevSmResource, CUdevSmResourceGroup_flags,
    CUdevSmResourceSplitByCount_flags,
};

use super::Description;
use crate::call;
use crate::{Context, Device, Error, Result, Stream};

/// A set of a device's multiprocessors.
///
/// Splitting a set takes it and gives disjoint sets, and a [green context](Device::green_context) takes the sets that it runs on: so
/// green contexts that come from one set share no multiprocessor. Asking the device for its multiprocessors once more gives a set that
/// overlaps all others.
pub struct Multiprocessors {
    description: Description,
    device: Device,
}

/// The result of a split of multiprocessors: disjoint sets.
#[derive(Debug)]
#[non_exhaustive]
pub struct Partitioning {
    /// The sets that were asked for.
    pub parts: Vec<Multiprocessors>,
    /// The remaining multiprocessors, if any. Blocks of one cluster may not fit on them.
    pub rest: Option<Multiprocessors>,
}

/// The requirements of one part in [`Multiprocessors::split_into`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Partition {
    /// The number of multiprocessors, a multiple of 2 and of `coscheduled`. With 0, as many as there are.
    pub count: u32,
    /// The number of of them must be able to run the blocks of one cluster together. With 0, what the device does by itself.
    pub coscheduled: u32,
    /// The number of of them should, if that can be had. With 0, as many as must.
    pub preferred_coscheduled: u32,
    /// `true` if other multiprocessors may make up for those that fit.
    pub backfill: bool,
    /// The part of the device that the multiprocessors are to be in.
    pub locality: Option<u32>,
    /// `true` if those of that part are taken that go beyond what each part is said to have.
    pub supplemental: bool,
}

bitflags! {
    /// Flags of [`Multiprocessors::split`]. At most one may be set.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct SplitFlags: u32 {
        /// Parts may be smaller, and blocks of large clusters may not fit.
        const IGNORE_COSCHEDULING = CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0;
        /// Parts are made for the largest clusters. Needs compute capability 9.0.
        const MAX_CLUSTER_SIZE = CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0;
        /// Flags of newer drivers.
        const _ = !0;
    }
}

const KIND: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;

impl Device {
    /// Returns all multiprocessors of this device.
    ///
    /// Needs CUDA 12.4. CUDA: `cuDeviceGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDeviceGetDevResource")]
    #[inline]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        Ok(Multiprocessors { description: Description::of_device(self, KIND)?, device: self.clone() })
    }
}

impl Context {
    /// Returns the multiprocessors that this context runs on: those of the device, unless it is green.
    ///
    /// Needs CUDA 12.4. CUDA: `cuCtxGetDevResource`, `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuCtxGetDevResource")]
    #[doc(alias = "cuGreenCtxGetDevResource")]
    #[inline]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        Ok(Multiprocessors { description: Description::of_context(self, KIND)?, device: self.device().clone() })
    }
}

impl Stream {
    /// Returns the multiprocessors that work on this stream runs on.
    ///
    /// Needs CUDA 13.1. CUDA: `cuStreamGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuStreamGetDevResource")]
    #[inline]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        let device = self.context().device().clone();
        Ok(Multiprocessors { description: Description::of_stream(self, KIND)?, device })
    }
}

impl Multiprocessors {
    /// Returns the number of multiprocessors.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u32 {
        self.sm().smCount
    }

    /// Returns the fewest that a part of this set can have; 0 if the set was split off and is in no context yet, and before CUDA 13.0.
    #[must_use]
    #[inline]
    pub fn least_part(&self) -> u32 {
        self.sm().minSmPartitionSize
    }

    /// What the size of a part is a multiple of, and how many are sure to run the blocks of one cluster together; 0 if the set was
    /// split off and is in no context yet, and before CUDA 13.0.
    #[must_use]
    #[inline]
    pub fn alignment(&self) -> u32 {
        self.sm().smCoscheduledAlignment
    }

    /// Returns the device that the multiprocessors are of.
    #[must_use]
    #[inline]
    pub fn device(&self) -> &Device {
        &self.device
    }

    #[inline]
    pub(crate) fn into_parts(self) -> (Description, Device) {
        (self.description, self.device)
    }

    /// Returns the number of parts of at least `at_least` multiprocessors each there can be.
    ///
    /// Needs CUDA 12.4. CUDA: `cuDevSmResourceSplitByCount`, which splits nothing here.
    ///
    /// # Errors
    ///
    /// As for [`Multiprocessors::split`].
    #[inline]
    pub fn parts_of(&self, at_least: u32, flags: SplitFlags) -> Result<u32> {
        let mut parts = 0;
        let input = self.description.raw();
        let (none, parts_place, flags) = (ptr::null_mut(), &raw mut parts, flags.bits());
        // SAFETY: without a place for parts the call only counts them, and `parts_place` and `input` outlive it.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplitByCount(none, parts_place, &raw const input, ptr::null_mut(), flags, at_least)
            )
        }
        .map_err(|error| self.about(error, &format!("parts of {at_least}")))?;
        Ok(parts)
    }

    /// Splits the set into up to `parts` sets of the same size, at least `at_least` each: the size is rounded up to what the device can
    /// do, and there are fewer if there is no room for all.
    ///
    /// A part cannot be split again before it is in a context. An error takes the set along; the device gives another.
    ///
    /// Needs CUDA 12.4. CUDA: `cuDevSmResourceSplitByCount`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if there is no room for one part or the set was split off itself,
    /// `CUDA_ERROR_INVALID_VALUE` for flags that exclude each other, an argument error for no parts.
    #[doc(alias = "cuDevSmResourceSplitByCount")]
    #[inline]
    pub fn split(self, parts: u32, at_least: u32, flags: SplitFlags) -> Result<Partitioning> {
        if parts == 0 {
            return Err(Error::argument("Multiprocessors::split", "there must be a part"));
        }
        // More parts than multiprocessors there cannot be.
        let mut count = parts.min(self.count().max(1));
        let mut raw = vec![CUdevResource::default(); count as usize];
        let mut rest = CUdevResource::default();
        let (input, place, count_place) = (self.description.raw(), raw.as_mut_ptr(), &raw mut count);
        // SAFETY: `place` has room for `count` parts, and all places and `input` outlive the call.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplitByCount(
                    place,
                    count_place,
                    &raw const input,
                    &raw mut rest,
                    flags.bits(),
                    at_least
                )
            )
        }
        .map_err(|error| self.about(error, &format!("{parts} parts of {at_least}")))?;
        raw.truncate(count as usize);
        Ok(self.partitioning(raw, rest))
    }

    /// Splits the set into one set for each of `parts`, which are served in their order.
    ///
    /// Needs CUDA 13.1. CUDA: `cuDevSmResourceSplit`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if one of them cannot be had, an argument error for no parts.
    #[doc(alias = "cuDevSmResourceSplit")]
    #[inline]
    pub fn split_into(self, parts: &[Partition]) -> Result<Partitioning> {
        let mut wanted: Vec<_> = parts.iter().map(Partition::as_raw).collect();
        let count = u32::try_from(wanted.len()).unwrap_or_default();
        if count == 0 {
            return Err(Error::argument("Multiprocessors::split_into", format!("{} parts", parts.len())));
        }
        let mut raw = vec![CUdevResource::default(); wanted.len()];
        let mut rest = CUdevResource::default();
        let (input, place, wanted_place) = (self.description.raw(), raw.as_mut_ptr(), wanted.as_mut_ptr());
        // SAFETY: `place` and `wanted_place` have `count` entries each, and all places and `input` outlive the call.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplit(place, count, &raw const input, &raw mut rest, 0, wanted_place)
            )
        }
        .map_err(|error| self.about(error, &format!("{parts:?}")))?;
        Ok(self.partitioning(raw, rest))
    }

    #[inline]
    fn partitioning(self, parts: Vec<CUdevResource>, rest: CUdevResource) -> Partitioning {
        let device = self.device;
        let set = |raw| Self { description: Description(raw), device: device.clone() };
        let rest = (rest.type_ == KIND).then(|| set(rest)).filter(|rest| rest.count() > 0);
        Partitioning { parts: parts.into_iter().map(set).collect(), rest }
    }

    #[inline]
    fn sm(&self) -> CUdevSmResource {
        // SAFETY: every description of this type came from the driver as one of multiprocessors, whose fields are plain numbers.
        unsafe { self.description.0.__bindgen_anon_1.sm }
    }

    #[cold]
    #[inline]
    fn about(&self, error: Error, wanted: &str) -> Error {
        error.about(format!("{wanted} of {} multiprocessors", self.count()))
    }
}

impl Partition {
    /// Describes a part of `count` multiprocessors; 0 means as many as there are.
    #[must_use]
    #[inline]
    pub const fn new(count: u32) -> Self {
        Self { count, coscheduled: 0, preferred_coscheduled: 0, backfill: false, locality: None, supplemental: false }
    }

    /// Sets the number of multiprocessors that must be able to run the blocks of one cluster together.
    #[must_use]
    #[inline]
    pub const fn with_coscheduled(mut self, count: u32) -> Self {
        self.coscheduled = count;
        self
    }

    /// Sets the preferred number of multiprocessors that run the blocks of one cluster together.
    #[must_use]
    #[inline]
    pub const fn with_preferred_coscheduled(mut self, count: u32) -> Self {
        self.preferred_coscheduled = count;
        self
    }

    /// Allows other multiprocessors to complete the part.
    #[must_use]
    #[inline]
    pub const fn with_backfill(mut self) -> Self {
        self.backfill = true;
        self
    }

    /// Returns the same value in one part of the device, which [`LOCALITY_DOMAIN_COUNT`](crate::DeviceAttribute::LOCALITY_DOMAIN_COUNT)
    /// counts.
    #[must_use]
    #[inline]
    pub const fn with_locality(mut self, domain: u32) -> Self {
        self.locality = Some(domain);
        self
    }

    /// Returns the same value with those of its part of the device that go beyond what each part is said to have.
    #[must_use]
    #[inline]
    pub const fn with_supplemental(mut self) -> Self {
        self.supplemental = true;
        self
    }

    #[inline]
    fn as_raw(&self) -> CU_DEV_SM_RESOURCE_GROUP_PARAMS {
        use CUdevSmResourceGroup_flags as Flags;
        let flags = [
            (self.backfill, Flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL),
            (self.locality.is_some(), Flags::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID),
            (self.supplemental, Flags::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS),
        ];
        CU_DEV_SM_RESOURCE_GROUP_PARAMS {
            smCount: self.count,
            coscheduledSmCount: self.coscheduled,
            preferredCoscheduledSmCount: self.preferred_coscheduled,
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag.0).sum(),
            localityDomainId: self.locality.unwrap_or_default(),
            ..Default::default()
        }
    }
}

impl fmt::Debug for Multiprocessors {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Multiprocessors({} of {:?})", self.count(), self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_sets_a_flag_for_each_wish() {
        let raw = Partition::new(8).with_coscheduled(4).with_backfill().with_locality(1).as_raw();
        assert_eq!((raw.smCount, raw.coscheduledSmCount, raw.preferredCoscheduledSmCount), (8, 4, 0));
        assert_eq!((raw.flags, raw.localityDomainId), (0b011, 1));
        assert_eq!(Partition::new(0).with_supplemental().as_raw().flags, 0b100);
    }
}

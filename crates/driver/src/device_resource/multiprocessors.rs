//! Sets of multiprocessors (SM resources), and how to split them.

use std::fmt;
use std::ptr;

use bitflags::bitflags;
use curium_sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUdevResource, CUdevResourceType, CUdevSmResource,
    CUdevSmResourceGroup_flags, CUdevSmResourceSplitByCount_flags,
};

use super::Description;
use crate::call;
use crate::{Context, Device, Error, Result, Stream};

/// A set of multiprocessors of a device.
///
/// Splitting consumes a set and returns disjoint sets, and a [green context](Device::green_context)
/// consumes the sets that it uses. Green contexts made from the same set therefore share no
/// multiprocessor. A set obtained from the device again overlaps all others.
pub struct Multiprocessors {
    description: Description,
    device: Device,
}

/// The result of a split: disjoint sets.
#[derive(Debug)]
#[non_exhaustive]
pub struct Partitioning {
    /// The requested sets.
    pub parts: Vec<Multiprocessors>,
    /// The remaining multiprocessors, if any. Blocks of one cluster may not fit on them.
    pub remainder: Option<Multiprocessors>,
}

/// The requirements of one set in [`Multiprocessors::split_into`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Partition {
    /// The number of multiprocessors, a multiple of 2 and of `coscheduled`. 0 selects as many as
    /// are available.
    pub count: u32,
    /// The number of multiprocessors that must be able to run one cluster together. 0 selects the
    /// device's default.
    pub coscheduled: u32,
    /// The preferred number of multiprocessors that can run one cluster together. 0 selects
    /// `coscheduled`.
    pub preferred_coscheduled: u32,
    /// `true` if multiprocessors that do not meet the co-scheduling requirement may fill up the
    /// set.
    pub backfill: bool,
    /// The locality domain that contains the multiprocessors.
    pub locality: Option<u32>,
    /// `true` if the multiprocessors are taken from those of the domain beyond
    /// [`LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT`](crate::DeviceAttribute::LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT).
    pub supplemental: bool,
}

bitflags! {
    /// Flags of [`Multiprocessors::split`]. At most one may be set.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct SplitFlags: u32 {
        /// Sets may be smaller than the co-scheduling granularity, so large clusters may not fit.
        const IGNORE_COSCHEDULING = CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0;
        /// Sets are sized for the largest clusters. Requires compute capability 9.0.
        const MAX_CLUSTER_SIZE = CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

const KIND: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;

impl Device {
    /// Returns all multiprocessors of this device.
    ///
    /// Requires CUDA 12.4. CUDA: `cuDeviceGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetDevResource")]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        Ok(Multiprocessors {
            description: Description::for_device(self, KIND)?,
            device: self.clone(),
        })
    }
}

impl Context {
    /// Returns the multiprocessors that this context uses: all of the device's, unless it is a
    /// green context.
    ///
    /// Requires CUDA 12.4. CUDA: `cuCtxGetDevResource`, `cuGreenCtxGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetDevResource")]
    #[doc(alias = "cuGreenCtxGetDevResource")]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        Ok(Multiprocessors {
            description: Description::for_context(self, KIND)?,
            device: self.device().clone(),
        })
    }
}

impl Stream {
    /// Returns the multiprocessors that work on this stream uses.
    ///
    /// Requires CUDA 13.1. CUDA: `cuStreamGetDevResource`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetDevResource")]
    pub fn multiprocessors(&self) -> Result<Multiprocessors> {
        let device = self.context().device().clone();
        Ok(Multiprocessors {
            description: Description::for_stream(self, KIND)?,
            device,
        })
    }
}

impl Multiprocessors {
    /// Returns the number of multiprocessors.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.sm().smCount
    }

    /// Returns the minimum size of a set split from this one; 0 if this set was itself split off
    /// and is not in a context yet, and before CUDA 13.0.
    #[must_use]
    pub fn min_part(&self) -> u32 {
        self.sm().minSmPartitionSize
    }

    /// Returns the granularity of set sizes, which is also the number of multiprocessors guaranteed
    /// to run one cluster together; 0 if this set was itself split off and is not in a context yet,
    /// and before CUDA 13.0.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        self.sm().smCoscheduledAlignment
    }

    /// Returns the device of the multiprocessors.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn into_parts(self) -> (Description, Device) {
        (self.description, self.device)
    }

    /// Returns the number of sets of at least `at_least` multiprocessors that this set can be split
    /// into.
    ///
    /// Requires CUDA 12.4. CUDA: `cuDevSmResourceSplitByCount`, in its query form.
    ///
    /// # Errors
    ///
    /// As for [`Multiprocessors::split`].
    pub fn max_parts(&self, at_least: u32, flags: SplitFlags) -> Result<u32> {
        let mut parts = 0;
        let input = self.description.raw();
        let flags = flags.bits();
        // SAFETY: without an output array the call only counts the sets, and `parts` and `input`
        // outlive it.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplitByCount(
                    ptr::null_mut(),
                    &raw mut parts,
                    &raw const input,
                    ptr::null_mut(),
                    flags,
                    at_least
                )
            )
        }
        .map_err(|error| self.about(error, &format!("parts of {at_least}")))?;
        Ok(parts)
    }

    /// Splits this set into up to `parts` sets of equal size, with at least `at_least`
    /// multiprocessors each. The size is rounded up to the device's granularity, and fewer sets are
    /// returned if not all fit.
    ///
    /// A set cannot be split again before it is in a context. On error, this set is dropped; query
    /// it from the device again.
    ///
    /// Requires CUDA 12.4. CUDA: `cuDevSmResourceSplitByCount`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if not even one set fits or this set was itself
    /// split off, `CUDA_ERROR_INVALID_VALUE` for mutually exclusive flags, an argument error if
    /// `parts` is 0.
    #[doc(alias = "cuDevSmResourceSplitByCount")]
    pub fn split(self, parts: u32, at_least: u32, flags: SplitFlags) -> Result<Partitioning> {
        if parts == 0 {
            return Err(Error::argument(
                "Multiprocessors::split",
                "no parts requested",
            ));
        }
        // There cannot be more sets than multiprocessors.
        let mut count = parts.min(self.count().max(1));
        let mut raw = vec![CUdevResource::default(); count as usize];
        let mut remainder = CUdevResource::default();
        let input = self.description.raw();
        // SAFETY: `raw` has room for `count` sets, and all pointers and `input` outlive the call.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplitByCount(
                    raw.as_mut_ptr(),
                    &raw mut count,
                    &raw const input,
                    &raw mut remainder,
                    flags.bits(),
                    at_least
                )
            )
        }
        .map_err(|error| self.about(error, &format!("{parts} parts of {at_least}")))?;
        raw.truncate(count as usize);
        Ok(self.partitioning(raw, remainder))
    }

    /// Splits this set into one set for each of `parts`, allocated in order.
    ///
    /// Requires CUDA 13.1. CUDA: `cuDevSmResourceSplit`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if a requirement cannot be met, an argument
    /// error if `parts` is empty.
    #[doc(alias = "cuDevSmResourceSplit")]
    pub fn split_into(self, parts: &[Partition]) -> Result<Partitioning> {
        let Some(count) = u32::try_from(parts.len()).ok().filter(|count| *count > 0) else {
            return Err(Error::argument(
                "Multiprocessors::split_into",
                format!("{} parts", parts.len()),
            ));
        };
        let mut requirements: Vec<_> = parts.iter().map(Partition::as_raw).collect();
        let mut raw = vec![CUdevResource::default(); parts.len()];
        let mut remainder = CUdevResource::default();
        let input = self.description.raw();
        // SAFETY: `raw` and `requirements` have `count` entries each, and all pointers and `input`
        // outlive the call.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplit(
                    raw.as_mut_ptr(),
                    count,
                    &raw const input,
                    &raw mut remainder,
                    0,
                    requirements.as_mut_ptr()
                )
            )
        }
        .map_err(|error| self.about(error, &format!("{parts:?}")))?;
        Ok(self.partitioning(raw, remainder))
    }

    /// Converts the result of a split. Without a remainder, the driver does not write one, or
    /// writes an empty one.
    fn partitioning(self, parts: Vec<CUdevResource>, remainder: CUdevResource) -> Partitioning {
        let parts = parts
            .into_iter()
            .map(|raw| self.with_description(raw))
            .collect();
        let remainder = (remainder.type_ == KIND)
            .then(|| self.with_description(remainder))
            .filter(|remainder| remainder.count() > 0);
        Partitioning { parts, remainder }
    }

    /// Returns another set of this device.
    fn with_description(&self, raw: CUdevResource) -> Self {
        Self {
            description: Description(raw),
            device: self.device.clone(),
        }
    }

    fn sm(&self) -> CUdevSmResource {
        // SAFETY: the driver returned every description of this type for an SM resource, whose
        // fields are plain integers.
        unsafe { self.description.0.__bindgen_anon_1.sm }
    }

    #[cold]
    fn about(&self, error: Error, requested: &str) -> Error {
        error.about(format!("{requested} of {} multiprocessors", self.count()))
    }
}

impl Partition {
    /// Creates the requirements of a set of `count` multiprocessors; 0 selects as many as are
    /// available.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self {
            count,
            coscheduled: 0,
            preferred_coscheduled: 0,
            backfill: false,
            locality: None,
            supplemental: false,
        }
    }

    /// Sets the number of multiprocessors that must be able to run one cluster together.
    #[must_use]
    pub const fn with_coscheduled(mut self, count: u32) -> Self {
        self.coscheduled = count;
        self
    }

    /// Sets the preferred number of multiprocessors that can run one cluster together.
    #[must_use]
    pub const fn with_preferred_coscheduled(mut self, count: u32) -> Self {
        self.preferred_coscheduled = count;
        self
    }

    /// Allows multiprocessors that do not meet the co-scheduling requirement to fill up the set.
    #[must_use]
    pub const fn with_backfill(mut self) -> Self {
        self.backfill = true;
        self
    }

    /// Sets the locality domain.
    /// [`LOCALITY_DOMAIN_COUNT`](crate::DeviceAttribute::LOCALITY_DOMAIN_COUNT) is the number of
    /// domains.
    #[must_use]
    pub const fn with_locality(mut self, domain: u32) -> Self {
        self.locality = Some(domain);
        self
    }

    /// Takes the multiprocessors from those of the domain beyond
    /// [`LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT`](crate::DeviceAttribute::LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT).
    #[must_use]
    pub const fn with_supplemental(mut self) -> Self {
        self.supplemental = true;
        self
    }

    fn as_raw(&self) -> CU_DEV_SM_RESOURCE_GROUP_PARAMS {
        use CUdevSmResourceGroup_flags as Flags;
        let flags = [
            (self.backfill, Flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL),
            (
                self.locality.is_some(),
                Flags::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID,
            ),
            (
                self.supplemental,
                Flags::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS,
            ),
        ];
        CU_DEV_SM_RESOURCE_GROUP_PARAMS {
            smCount: self.count,
            coscheduledSmCount: self.coscheduled,
            preferredCoscheduledSmCount: self.preferred_coscheduled,
            flags: flags
                .iter()
                .filter(|(set, _)| *set)
                .map(|(_, flag)| flag.0)
                .sum(),
            localityDomainId: self.locality.unwrap_or_default(),
            ..Default::default()
        }
    }
}

impl fmt::Debug for Multiprocessors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Multiprocessors({} of {:?})",
            self.count(),
            self.device
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_sets_a_flag_for_each_requirement() {
        let raw = Partition::new(8)
            .with_coscheduled(4)
            .with_backfill()
            .with_locality(1)
            .as_raw();
        assert_eq!(raw.smCount, 8);
        assert_eq!(raw.coscheduledSmCount, 4);
        assert_eq!(raw.preferredCoscheduledSmCount, 0);
        assert_eq!(raw.flags, 0b011);
        assert_eq!(raw.localityDomainId, 1);
        assert_eq!(Partition::new(0).with_supplemental().as_raw().flags, 0b100);
    }
}

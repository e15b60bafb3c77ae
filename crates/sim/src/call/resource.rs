//! The C functions for resources of devices.
//!
//! A description belongs to the caller and is self-contained: besides the public fields, the device
//! and the membership in a set are stored in the bytes reserved for the driver.

use curium_sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUctx_st, CUdevResource, CUdevResourceDesc, CUdevResourceType,
    CUdevSmResource, CUdevSmResourceGroup_flags, CUdevSmResourceSplitByCount_flags, CUdevice,
    CUgreenCtx_st, CUresult, CUstream_st,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::call::context::named_context;
use crate::context::Context;
use crate::driver::locked::Locked;
use crate::driver::resource::{CLUSTER_GRANULARITY, GRANULARITY, SmPartition, new_description};
use crate::handle::Id;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuDeviceGetDevResource(
        &self,
        device: CUdevice,
        resource: Pointer<CUdevResource>,
        kind: CUdevResourceType,
    ) -> Result {
        let device = self.devices().device(device)?;
        let output = resource.required()?;
        output.write(self.devices().describe_resource(
            device,
            self.devices().device_resources(device),
            kind,
        )?)
    }

    pub(crate) fn cuCtxGetDevResource(
        &self,
        context: Pointer<CUctx_st>,
        resource: Pointer<CUdevResource>,
        kind: CUdevResourceType,
    ) -> Result {
        let output = resource.required()?;
        self.check_resource_kind(kind)?;
        let context = named_context(context)?;
        output.write(self.lock().describe_context(context, kind)?)
    }

    pub(crate) fn cuGreenCtxGetDevResource(
        &self,
        context: Pointer<CUgreenCtx_st>,
        resource: Pointer<CUdevResource>,
        kind: CUdevResourceType,
    ) -> Result {
        let output = resource.required()?;
        self.check_resource_kind(kind)?;
        let state = self.lock();
        let context = state.contexts.green_context(context)?;
        output.write(state.describe_context(context, kind)?)
    }

    pub(crate) fn cuStreamGetDevResource(
        &self,
        stream: Pointer<CUstream_st>,
        resource: Pointer<CUdevResource>,
        kind: CUdevResourceType,
    ) -> Result {
        let output = resource.required()?;
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        if kind != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
            return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE);
        }
        output.write(state.describe_context(context, kind)?)
    }

    /// Creates as many parts as fit. Hardware whose multiprocessors are not spread evenly may have
    /// fewer.
    pub(crate) fn cuDevSmResourceSplitByCount(
        &self,
        parts: Pointer<CUdevResource>,
        count: Pointer<u32>,
        input: ConstPointer<CUdevResource>,
        remaining: Pointer<CUdevResource>,
        flags: u32,
        min_count: u32,
    ) -> Result {
        let requested = count.read()?;
        let input = SmPartition::read(input.read()?)?;
        let size = part_size(flags, min_count, input.count)?;
        input.check_splittable()?;
        let possible = input.count / size;
        if parts.is_null() {
            return count.write(possible);
        }
        if requested == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let created = requested.min(possible);
        for index in 0..created {
            // SAFETY: the caller passed room for the requested number of parts.
            unsafe { parts.at(index as usize) }.write(self.part(&input, size, 0))?;
        }
        remaining.write_if_not_null(self.remainder(&input, input.count - created * size));
        count.write(created)
    }

    /// Follows the documentation: no driver with this function was available for comparison.
    pub(crate) fn cuDevSmResourceSplit(
        &self,
        parts: Pointer<CUdevResource>,
        count: u32,
        input: ConstPointer<CUdevResource>,
        remainder: Pointer<CUdevResource>,
        flags: u32,
        groups: Pointer<CU_DEV_SM_RESOURCE_GROUP_PARAMS>,
    ) -> Result {
        let input = SmPartition::read(input.read()?)?;
        input.check_splittable()?;
        if flags != 0 || count == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut remaining = input.count;
        for index in 0..count as usize {
            // SAFETY: the caller passed the parameters of `count` groups.
            let params = unsafe { groups.at(index) };
            let mut group = params.read()?;
            group.smCount = group_size(&group, remaining)?;
            remaining -= group.smCount;
            params.write(group)?;
            if parts.is_null() {
                continue;
            }
            if group.smCount == 0 {
                return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
            }
            // SAFETY: the caller passed room for `count` parts, or none.
            unsafe { parts.at(index) }.write(self.part(&input, group.smCount, group.flags))?;
        }
        remainder.write_if_not_null(self.remainder(&input, remaining));
        Ok(())
    }

    pub(crate) fn cuDevResourceGenerateDesc(
        &self,
        descriptor: Pointer<CUdevResourceDesc>,
        resources: Pointer<CUdevResource>,
        count: u32,
    ) -> Result {
        let output = descriptor.required()?;
        // SAFETY: the caller passed `count` resources, or a null pointer.
        let resources = unsafe { elements(resources.as_ptr().cast_const(), count as usize) }?;
        let descriptor = self.devices().combine(resources)?;
        output.write(self.lock().descriptors.insert(descriptor).as_raw())
    }
}

impl Call<'_> {
    /// Checks that the driver describes resources of a type.
    fn check_resource_kind(&self, kind: CUdevResourceType) -> Result {
        match kind {
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => Ok(()),
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
            | CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE
                if self.devices().supports_work_queues() =>
            {
                Ok(())
            }
            _ => Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE),
        }
    }

    /// Returns a part of a set; older drivers describe only its size.
    fn part(&self, set: &SmPartition, count: u32, flags: u32) -> CUdevResource {
        let granularity = if self.devices().describes_partition_granularity() {
            CLUSTER_GRANULARITY
        } else {
            0
        };
        let mut part =
            new_description(CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM, set.device, true);
        part.__bindgen_anon_1.sm = CUdevSmResource {
            smCount: count,
            minSmPartitionSize: granularity,
            smCoscheduledAlignment: granularity,
            flags,
            localityDomainId: 0,
        };
        part
    }

    /// Returns the remaining multiprocessors of a set, an invalid resource if there are none.
    fn remainder(&self, set: &SmPartition, count: u32) -> CUdevResource {
        if count == 0 {
            CUdevResource::default()
        } else {
            self.part(set, count, 0)
        }
    }
}

impl Locked<'_> {
    fn describe_context(
        &self,
        context: Id<Context>,
        kind: CUdevResourceType,
    ) -> Result<CUdevResource> {
        let driver = self.driver();
        let context = self.contexts.valid_context(context)?;
        let resources = context
            .green_resources()
            .unwrap_or_else(|| driver.devices().device_resources(context.device()));
        driver
            .devices()
            .describe_resource(context.device(), resources, kind)
    }
}

/// Returns the size of the parts of at least `min_count` multiprocessors that a set is split into.
fn part_size(flags: u32, min_count: u32, total: u32) -> Result<u32> {
    let single =
        CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0;
    let clusters =
        CUdevSmResourceSplitByCount_flags::CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0;
    if flags & single != 0 && flags & clusters != 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    if min_count > total {
        return Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    let step = if flags & single != 0 {
        GRANULARITY
    } else {
        CLUSTER_GRANULARITY
    };
    Ok(min_count.max(1).next_multiple_of(step).min(total))
}

/// Returns the number of multiprocessors of a requested group, out of the `remaining` ones. A
/// request for 0 receives as many as possible.
fn group_size(request: &CU_DEV_SM_RESOURCE_GROUP_PARAMS, remaining: u32) -> Result<u32> {
    let coscheduled = if request.coscheduledSmCount == 0 {
        CLUSTER_GRANULARITY
    } else {
        request.coscheduledSmCount
    };
    let backfill =
        request.flags & CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0 != 0;
    if request.smCount == 0 {
        return Ok(if backfill {
            remaining
        } else {
            remaining - remaining % coscheduled
        });
    }
    let is_valid = request.smCount.is_multiple_of(GRANULARITY)
        && (backfill || request.smCount.is_multiple_of(coscheduled))
        && request.smCount <= remaining;
    if is_valid {
        Ok(request.smCount)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    }
}

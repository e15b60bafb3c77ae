//! Stream attributes.

use std::ffi::c_void;

use curium_sys::{
    CUaccessPolicyWindow, CUaccessProperty, CUlaunchMemSyncDomain, CUlaunchMemSyncDomainMap,
    CUstreamAttrID, CUstreamAttrValue, CUsynchronizationPolicy,
};

use crate::AsRawStream as _;
use crate::call;
use crate::{DevicePointer, Result, Stream};

/// An access policy window: the L2 caching of accesses to a range of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AccessPolicyWindow {
    /// The start of the range.
    pub base: DevicePointer<u8>,
    /// The size of the range in bytes; 0 disables the window. The device has a limit.
    pub bytes: usize,
    /// The fraction of accesses in the range that are treated as hits, from 0 to 1.
    pub hit_ratio: f32,
    /// The access property of hits.
    pub hit: AccessProperty,
    /// The access property of misses: [`AccessProperty::Normal`] or [`AccessProperty::Streaming`].
    pub miss: AccessProperty,
}

/// An L2 access property.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AccessProperty {
    /// Normal caching.
    Normal,
    /// Less likely to persist in the cache.
    Streaming,
    /// More likely to persist in the cache.
    Persisting,
    /// A property defined by a newer driver.
    Unknown(u32),
}

/// The synchronization policy of a stream: how a host thread waits for it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SynchronizationPolicy {
    /// As specified by the context.
    Auto,
    /// Spins, which has the lowest latency.
    Spin,
    /// Spins and yields to other threads.
    Yield,
    /// Blocks.
    Block,
    /// A policy defined by a newer driver.
    Unknown(u32),
}

/// A memory synchronization domain. A memory fence of a kernel waits for the writes of its own
/// domain only.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemorySyncDomain {
    /// The domain of local work.
    Default,
    /// The domain of work that writes to remote memory.
    Remote,
    /// A domain defined by a newer driver.
    Unknown(u32),
}

/// A map from the two logical memory synchronization domains to physical ones, counted from 0.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct MemorySyncDomainMap {
    /// The physical domain of [`MemorySyncDomain::Default`].
    pub default: u8,
    /// The physical domain of [`MemorySyncDomain::Remote`].
    pub remote: u8,
}

impl AccessPolicyWindow {
    /// Creates a window in which every access is treated as a persisting hit.
    #[must_use]
    pub const fn persisting(base: DevicePointer<u8>, bytes: usize) -> Self {
        Self {
            base,
            bytes,
            hit_ratio: 1.0,
            hit: AccessProperty::Persisting,
            miss: AccessProperty::Streaming,
        }
    }

    /// Sets the fraction of accesses that are treated as hits, from 0 to 1.
    #[must_use]
    pub const fn with_hit_ratio(mut self, hit_ratio: f32) -> Self {
        self.hit_ratio = hit_ratio;
        self
    }

    /// Sets the properties of hits and misses.
    #[must_use]
    pub const fn with_properties(mut self, hit: AccessProperty, miss: AccessProperty) -> Self {
        self.hit = hit;
        self.miss = miss;
        self
    }

    pub(crate) const fn as_raw(self) -> CUaccessPolicyWindow {
        CUaccessPolicyWindow {
            base_ptr: std::ptr::without_provenance_mut::<c_void>(self.base.as_raw() as usize),
            num_bytes: self.bytes,
            hitRatio: self.hit_ratio,
            hitProp: self.hit.as_raw(),
            missProp: self.miss.as_raw(),
        }
    }

    fn from_raw(raw: &CUaccessPolicyWindow) -> Self {
        Self {
            base: DevicePointer::from_raw(raw.base_ptr.addr() as u64),
            bytes: raw.num_bytes,
            hit_ratio: raw.hitRatio,
            hit: AccessProperty::from_raw(raw.hitProp),
            miss: AccessProperty::from_raw(raw.missProp),
        }
    }
}

/// Converts a C enum to and from a Rust enum.
macro_rules! translate {
    ($ours:ident, $theirs:ident { $($variant:ident = $constant:ident),* $(,)? }) => {
        impl $ours {
            pub(crate) const fn as_raw(self) -> $theirs {
                match self {
                    $(Self::$variant => $theirs::$constant,)*
                    Self::Unknown(value) => $theirs(value),
                }
            }

            pub(crate) const fn from_raw(raw: $theirs) -> Self {
                match raw {
                    $($theirs::$constant => Self::$variant,)*
                    $theirs(value) => Self::Unknown(value),
                }
            }
        }
    };
}

translate!(AccessProperty, CUaccessProperty {
    Normal = CU_ACCESS_PROPERTY_NORMAL,
    Streaming = CU_ACCESS_PROPERTY_STREAMING,
    Persisting = CU_ACCESS_PROPERTY_PERSISTING,
});
translate!(SynchronizationPolicy, CUsynchronizationPolicy {
    Auto = CU_SYNC_POLICY_AUTO,
    Spin = CU_SYNC_POLICY_SPIN,
    Yield = CU_SYNC_POLICY_YIELD,
    Block = CU_SYNC_POLICY_BLOCKING_SYNC,
});
translate!(MemorySyncDomain, CUlaunchMemSyncDomain {
    Default = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT,
    Remote = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
});

impl Stream {
    /// Returns the L2 access policy window of the stream.
    ///
    /// CUDA: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn access_policy_window(&self) -> Result<AccessPolicyWindow> {
        let value = self.raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)?;
        // SAFETY: the driver has initialized this field for this attribute, and any bytes are a
        // valid value of it.
        let window = unsafe { value.accessPolicyWindow };
        Ok(AccessPolicyWindow::from_raw(&window))
    }

    /// Sets the access policy window for later kernels on the stream. Only a hint.
    ///
    /// CUDA: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the window exceeds the device's limit, or a value is out of
    /// range.
    pub fn set_access_policy_window(&self, window: AccessPolicyWindow) -> Result<()> {
        let value = CUstreamAttrValue {
            accessPolicyWindow: window.as_raw(),
        };
        // SAFETY: the value belongs to this attribute; its address is not accessed.
        unsafe {
            self.set_raw_attribute(
                CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                &value,
            )
        }
    }

    /// Returns the synchronization policy of the stream.
    ///
    /// CUDA: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn synchronization_policy(&self) -> Result<SynchronizationPolicy> {
        let value =
            self.raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)?;
        // SAFETY: the driver has initialized this field for this attribute, and any bytes are a
        // valid value of it.
        let policy = unsafe { value.syncPolicy };
        Ok(SynchronizationPolicy::from_raw(policy))
    }

    /// Sets the synchronization policy of the stream.
    ///
    /// CUDA: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a policy that the driver does not support.
    pub fn set_synchronization_policy(&self, policy: SynchronizationPolicy) -> Result<()> {
        let value = CUstreamAttrValue {
            syncPolicy: policy.as_raw(),
        };
        // SAFETY: the value belongs to this attribute.
        unsafe {
            self.set_raw_attribute(
                CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                &value,
            )
        }
    }

    /// Sets the priority of later work. Lower numbers have greater priority.
    ///
    /// CUDA: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on drivers that fix the priority of a stream when it is created.
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        let value = CUstreamAttrValue { priority };
        // SAFETY: the value belongs to this attribute.
        unsafe { self.set_raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) }
    }

    /// Returns the memory synchronization domain of the stream.
    ///
    /// CUDA: `cuStreamGetAttribute`, for this attribute since 12.0.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn memory_sync_domain(&self) -> Result<MemorySyncDomain> {
        let value = self.raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)?;
        // SAFETY: the driver has initialized this field for this attribute, and any bytes are a
        // valid value of it.
        let domain = unsafe { value.memSyncDomain };
        Ok(MemorySyncDomain::from_raw(domain))
    }

    /// Sets the memory synchronization domain of later kernels.
    ///
    /// CUDA: `cuStreamSetAttribute`, for this attribute since 12.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a domain that the driver does not support.
    pub fn set_memory_sync_domain(&self, domain: MemorySyncDomain) -> Result<()> {
        let value = CUstreamAttrValue {
            memSyncDomain: domain.as_raw(),
        };
        // SAFETY: the value belongs to this attribute.
        unsafe {
            self.set_raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value)
        }
    }

    /// Returns the stream's map from logical to physical memory synchronization domains.
    ///
    /// CUDA: `cuStreamGetAttribute`, for this attribute since 12.0.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn memory_sync_domain_map(&self) -> Result<MemorySyncDomainMap> {
        let value = self.raw_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)?;
        // SAFETY: the driver has initialized this field for this attribute, and any bytes are a
        // valid value of it.
        let map = unsafe { value.memSyncDomainMap };
        Ok(MemorySyncDomainMap {
            default: map.default_,
            remote: map.remote,
        })
    }

    /// Sets the stream's map from logical to physical memory synchronization domains.
    ///
    /// CUDA: `cuStreamSetAttribute`, for this attribute since 12.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the device has fewer domains.
    pub fn set_memory_sync_domain_map(&self, map: MemorySyncDomainMap) -> Result<()> {
        let map = CUlaunchMemSyncDomainMap {
            default_: map.default,
            remote: map.remote,
        };
        let value = CUstreamAttrValue {
            memSyncDomainMap: map,
        };
        // SAFETY: the value belongs to this attribute.
        unsafe {
            self.set_raw_attribute(
                CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                &value,
            )
        }
    }

    /// Copies all attributes of `source` to this stream.
    ///
    /// CUDA: `cuStreamCopyAttributes`.
    ///
    /// # Errors
    ///
    /// An argument error if the streams belong to different drivers; `CUDA_ERROR_INVALID_VALUE` if
    /// they belong to different contexts.
    #[doc(alias = "cuStreamCopyAttributes")]
    #[doc(alias = "cudaStreamCopyAttributes")]
    pub fn copy_attributes_from(&self, source: &Self) -> Result<()> {
        self.driver()
            .check_same(source.driver(), "Stream::copy_attributes_from")?;
        // SAFETY: both streams are live and belong to this driver.
        unsafe {
            call!(
                self.driver(),
                cuStreamCopyAttributes(self.as_raw(), source.as_raw())
            )
        }
    }

    /// Returns an attribute as a raw value. Fields of the union that do not belong to the attribute
    /// are zero.
    ///
    /// CUDA: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that streams do not support.
    #[doc(alias = "cuStreamGetAttribute")]
    #[doc(alias = "cudaStreamGetAttribute")]
    pub fn raw_attribute(&self, attribute: CUstreamAttrID) -> Result<CUstreamAttrValue> {
        let mut value = CUstreamAttrValue::default();
        // SAFETY: `value` is valid for writes, and the stream is live.
        let result = unsafe {
            call!(
                self.driver(),
                cuStreamGetAttribute(self.as_raw(), attribute, &raw mut value)
            )
        };
        result.map_err(|error| error.about(format!("attribute {}", attribute.0)))?;
        Ok(value)
    }

    /// Sets an attribute that has no dedicated method.
    ///
    /// CUDA: `cuStreamSetAttribute`.
    ///
    /// # Safety
    ///
    /// `value` is the union field of this attribute, and its pointers, if any, satisfy the
    /// requirements that CUDA documents for it.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that streams do not support.
    #[doc(alias = "cuStreamSetAttribute")]
    #[doc(alias = "cudaStreamSetAttribute")]
    pub unsafe fn set_raw_attribute(
        &self,
        attribute: CUstreamAttrID,
        value: &CUstreamAttrValue,
    ) -> Result<()> {
        // SAFETY: the stream is live, and the caller is responsible for the value.
        let result = unsafe {
            call!(
                self.driver(),
                cuStreamSetAttribute(self.as_raw(), attribute, value)
            )
        };
        result.map_err(|error| error.about(format!("attribute {}", attribute.0)))
    }
}

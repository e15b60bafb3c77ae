//! Attributes of streams. They are kept and have no effect.

use curium_sys::{
    CUaccessPolicyWindow, CUaccessProperty, CUlaunchMemSyncDomain, CUlaunchMemSyncDomainMap,
    CUresult, CUstreamAttrID, CUstreamAttrValue, CUsynchronizationPolicy,
};

use crate::result::Result;

/// The attributes that a stream keeps.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) window: (u64, usize, f32, CUaccessProperty, CUaccessProperty),
    pub(crate) policy: CUsynchronizationPolicy,
    pub(crate) domain: CUlaunchMemSyncDomain,
    pub(crate) map: CUlaunchMemSyncDomainMap,
}

/// The physical domains of the device model.
const DOMAINS: u8 = 4;

impl Default for Attributes {
    fn default() -> Self {
        let normal = CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL;
        Self {
            window: (0, 0, 0.0, normal, normal),
            policy: CUsynchronizationPolicy::CU_SYNC_POLICY_AUTO,
            domain: CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT,
            map: CUlaunchMemSyncDomainMap {
                default_: 0,
                remote: 1,
            },
        }
    }
}

impl Attributes {
    pub(crate) fn window(&self) -> CUaccessPolicyWindow {
        let (base, num_bytes, hit_ratio, hit, miss) = self.window;
        CUaccessPolicyWindow {
            base_ptr: std::ptr::without_provenance_mut(base as usize),
            num_bytes,
            hitRatio: hit_ratio,
            hitProp: hit,
            missProp: miss,
        }
    }

    pub(crate) fn set(&mut self, attribute: CUstreamAttrID, value: &CUstreamAttrValue) -> Result {
        match attribute {
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
                // SAFETY: the caller set this field for this attribute, and any bytes are a value
                // of it.
                let window = unsafe { value.accessPolicyWindow };
                check_window(&window)?;
                let base = window.base_ptr.addr() as u64;
                self.window = (
                    base,
                    window.num_bytes,
                    window.hitRatio,
                    window.hitProp,
                    window.missProp,
                );
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
                // SAFETY: the identifier selects this member, for which any bytes are valid.
                let policy = unsafe { value.syncPolicy };
                check((1..=4).contains(&policy.0))?;
                self.policy = policy;
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
                // SAFETY: the identifier selects this member, for which any bytes are valid.
                let domain = unsafe { value.memSyncDomain };
                check(domain.0 <= 1)?;
                self.domain = domain;
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                // SAFETY: the identifier selects this member, for which any bytes are valid.
                let map = unsafe { value.memSyncDomainMap };
                check(map.default_ < DOMAINS && map.remote < DOMAINS)?;
                self.map = map;
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }
}

fn check_window(window: &CUaccessPolicyWindow) -> Result {
    let persisting = CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING;
    check((0.0..=1.0).contains(&window.hitRatio))?;
    check(window.hitProp.0 <= persisting.0 && window.missProp.0 < persisting.0)
}

fn check(is_valid: bool) -> Result {
    if is_valid {
        Ok(())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

//! Attributes of streams. They are kept and have no effect.

use curium_sys::{CUresult, CUstream_st, CUstreamAttrID, CUstreamAttrValue};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::call::stream::clamped;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuStreamGetAttribute(
        &self,
        stream: Pointer<CUstream_st>,
        attribute: CUstreamAttrID,
        value: Pointer<CUstreamAttrValue>,
    ) -> Result {
        let mut state = self.lock();
        let id = state.queried_stream(stream)?;
        let output = value.required()?;
        let stream = state.contexts.stream(id)?;
        let mut value = CUstreamAttrValue::default();
        match attribute {
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
                value.accessPolicyWindow = stream.attributes().window();
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
                value.syncPolicy = stream.attributes().policy;
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY => value.priority = stream.priority(),
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
                value.memSyncDomain = stream.attributes().domain;
            }
            CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
                value.memSyncDomainMap = stream.attributes().map;
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        output.write(value)
    }

    pub(crate) fn cuStreamSetAttribute(
        &self,
        stream: Pointer<CUstream_st>,
        attribute: CUstreamAttrID,
        value: ConstPointer<CUstreamAttrValue>,
    ) -> Result {
        let value = value.read()?;
        let mut state = self.lock();
        let id = state.queried_stream(stream)?;
        let stream = state.contexts.stream_mut(id)?;
        if attribute == CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY {
            // SAFETY: the caller set this field for this attribute, and any bytes are a number.
            stream.set_priority(clamped(unsafe { value.priority }));
            return Ok(());
        }
        stream.attributes_mut().set(attribute, &value)
    }

    pub(crate) fn cuStreamCopyAttributes(
        &self,
        to: Pointer<CUstream_st>,
        from: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let to = state.queried_stream(to)?;
        let from = state.queried_stream(from)?;
        let from = state.contexts.stream(from)?;
        let context = from.context();
        let attributes = *from.attributes();
        let to = state.contexts.stream_mut(to)?;
        if to.context() != context {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        *to.attributes_mut() = attributes;
        Ok(())
    }
}

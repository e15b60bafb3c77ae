//! The capture dependencies of streams: queries and changes.

use curium_sys::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstream_st, CUstreamCaptureStatus,
    CUstreamUpdateCaptureDependencies_flags_enum as Flags, cuuint64_t,
};

use crate::argument::{Argument as _, ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::capture::dependencies::CaptureOutputs;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters are those of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuStreamIsCapturing(
        &self,
        stream: Pointer<CUstream_st>,
        status: Pointer<CUstreamCaptureStatus>,
    ) -> Result {
        self.cuStreamGetCaptureInfo(stream, status, Pointer::null())
    }

    pub(crate) fn cuStreamGetCaptureInfo(
        &self,
        stream: Pointer<CUstream_st>,
        status: Pointer<CUstreamCaptureStatus>,
        number: Pointer<cuuint64_t>,
    ) -> Result {
        self.cuStreamGetCaptureInfo_v2(
            stream,
            status,
            number,
            Pointer::null(),
            Pointer::null(),
            Pointer::null(),
        )
    }

    pub(crate) fn cuStreamGetCaptureInfo_v2(
        &self,
        stream: Pointer<CUstream_st>,
        status: Pointer<CUstreamCaptureStatus>,
        number: Pointer<cuuint64_t>,
        graph: Pointer<CUgraph>,
        nodes: Pointer<*const CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        self.cuStreamGetCaptureInfo_v3(stream, status, number, graph, nodes, Pointer::null(), count)
    }

    pub(crate) fn cuStreamGetCaptureInfo_v3(
        &self,
        stream: Pointer<CUstream_st>,
        status: Pointer<CUstreamCaptureStatus>,
        number: Pointer<cuuint64_t>,
        graph: Pointer<CUgraph>,
        nodes: Pointer<*const CUgraphNode>,
        data: Pointer<*const CUgraphEdgeData>,
        count: Pointer<usize>,
    ) -> Result {
        let status = status.required()?;
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        state.check_no_implicit_wait(stream, false)?;
        let Some(capture) = state.captures.capture(stream) else {
            return status.write(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
        };
        status.write(capture.status())?;
        if !capture.is_valid {
            return Ok(());
        }
        state.write_capture_info(
            stream,
            &CaptureOutputs {
                number,
                graph,
                nodes,
                data,
                count,
            },
        )
    }

    pub(crate) fn cuStreamUpdateCaptureDependencies(
        &self,
        stream: Pointer<CUstream_st>,
        nodes: Pointer<CUgraphNode>,
        count: usize,
        flags: u32,
    ) -> Result {
        // SAFETY: the pointer is null, so nothing is read.
        let no_data = unsafe { std::ptr::null::<CUgraphEdgeData>().receive() };
        self.cuStreamUpdateCaptureDependencies_v2(stream, nodes, no_data, count, flags)
    }

    pub(crate) fn cuStreamUpdateCaptureDependencies_v2(
        &self,
        stream: Pointer<CUstream_st>,
        nodes: Pointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
        flags: u32,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let graph = state
            .captures
            .captured_graph(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        // SAFETY: the nodes are read only, as through the other functions that take a list of them.
        let nodes = unsafe { nodes.as_ptr().cast_const().receive() };
        let tips = state.graphs.edges(graph, nodes, data, count)?;
        let member = state
            .captures
            .capture_mut(stream)
            .and_then(|capture| capture.member_mut(stream));
        let member = member.ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        match Flags(flags) {
            Flags::CU_STREAM_ADD_CAPTURE_DEPENDENCIES => member.add(tips),
            Flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES => member.tips = tips,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }
}

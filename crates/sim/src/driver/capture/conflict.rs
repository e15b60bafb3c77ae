//! Operations that captures forbid, and the captures that they invalidate.

use curium_sys::{CUresult, CUstream_st, Function};

use crate::argument::Pointer;
use crate::context::stream::{Stream, this_thread};
use crate::driver::Driver;
use crate::driver::capture::Captures;
use crate::driver::copy::legacy;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::capture::Capture;
use crate::result::Result;

pub(crate) const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

/// Calls that may wait for captured work: the modes of the capture and of the thread forbid them.
const POTENTIALLY_UNSAFE: &[Function] = &[
    Function::cuDeviceSetMemPool,
    Function::cuGraphExecDestroy,
    Function::cuLibraryUnload,
    Function::cuMemFree,
    Function::cuMemFreeHost,
    Function::cuMemFree_v2,
    Function::cuMemHostUnregister,
    Function::cuMemPoolCreate,
    Function::cuMemPoolDestroy,
    Function::cuMemPoolExportPointer,
    Function::cuMemPoolExportToShareableHandle,
    Function::cuMemPoolGetAccess,
    Function::cuMemPoolGetAttribute,
    Function::cuMemPoolImportFromShareableHandle,
    Function::cuMemPoolImportPointer,
    Function::cuMemPoolSetAccess,
    Function::cuMemPoolSetAttribute,
    Function::cuMemPoolTrimTo,
    Function::cuMemSetMemPool,
    Function::cuMipmappedArrayDestroy,
    Function::cuSurfObjectDestroy,
    Function::cuTexObjectDestroy,
];

/// Potentially unsafe calls that check the current context first.
const POTENTIALLY_UNSAFE_IN_CONTEXT: &[Function] = &[
    Function::cuArray3DCreate_v2,
    Function::cuArrayCreate_v2,
    Function::cuCtxSetCacheConfig,
    Function::cuCtxSetLimit,
    Function::cuCtxSetSharedMemConfig,
    Function::cuMemAllocHost_v2,
    Function::cuMemAllocPitch_v2,
    Function::cuMemAlloc_v2,
    Function::cuMemHostAlloc,
    Function::cuMemHostRegister,
    Function::cuMemHostRegister_v2,
    Function::cuMipmappedArrayCreate,
    Function::cuProfilerStart,
    Function::cuProfilerStop,
];

/// Work of the legacy stream that the host does not wait for.
const LEGACY_WORK: &[Function] = &[
    Function::cuMemcpyDtoD_v2,
    Function::cuMemsetD16_v2,
    Function::cuMemsetD2D16_v2,
    Function::cuMemsetD2D32_v2,
    Function::cuMemsetD2D8_v2,
    Function::cuMemsetD32_v2,
    Function::cuMemsetD8_v2,
];

/// Synchronous copies. They are work of the legacy stream too.
const BLOCKING_COPIES: &[Function] = &[
    Function::cuMemcpy,
    Function::cuMemcpy2DUnaligned_v2,
    Function::cuMemcpy2D_v2,
    Function::cuMemcpy3DPeer,
    Function::cuMemcpy3D_v2,
    Function::cuMemcpyAtoA_v2,
    Function::cuMemcpyAtoD_v2,
    Function::cuMemcpyAtoH_v2,
    Function::cuMemcpyDtoA_v2,
    Function::cuMemcpyDtoH_v2,
    Function::cuMemcpyHtoA_v2,
    Function::cuMemcpyHtoD_v2,
];

impl Driver {
    /// Checks that no capture forbids a call with any arguments.
    pub(crate) fn admit_among_captures(&self, function: Function) -> Result {
        let has_context = self.current().is_ok();
        let is_copy = BLOCKING_COPIES.contains(&function);
        let is_legacy_work = is_copy || LEGACY_WORK.contains(&function);
        let is_unsafe = is_copy
            || POTENTIALLY_UNSAFE.contains(&function)
            || has_context && POTENTIALLY_UNSAFE_IN_CONTEXT.contains(&function);
        if !is_legacy_work && !is_unsafe {
            return Ok(());
        }
        let mut state = self.lock();
        if is_legacy_work && has_context {
            state.working_stream(legacy())?;
        }
        if is_unsafe {
            state.check_potentially_unsafe_call()
        } else {
            Ok(())
        }
    }
}

impl Locked<'_> {
    /// Checks that the calling thread may make potentially unsafe calls; captures that forbid them
    /// are invalidated.
    pub(crate) fn check_potentially_unsafe_call(&mut self) -> Result {
        let driver = self.driver;
        let mode = driver.thread().capture_mode();
        let thread = this_thread();
        self.captures
            .invalidate_captures(|capture| capture.forbids_unsafe(mode, thread), UNSUPPORTED)
    }

    /// Returns a stream for new work: work of the legacy stream would wait for the blocking streams
    /// of captures.
    pub(crate) fn working_stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let stream = self.stream(raw)?;
        self.check_no_implicit_wait(stream, true)?;
        self.captures.check_valid_capture(stream)?;
        Ok(stream)
    }

    /// Returns a stream for work that cannot be a node; the stream's capture is invalidated.
    pub(crate) fn uncaptured_stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let stream = self.stream(raw)?;
        self.check_no_implicit_wait(stream, true)?;
        self.captures
            .invalidate_captures(|capture| capture.member(stream).is_some(), UNSUPPORTED)?;
        Ok(stream)
    }
}

impl Captures {
    /// Checks that the capture of a stream, if it has one, was not invalidated.
    pub(crate) fn check_valid_capture(&self, stream: Id<Stream>) -> Result {
        match self.capture(stream) {
            Some(capture) if !capture.is_valid => {
                Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
            }
            _ => Ok(()),
        }
    }

    /// Invalidates captures. Fails with `code` if any was valid.
    pub(crate) fn invalidate_captures(
        &mut self,
        is_lost: impl Fn(&Capture) -> bool,
        code: CUresult,
    ) -> Result {
        let mut is_any_lost = false;
        for capture in self.captures.iter_mut().filter(|capture| is_lost(capture)) {
            capture.is_valid = false;
            is_any_lost = true;
        }
        if is_any_lost { Err(code) } else { Ok(()) }
    }
}

impl State {
    /// Checks that a stream is not the legacy one of a context in which a blocking stream captures.
    pub(crate) fn check_no_implicit_wait(&mut self, stream: Id<Stream>, is_work: bool) -> Result {
        if self.captures.is_empty() || !self.contexts.is_legacy(stream) {
            return Ok(());
        }
        let context = self.contexts.stream_context(stream)?;
        let waiting: Vec<Id<Stream>> = self
            .contexts
            .blocking_streams(context)
            .map(|(id, _)| id)
            .collect();
        let lost: Vec<u64> = self
            .captures
            .captures
            .iter()
            .filter(|capture| {
                capture
                    .members
                    .iter()
                    .any(|member| waiting.contains(&member.stream))
            })
            .map(|capture| capture.number)
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        let implicit = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if is_work {
            self.captures
                .invalidate_captures(|capture| lost.contains(&capture.number), implicit)
        } else {
            Err(implicit)
        }
    }
}

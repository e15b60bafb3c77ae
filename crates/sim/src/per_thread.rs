//! Variants of functions for per-thread default streams.
//!
//! Programs that are compiled for per-thread default streams call the `_ptsz` variant of a function
//! that takes a stream, and the `_ptds` variant of one that uses the default stream.

use std::cell::Cell;

thread_local! {
    static IS_DEFAULT: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the null stream of the current call is the calling thread's default stream.
pub(crate) fn is_default() -> bool {
    IS_DEFAULT.get()
}

/// Runs a call whose null stream is the calling thread's default stream.
pub(crate) fn within<R>(call: impl FnOnce() -> R) -> R {
    let before = IS_DEFAULT.replace(true);
    let result = call();
    IS_DEFAULT.set(before);
    result
}

/// Defines two macros from the list. `for_each_variant!(callback)` passes the list to a macro.
/// `variant_of!(callback name …)` passes a function, its variant if any, and the remaining tokens.
/// The first token stands for `$` in the defined macros.
macro_rules! variants {
    ($d:tt $($name:ident $variant:ident;)*) => {
        macro_rules! for_each_variant {
            ($d callback:ident) => {
                $d callback! { $($name $variant;)* }
            };
        }

        macro_rules! variant_of {
            $(
                ($d callback:ident $name $d($d rest:tt)*) => {
                    $d callback! { $name $variant $d($d rest)* }
                };
            )*
            ($d callback:ident $d other:ident $d($d rest:tt)*) => {};
        }
    };
}

// Functions and the variants that `cuda.h` declares for them.
variants! {
    $
    cuEventRecord cuEventRecord_ptsz;
    cuEventRecordWithFlags cuEventRecordWithFlags_ptsz;
    cuFabricCpyBatchAsync cuFabricCpyBatchAsync_ptsz;
    cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz;
    cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz;
    cuGraphLaunch cuGraphLaunch_ptsz;
    cuGraphUpload cuGraphUpload_ptsz;
    cuGraphicsMapResources cuGraphicsMapResources_ptsz;
    cuGraphicsUnmapResources cuGraphicsUnmapResources_ptsz;
    cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz;
    cuLaunchHostFunc cuLaunchHostFunc_ptsz;
    cuLaunchHostFunc_v2 cuLaunchHostFunc_v2_ptsz;
    cuLaunchKernel cuLaunchKernel_ptsz;
    cuLaunchKernelEx cuLaunchKernelEx_ptsz;
    cuMemAllocAsync cuMemAllocAsync_ptsz;
    cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync_ptsz;
    cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz;
    cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz;
    cuMemDiscardBatchAsync cuMemDiscardBatchAsync_ptsz;
    cuMemFreeAsync cuMemFreeAsync_ptsz;
    cuMemMapArrayAsync cuMemMapArrayAsync_ptsz;
    cuMemPrefetchAsync cuMemPrefetchAsync_ptsz;
    cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2_ptsz;
    cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz;
    cuMemcpy cuMemcpy_ptds;
    cuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2_ptsz;
    cuMemcpy2DUnaligned_v2 cuMemcpy2DUnaligned_v2_ptds;
    cuMemcpy2D_v2 cuMemcpy2D_v2_ptds;
    cuMemcpy3DAsync_v2 cuMemcpy3DAsync_v2_ptsz;
    cuMemcpy3DBatchAsync cuMemcpy3DBatchAsync_ptsz;
    cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz;
    cuMemcpy3DPeer cuMemcpy3DPeer_ptds;
    cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz;
    cuMemcpy3DWithAttributesAsync cuMemcpy3DWithAttributesAsync_ptsz;
    cuMemcpy3D_v2 cuMemcpy3D_v2_ptds;
    cuMemcpyAsync cuMemcpyAsync_ptsz;
    cuMemcpyAtoA_v2 cuMemcpyAtoA_v2_ptds;
    cuMemcpyAtoD_v2 cuMemcpyAtoD_v2_ptds;
    cuMemcpyAtoHAsync_v2 cuMemcpyAtoHAsync_v2_ptsz;
    cuMemcpyAtoH_v2 cuMemcpyAtoH_v2_ptds;
    cuMemcpyBatchAsync cuMemcpyBatchAsync_ptsz;
    cuMemcpyBatchAsync_v2 cuMemcpyBatchAsync_v2_ptsz;
    cuMemcpyDtoA_v2 cuMemcpyDtoA_v2_ptds;
    cuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync_v2_ptsz;
    cuMemcpyDtoD_v2 cuMemcpyDtoD_v2_ptds;
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2_ptsz;
    cuMemcpyDtoH_v2 cuMemcpyDtoH_v2_ptds;
    cuMemcpyHtoAAsync_v2 cuMemcpyHtoAAsync_v2_ptsz;
    cuMemcpyHtoA_v2 cuMemcpyHtoA_v2_ptds;
    cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2_ptsz;
    cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds;
    cuMemcpyPeer cuMemcpyPeer_ptds;
    cuMemcpyPeerAsync cuMemcpyPeerAsync_ptsz;
    cuMemcpyWithAttributesAsync cuMemcpyWithAttributesAsync_ptsz;
    cuMemsetD16Async cuMemsetD16Async_ptsz;
    cuMemsetD16_v2 cuMemsetD16_v2_ptds;
    cuMemsetD2D16Async cuMemsetD2D16Async_ptsz;
    cuMemsetD2D16_v2 cuMemsetD2D16_v2_ptds;
    cuMemsetD2D32Async cuMemsetD2D32Async_ptsz;
    cuMemsetD2D32_v2 cuMemsetD2D32_v2_ptds;
    cuMemsetD2D8Async cuMemsetD2D8Async_ptsz;
    cuMemsetD2D8_v2 cuMemsetD2D8_v2_ptds;
    cuMemsetD32Async cuMemsetD32Async_ptsz;
    cuMemsetD32_v2 cuMemsetD32_v2_ptds;
    cuMemsetD8Async cuMemsetD8Async_ptsz;
    cuMemsetD8_v2 cuMemsetD8_v2_ptds;
    cuSignalExternalSemaphoresAsync cuSignalExternalSemaphoresAsync_ptsz;
    cuStreamAddCallback cuStreamAddCallback_ptsz;
    cuStreamAttachMemAsync cuStreamAttachMemAsync_ptsz;
    cuStreamBatchMemOp cuStreamBatchMemOp_ptsz;
    cuStreamBatchMemOp_v2 cuStreamBatchMemOp_v2_ptsz;
    cuStreamBeginCapture cuStreamBeginCapture_ptsz;
    cuStreamBeginCaptureToCig cuStreamBeginCaptureToCig_ptsz;
    cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz;
    cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz;
    cuStreamBeginRecaptureToGraph cuStreamBeginRecaptureToGraph_ptsz;
    cuStreamCopyAttributes cuStreamCopyAttributes_ptsz;
    cuStreamEndCapture cuStreamEndCapture_ptsz;
    cuStreamEndCaptureToCig cuStreamEndCaptureToCig_ptsz;
    cuStreamGetAttribute cuStreamGetAttribute_ptsz;
    cuStreamGetCaptureInfo cuStreamGetCaptureInfo_ptsz;
    cuStreamGetCaptureInfo_v2 cuStreamGetCaptureInfo_v2_ptsz;
    cuStreamGetCaptureInfo_v3 cuStreamGetCaptureInfo_v3_ptsz;
    cuStreamGetCtx cuStreamGetCtx_ptsz;
    cuStreamGetCtx_v2 cuStreamGetCtx_v2_ptsz;
    cuStreamGetDevResource cuStreamGetDevResource_ptsz;
    cuStreamGetDevice cuStreamGetDevice_ptsz;
    cuStreamGetFlags cuStreamGetFlags_ptsz;
    cuStreamGetId cuStreamGetId_ptsz;
    cuStreamGetPriority cuStreamGetPriority_ptsz;
    cuStreamIsCapturing cuStreamIsCapturing_ptsz;
    cuStreamQuery cuStreamQuery_ptsz;
    cuStreamSetAttribute cuStreamSetAttribute_ptsz;
    cuStreamSynchronize cuStreamSynchronize_ptsz;
    cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_ptsz;
    cuStreamUpdateCaptureDependencies_v2 cuStreamUpdateCaptureDependencies_v2_ptsz;
    cuStreamWaitEvent cuStreamWaitEvent_ptsz;
    cuStreamWaitValue32 cuStreamWaitValue32_ptsz;
    cuStreamWaitValue32_v2 cuStreamWaitValue32_v2_ptsz;
    cuStreamWaitValue64 cuStreamWaitValue64_ptsz;
    cuStreamWaitValue64_v2 cuStreamWaitValue64_v2_ptsz;
    cuStreamWriteValue32 cuStreamWriteValue32_ptsz;
    cuStreamWriteValue32_v2 cuStreamWriteValue32_v2_ptsz;
    cuStreamWriteValue64 cuStreamWriteValue64_ptsz;
    cuStreamWriteValue64_v2 cuStreamWriteValue64_v2_ptsz;
    cuWaitExternalSemaphoresAsync cuWaitExternalSemaphoresAsync_ptsz;
}

#[expect(
    clippy::single_component_path_imports,
    reason = "a macro makes these macros, and other modules name them by path"
)]
pub(crate) use {for_each_variant, variant_of};

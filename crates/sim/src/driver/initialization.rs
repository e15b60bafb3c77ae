//! The order in which calls check the initialization of the driver, as an H200 does (CUDA 13.0).

use curium_sys::{CUresult, Function};

use crate::driver::Driver;
use crate::result::Result;

/// Functions that work before `cuInit`, or fail for another reason.
const INDEPENDENT: &[Function] = &[
    Function::cuCheckpointProcessGetRestoreThreadId,
    Function::cuCheckpointProcessGetState,
    Function::cuDriverGetVersion,
    Function::cuGetErrorName,
    Function::cuGetErrorString,
    Function::cuGetProcAddress,
    Function::cuGetProcAddress_v2,
    Function::cuInit,
    Function::cuLogsCurrent,
    Function::cuLogsDumpToFile,
    Function::cuLogsDumpToMemory,
    Function::cuLogsRegisterCallback,
    Function::cuLogsUnregisterCallback,
    Function::cuProfilerInitialize,
    Function::cuUserObjectCreate,
    Function::cuUserObjectRelease,
    Function::cuUserObjectRetain,
];

/// Functions that check their arguments first, as far as the arguments are invalid without any
/// object: null handles and pointers, and unknown flags.
const AFTER_ARGUMENTS: &[Function] = &[
    Function::cuArray3DGetDescriptor_v2,
    Function::cuArrayGetDescriptor_v2,
    Function::cuArrayGetMemoryRequirements,
    Function::cuArrayGetPlane,
    Function::cuArrayGetSparseProperties,
    Function::cuCtxDestroy,
    Function::cuCtxDestroy_v2,
    Function::cuCtxFromGreenCtx,
    Function::cuDevicePrimaryCtxGetState,
    Function::cuEventDestroy_v2,
    Function::cuEventQuery,
    Function::cuEventSynchronize,
    Function::cuFuncGetName,
    Function::cuFuncIsLoaded,
    Function::cuFuncLoad,
    Function::cuGetExportTable,
    Function::cuGraphAddBatchMemOpNode,
    Function::cuGraphAddChildGraphNode,
    Function::cuGraphAddDependencies,
    Function::cuGraphAddDependencies_v2,
    Function::cuGraphAddEmptyNode,
    Function::cuGraphAddEventRecordNode,
    Function::cuGraphAddEventWaitNode,
    Function::cuGraphAddExternalSemaphoresSignalNode,
    Function::cuGraphAddExternalSemaphoresWaitNode,
    Function::cuGraphAddHostNode,
    Function::cuGraphAddMemFreeNode,
    Function::cuGraphEventWaitNodeGetEvent,
    Function::cuGraphHostNodeGetParams,
    Function::cuGraphHostNodeSetParams,
    Function::cuGraphInstantiateWithParams,
    Function::cuGraphMemAllocNodeGetParams,
    Function::cuGraphMemFreeNodeGetParams,
    Function::cuIpcGetEventHandle,
    Function::cuIpcOpenMemHandle,
    Function::cuIpcOpenMemHandle_v2,
    Function::cuKernelGetFunction,
    Function::cuKernelGetLibrary,
    Function::cuKernelGetName,
    Function::cuKernelGetParamInfo,
    Function::cuKernelSetCacheConfig,
    Function::cuLibraryEnumerateKernels,
    Function::cuLibraryGetKernel,
    Function::cuLibraryGetKernelCount,
    Function::cuLibraryGetManaged,
    Function::cuLibraryGetModule,
    Function::cuLibraryUnload,
    Function::cuLinkAddData_v2,
    Function::cuLinkAddFile,
    Function::cuLinkAddFile_v2,
    Function::cuLinkComplete,
    Function::cuLinkDestroy,
    Function::cuMemAllocManaged,
    Function::cuMemGetHandleForAddressRange,
    Function::cuMipmappedArrayGetLevel,
    Function::cuMipmappedArrayGetMemoryRequirements,
    Function::cuMipmappedArrayGetSparseProperties,
    Function::cuStreamAddCallback,
    Function::cuStreamCreate,
    Function::cuStreamCreateWithPriority,
    Function::cuStreamDestroy,
    Function::cuStreamDestroy_v2,
    Function::cuStreamGetCtx,
    Function::cuStreamGetFlags,
    Function::cuStreamGetId,
    Function::cuStreamGetPriority,
];

impl Driver {
    /// Checks that the driver is initialized, for functions that check it first.
    pub(crate) fn check_initialized(&self, function: Function) -> Result {
        let is_early = INDEPENDENT.contains(&function) || AFTER_ARGUMENTS.contains(&function);
        if self.is_initialized() || is_early {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_NOT_INITIALIZED)
        }
    }

    /// Returns the result of a call: before the initialization, an error of the arguments, or that
    /// the driver is not initialized.
    pub(crate) fn result(&self, function: Function, result: Result) -> Result {
        const INVALID: [CUresult; 2] = [
            CUresult::CUDA_ERROR_INVALID_HANDLE,
            CUresult::CUDA_ERROR_INVALID_VALUE,
        ];
        if self.is_initialized() || INDEPENDENT.contains(&function) {
            return result;
        }
        match result {
            Err(code) if INVALID.contains(&code) => Err(code),
            _ => Err(CUresult::CUDA_ERROR_NOT_INITIALIZED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_one_order() {
        for function in AFTER_ARGUMENTS {
            assert!(!INDEPENDENT.contains(function), "{function}");
        }
    }
}

//! The names of the CUDA runtime: rustdoc's search finds an operation by `cudaMalloc` as well as by
//! `cuMemAlloc`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;

use super::sources::files;

/// Driver functions whose counterpart in the runtime has the same name after `cuda`.
const SAME_NAMES: &str = "
    CtxResetPersistingL2Cache DestroyExternalMemory DestroyExternalSemaphore DeviceCanAccessPeer DeviceGetAttribute
    DeviceGetByPCIBusId DeviceGetDefaultMemPool DeviceGetGraphMemAttribute DeviceGetMemPool DeviceGetP2PAttribute
    DeviceGetPCIBusId DeviceGraphMemTrim DeviceSetGraphMemAttribute DeviceSetMemPool DriverGetVersion EventCreate
    EventDestroy EventElapsedTime EventQuery EventRecord EventRecordWithFlags EventSynchronize
    ExternalMemoryGetMappedBuffer ExternalMemoryGetMappedMipmappedArray FuncSetAttribute FuncSetCacheConfig
    GraphAddChildGraphNode GraphAddDependencies GraphAddEmptyNode GraphAddEventRecordNode GraphAddEventWaitNode
    GraphAddExternalSemaphoresSignalNode GraphAddExternalSemaphoresWaitNode GraphAddHostNode GraphAddKernelNode
    GraphAddMemAllocNode GraphAddMemFreeNode GraphAddMemcpyNode GraphAddMemsetNode GraphAddNode
    GraphChildGraphNodeGetGraph GraphClone GraphConditionalHandleCreate GraphCreate GraphDebugDotPrint GraphDestroy
    GraphDestroyNode GraphEventRecordNodeGetEvent GraphEventRecordNodeSetEvent GraphEventWaitNodeGetEvent
    GraphEventWaitNodeSetEvent GraphExecChildGraphNodeSetParams GraphExecDestroy GraphExecEventRecordNodeSetEvent
    GraphExecEventWaitNodeSetEvent GraphExecGetFlags GraphExecHostNodeSetParams GraphExecKernelNodeSetParams
    GraphExecMemcpyNodeSetParams GraphExecMemsetNodeSetParams GraphExecNodeSetParams GraphExecUpdate GraphGetEdges
    GraphGetNodes GraphGetRootNodes GraphHostNodeGetParams GraphHostNodeSetParams GraphInstantiate
    GraphInstantiateWithFlags GraphInstantiateWithParams GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute
    GraphKernelNodeGetParams GraphKernelNodeSetAttribute GraphKernelNodeSetParams GraphLaunch
    GraphMemAllocNodeGetParams GraphMemFreeNodeGetParams GraphMemcpyNodeGetParams GraphMemcpyNodeSetParams
    GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphNodeFindInClone GraphNodeGetDependencies
    GraphNodeGetDependentNodes GraphNodeGetEnabled GraphNodeGetType GraphNodeSetEnabled GraphNodeSetParams
    GraphReleaseUserObject GraphRemoveDependencies GraphRetainUserObject GraphUpload GraphicsGLRegisterBuffer
    GraphicsGLRegisterImage GraphicsMapResources GraphicsUnmapResources GraphicsUnregisterResource
    ImportExternalMemory ImportExternalSemaphore IpcCloseMemHandle IpcGetEventHandle IpcGetMemHandle IpcOpenEventHandle
    IpcOpenMemHandle LaunchCooperativeKernel LaunchHostFunc LaunchKernel LibraryEnumerateKernels LibraryGetGlobal
    LibraryGetKernel LibraryGetKernelCount LibraryGetManaged LibraryGetUnifiedFunction LibraryLoadData
    LibraryLoadFromFile LibraryUnload MemAdvise MemGetInfo MemPoolCreate MemPoolDestroy MemPoolExportPointer
    MemPoolExportToShareableHandle MemPoolGetAccess MemPoolImportFromShareableHandle MemPoolImportPointer
    MemPoolSetAccess MemPoolTrimTo MemPrefetchAsync MemRangeGetAttribute MemRangeGetAttributes Memcpy2D Memcpy2DAsync
    Memcpy3D Memcpy3DAsync Memcpy3DBatchAsync Memcpy3DPeerAsync MemcpyBatchAsync MemcpyPeer MemcpyPeerAsync
    OccupancyAvailableDynamicSMemPerBlock OccupancyMaxActiveBlocksPerMultiprocessor
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags OccupancyMaxActiveClusters OccupancyMaxPotentialBlockSize
    OccupancyMaxPotentialBlockSizeWithFlags OccupancyMaxPotentialClusterSize PointerGetAttributes ProfilerStart
    ProfilerStop SignalExternalSemaphoresAsync StreamAddCallback StreamAttachMemAsync StreamBeginCapture
    StreamBeginCaptureToGraph StreamCopyAttributes StreamCreate StreamCreateWithPriority StreamDestroy StreamEndCapture
    StreamGetAttribute StreamGetCaptureInfo StreamGetFlags StreamGetId StreamGetPriority StreamIsCapturing StreamQuery
    StreamSetAttribute StreamSynchronize StreamUpdateCaptureDependencies StreamWaitEvent UserObjectCreate
    UserObjectRelease UserObjectRetain WaitExternalSemaphoresAsync";

/// Driver functions whose counterpart in the runtime has another name.
const OTHER_NAMES: [(&str, &str); 48] = [
    ("cuArray3DCreate", "cudaMalloc3DArray"),
    ("cuArrayCreate", "cudaMallocArray"),
    ("cuArrayDestroy", "cudaFreeArray"),
    ("cuCtxDisablePeerAccess", "cudaDeviceDisablePeerAccess"),
    ("cuCtxEnablePeerAccess", "cudaDeviceEnablePeerAccess"),
    ("cuCtxGetCacheConfig", "cudaDeviceGetCacheConfig"),
    ("cuCtxGetFlags", "cudaGetDeviceFlags"),
    ("cuCtxGetLimit", "cudaDeviceGetLimit"),
    ("cuCtxGetSharedMemConfig", "cudaDeviceGetSharedMemConfig"),
    (
        "cuCtxGetStreamPriorityRange",
        "cudaDeviceGetStreamPriorityRange",
    ),
    ("cuCtxSetCacheConfig", "cudaDeviceSetCacheConfig"),
    ("cuCtxSetFlags", "cudaSetDeviceFlags"),
    ("cuCtxSetLimit", "cudaDeviceSetLimit"),
    ("cuCtxSetSharedMemConfig", "cudaDeviceSetSharedMemConfig"),
    ("cuCtxSynchronize", "cudaDeviceSynchronize"),
    ("cuDeviceGetCount", "cudaGetDeviceCount"),
    ("cuDeviceGetName", "cudaGetDeviceProperties"),
    ("cuDevicePrimaryCtxReset", "cudaDeviceReset"),
    ("cuDevicePrimaryCtxRetain", "cudaSetDevice"),
    ("cuEventCreate", "cudaEventCreateWithFlags"),
    ("cuFuncGetAttribute", "cudaFuncGetAttributes"),
    ("cuInit", "cudaInitDevice"),
    ("cuLaunchKernelEx", "cudaLaunchKernelExC"),
    ("cuMemAlloc", "cudaMalloc"),
    ("cuMemAllocAsync", "cudaMallocAsync"),
    ("cuMemAllocManaged", "cudaMallocManaged"),
    ("cuMemAllocPitch", "cudaMallocPitch"),
    ("cuMemFree", "cudaFree"),
    ("cuMemFreeAsync", "cudaFreeAsync"),
    ("cuMemFreeHost", "cudaFreeHost"),
    ("cuMemHostAlloc", "cudaHostAlloc"),
    ("cuMemHostAlloc", "cudaMallocHost"),
    ("cuMemHostGetDevicePointer", "cudaHostGetDevicePointer"),
    ("cuMemHostGetFlags", "cudaHostGetFlags"),
    ("cuMemHostRegister", "cudaHostRegister"),
    ("cuMemHostUnregister", "cudaHostUnregister"),
    ("cuMemcpyDtoD", "cudaMemcpy"),
    ("cuMemcpyDtoH", "cudaMemcpy"),
    ("cuMemcpyDtoHAsync", "cudaMemcpyAsync"),
    ("cuMemcpyHtoD", "cudaMemcpy"),
    ("cuMemcpyHtoDAsync", "cudaMemcpyAsync"),
    ("cuMemsetD2D8Async", "cudaMemset2DAsync"),
    ("cuMemsetD8Async", "cudaMemsetAsync"),
    ("cuMipmappedArrayCreate", "cudaMallocMipmappedArray"),
    ("cuMipmappedArrayDestroy", "cudaFreeMipmappedArray"),
    ("cuModuleGetGlobal", "cudaGetSymbolAddress"),
    ("cuStreamCreate", "cudaStreamCreateWithFlags"),
    ("cuTexObjectCreate", "cudaCreateTextureObject"),
];

/// Returns the pairs of a driver function and its counterpart in the runtime.
fn runtime_names() -> BTreeSet<(String, String)> {
    let same = SAME_NAMES
        .split_whitespace()
        .map(|name| (format!("cu{name}"), format!("cuda{name}")));
    let other = OTHER_NAMES
        .iter()
        .map(|(driver, runtime)| ((*driver).to_owned(), (*runtime).to_owned()));
    same.chain(other).collect()
}

/// Returns the alias in `#[doc(alias = "…")]`.
fn alias(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("#[doc(alias = \"")?
        .strip_suffix("\")]")
}

/// Returns the aliases of each item of a source file, including those in macros.
fn item_aliases(text: &str) -> Vec<BTreeSet<&str>> {
    let mut items = Vec::new();
    let mut aliases = BTreeSet::new();
    for line in text.lines() {
        if let Some(alias) = alias(line) {
            aliases.insert(alias);
        } else if !line.trim().starts_with("#[") && !aliases.is_empty() {
            items.push(std::mem::take(&mut aliases));
        }
    }
    items
}

#[test]
fn operations_have_runtime_names() -> Result<(), Box<dyn Error>> {
    let mut unused = runtime_names();
    let names = unused.clone();
    let mut missing = Vec::new();
    for (_, path) in files()? {
        let text = fs::read_to_string(&path)?;
        for aliases in item_aliases(&text) {
            for (driver, runtime) in &names {
                if !aliases.contains(driver.as_str()) {
                    continue;
                }
                unused.remove(&(driver.clone(), runtime.clone()));
                if !aliases.contains(runtime.as_str()) {
                    let file = path.display();
                    missing.push(format!("{file}: `{driver}` without `{runtime}`"));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "{} aliases: {missing:#?}",
        missing.len()
    );
    assert!(unused.is_empty(), "no item has these aliases: {unused:#?}");
    Ok(())
}

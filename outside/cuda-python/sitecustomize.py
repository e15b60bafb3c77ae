"""Python imports this module when it starts: cuda-core and cuda-bindings then do without machine code, and without NVIDIA's runtime and
management library. It is no plugin of pytest, because tests start other interpreters."""

import cuda.core
import cuda.core.system
from cuda.bindings import driver, nvrtc, runtime


class Program(cuda.core.Program):
    """Compiles to PTX where machine code is asked for, which the simulator refuses."""

    def compile(self, target_type, *arguments, **keywords):
        return super().compile("ptx" if target_type == "cubin" else target_type, *arguments, **keywords)


def device_count():
    _, count = driver.cuDeviceGetCount()
    return count


def synchronize():
    (code,) = driver.cuCtxSynchronize()
    return (runtime.cudaError_t(int(code)),)


def pci_bus_id(length, device):
    code, name = driver.cuDeviceGetPCIBusId(length, device)
    return runtime.cudaError_t(int(code)), name


cuda.core.Program = Program
nvrtc.nvrtcGetCUBIN = nvrtc.nvrtcGetPTX
nvrtc.nvrtcGetCUBINSize = nvrtc.nvrtcGetPTXSize
# NVIDIA's runtime, which cuda-bindings contains, starts on NVIDIA's driver only.
runtime.cudaDeviceSynchronize = synchronize
runtime.cudaDeviceGetPCIBusId = pci_bus_id
# The management library, NVML, is no part of the driver.
cuda.core.system.get_num_devices = device_count

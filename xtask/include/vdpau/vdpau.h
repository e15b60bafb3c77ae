/* The types that cudaVDPAU.h needs, so that generation does not depend on an installed VDPAU. */
#pragma once
#include <stdint.h>
typedef uint32_t VdpDevice;
typedef uint32_t VdpFuncId;
typedef uint32_t VdpOutputSurface;
typedef int VdpStatus;
typedef uint32_t VdpVideoSurface;
typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function_id, void **function_pointer);

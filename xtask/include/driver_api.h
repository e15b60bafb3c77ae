/* Every header that declares functions of the driver. */
#include <cuda.h>
#include <cudaEGL.h>
#include <cudaGL.h>
#include <vdpau/vdpau.h>
#include <cudaVDPAU.h>
#include <cudaProfilerTypedefs.h>

#define SAME(function, pointer) _Static_assert(__builtin_types_compatible_p(__typeof__(&function), pointer), #function)
SAME(cuProfilerInitialize, PFN_cuProfilerInitialize_v4000);
SAME(cuProfilerStart, PFN_cuProfilerStart_v4000);
SAME(cuProfilerStop, PFN_cuProfilerStop_v4000);

/* Resources of Curium for C: where device memory comes from, and where it goes back.
 *
 * `ResourceTable::export` makes a `curium_resource` of any resource, and `ExternalResource` is a resource that is made of one.
 *
 * - The functions may be called from any thread, also from several at once, and do not unwind.
 * - A stream is one of the context that the resource was made for, no default stream, and lives until the resource is released, since
 *   what was freed on it may be handed out again.
 * - A function that fails changes nothing; memory that could not be given back is still the caller's.
 *
 * The types of CUDA come from <cuda.h>, or from here with CURIUM_WITHOUT_CUDA_H.
 */
#ifndef CURIUM_RESOURCE_H
#define CURIUM_RESOURCE_H

#include <stddef.h>

#ifdef CURIUM_WITHOUT_CUDA_H
typedef unsigned int CUresult;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;
#else
#include <cuda.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct curium_resource {
    /* Passed to every function. */
    void *context;
    /* Stores the address of `bytes` bytes, aligned to `alignment`, for use in the order of `stream`. `bytes` is not 0, and `alignment` is
     * a power of two; 256 is always possible. */
    CUresult (*allocate)(void *context, CUstream stream, size_t bytes, size_t alignment, CUdeviceptr *address);
    /* Takes memory back once the work that is on `stream` by now is done. The figures are those of the allocation. */
    CUresult (*deallocate)(void *context, CUstream stream, CUdeviceptr address, size_t bytes, size_t alignment);
    /* Ends the resource. It is called once, when all memory was given back. May be NULL. */
    void (*release)(void *context);
} curium_resource;

#ifdef __cplusplus
}
#endif

#endif

/* A program in C that uses a resource of Curium, and is one: `resource_in_c.rs` builds and calls it. */
#include <stdatomic.h>
#include <stdlib.h>

#define CURIUM_WITHOUT_CUDA_H
#include "curium_resource.h"

/* The layout, for Rust to compare. */
const size_t layout[] = {
    sizeof(curium_resource),
    offsetof(curium_resource, context),
    offsetof(curium_resource, allocate),
    offsetof(curium_resource, deallocate),
    offsetof(curium_resource, release),
    sizeof(CUresult),
    sizeof(CUdeviceptr),
    sizeof(CUstream),
};

/* Allocates blocks of growing sizes, frees every other, and allocates again; frees all at the end. 0, or the code that something failed
 * with, or a number below 0 for an answer that makes no sense. */
int use_resource(const curium_resource *resource, CUstream stream, size_t rounds) {
    enum { LIVE = 64 };
    struct { CUdeviceptr address; size_t bytes; } live[LIVE] = {{0, 0}};
    int result = 0;
    for (size_t round = 0; round < rounds && result == 0; round++) {
        size_t at = (round * 7) % LIVE, bytes = 1 + (round * 7919) % 100000;
        if (live[at].address != 0) {
            result = (int)resource->deallocate(resource->context, stream, live[at].address, live[at].bytes, 256);
            live[at].address = 0;
            if (result != 0) {
                break;
            }
        }
        CUdeviceptr address = 0;
        result = (int)resource->allocate(resource->context, stream, bytes, 256, &address);
        if (result != 0) {
            break;
        }
        if (address == 0 || address % 256 != 0) {
            return -1;
        }
        for (size_t other = 0; other < LIVE; other++) {
            if (live[other].address != 0 && live[other].address < address + bytes
                && address < live[other].address + live[other].bytes) {
                return -2;
            }
        }
        live[at].address = address;
        live[at].bytes = bytes;
    }
    for (size_t at = 0; at < LIVE; at++) {
        if (live[at].address != 0) {
            int code = (int)resource->deallocate(resource->context, stream, live[at].address, live[at].bytes, 256);
            result = result != 0 ? result : code;
        }
    }
    return result;
}

/* A resource that counts what goes through it to another. */
struct counting {
    curium_resource inner;
    atomic_long live;
    atomic_long *left;
};

static CUresult counting_allocate(void *context, CUstream stream, size_t bytes, size_t alignment, CUdeviceptr *address) {
    struct counting *counting = context;
    CUresult code = counting->inner.allocate(counting->inner.context, stream, bytes, alignment, address);
    if (code == 0) {
        atomic_fetch_add(&counting->live, 1);
    }
    return code;
}

static CUresult counting_deallocate(void *context, CUstream stream, CUdeviceptr address, size_t bytes, size_t alignment) {
    struct counting *counting = context;
    CUresult code = counting->inner.deallocate(counting->inner.context, stream, address, bytes, alignment);
    if (code == 0) {
        atomic_fetch_sub(&counting->live, 1);
    }
    return code;
}

static void counting_release(void *context) {
    struct counting *counting = context;
    atomic_store(counting->left, atomic_load(&counting->live));
    counting->inner.release(counting->inner.context);
    free(counting);
}

/* Makes a resource over another, which it takes over. How many blocks were not given back is in `left` once it is released. */
int make_counting(const curium_resource *inner, atomic_long *left, curium_resource *made) {
    struct counting *counting = calloc(1, sizeof *counting);
    if (counting == NULL) {
        return 2;
    }
    counting->inner = *inner;
    counting->left = left;
    made->context = counting;
    made->allocate = counting_allocate;
    made->deallocate = counting_deallocate;
    made->release = counting_release;
    return 0;
}

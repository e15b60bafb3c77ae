"""Streams, events, graphs, memory pools, arrays, textures and surfaces."""

import cupy as cp
import numpy as np
import pytest
from cupy.cuda import runtime, texture

FETCH = r"""
extern "C" __global__ void fetch(cudaTextureObject_t from, float* to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width) to[y * width + x] = tex2D<float>(from, x + 0.5f, y + 0.5f);
}
extern "C" __global__ void fetch_linear(cudaTextureObject_t from, float* to, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) to[x] = tex1Dfetch<float>(from, x);
}
extern "C" __global__ void fetch_layers(cudaTextureObject_t from, float* to, int width, int height, int depth) {
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    to[(z * height + y) * width + x] = tex3D<float>(from, x + 0.5f, y + 0.5f, z + 0.5f);
}
extern "C" __global__ void twice(cudaSurfaceObject_t data, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    float value;
    surf2Dread(&value, data, x * 4, y);
    surf2Dwrite(2 * value, data, x * 4, y);
}
"""


def channel(bits=32):
    return texture.ChannelFormatDescriptor(bits, 0, 0, 0, runtime.cudaChannelFormatKindFloat)


def point_texture(resource, filtering=runtime.cudaFilterModePoint):
    modes = (runtime.cudaAddressModeClamp,) * 3
    return texture.TextureObject(
        resource, texture.TextureDescriptor(modes, filtering, runtime.cudaReadModeElementType)
    )


def test_streams_and_events():
    first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    with first:
        a = cp.arange(10_000, dtype=cp.float32)
        done = first.record()
    with second:
        second.wait_event(done)
        b = a * 2
    second.synchronize()
    assert first.done and done.done
    np.testing.assert_array_equal(b.get(stream=second), np.arange(10_000, dtype=np.float32) * 2)
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record()
    end.record()
    end.synchronize()
    assert cp.cuda.get_elapsed_time(start, end) >= 0


def test_host_function():
    calls, stream = [], cp.cuda.Stream(non_blocking=True)
    stream.launch_host_func(calls.append, 7)
    stream.synchronize()
    assert calls == [7]


def test_graph():
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        a = cp.zeros(1000, dtype=cp.int32)
        a += 1
        stream.synchronize()
        stream.begin_capture()
        a += 1
        a *= 2
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream=stream)
        stream.synchronize()
        expected = 1
        for _ in range(3):
            expected = 2 * (expected + 1)
        assert (a.get(stream=stream) == expected).all()


def test_memory_pool():
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        a = cp.ones(1 << 20, dtype=cp.float32)
        assert pool.used_bytes() >= a.nbytes
        address = a.data.ptr
        del a
        assert pool.used_bytes() == 0 and pool.total_bytes() > 0
        b = cp.empty(1 << 20, dtype=cp.float32)
        assert b.data.ptr == address
        del b
        pool.free_all_blocks()
        assert pool.total_bytes() == 0
    pool.set_limit(size=1 << 20)
    with cp.cuda.using_allocator(pool.malloc), pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.empty(1 << 20, dtype=cp.float32)


def test_stream_ordered_pool():
    pool = cp.cuda.MemoryAsyncPool()
    with cp.cuda.using_allocator(pool.malloc):
        a = cp.arange(1000)
        assert int(a.sum()) == 499_500
        assert pool.used_bytes() >= a.nbytes


def test_managed_and_pinned_memory():
    with cp.cuda.using_allocator(cp.cuda.malloc_managed):
        a = cp.arange(100, dtype=cp.int32)
        assert int(a.sum()) == 4950
    host = cp.cuda.alloc_pinned_memory(400)
    view = np.frombuffer(host, dtype=np.int32, count=100)
    view[...] = np.arange(100)
    d = cp.empty(100, dtype=cp.int32)
    d.set(view)
    np.testing.assert_array_equal(d.get(), view)


def test_allocation_that_is_too_large():
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.empty(1 << 60, dtype=cp.int8)


def test_texture_of_an_array():
    data = np.arange(6 * 16, dtype=np.float32).reshape(6, 16)
    array = texture.CUDAarray(channel(), 16, 6)
    array.copy_from(data)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    out, fetched = cp.zeros_like(cp.asarray(data)), point_texture(resource)
    cp.RawKernel(FETCH, "fetch")((1, 6), (32,), (fetched, out, np.int32(16), np.int32(6)))
    np.testing.assert_array_equal(out.get(), data)
    back = np.empty_like(data)
    array.copy_to(back)
    np.testing.assert_array_equal(back, data)


def test_texture_of_an_array_from_the_device():
    data = cp.random.default_rng(1).random((6, 16), dtype=cp.float32)
    array = texture.CUDAarray(channel(), 16, 6)
    array.copy_from(data)
    back = cp.empty_like(data)
    array.copy_to(back)
    np.testing.assert_array_equal(back.get(), data.get())


def test_texture_of_layers():
    data = np.arange(3 * 4 * 8, dtype=np.float32).reshape(3, 4, 8)
    array = texture.CUDAarray(channel(), 8, 4, 3)
    array.copy_from(data)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    out, fetched = cp.zeros_like(cp.asarray(data)), point_texture(resource)
    cp.RawKernel(FETCH, "fetch_layers")((4, 3), (8,), (fetched, out, np.int32(8), np.int32(4), np.int32(3)))
    np.testing.assert_array_equal(out.get(), data)


def test_texture_of_linear_memory():
    data = cp.arange(64, dtype=cp.float32)
    resource = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=data, chDesc=channel(), sizeInBytes=data.nbytes
    )
    out, fetched = cp.zeros_like(data), point_texture(resource)
    cp.RawKernel(FETCH, "fetch_linear")((1,), (64,), (fetched, out, np.int32(64)))
    np.testing.assert_array_equal(out.get(), data.get())


def test_description_of_a_texture():
    array = texture.CUDAarray(channel(16), 16, 6)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    modes = (runtime.cudaAddressModeWrap, runtime.cudaAddressModeMirror, runtime.cudaAddressModeBorder)
    described = texture.TextureDescriptor(
        modes, runtime.cudaFilterModeLinear, runtime.cudaReadModeElementType, normalizedCoords=1
    )
    found = texture.TextureObject(resource, described)
    assert found.ResDesc.get_resource_desc() == resource.get_resource_desc()
    assert found.TexDesc.get_texture_desc()["addressMode"] == modes
    assert array.desc.get_channel_format()["x"] == 16


def test_surface():
    data = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
    array = texture.CUDAarray(channel(), 8, 4, 0, runtime.cudaArraySurfaceLoadStore)
    array.copy_from(data)
    surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array))
    cp.RawKernel(FETCH, "twice")((4,), (8,), (surface, np.int32(8)))
    back = np.empty_like(data)
    array.copy_to(back)
    np.testing.assert_array_equal(back, 2 * data)


def test_device():
    device = cp.cuda.Device()
    assert device.compute_capability == "90" and cp.cuda.runtime.getDeviceCount() == 4
    assert "Simulator" in runtime.getDeviceProperties(0)["name"].decode()
    assert cp.cuda.Device.from_pci_bus_id(device.pci_bus_id) == device
    free, total = device.mem_info
    assert 0 < free <= total

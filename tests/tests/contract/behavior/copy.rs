//! Synchronous copies: which of them wait, observed on an H200.

use std::ffi::c_void;
use std::ptr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use curium_driver::AsRawStream as _;
use curium_driver::{Context, Driver, Stream};
use curium_memory::{DeviceBuffer, MemoryAccess, MemoryPool, PinnedBuffer, PinnedFlags};
use curium_sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype};
use curium_tests::{Gate, TestDriver, TestResult, driver_test, on_driver, on_peers, resume_panic};

use super::{INVALID_VALUE, OK, in_context};

const SIZE: usize = 4096;

/// The kinds of memory that the host can access.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pageable,
    Pinned,
    Registered,
    Managed,
}

/// The functions that copy synchronously.
#[derive(Clone, Copy, Debug)]
enum Form {
    Unified,
    Rows,
    Volume,
}

/// Memory that the host can access, and that is freed at the end of the test.
struct HostMemory {
    kind: Kind,
    start: *mut u8,
    _pageable: Vec<u8>,
}

impl HostMemory {
    fn new(driver: &Driver, kind: Kind) -> Self {
        let mut pageable = vec![0; SIZE];
        let mut start = pageable.as_mut_ptr();
        match kind {
            Kind::Pageable => {}
            Kind::Registered => {
                let code = returned!(driver, cuMemHostRegister_v2(start.cast(), SIZE, 0));
                assert_eq!(code, OK);
            }
            Kind::Pinned => {
                let mut memory = ptr::null_mut::<c_void>();
                let code = returned!(driver, cuMemHostAlloc(&raw mut memory, SIZE, 0));
                assert_eq!(code, OK);
                start = memory.cast();
            }
            Kind::Managed => {
                let mut address = 0;
                let code = returned!(driver, cuMemAllocManaged(&raw mut address, SIZE, 1));
                assert_eq!(code, OK);
                start = ptr::with_exposed_provenance_mut(address as usize);
            }
        }
        Self {
            kind,
            start,
            _pageable: pageable,
        }
    }

    fn address(&self) -> CUdeviceptr {
        self.start.expose_provenance() as CUdeviceptr
    }

    fn fill(&mut self, value: u8) {
        // SAFETY: the memory has this size, and no work of the device accesses it.
        unsafe { self.start.write_bytes(value, SIZE) };
    }

    fn last(&self) -> u8 {
        let last = self.start.wrapping_add(SIZE - 1);
        // SAFETY: the memory has this size. It is volatile, because the device writes it.
        unsafe { last.read_volatile() }
    }

    fn free(self, driver: &Driver) {
        let code = match self.kind {
            Kind::Pageable => OK,
            Kind::Registered => returned!(driver, cuMemHostUnregister(self.start.cast())),
            Kind::Pinned => returned!(driver, cuMemFreeHost(self.start.cast())),
            Kind::Managed => returned!(driver, cuMemFree_v2(self.address())),
        };
        assert_eq!(code, OK);
    }
}

/// Copies all bytes between two addresses.
fn copy(driver: &Driver, form: Form, to: CUdeviceptr, from: CUdeviceptr) {
    const UNIFIED: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    let code = match form {
        Form::Unified => returned!(driver, cuMemcpy(to, from, SIZE)),
        Form::Rows => {
            let copy = CUDA_MEMCPY2D {
                srcMemoryType: UNIFIED,
                srcDevice: from,
                srcPitch: SIZE / 4,
                dstMemoryType: UNIFIED,
                dstDevice: to,
                dstPitch: SIZE / 4,
                WidthInBytes: SIZE / 4,
                Height: 4,
                ..CUDA_MEMCPY2D::default()
            };
            returned!(driver, cuMemcpy2D_v2(&raw const copy))
        }
        Form::Volume => {
            let copy = CUDA_MEMCPY3D {
                srcMemoryType: UNIFIED,
                srcDevice: from,
                srcPitch: SIZE / 4,
                srcHeight: 2,
                dstMemoryType: UNIFIED,
                dstDevice: to,
                dstPitch: SIZE / 4,
                dstHeight: 2,
                WidthInBytes: SIZE / 4,
                Height: 2,
                Depth: 2,
                ..CUDA_MEMCPY3D::default()
            };
            returned!(driver, cuMemcpy3D_v2(&raw const copy))
        }
    };
    assert_eq!(code, OK, "{form:?}");
}

/// Opens a gate while the caller waits behind it.
fn open_later(gate: Gate) -> JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        gate.open();
    })
}

/// When a synchronous copy returns, the host can read its target and change its source, whatever
/// kind of memory they are.
#[test]
fn synchronous_copies_wait_for_host_memory() {
    for kind in [
        Kind::Pageable,
        Kind::Pinned,
        Kind::Registered,
        Kind::Managed,
    ] {
        for form in [Form::Unified, Form::Rows, Form::Volume] {
            on_driver(|test| {
                // SAFETY: the stream is used in this test only, while its context is current.
                let stream = unsafe { Stream::legacy_default(&test.context()) };
                in_context(test, |driver| {
                    let mut source = HostMemory::new(driver, kind);
                    let target = HostMemory::new(driver, kind);
                    let mut device = 0;
                    let code = returned!(driver, cuMemAlloc_v2(&raw mut device, SIZE));
                    assert_eq!(code, OK);
                    source.fill(7);

                    let upload_opener = open_later(Gate::on(&stream));
                    copy(driver, form, device, source.address());
                    source.fill(9);
                    let download_opener = open_later(Gate::on(&stream));
                    copy(driver, form, target.address(), device);
                    assert_eq!(target.last(), 7, "{kind:?}, {form:?}");
                    resume_panic(upload_opener.join());
                    resume_panic(download_opener.join());

                    assert_eq!(returned!(driver, cuMemFree_v2(device)), OK);
                    source.free(driver);
                    target.free(driver);
                });
            });
        }
    }
}

/// A pitch of 0 stands for rows without gaps, and a height of 0 for layers without gaps.
#[driver_test]
fn row_copies_require_a_sufficient_pitch(test: &TestDriver) {
    in_context(test, |driver| {
        let mut source = 0;
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut source, SIZE)), OK);
        let mut target = 0;
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut target, SIZE)), OK);
        for (pitches, height, expected) in [
            ([0, 0], 1, OK),
            ([0, 64], 1, OK),
            ([64, 0], 1, OK),
            ([0, 0], 2, OK),
            ([3, 3], 1, INVALID_VALUE),
            ([3, 3], 2, INVALID_VALUE),
        ] {
            let copy = CUDA_MEMCPY2D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: source,
                srcPitch: pitches[0],
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: target,
                dstPitch: pitches[1],
                WidthInBytes: 64,
                Height: height,
                ..CUDA_MEMCPY2D::default()
            };
            let code = returned!(driver, cuMemcpy2D_v2(&raw const copy));
            assert_eq!(code, expected, "{pitches:?}, {height} rows");
        }
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: source,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: target,
            WidthInBytes: 64,
            Height: 2,
            Depth: 2,
            ..CUDA_MEMCPY3D::default()
        };
        assert_eq!(returned!(driver, cuMemcpy3D_v2(&raw const copy)), OK);
        for address in [source, target] {
            assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
        }
    });
}

/// A copy needs access to the pool of another device, which peer access between contexts does not
/// grant. NVIDIA's tests of `cuda.core` expect the same.
#[driver_test(on_peers)]
fn copy_needs_access_to_the_pool_of_a_peer(
    test: &TestDriver,
    first: &Context,
    second: &Context,
) -> TestResult {
    let here = first.stream()?;
    let there = second.stream()?;
    let pool = MemoryPool::new(second.device())?;
    let target = DeviceBuffer::<u8, _>::zeroed_in(&there, SIZE, pool.clone())?;
    there.synchronize()?;
    let host = PinnedBuffer::<u8>::zeroed(first, SIZE, PinnedFlags::DEVICE_MAP)?;
    let host_address = host.as_ptr().expose_provenance() as CUdeviceptr;
    let address = target.as_pointer().as_raw();
    for (access, expected) in [
        (MemoryAccess::None, INVALID_VALUE),
        (MemoryAccess::ReadWrite, OK),
        (MemoryAccess::None, INVALID_VALUE),
    ] {
        pool.set_access(first.device(), access)?;
        for (to, from) in [(address, host_address), (host_address, address)] {
            let code = returned!(test.driver(), cuMemcpyAsync(to, from, SIZE, here.as_raw()));
            assert_eq!(code, expected, "{access:?}");
        }
        here.synchronize()?;
    }
    Ok(())
}

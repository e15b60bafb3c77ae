//! Mapped host memory, managed memory and pitched memory, and copies between them.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{AttachMode, DevicePointer, Error, Function};
use curium_memory::{
    DeviceBuffer, MappedBuffer, MemoryAdvice, MemoryLocation, MemoryType, PitchedBuffer,
    PointerInfo, RegisterFlags, Registered, RegisteredRef, SyncAlloc, UnifiedBuffer,
    set_sync_memops, unified,
};
use curium_sim::{Config, Fault};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{Gate, on_driver, on_simulator};

#[test]
fn mapped_buffer_is_accessible_by_device_and_host() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut mapped =
            MappedBuffer::from_slice(&stream, &[1_u32, 2, 3, 4]).expect("memory suffices");
        let mut device = DeviceBuffer::<u32>::zeroed(&other, 4).expect("memory suffices");
        device
            .as_slice_mut()
            .copy_from_device(&mapped)
            .expect("the lengths are equal");
        assert_eq!(
            device.to_vec().expect("the buffer can be read"),
            [1, 2, 3, 4]
        );
        mapped
            .slice_mut(1..3)
            .and_then(|mut part| part.fill_on(&other, 9))
            .expect("the part can be filled");
        assert_eq!(mapped.host_view().expect("the work ends")[..], [1, 9, 9, 4]);
        mapped.host_view_mut().expect("the work ends")[0] = 7;
        assert_eq!(
            mapped.as_slice().to_vec().expect("the buffer can be read"),
            [7, 9, 9, 4]
        );
    });
}

#[test]
fn host_view_waits_for_work_that_writes_and_not_for_work_that_reads() {
    on_driver(|test| {
        let (writer, reader) = (test.stream(), test.stream());
        let mut mapped = MappedBuffer::<u32>::zeroed(&writer, 64).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(&reader, 64).expect("memory suffices");
        let gate = Gate::on(&reader);
        target
            .as_slice_mut()
            .copy_from_device(&mapped)
            .expect("the lengths are equal");
        assert_eq!(mapped.host_view().expect("nothing writes")[..], [0; 64]);
        let opener = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            gate.open();
        });
        mapped.host_view_mut().expect("the work ends").fill(5);
        assert_eq!(
            target.to_vec().expect("the buffer can be read"),
            [0; 64],
            "the host wrote while a reader was running"
        );
        opener.join().expect("opening does not panic");
    });
}

#[test]
fn mapped_buffer_dropped_while_in_use_is_freed_after_the_work() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mapped = MappedBuffer::from_slice(&stream, &[3_u32; 64]).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(&other, 64).expect("memory suffices");
        target
            .as_slice_mut()
            .copy_from_device(&mapped)
            .expect("the lengths are equal");
        drop(mapped);
        assert_eq!(target.to_vec().expect("the buffer can be read"), [3; 64]);
    });
}

#[test]
fn registered_slice_is_pinned_while_it_is_registered() {
    on_driver(|test| {
        let context = test.context();
        let stream = test.stream();
        let mut values = vec![1_u32; 4096];
        let address = values.as_ptr().expose_provenance() as u64;
        let known = || {
            PointerInfo::of(test.driver(), DevicePointer::<u32>::from_raw(address))
                .expect("it can be queried")
        };
        assert_eq!(known(), None);
        // SAFETY: the value is closed before the slice ends.
        let registered = unsafe { Registered::new(&context, &mut values, RegisterFlags::PORTABLE) };
        let mut registered = registered.expect("it can be pinned");
        assert_eq!(known().expect("it is pinned").kind, MemoryType::Host);
        let error = RegisteredRef::scope(&context, &registered, RegisterFlags::empty(), |_| ());
        let error = error.expect_err("it is pinned already");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        );
        registered[0] = 5;
        let buffer = DeviceBuffer::from_slice(&stream, &registered).expect("memory suffices");
        buffer
            .copy_to_slice(&mut registered)
            .expect("the lengths are equal");
        assert_eq!((registered[0], registered[1]), (5, 1));
        registered.close().expect("the registration ends");
        assert_eq!(known(), None);
        let error = Registered::<u32>::scope(&context, &mut [], RegisterFlags::empty(), |_| ())
            .expect_err("no bytes");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    });
}

#[test]
fn slice_is_pinned_within_a_scope_and_not_after_it_also_if_it_panics() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let mut values = vec![1_u32; 4096];
        let address = values.as_ptr().expose_provenance() as u64;
        let is_pinned = || {
            let known = PointerInfo::of(test.driver(), DevicePointer::<u32>::from_raw(address));
            known.expect("it can be queried").is_some()
        };
        let copied = Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
            assert!(is_pinned());
            values[0] = 5;
            DeviceBuffer::from_slice(&stream, values)?.to_vec()
        });
        let copied = copied.expect("it can be pinned").expect("memory suffices");
        assert_eq!((copied[0], copied[1], is_pinned()), (5, 1, false));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            RegisteredRef::scope(&context, &values, RegisterFlags::empty(), |_| {
                panic!("this panic is part of the test")
            })
        }));
        assert!(panicked.is_err() && !is_pinned());
    });
}

#[test]
fn unified_buffer_is_accessible_by_device_and_host() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer =
            UnifiedBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0]).expect("memory suffices");
        assert_eq!(
            buffer.host_view().expect("nothing writes")[..],
            [1.0, 2.0, 3.0]
        );
        buffer.host_view_mut().expect("nothing uses it")[1] = 5.0;
        buffer
            .slice_mut(2..)
            .and_then(|mut part| part.fill_on(&other, 0.5))
            .expect("the part can be filled");
        assert_eq!(
            buffer.host_view().expect("the work ends")[..],
            [1.0, 5.0, 0.5]
        );
        assert_eq!(
            buffer.as_slice().to_vec().expect("the buffer can be read"),
            [1.0, 5.0, 0.5]
        );
        let zeroed = UnifiedBuffer::<u64>::zeroed(&stream, 100).expect("memory suffices");
        assert_eq!(zeroed.host_view().expect("the work ends")[..], [0; 100]);
        zeroed.close().expect("the driver frees the buffer");
    });
}

#[test]
fn unified_length_of_zero_or_beyond_the_address_space_is_an_error_without_a_call() {
    on_driver(|test| {
        let stream = test.stream();
        test.assert_calls(Function::cuMemAllocManaged, 0, || {
            for (len, text) in [(0, "zero length"), (usize::MAX, "elements of 8 bytes)")] {
                let error = UnifiedBuffer::<u64>::zeroed(&stream, len)
                    .map(drop)
                    .expect_err("no such length");
                assert!(
                    matches!(error, Error::Argument(_)) && error.to_string().contains(text),
                    "{error}"
                );
            }
        });
    });
}

#[test]
fn registered_slice_whose_registration_does_not_end_at_once_is_unregistered_by_a_later_attempt() {
    on_simulator(Config::new(), |test, simulator| {
        let (context, mut values) = (test.context(), vec![1_u32; 4096]);
        let code = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;
        let fails = || simulator.inject(Fault::on(Function::cuMemHostUnregister).returns(code));
        fails();
        let ended = Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
            values.fill(2);
        });
        assert_eq!(
            ended.expect_err("the first attempt fails").code(),
            Some(code)
        );
        fails();
        let ended = RegisteredRef::scope(&context, &values, RegisterFlags::empty(), |values| {
            values[0]
        });
        assert_eq!(
            ended.expect_err("the first attempt fails").code(),
            Some(code)
        );
        fails();
        // SAFETY: the registration ends before the vector does.
        let registered = unsafe { Registered::new(&context, &mut values, RegisterFlags::empty()) };
        drop(registered.expect("nothing is registered"));
        let again = Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
            values[0]
        });
        assert_eq!(again.expect("nothing is registered"), 2);
    });
}

#[test]
fn length_of_zero_or_beyond_the_address_space_is_an_error_of_mapped_pitched_and_registered_memory()
{
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let mapped = |len| MappedBuffer::<u64>::zeroed(&stream, len).map(drop);
        let pitched =
            |width, height| PitchedBuffer::<u64>::zeroed(&stream, width, height).map(drop);
        let mut none: [u64; 0] = [];
        let refused = [
            (mapped(0), "zero length"),
            (mapped(usize::MAX), "elements of 8 bytes)"),
            (pitched(0, 3), "zero length"),
            (pitched(3, 0), "invalid size (0 rows of 24 bytes)"),
            (pitched(usize::MAX, 1), "elements of 8 bytes)"),
            (pitched(3, usize::MAX), "rows of 24 bytes"),
            (
                Registered::scope(&context, &mut none, RegisterFlags::empty(), |_| ()),
                "slice of zero bytes",
            ),
            (
                RegisteredRef::scope(&context, &[(); 3], RegisterFlags::empty(), |_| ()),
                "slice of zero bytes",
            ),
        ];
        for (result, text) in refused {
            let error = result.expect_err("there is no such memory");
            assert!(
                matches!(error, Error::Argument(_)) && error.to_string().contains(text),
                "{error}"
            );
        }
    });
}

#[test]
fn unified_buffer_dropped_while_in_use_is_freed_after_the_work() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let buffer = UnifiedBuffer::from_slice(&stream, &[3_u32; 64]).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(&other, 64).expect("memory suffices");
        target
            .as_slice_mut()
            .copy_from_device(&buffer)
            .expect("the lengths are equal");
        drop(buffer);
        assert_eq!(target.to_vec().expect("the buffer can be read"), [3; 64]);
    });
}

#[test]
fn unified_buffer_whose_last_wait_fails_is_given_back_or_freed() {
    on_simulator(Config::new(), |test, simulator| {
        let buffer =
            UnifiedBuffer::from_slice(&test.stream(), &[3_u32; 64]).expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        drop(buffer);
        assert_eq!(
            simulator.live_handles().managed_allocations,
            0,
            "the drop waits again"
        );
        let buffer =
            UnifiedBuffer::from_slice(&test.stream(), &[3_u32; 64]).expect("memory suffices");
        let fault = Fault::on(Function::cuStreamSynchronize).always();
        simulator.inject(fault.returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (buffer, error) = buffer.close().expect_err("no wait succeeds").into_parts();
        assert_eq!(error.function(), Some(Function::cuStreamSynchronize));
        simulator.clear_faults();
        assert_eq!(
            buffer.host_view().expect("the buffer is still there")[..],
            [3; 64]
        );
    });
}

#[test]
fn advice_and_prefetch_are_remembered_for_their_pages() {
    on_driver(|test| {
        let stream = test.stream();
        let device = MemoryLocation::from(&test.device());
        let page = 64 << 10;
        let buffer = UnifiedBuffer::<u8>::zeroed(&stream, 4 * page).expect("memory suffices");
        let before = buffer.range_attributes(..).expect("the range exists");
        assert!(
            !before.is_read_mostly
                && before.preferred_location.is_none()
                && before.accessed_by.is_empty()
        );
        buffer
            .advise(page.., MemoryAdvice::ReadMostly)
            .expect("it can be advised");
        buffer
            .advise(.., MemoryAdvice::PreferredLocation(device))
            .expect("it can be advised");
        buffer
            .advise(.., MemoryAdvice::AccessedBy(MemoryLocation::Host))
            .expect("it can be advised");
        buffer
            .advise(.., MemoryAdvice::AccessedBy(device))
            .expect("it can be advised");
        buffer
            .advise(.., MemoryAdvice::NotAccessedBy(MemoryLocation::Host))
            .expect("it can be advised");
        buffer
            .prefetch(&stream, .., MemoryLocation::Host)
            .expect("it can be prefetched");
        stream.synchronize().expect("the stream works");
        let part = buffer.range_attributes(page..).expect("the range exists");
        assert!(part.is_read_mostly);
        let whole = buffer.range_attributes(..).expect("the range exists");
        assert!(!whole.is_read_mostly);
        assert_eq!(whole.preferred_location, Some(device));
        assert_eq!(whole.last_prefetch_location, Some(MemoryLocation::Host));
        assert_eq!(whole.accessed_by, [device]);
        buffer
            .advise(.., MemoryAdvice::NoPreferredLocation)
            .expect("it can be advised");
        buffer
            .advise(.., MemoryAdvice::NotReadMostly)
            .expect("it can be advised");
        let after = buffer.range_attributes(..).expect("the range exists");
        assert_eq!(
            (after.preferred_location, after.is_read_mostly),
            (None, false)
        );
        assert_eq!(
            buffer.host_view().expect("nothing writes")[..],
            vec![0; 4 * page],
            "advice changes no values"
        );
    });
}

#[test]
fn advice_on_an_older_driver_supports_devices_and_the_host() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 0)),
        |test, _| {
            let stream = test.stream();
            let device = MemoryLocation::from(&test.device());
            let buffer = UnifiedBuffer::<u8>::zeroed(&stream, 4096).expect("memory suffices");
            test.assert_calls(Function::cuMemAdvise, 1, || {
                buffer.advise(.., MemoryAdvice::PreferredLocation(device))
            })
            .expect("it can be advised");
            test.assert_calls(Function::cuMemPrefetchAsync, 1, || {
                buffer.prefetch(&stream, .., MemoryLocation::Host)
            })
            .expect("it can be prefetched");
            let attributes = buffer.range_attributes(..).expect("the range exists");
            assert_eq!(attributes.preferred_location, Some(device));
            assert_eq!(
                attributes.last_prefetch_location,
                Some(MemoryLocation::Host)
            );
            let error = buffer
                .prefetch(&stream, .., MemoryLocation::HostNuma(0))
                .expect_err("it has no numbers for nodes");
            assert!(
                error.to_string().contains("needs a driver for CUDA 12.2"),
                "{error}"
            );
        },
    );
}

#[test]
fn attached_buffer_is_used_on_its_stream_and_then_on_all() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4096).expect("memory suffices");
        // SAFETY: only work on this stream uses the buffer until it is attached to all streams.
        unsafe { buffer.attach(&stream, AttachMode::Stream) }.expect("the memory is managed");
        buffer.as_slice_mut().fill(3).expect("memory can be filled");
        assert_eq!(buffer.host_view().expect("the work ends")[..], [3; 4096]);
        // SAFETY: every stream may use it from here on.
        unsafe { buffer.attach(&stream, AttachMode::Global) }.expect("the memory is managed");
        let gate = Gate::on(&other);
        buffer
            .as_slice_mut()
            .fill_on(&other, 4)
            .expect("memory can be filled");
        gate.open();
        assert_eq!(buffer.host_view().expect("the work ends")[..], [4; 4096]);
    });
}

#[test]
fn batches_of_managed_ranges_are_one_call_each() {
    on_simulator(Config::new(), |test, _| {
        let stream = test.stream();
        let device = MemoryLocation::from(&test.device());
        let mut buffer =
            UnifiedBuffer::from_slice(&stream, &[1_u8; 16384]).expect("memory suffices");
        let (low, high) = buffer.as_slice().split_at(8192).expect("there are enough");
        let ranges = [(low, device), (high, MemoryLocation::Host)];
        test.assert_calls(Function::cuMemPrefetchBatchAsync, 1, || {
            unified::prefetch(&stream, &ranges)
        })
        .expect("the ranges are managed");
        let at = |range: std::ops::Range<usize>| {
            buffer
                .range_attributes(range)
                .expect("the range exists")
                .last_prefetch_location
        };
        assert_eq!(
            (at(0..8192), at(8192..16384)),
            (Some(device), Some(MemoryLocation::Host))
        );
        let high = buffer.slice_mut(8192..).expect("the range exists");
        test.assert_calls(Function::cuMemDiscardBatchAsync, 1, || {
            unified::discard(&stream, &mut [high])
        })
        .expect("the range is managed");
        let values = buffer.host_view().expect("the work ends");
        assert_eq!(values[..8192], [1; 8192]);
        assert_ne!(values[8192..], [1; 8192], "discarded memory is undefined");
        let all = buffer.as_slice_mut();
        unified::discard_and_prefetch(&stream, &mut [(all, device)]).expect("the range is managed");
        let plain = DeviceBuffer::<u8>::zeroed(&stream, 4).expect("memory suffices");
        let error = unified::prefetch(&stream, &[(plain.as_slice(), device)])
            .expect_err("the memory is not managed");
        assert!(error.to_string().contains("is not managed"), "{error}");
    });
}

#[test]
fn pitched_rows_begin_at_the_pitch_and_hold_their_elements() {
    on_driver(|test| {
        let stream = test.stream();
        let mut rows = PitchedBuffer::<[u8; 3]>::zeroed(&stream, 5, 4).expect("memory suffices");
        assert!(rows.pitch_bytes() >= 15 && rows.pitch_bytes().is_multiple_of(512));
        for (index, mut row) in rows.rows_mut().enumerate() {
            row.fill([index as u8; 3]).expect("a row can be filled");
        }
        let read: Vec<_> = rows
            .rows()
            .map(|row| row.to_vec().expect("a row can be read"))
            .collect();
        assert_eq!(
            read,
            (0..4).map(|index| vec![[index; 3]; 5]).collect::<Vec<_>>()
        );
        let step =
            rows.row(1).expect("there is a row").as_pointer().as_raw() - rows.as_pointer().as_raw();
        assert_eq!(step, rows.pitch_bytes() as u64);
        let error = rows.row_mut(4).map(drop).expect_err("there are four");
        assert!(
            error
                .to_string()
                .contains("row index out of bounds (4 of 4 rows)"),
            "{error}"
        );
        for (width, height) in [(0, 1), (1, 0), (usize::MAX, 1), (1 << 40, 1 << 40)] {
            let error = PitchedBuffer::<u32>::uninit(&stream, width, height)
                .map(drop)
                .expect_err("no such size");
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
        rows.close().expect("the driver frees the rows");
    });
}

#[test]
fn synchronous_copies_are_set_for_memory_that_is_of_no_pool() {
    on_driver(|test| {
        let (stream, driver) = (test.stream(), test.driver());
        let plain =
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc).expect("memory suffices");
        set_sync_memops(driver, plain.as_pointer(), true)
            .expect("the memory accepts the attribute");
        plain.to_vec().expect("the buffer can be read");
        set_sync_memops(driver, plain.as_pointer(), false)
            .expect("the memory accepts the attribute");
        let error = set_sync_memops(driver, DevicePointer::<u8>::from_raw(8), true)
            .expect_err("nothing is there");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(error.to_string().contains("0x8"), "{error}");
    });
}

#[test]
fn decompression_without_an_engine_is_an_error_of_the_driver() {
    use curium_memory::{Compression, DecompressBatch};
    on_simulator(Config::new(), |test, _| {
        let stream = test.stream();
        let source = DeviceBuffer::from_slice(&stream, &[1_u8; 64]).expect("memory suffices");
        let mut target = DeviceBuffer::<u8>::zeroed(&stream, 256).expect("memory suffices");
        let mut written = DeviceBuffer::<u32>::zeroed(&stream, 1).expect("memory suffices");
        let batch = DecompressBatch::new();
        let batch = batch.add(
            Compression::Lz4,
            source.as_slice(),
            target.as_slice_mut(),
            written.as_slice_mut(),
        );
        let error = batch
            .and_then(|batch| batch.enqueue(&stream))
            .expect_err("the device has no engine");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_NOT_SUPPORTED));
        let empty = source.slice(0..0).expect("an empty range is valid");
        let batch = DecompressBatch::new();
        let error = batch
            .add(
                Compression::Lz4,
                empty,
                target.as_slice_mut(),
                written.as_slice_mut(),
            )
            .map(drop);
        assert!(
            error
                .expect_err("there is nothing")
                .to_string()
                .contains("`source` is empty")
        );
    });
}

#[test]
fn pages_are_at_the_requested_location_and_unmapped_pages_have_none() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 4)),
        |test, _| {
            let (stream, page) = (test.stream(), 1 << 16);
            let step = NonZero::new(page).expect("a page has bytes");
            let buffer = UnifiedBuffer::<u8>::uninit(&stream, 4 * page).expect("memory suffices");
            let device = MemoryLocation::from(&test.device());
            buffer
                .prefetch(&stream, page..2 * page, device)
                .expect("the pages migrate there");
            buffer
                .prefetch(&stream, 3 * page.., MemoryLocation::Host)
                .expect("the pages migrate there");
            stream.synchronize().expect("nothing failed");
            let found = buffer.locations(.., step).expect("the range exists");
            assert_eq!(
                found,
                [None, Some(device), None, Some(MemoryLocation::Host)]
            );
            assert_eq!(
                buffer
                    .locations(page..page + 1, step)
                    .expect("the range exists"),
                [Some(device)]
            );
            assert_eq!(
                buffer
                    .locations(page - 1..page + 1, NonZero::<usize>::MIN)
                    .expect("the range exists")
                    .len(),
                2
            );
            for error in [
                buffer.locations(7..7, step),
                buffer.locations(..5 * page, step),
            ]
            .map(Result::unwrap_err)
            {
                assert!(matches!(error, Error::Argument(_)), "{error}");
                assert!(
                    error.to_string().contains("UnifiedBuffer::locations"),
                    "{error}"
                );
            }
        },
    );
    on_driver(|test| {
        let buffer = UnifiedBuffer::<u8>::uninit(&test.stream(), 4096).expect("memory suffices");
        if test.driver().has(Function::cuMemGetLocationInfo) {
            return;
        }
        let error = buffer
            .locations(.., NonZero::<usize>::MAX)
            .expect_err("the driver is older");
        assert!(error.to_string().contains("13.4"), "{error}");
    });
}

pub(crate) mod operations {
    use std::num::NonZero;

    use curium_driver::AttachMode;
    use curium_memory::{
        Compression, DecompressBatch, DeviceBuffer, MappedBuffer, MemoryAdvice, MemoryLocation,
        PitchedBuffer, RegisterFlags, Registered, RegisteredRef, UnifiedBuffer, unified,
    };

    use crate::operations::{LEN, Operation, boxed, made, pass};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("MappedBuffer::zeroed", |fixture| {
            made(MappedBuffer::<u32>::zeroed(&fixture.stream, LEN)?)
        }),
        ("MappedBuffer::filled", |fixture| {
            made(MappedBuffer::filled(&fixture.stream, LEN, 7_u32)?)
        }),
        ("MappedBuffer::from_slice", |fixture| {
            made(MappedBuffer::from_slice(&fixture.stream, &[1_u32; LEN])?)
        }),
        ("MappedBuffer::bind", |fixture| {
            pass::<&mut [u32]>(&fixture.other, &mut fixture.mapped)
        }),
        (
            "Registered::new and Registered::device_pointer and Registered::close",
            |fixture| {
                let mut values = [1_u32; LEN];
                // SAFETY: the value is closed or dropped before the slice ends.
                let mut registered = unsafe {
                    Registered::new(&fixture.context, &mut values, RegisterFlags::DEVICE_MAP)
                }?;
                let pointer = registered.device_pointer();
                registered.close()?;
                made(pointer?)
            },
        ),
        ("RegisteredRef::new and RegisteredRef::close", |fixture| {
            let values = [1_u32; LEN];
            // SAFETY: the value is closed or dropped before the slice ends.
            let registered =
                unsafe { RegisteredRef::new(&fixture.context, &values, RegisterFlags::empty()) }?;
            registered
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("UnifiedBuffer::zeroed", |fixture| {
            made(UnifiedBuffer::<u32>::zeroed(&fixture.stream, LEN)?)
        }),
        ("UnifiedBuffer::filled", |fixture| {
            made(UnifiedBuffer::filled(&fixture.stream, LEN, 7_u32)?)
        }),
        ("UnifiedBuffer::try_clone", |fixture| {
            made(fixture.unified.try_clone()?)
        }),
        ("UnifiedBuffer::uninit", |fixture| {
            made(UnifiedBuffer::<u32>::uninit(&fixture.stream, LEN)?)
        }),
        ("UnifiedBuffer::from_slice", |fixture| {
            made(UnifiedBuffer::from_slice(&fixture.stream, &[1_u32; LEN])?)
        }),
        ("UnifiedBuffer::host_view", |fixture| {
            made(fixture.unified.host_view()?.len())
        }),
        ("UnifiedBuffer::host_view_mut", |fixture| {
            made(fixture.unified.host_view_mut()?.len())
        }),
        ("UnifiedBuffer::bind", |fixture| {
            pass::<&mut [u32]>(&fixture.other, &mut fixture.unified)
        }),
        ("UnifiedBuffer::attach", |fixture| {
            // SAFETY: every stream may access the memory, as before.
            made(unsafe { fixture.unified.attach(&fixture.stream, AttachMode::Global) }?)
        }),
        ("UnifiedBuffer::prefetch", |fixture| {
            made(
                fixture
                    .unified
                    .prefetch(&fixture.stream, .., MemoryLocation::Host)?,
            )
        }),
        ("UnifiedBuffer::advise", |fixture| {
            made(fixture.unified.advise(.., MemoryAdvice::ReadMostly)?)
        }),
        ("UnifiedBuffer::range_attributes", |fixture| {
            made(fixture.unified.range_attributes(..)?)
        }),
        ("UnifiedBuffer::close", |fixture| {
            let buffer = UnifiedBuffer::<u32>::uninit(&fixture.stream, LEN)?;
            buffer.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("batch::prefetch", |fixture| {
            let location = MemoryLocation::from(&fixture.device);
            made(unified::prefetch(
                &fixture.stream,
                &[(fixture.unified.as_slice(), location)],
            )?)
        }),
        ("batch::discard", |fixture| {
            made(unified::discard(
                &fixture.stream,
                &mut [fixture.unified.as_slice_mut()],
            )?)
        }),
        ("batch::discard_and_prefetch", |fixture| {
            let location = MemoryLocation::from(&fixture.device);
            let ranges = &mut [(fixture.unified.as_slice_mut(), location)];
            made(unified::discard_and_prefetch(&fixture.stream, ranges)?)
        }),
        ("PitchedBuffer::zeroed", |fixture| {
            made(PitchedBuffer::<u32>::zeroed(&fixture.stream, 3, 3)?)
        }),
        ("PitchedBuffer::filled", |fixture| {
            made(PitchedBuffer::filled(&fixture.stream, 3, 3, 7_u32)?)
        }),
        ("PitchedBuffer::from_slice", |fixture| {
            made(PitchedBuffer::from_slice(
                &fixture.stream,
                &[7_u32; 9],
                3,
                3,
            )?)
        }),
        ("PitchedBuffer::try_clone", |fixture| {
            made(fixture.rows.try_clone()?)
        }),
        ("PitchedBuffer::uninit", |fixture| {
            made(PitchedBuffer::<u32>::uninit(&fixture.stream, 3, 3)?)
        }),
        ("PitchedBuffer::bind", |fixture| {
            pass::<&mut [u32]>(&fixture.other, &mut fixture.rows)
        }),
        ("PitchedBuffer::close", |fixture| {
            let rows = PitchedBuffer::<u32>::uninit(&fixture.stream, 3, 3)?;
            rows.close().map_err(|returned| returned.error).map(boxed)
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
        ("DecompressBatch::enqueue", |fixture| {
            let source = DeviceBuffer::from_slice(&fixture.stream, &[1_u8; 64])?;
            let mut target = DeviceBuffer::<u8>::zeroed(&fixture.stream, 256)?;
            let (target, written) = (target.as_slice_mut(), fixture.buffer.slice_mut(..1)?);
            let batch =
                DecompressBatch::new().add(Compression::Lz4, source.as_slice(), target, written)?;
            made(batch.enqueue(&fixture.stream)?)
        }),
        // Requires a driver newer than that of the other operations.
        ("UnifiedBuffer::locations", |fixture| {
            let buffer = UnifiedBuffer::<u32>::zeroed(&fixture.stream, 4)?;
            made(buffer.locations(.., NonZero::<usize>::MIN)?)
        }),
    ];
}

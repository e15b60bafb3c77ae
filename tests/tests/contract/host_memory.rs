//! Mapped host memory, managed memory and pitched memory, and copies between them.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{AttachMode, DevicePointer, Error, Function};
use curium_memory::{
    DeviceBuffer, MappedBuffer, MemoryAdvice, MemoryLocation, MemoryType, PitchedBuffer,
    PointerInfo, RegisterFlags, Registered, RegisteredRef, SyncAlloc, UnifiedBuffer,
    set_sync_memops, unified,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, on_driver, on_simulator, resume_panic,
    simulator_test, skip,
};

#[driver_test]
fn mapped_buffer_is_accessible_by_device_and_host(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut mapped = MappedBuffer::from_slice(&stream, &[1_u32, 2, 3, 4])?;
    let mut device = DeviceBuffer::<u32>::zeroed(&other, 4)?;
    device.copy_from_device(&mapped)?;
    assert_eq!(device.to_vec()?, [1, 2, 3, 4]);
    mapped
        .slice_mut(1..3)
        .and_then(|mut part| part.on_mut(&other).fill(9))?;
    assert_eq!(mapped.host_view()?[..], [1, 9, 9, 4]);
    mapped.host_view_mut()?[0] = 7;
    assert_eq!(mapped.to_vec()?, [7, 9, 9, 4]);
    Ok(())
}

/// A host view waits for work that writes and not for work that reads.
#[driver_test]
fn host_view_waits_for_writers_only(test: &TestDriver) -> TestResult {
    let writer = test.stream();
    let reader = test.stream();
    let mut mapped = MappedBuffer::<u32>::zeroed(&writer, 64)?;
    let mut target = DeviceBuffer::<u32>::zeroed(&reader, 64)?;
    let gate = Gate::on(&reader);
    target.copy_from_device(&mapped)?;
    assert_eq!(mapped.host_view()?[..], [0; 64]);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        gate.open();
    });
    mapped.host_view_mut()?.fill(5);
    assert_eq!(
        target.to_vec()?,
        [0; 64],
        "the host wrote while a reader was running"
    );
    resume_panic(opener.join());
    Ok(())
}

/// A mapped buffer dropped while in use is freed after the work.
#[driver_test]
fn mapped_buffer_in_use_is_freed_after_the_work(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mapped = MappedBuffer::from_slice(&stream, &[3_u32; 64])?;
    let mut target = DeviceBuffer::<u32>::zeroed(&other, 64)?;
    target.copy_from_device(&mapped)?;
    drop(mapped);
    assert_eq!(target.to_vec()?, [3; 64]);
    Ok(())
}

#[driver_test]
fn registered_slice_is_pinned_while_it_is_registered(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let mut values = vec![1_u32; 4096];
    let address = values.as_ptr().expose_provenance() as u64;
    let is_registered = || -> TestResult<_> {
        Ok(PointerInfo::of(
            test.driver(),
            DevicePointer::<u32>::from_raw(address),
        )?)
    };
    assert_eq!(is_registered()?, None);
    // SAFETY: the value is closed before the slice ends.
    let mut registered =
        unsafe { Registered::new(&context, &mut values, RegisterFlags::PORTABLE) }?;
    assert_eq!(is_registered()?.ok_or("not pinned")?.kind, MemoryType::Host);
    let error = RegisteredRef::scope(&context, &registered, RegisterFlags::empty(), |_| ());
    let error = error.expect_err("it is pinned already");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    );
    registered[0] = 5;
    let buffer = DeviceBuffer::from_slice(&stream, &registered)?;
    buffer.copy_to_slice(&mut registered)?;
    assert_eq!((registered[0], registered[1]), (5, 1));
    registered.close()?;
    assert_eq!(is_registered()?, None);
    let error = Registered::<u32>::scope(&context, &mut [], RegisterFlags::empty(), |_| ())
        .expect_err("no bytes");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    Ok(())
}

/// A slice is pinned within a scope and not after it also if it panics.
#[driver_test]
fn slice_is_pinned_within_its_scope(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let mut values = vec![1_u32; 4096];
    let address = values.as_ptr().expose_provenance() as u64;
    let is_pinned = || {
        let is_registered = PointerInfo::of(test.driver(), DevicePointer::<u32>::from_raw(address));
        is_registered.expect("query failed").is_some()
    };
    let copied = Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
        assert!(is_pinned());
        values[0] = 5;
        DeviceBuffer::from_slice(&stream, values)?.to_vec()
    });
    let copied = copied??;
    assert_eq!((copied[0], copied[1], is_pinned()), (5, 1, false));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        RegisteredRef::scope(&context, &values, RegisterFlags::empty(), |_| {
            panic!("this panic is part of the test")
        })
    }));
    assert!(panicked.is_err() && !is_pinned());
    Ok(())
}

#[driver_test]
fn unified_buffer_is_accessible_by_device_and_host(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = UnifiedBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
    assert_eq!(buffer.host_view()?[..], [1.0, 2.0, 3.0]);
    buffer.host_view_mut()?[1] = 5.0;
    buffer
        .slice_mut(2..)
        .and_then(|mut part| part.on_mut(&other).fill(0.5))?;
    assert_eq!(buffer.host_view()?[..], [1.0, 5.0, 0.5]);
    assert_eq!(buffer.to_vec()?, [1.0, 5.0, 0.5]);
    let zeroed = UnifiedBuffer::<u64>::zeroed(&stream, 100)?;
    assert_eq!(zeroed.host_view()?[..], [0; 100]);
    zeroed.close()?;
    Ok(())
}

/// A unified length of zero or beyond the address space is an error without a call.
#[driver_test]
fn invalid_unified_length_makes_no_driver_call(test: &TestDriver) {
    let stream = test.stream();
    test.assert_calls(Function::cuMemAllocManaged, 0, || {
        for (len, text) in [
            (0, "zero length; handle empty input before the call"),
            (usize::MAX, "elements of 8 bytes)"),
        ] {
            let error = UnifiedBuffer::<u64>::zeroed(&stream, len)
                .map(drop)
                .expect_err("no such length");
            assert!(
                matches!(error, Error::Argument(_)) && error.to_string().contains(text),
                "{error}"
            );
        }
    });
}

/// A registered slice whose registration does not end at once is unregistered by a later attempt.
#[simulator_test]
fn failed_unregistration_is_retried(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let context = test.context();
    let mut values = vec![1_u32; 4096];
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
    drop(registered?);
    let again = Registered::scope(&context, &mut values, RegisterFlags::empty(), |values| {
        values[0]
    });
    assert_eq!(again?, 2);
    Ok(())
}

/// A length of zero or beyond the address space is an error of mapped pitched and registered
/// memory.
#[driver_test]
fn invalid_host_lengths_are_errors(test: &TestDriver) {
    let context = test.context();
    let stream = test.stream();
    let mapped = |len| MappedBuffer::<u64>::zeroed(&stream, len).map(drop);
    let pitched = |width, height| PitchedBuffer::<u64>::zeroed(&stream, width, height).map(drop);
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
}

/// A unified buffer dropped while in use is freed after the work.
#[driver_test]
fn unified_buffer_in_use_is_freed_after_the_work(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let buffer = UnifiedBuffer::from_slice(&stream, &[3_u32; 64])?;
    let mut target = DeviceBuffer::<u32>::zeroed(&other, 64)?;
    target.copy_from_device(&buffer)?;
    drop(buffer);
    assert_eq!(target.to_vec()?, [3; 64]);
    Ok(())
}

/// A unified buffer whose last wait fails is returned or freed.
#[simulator_test]
fn unified_buffer_is_kept_if_its_wait_fails(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let buffer = UnifiedBuffer::from_slice(&test.stream(), &[3_u32; 64])?;
    simulator.inject(
        Fault::on(Function::cuStreamSynchronize).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    drop(buffer);
    assert_eq!(
        simulator.live_handles().managed_allocations,
        0,
        "the drop waits again"
    );
    let buffer = UnifiedBuffer::from_slice(&test.stream(), &[3_u32; 64])?;
    let fault = Fault::on(Function::cuStreamSynchronize).always();
    simulator.inject(fault.returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (buffer, error) = buffer.close().expect_err("no wait succeeds").into_parts();
    assert_eq!(error.function(), Some(Function::cuStreamSynchronize));
    simulator.clear_faults();
    assert_eq!(buffer.host_view()?[..], [3; 64]);
    Ok(())
}

#[driver_test]
fn advice_and_prefetch_are_remembered_for_their_pages(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let device = MemoryLocation::from(&test.device());
    let page = 64 << 10;
    let buffer = UnifiedBuffer::<u8>::zeroed(&stream, 4 * page)?;
    let before = buffer.range_attributes(..)?;
    assert!(
        !before.is_read_mostly
            && before.preferred_location.is_none()
            && before.accessed_by.is_empty()
    );
    buffer.advise(page.., MemoryAdvice::ReadMostly)?;
    buffer.advise(.., MemoryAdvice::PreferredLocation(device))?;
    buffer.advise(.., MemoryAdvice::AccessedBy(MemoryLocation::Host))?;
    buffer.advise(.., MemoryAdvice::AccessedBy(device))?;
    buffer.advise(.., MemoryAdvice::NotAccessedBy(MemoryLocation::Host))?;
    buffer.prefetch(&stream, .., MemoryLocation::Host)?;
    stream.synchronize()?;
    let part = buffer.range_attributes(page..)?;
    assert!(part.is_read_mostly);
    let whole = buffer.range_attributes(..)?;
    assert!(!whole.is_read_mostly);
    assert_eq!(whole.preferred_location, Some(device));
    assert_eq!(whole.last_prefetch_location, Some(MemoryLocation::Host));
    assert_eq!(whole.accessed_by, [device]);
    buffer.advise(.., MemoryAdvice::NoPreferredLocation)?;
    buffer.advise(.., MemoryAdvice::NotReadMostly)?;
    let after = buffer.range_attributes(..)?;
    assert_eq!(
        (after.preferred_location, after.is_read_mostly),
        (None, false)
    );
    assert_eq!(
        buffer.host_view()?[..],
        vec![0; 4 * page],
        "advice changes no values"
    );
    Ok(())
}

/// Advice on an older driver supports devices and the host.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 0)))]
fn old_driver_advice_supports_device_and_host(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let device = MemoryLocation::from(&test.device());
    let buffer = UnifiedBuffer::<u8>::zeroed(&stream, 4096)?;
    test.assert_calls(Function::cuMemAdvise, 1, || {
        buffer.advise(.., MemoryAdvice::PreferredLocation(device))
    })?;
    test.assert_calls(Function::cuMemPrefetchAsync, 1, || {
        buffer.prefetch(&stream, .., MemoryLocation::Host)
    })?;
    let attributes = buffer.range_attributes(..)?;
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
    Ok(())
}

/// An attached buffer is used on its stream and then on all.
#[driver_test]
fn attached_buffer_is_later_used_on_all_streams(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4096)?;
    // SAFETY: only work on this stream uses the buffer until it is attached to all streams.
    unsafe { buffer.attach(&stream, AttachMode::Stream) }?;
    buffer.fill(3)?;
    assert_eq!(buffer.host_view()?[..], [3; 4096]);
    // SAFETY: every stream may use it from here on.
    unsafe { buffer.attach(&stream, AttachMode::Global) }?;
    let gate = Gate::on(&other);
    buffer.on_mut(&other).fill(4)?;
    gate.open();
    assert_eq!(buffer.host_view()?[..], [4; 4096]);
    Ok(())
}

#[simulator_test]
fn managed_range_batches_are_one_call_each(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let device = MemoryLocation::from(&test.device());
    let mut buffer = UnifiedBuffer::from_slice(&stream, &[1_u8; 16384])?;
    let (low, high) = buffer.split_at(8192)?;
    let ranges = [(low, device), (high, MemoryLocation::Host)];
    test.assert_calls(Function::cuMemPrefetchBatchAsync, 1, || {
        unified::prefetch(&stream, &ranges)
    })?;
    let locations_in = |range: std::ops::Range<usize>| -> TestResult<_> {
        Ok(buffer.range_attributes(range)?.last_prefetch_location)
    };
    assert_eq!(
        (locations_in(0..8192)?, locations_in(8192..16384)?),
        (Some(device), Some(MemoryLocation::Host))
    );
    let high = buffer.slice_mut(8192..)?;
    test.assert_calls(Function::cuMemDiscardBatchAsync, 1, || {
        unified::discard(&stream, &mut [high])
    })?;
    let values = buffer.host_view()?;
    assert_eq!(values[..8192], [1; 8192]);
    assert_ne!(values[8192..], [1; 8192], "discarded memory is undefined");
    let all = buffer.view_mut();
    unified::discard_and_prefetch(&stream, &mut [(all, device)])?;
    let plain = DeviceBuffer::<u8>::zeroed(&stream, 4)?;
    let error = unified::prefetch(&stream, &[(plain.view(), device)])
        .expect_err("the memory is not managed");
    assert!(error.to_string().contains("is not managed"), "{error}");
    Ok(())
}

/// Pitched rows begin at the pitch and hold their elements.
#[driver_test]
fn pitched_rows_begin_at_the_pitch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut rows = PitchedBuffer::<[u8; 3]>::zeroed(&stream, 5, 4)?;
    assert!(rows.pitch_bytes() >= 15 && rows.pitch_bytes().is_multiple_of(512));
    for (index, mut row) in rows.rows_mut().enumerate() {
        row.fill([index as u8; 3])?;
    }
    let read: Vec<_> = rows
        .rows()
        .map(|row| row.to_vec())
        .collect::<Result<_, _>>()?;
    assert_eq!(
        read,
        (0..4).map(|index| vec![[index; 3]; 5]).collect::<Vec<_>>()
    );
    let step = rows.row(1)?.as_pointer().as_raw() - rows.as_pointer().as_raw();
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
    rows.close()?;
    Ok(())
}

/// Synchronous copies are set for memory that is of no pool.
#[driver_test]
fn sync_memops_apply_to_memory_outside_pools(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let driver = test.driver();
    let plain = DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc)?;
    set_sync_memops(driver, plain.as_pointer(), true)?;
    plain.to_vec()?;
    set_sync_memops(driver, plain.as_pointer(), false)?;
    let error = set_sync_memops(driver, DevicePointer::<u8>::from_raw(8), true)
        .expect_err("nothing is there");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(error.to_string().contains("0x8"), "{error}");
    Ok(())
}

/// Decompression without an engine is an error of the driver.
#[test]
fn decompression_needs_an_engine() -> TestResult {
    use curium_memory::{Compression, DecompressBatch};
    on_simulator(Config::new(), |test, _| -> TestResult {
        let stream = test.stream();
        let source = DeviceBuffer::from_slice(&stream, &[1_u8; 64])?;
        let mut target = DeviceBuffer::<u8>::zeroed(&stream, 256)?;
        let mut written = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
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
        let empty = source.slice(0..0)?;
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
        Ok(())
    })?;
    Ok(())
}

/// Pages are at the requested location and unmapped pages have none.
#[test]
fn pages_have_their_location() -> TestResult {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 4)),
        |test, _| -> TestResult {
            let stream = test.stream();
            let page = 1 << 16;
            let step = NonZero::new(page).ok_or("page size 0")?;
            let buffer = UnifiedBuffer::<u8>::uninit(&stream, 4 * page)?;
            let device = MemoryLocation::from(&test.device());
            buffer.prefetch(&stream, page..2 * page, device)?;
            buffer.prefetch(&stream, 3 * page.., MemoryLocation::Host)?;
            stream.synchronize()?;
            let result = buffer.locations(.., step)?;
            assert_eq!(
                result,
                [None, Some(device), None, Some(MemoryLocation::Host)]
            );
            assert_eq!(buffer.locations(page..page + 1, step)?, [Some(device)]);
            assert_eq!(
                buffer
                    .locations(page - 1..page + 1, NonZero::<usize>::MIN)?
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
            Ok(())
        },
    )?;
    on_driver(|test| -> TestResult {
        let buffer = UnifiedBuffer::<u8>::uninit(&test.stream(), 4096)?;
        if test.driver().has(Function::cuMemGetLocationInfo) {
            return skip("needs a driver without cuMemGetLocationInfo");
        }
        let error = buffer
            .locations(.., NonZero::<usize>::MAX)
            .expect_err("the driver is older");
        assert!(error.to_string().contains("13.4"), "{error}");
        Ok(())
    })?;
    Ok(())
}

pub(crate) mod operations {
    use std::num::NonZero;

    use curium_driver::AttachMode;
    use curium_memory::{
        Compression, DecompressBatch, DeviceBuffer, MappedBuffer, MemoryAdvice, MemoryLocation,
        PitchedBuffer, RegisterFlags, Registered, RegisteredRef, UnifiedBuffer, unified,
    };

    use crate::operations::{LEN, Operation, Operations, boxed, made, pass};

    const OPERATIONS: &[Operation] = &[
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
                &[(fixture.unified.view(), location)],
            )?)
        }),
        ("batch::discard", |fixture| {
            made(unified::discard(
                &fixture.stream,
                &mut [fixture.unified.view_mut()],
            )?)
        }),
        ("batch::discard_and_prefetch", |fixture| {
            let location = MemoryLocation::from(&fixture.device);
            let ranges = &mut [(fixture.unified.view_mut(), location)];
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
        ("PitchedBuffer::copy_from_slice", |fixture| {
            made(fixture.rows.copy_from_slice(&[7; 16])?)
        }),
        ("PitchedBuffer::copy_to_slice", |fixture| {
            made(fixture.rows.copy_to_slice(&mut [0; 16])?)
        }),
        ("PitchedBuffer::to_vec", |fixture| {
            made(fixture.rows.to_vec()?)
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

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("DecompressBatch::enqueue", |fixture| {
            let source = DeviceBuffer::from_slice(&fixture.stream, &[1_u8; 64])?;
            let mut target = DeviceBuffer::<u8>::zeroed(&fixture.stream, 256)?;
            let target = target.as_slice_mut();
            let written = fixture.buffer.slice_mut(..1)?;
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

    inventory::submit! { Operations::Solitary(SOLITARY) }
}

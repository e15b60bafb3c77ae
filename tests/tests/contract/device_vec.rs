//! [`DeviceVec`]: growth in place, copies, and the release of memory.

use curium_driver::{Context, Error, Function, LaunchConfig, Library};
use curium_memory::copy::{self, CopyBatch, copy_scope};
use curium_memory::{DeviceBuffer, DeviceVec, Extent, PinnedBuffer, PinnedFlags, Pitch};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, kernels, on_peers, resume_panic, simulator_test,
};

/// The number of 4-byte elements in the mapping granularity of the simulator and of current GPUs.
const STEP: usize = (2 << 20) / 4;

#[driver_test]
fn vector_grows_without_moving_its_elements(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut vector = DeviceVec::<u32>::with_max_len(&stream, 8 * STEP)?;
    assert_eq!(
        (vector.len(), vector.capacity(), vector.is_empty()),
        (0, 0, true)
    );
    assert!(vector.max_len() >= 8 * STEP);
    let address = vector.as_pointer();
    let mut expected = Vec::new();
    for part in 0..5_u32 {
        let source: Vec<u32> = (0..STEP as u32 - 7)
            .map(|index| index ^ part << 24)
            .collect();
        vector.extend_from_slice(&source)?;
        expected.extend(source);
        assert_eq!(
            (vector.as_pointer(), vector.len()),
            (address, expected.len())
        );
        assert!(vector.capacity() >= vector.len());
    }
    vector.push(77)?;
    expected.push(77);
    assert_eq!(vector.to_vec()?, expected);
    Ok(())
}

#[driver_test]
fn growth_does_not_copy_the_elements(test: &TestDriver) -> TestResult {
    let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 4 * STEP)?;
    vector.extend_from_slice(&[1; 100])?;
    test.assert_calls(Function::cuMemcpyDtoDAsync_v2, 0, || -> TestResult<_> {
        vector.reserve(3 * STEP)?;
        Ok(())
    })?;
    test.assert_calls(Function::cuMemCreate, 0, || -> TestResult<_> {
        vector.extend_from_slice(&[2; 100])?;
        Ok(())
    })?;
    assert_eq!(vector.to_vec()?, [[1; 100], [2; 100]].concat());
    Ok(())
}

#[driver_test]
fn resized_vector_fills_new_elements_with_the_value(test: &TestDriver) -> TestResult {
    let mut vector = DeviceVec::<[u16; 3]>::new(&test.stream())?;
    vector.push([1, 2, 3])?;
    vector.resize(1000, [4, 5, 6])?;
    let mut expected = vec![[4_u16, 5, 6]; 1000];
    expected[0] = [1, 2, 3];
    assert_eq!(vector.to_vec()?, expected);
    vector.resize(2, [9; 3])?;
    assert_eq!(vector.to_vec()?, [[1, 2, 3], [4, 5, 6]]);
    vector.truncate(5);
    assert_eq!(vector.len(), 2);
    vector.clear();
    assert_eq!(vector.to_vec()?, [[0_u16; 3]; 0]);
    Ok(())
}

/// A shrunk vector gives memory back and keeps its elements.
#[driver_test]
fn shrunk_vector_keeps_its_elements(test: &TestDriver) -> TestResult {
    let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP)?;
    vector.extend_from_slice(&[5; STEP])?;
    vector.reserve(STEP)?;
    let capacity = vector.capacity();
    vector.shrink_to(capacity)?;
    assert_eq!(vector.capacity(), capacity);
    vector.shrink_to_fit()?;
    assert!(
        vector.capacity() < capacity && vector.capacity() >= STEP,
        "{}",
        vector.capacity()
    );
    assert_eq!(vector.to_vec()?, [5; STEP]);
    vector.clear();
    vector.shrink_to_fit()?;
    assert_eq!(vector.capacity(), 0);
    vector.push(6)?;
    assert_eq!(vector.to_vec()?, [6]);
    Ok(())
}

/// A vector whose work cannot be waited for does not shrink.
#[simulator_test]
fn vector_does_not_shrink_if_the_wait_fails(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP)?;
    // Memory is mapped and unmapped in the steps in which the vector grew.
    vector.resize(STEP, 5)?;
    vector.resize(2 * STEP, 5)?;
    vector.truncate(1);
    let capacity = vector.capacity();
    simulator.inject(
        Fault::on(Function::cuStreamSynchronize).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    test.assert_calls(Function::cuMemUnmap, 0, || {
        let error = vector.shrink_to_fit().expect_err("the wait fails once");
        assert_eq!(
            (error.function(), vector.capacity()),
            (Some(Function::cuStreamSynchronize), capacity)
        );
    });
    vector.shrink_to_fit()?;
    assert!(vector.capacity() < capacity, "{}", vector.capacity());
    assert_eq!(vector.to_vec()?, [5]);
    Ok(())
}

/// A kernel on another stream is waited for before memory is freed.
#[driver_test]
fn shrinking_waits_for_other_streams(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let library = Library::from_ptx(&test.context(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let mut vector = DeviceVec::<u32>::with_max_len(&stream, STEP)?;
    vector.resize(1000, 1)?;
    let gate = Gate::on(&other);
    let config = LaunchConfig::for_elements(1000);
    // SAFETY: `fill` writes exactly the words of the vector.
    unsafe { fill.launch(&other, config, (&mut vector, 8, 1000)) }?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let values = vector.to_vec().expect("read failed");
            vector.close().expect("close failed");
            values
        });
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(!reader.is_finished(), "nothing waited for the kernel");
        gate.open();
        assert_eq!(resume_panic(reader.join()), [8; 1000]);
    });
    Ok(())
}

#[driver_test]
fn vector_extended_from_a_buffer_holds_its_elements(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u8, 2, 3])?;
    let mut vector = DeviceVec::from_slice(&test.stream(), &[9_u8])?;
    vector.extend_from_device(&buffer)?;
    drop(buffer);
    assert_eq!(vector.to_vec()?, [9, 1, 2, 3]);
    vector.copy_from_slice(&[4, 3, 2, 1])?;
    assert_eq!(vector.to_vec()?, [4, 3, 2, 1]);
    let error = vector.copy_from_slice(&[1]).expect_err("too short");
    assert!(
        error.to_string().contains("the buffer has 4 elements"),
        "{error}"
    );
    Ok(())
}

/// Growth beyond the maximum is an error with the lengths.
#[driver_test]
fn growth_beyond_the_maximum_reports_lengths(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut vector = DeviceVec::<u32>::with_max_len(&stream, STEP)?;
    let most = vector.max_len();
    vector.push(1)?;
    for additional in [most, usize::MAX] {
        let error = vector
            .reserve(additional)
            .expect_err("there are no addresses for it");
        let text = error.to_string();
        assert!(matches!(error, Error::Argument(_)), "{text}");
        assert!(
            text.contains(&format!("1 elements and {additional} more")),
            "{text}"
        );
        assert!(text.contains(&format!("at most {most}")), "{text}");
    }
    assert_eq!(vector.to_vec()?, [1]);
    for error in [
        DeviceVec::<u32>::with_max_len(&stream, 0).expect_err("no length"),
        DeviceVec::<u32>::with_max_len(&stream, usize::MAX).expect_err("too long"),
        DeviceVec::<[u32; 0]>::new(&stream).expect_err("no bytes"),
    ] {
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    Ok(())
}

#[simulator_test(Config::new().with_memory_budget(8 << 20))]
fn vector_that_cannot_grow_is_unchanged(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP)?;
    vector.extend_from_slice(&[3; 2 * STEP])?;
    // Growth by a half would exceed the memory, but the requested size fits.
    vector.extend_from_slice(&[3; 2 * STEP])?;
    let error = vector.push(1).expect_err("the budget is used up");
    assert!(error.is_out_of_memory(), "{error}");
    vector.truncate(5);
    vector.shrink_to_fit()?;
    for function in [
        Function::cuMemMap,
        Function::cuMemSetAccess,
        Function::cuMemcpyHtoDAsync_v2,
    ] {
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let error = vector
            .extend_from_slice(&[9; 2 * STEP])
            .expect_err("the injected fault occurs");
        assert_eq!(error.function(), Some(function));
        assert_eq!(vector.to_vec()?, [3; 5]);
    }
    Ok(())
}

/// A vector that the driver does not unmap is returned.
#[simulator_test]
fn close_returns_a_vector_that_stays_mapped(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let vector = DeviceVec::from_slice(&test.stream(), &[1_u8, 2])?;
    simulator
        .inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (vector, error) = vector
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuMemUnmap));
    assert_eq!(vector.to_vec()?, [1, 2]);
    Ok(())
}

/// Views of a vector are accepted by every form of copy.
#[driver_test]
fn every_copy_accepts_vector_views(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut vector = DeviceVec::from_slice(&stream, &[0_u32, 1, 2, 3, 4, 5, 6, 7])?;
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 8)?;
    buffer.copy_from_device(&vector)?;
    assert_eq!(buffer.to_vec()?, [0, 1, 2, 3, 4, 5, 6, 7]);
    vector
        .slice_mut(..4)?
        .on_mut(&other)
        .copy_from_device(&buffer.slice(4..)?)?;
    assert_eq!(vector.slice(..5)?.to_vec()?, [4, 5, 6, 7, 4]);
    vector.slice_mut(1..3)?.on_mut(&other).fill(9)?;
    let (low, high) = vector.split_at_mut(4)?;
    CopyBatch::new()
        .copy(high, buffer.slice(..4)?)?
        .copy(low, buffer.slice(4..)?)?
        .enqueue(&other)?;
    let pinned = PinnedBuffer::from_slice(&test.context(), &[7_u32; 8], PinnedFlags::empty())?;
    let pinned = copy::download(&other, &vector, pinned)?;
    let pinned = pinned.wait()?;
    assert_eq!(pinned[..], [4, 5, 6, 7, 0, 1, 2, 3]);
    let pending = copy::upload(&other, pinned, &mut vector)?;
    drop(pending);
    let mut read = [0; 8];
    copy_scope(&other, |scope| scope.download(&vector, &mut read))?;
    assert_eq!(read, [4, 5, 6, 7, 0, 1, 2, 3]);
    let extent = Extent::new_2d(4, 2);
    let pitch = Pitch::tight::<u32>(extent);
    let source = vector.pitched(extent, pitch)?;
    buffer.pitched_mut(extent, pitch)?.copy_from(&source)?;
    assert_eq!(buffer.to_vec()?, [4, 5, 6, 7, 0, 1, 2, 3]);
    Ok(())
}

/// A large vector is copied from and to slices across its mappings.
#[driver_test]
fn large_vector_is_copied_across_mappings(test: &TestDriver) -> TestResult {
    let mut vector = DeviceVec::<u32>::with_max_len(&test.stream(), 8 * STEP)?;
    for _ in 0..4 {
        vector.reserve(vector.capacity() + STEP - vector.len())?;
    }
    vector.resize(4 * STEP, 3)?;
    assert_eq!(vector.slice(STEP - 2..STEP + 2)?.to_vec()?, [3; 4]);
    let source: Vec<u32> = (0..4 * STEP as u32).collect();
    vector.copy_from_slice(&source)?;
    assert!(vector.to_vec()? == source);
    Ok(())
}

#[driver_test(on_peers)]
fn vector_on_a_device_without_access_is_an_error(
    _: &TestDriver,
    first: &Context,
    second: &Context,
) -> TestResult {
    let stream = first.stream()?;
    let there = second.stream()?;
    let library = Library::from_ptx(second, kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let mut vector = DeviceVec::<u32>::with_max_len(&stream, 4 * STEP)?;
    vector.resize(1000, 1)?;
    let config = LaunchConfig::for_elements(1000);
    // SAFETY: `fill` writes exactly the words of the vector.
    let error = unsafe { fill.launch(&there, config, (&mut vector, 8, 1000)) }
        .expect_err("access is not enabled");
    assert!(
        error
            .to_string()
            .contains("device 1 has no access to memory at"),
        "{error}"
    );
    vector.enable_access(second.device())?;
    vector.enable_access(second.device())?;
    vector.enable_access(first.device())?;
    vector.resize(3 * STEP, 1)?;
    let len = 3 * STEP as u32;
    let config = LaunchConfig::for_elements(3 * STEP);
    // SAFETY: `fill` writes exactly the words of the vector.
    unsafe { fill.launch(&there, config, (&mut vector, 8, len)) }?;
    assert!(vector.to_vec()?.iter().all(|value| *value == 8));
    Ok(())
}

#[driver_test(on_peers)]
fn vector_is_copied_to_and_from_another_device(
    _: &TestDriver,
    first: &Context,
    second: &Context,
) -> TestResult {
    let streams =
        [first, second].map(|context| context.stream().expect("failed to create a stream"));
    let buffer = DeviceBuffer::from_slice(&streams[1], &[5_u32; 100])?;
    let mut vector = DeviceVec::from_slice(&streams[0], &[1_u32; 100])?;
    vector.extend_from_device(&buffer)?;
    let mut target = DeviceBuffer::<u32>::zeroed(&streams[1], 200)?;
    target.copy_from_device(&vector)?;
    assert_eq!(target.to_vec()?, [[1; 100], [5; 100]].concat());
    Ok(())
}

/// A vector whose addresses are not freed is returned and frees them later.
#[simulator_test]
fn unfreed_address_range_is_freed_later(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let vector = DeviceVec::from_slice(&test.stream(), &[1_u8, 2])?;
    simulator.inject(
        Fault::on(Function::cuMemAddressFree).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (mut vector, error) = vector
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuMemAddressFree));
    assert_eq!(
        (vector.len(), vector.capacity()),
        (0, 0),
        "the memory is freed"
    );
    vector.push(3)?;
    test.assert_calls(Function::cuMemAddressFree, 1, || {
        vector.close().map_err(|returned| returned.error)
    })?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Argument, Result};
    use curium_memory::DeviceVec;

    use crate::operations::{Fixture, LEN, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("DeviceVec::from_slice", |fixture| {
            made(DeviceVec::from_slice(&fixture.stream, &[1_u32; LEN])?)
        }),
        ("DeviceVec::push", |fixture| {
            let mut vector = vector(fixture)?;
            vector.push(1)?;
            made(vector)
        }),
        ("DeviceVec::extend_from_slice", |fixture| {
            let mut vector = vector(fixture)?;
            vector.extend_from_slice(&[1, 2])?;
            made(vector)
        }),
        ("DeviceVec::extend_uninit", |fixture| {
            let mut vector = vector(fixture)?;
            let mut added = vector.extend_uninit(LEN)?;
            added.on_mut(&fixture.other).fill(3)?;
            made(vector)
        }),
        ("DeviceVec::bind", |fixture| {
            let mut vector = filled(fixture)?;
            let mut argument = &mut vector;
            // SAFETY: no work is enqueued on the stream.
            unsafe {
                Argument::<&mut [u32]>::bind(&mut argument, &mut fixture.other.enqueue("test")?)
            }?;
            made(vector)
        }),
        ("DeviceVec::try_clone", |fixture| {
            let vector = filled(fixture)?;
            let clone = vector.try_clone()?;
            made((vector, clone))
        }),
        ("DeviceVec::close", |fixture| {
            filled(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("DeviceVec::with_max_len", |fixture| made(vector(fixture)?)),
        ("DeviceVec::new", |fixture| {
            made(DeviceVec::<u32>::new(&fixture.stream)?)
        }),
        ("DeviceVec::reserve", |fixture| {
            let mut vector = vector(fixture)?;
            vector.reserve(LEN)?;
            made(vector)
        }),
        ("DeviceVec::resize", |fixture| made(filled(fixture)?)),
        ("DeviceVec::extend_from_device", |fixture| {
            let mut vector = vector(fixture)?;
            vector.extend_from_device(&fixture.buffer)?;
            made(vector)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("DeviceVec::enable_access", |fixture| {
            let mut vector = DeviceVec::from_slice(&fixture.stream, &[1_u32])?;
            vector.enable_access(&fixture.driver.device(1)?)?;
            made(vector)
        }),
        (
            "DeviceVec::shrink_to and DeviceVec::shrink_to_fit",
            |fixture| {
                let mut vector = filled(fixture)?;
                vector.truncate(1);
                vector.shrink_to(2)?;
                vector.shrink_to_fit()?;
                made(vector)
            },
        ),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    fn filled(fixture: &Fixture) -> Result<DeviceVec<u32>> {
        let mut vector = vector(fixture)?;
        vector.resize(LEN, 1)?;
        Ok(vector)
    }

    fn vector(fixture: &Fixture) -> Result<DeviceVec<u32>> {
        DeviceVec::with_max_len(&fixture.stream, LEN)
    }
}

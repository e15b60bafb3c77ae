//! Stream memory operations: waits for and writes of single values in stream order.

use curium_driver::{CudaVersion, DevicePointer, MemoryOperation, Reduction, WaitCondition};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, Zeroable};
use curium_sim::{Config, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test};

/// Allocates zeroed pinned memory: stream memory operations do not accept memory allocated in
/// stream order.
fn pinned<T: Zeroable>(test: &TestDriver, len: usize) -> TestResult<PinnedBuffer<T>> {
    Ok(PinnedBuffer::zeroed(
        &test.context(),
        len,
        PinnedFlags::DEVICE_MAP,
    )?)
}

/// Returns the device pointer of pinned memory, which is equal to its host address.
fn address<T>(buffer: &PinnedBuffer<T>) -> DevicePointer<T> {
    DevicePointer::from_raw(buffer.as_ptr().expose_provenance() as u64)
}

#[driver_test]
fn memory_allocated_in_stream_order_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
    // SAFETY: the address is aligned and in the buffer, which lives on this stream.
    let error = unsafe { stream.write_value_u32(buffer.as_pointer(), 1) }
        .expect_err("the memory is from a pool");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    Ok(())
}

#[driver_test]
fn values_are_written_in_stream_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = pinned::<u64>(test, 2)?;
    let first = address(&buffer);
    // SAFETY: both addresses are aligned and in the buffer, which lives on this stream.
    unsafe { stream.write_value_u64(first, 1 << 40) }?;
    // SAFETY: both addresses are aligned and in the buffer, which lives on this stream.
    unsafe { stream.write_value_u32(first.wrapping_add(1).cast(), 7) }?;
    stream.synchronize()?;
    assert_eq!(*buffer, [1 << 40, 7]);
    Ok(())
}

#[driver_test]
fn stream_waits_until_another_has_written_the_value(test: &TestDriver) -> TestResult {
    let waiting = test.stream();
    let writing = test.stream();
    let buffer = pinned::<u32>(test, 1)?;
    let flag = address(&buffer);
    let gate = Gate::on(&writing);
    // SAFETY: the address is aligned and in the buffer, which outlives the wait, and the value is
    // written below.
    unsafe { waiting.wait_value_u32(flag, WaitCondition::AtLeast, 3) }?;
    // SAFETY: the address is aligned and in the buffer, which lives on this stream.
    unsafe { writing.write_value_u32(flag, 4) }?;
    assert!(!waiting.is_finished()?, "nothing was written");
    gate.open();
    waiting.synchronize()?;
    writing.synchronize()?;
    Ok(())
}

#[driver_test]
fn batch_does_its_operations_in_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = pinned::<u64>(test, 2)?;
    let wide = address(&buffer);
    let narrow: DevicePointer<u32> = wide.wrapping_add(1).cast();
    let operations = [
        MemoryOperation::WriteU32(narrow, 5),
        MemoryOperation::WaitU32(narrow, WaitCondition::Equal, 5),
        MemoryOperation::WriteU64(wide, u64::MAX),
        MemoryOperation::WaitU64(wide, WaitCondition::And, 1 << 63),
        MemoryOperation::WriteU32(narrow, 6),
    ];
    // SAFETY: the addresses are aligned and in the buffer, and each wait is for a value written
    // before.
    unsafe { stream.batch_memory_operations(&operations) }?;
    stream.synchronize()?;
    assert_eq!(*buffer, [u64::MAX, 6]);
    Ok(())
}

#[driver_test]
fn batch_that_is_too_large_is_an_error_with_the_size(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = pinned::<u32>(test, 1)?;
    let operations = vec![MemoryOperation::WriteU32(address(&buffer), 1); 257];
    // SAFETY: the address is aligned and in the buffer.
    let error = unsafe { stream.batch_memory_operations(&operations) }
        .expect_err("a batch has at most 256");
    assert!(error.to_string().contains("257"), "{error}");
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 2)))]
fn reductions_combine_with_the_value_in_memory(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = pinned::<u64>(test, 2)?;
    let wide = address(&buffer);
    let narrow: DevicePointer<u32> = wide.wrapping_add(1).cast();
    let operations = [
        MemoryOperation::WriteU32(narrow, u32::MAX),
        MemoryOperation::ReduceU32(narrow, Reduction::Add, 8),
        MemoryOperation::ReduceU32(narrow, Reduction::Or, 0x30),
        MemoryOperation::ReduceU64(wide, Reduction::Add, 1 << 40),
        MemoryOperation::ReduceU64(wide, Reduction::Or, 3),
        MemoryOperation::ReduceU64(wide, Reduction::And, 1 << 40 | 1),
    ];
    // SAFETY: the addresses are aligned and in the buffer, which outlives the stream's work.
    unsafe { stream.batch_memory_operations(&operations) }?;
    stream.synchronize()?;
    assert_eq!(
        *buffer,
        [1 << 40 | 1, 0x37],
        "the narrow value wraps around within its four bytes"
    );
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 2)))]
fn concurrent_reductions_are_atomic(test: &TestDriver, _: &Simulator) -> TestResult {
    let streams = [test.stream(), test.stream(), test.stream()];
    let buffer = pinned::<u32>(test, 1)?;
    let operations = vec![MemoryOperation::ReduceU32(address(&buffer), Reduction::Add, 1); 100];
    for stream in &streams {
        // SAFETY: the address is aligned and in the buffer, which outlives the streams' work.
        unsafe { stream.batch_memory_operations(&operations) }?;
    }
    for stream in &streams {
        stream.synchronize()?;
    }
    assert_eq!(*buffer, [300]);
    Ok(())
}

#[driver_test]
fn misaligned_address_is_an_error(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = pinned::<u32>(test, 2)?;
    let misaligned = DevicePointer::from_raw(address(&buffer).as_raw() + 2);
    // SAFETY: the driver rejects the address before it accesses it.
    let error = unsafe { stream.write_value_u32(misaligned, 1) }
        .expect_err("the address is not a multiple of 4");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{MemoryOperation, WaitCondition};

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Stream::write_value_u32", |fixture| {
            // SAFETY: the address is that of the pinned values, which outlive the work.
            made(unsafe { fixture.stream.write_value_u32(fixture.value_address(), 1) }?)
        }),
        ("Stream::write_value_u64", |fixture| {
            // SAFETY: as above; pinned memory is aligned to more than 8, and there are 16 values of
            // 4 bytes.
            made(unsafe {
                fixture
                    .stream
                    .write_value_u64(fixture.value_address().cast(), 1)
            }?)
        }),
        ("Stream::wait_value_u32", |fixture| {
            // SAFETY: as above; the comparison holds for every value.
            made(unsafe {
                fixture.stream.wait_value_u32(
                    fixture.value_address(),
                    WaitCondition::Nor,
                    0xf000_0000,
                )
            }?)
        }),
        ("Stream::wait_value_u64", |fixture| {
            let address = fixture.value_address().cast();
            // SAFETY: the address is that of the pinned values, which outlive the work.
            made(unsafe {
                fixture
                    .stream
                    .wait_value_u64(address, WaitCondition::Nor, 0xf000_0000_0000_0000)
            }?)
        }),
        ("Stream::batch_memory_operations", |fixture| {
            let address = fixture.value_address();
            let operations = [
                MemoryOperation::WriteU32(address, 3),
                MemoryOperation::WaitU32(address, WaitCondition::Equal, 3),
            ];
            // SAFETY: as above, and the stream waits for a value that was written.
            made(unsafe { fixture.stream.batch_memory_operations(&operations) }?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}

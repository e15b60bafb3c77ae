//! Two devices with peer access: copies of every form, kernel arguments, and pools that both
//! allocate from. On a machine with one GPU nothing of this runs.

use curium_driver::{DevicePointer, Function, LaunchConfig, Library, Stream};
use curium_memory::copy::{CopyBatch, CopyOptions};
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, Extent, MappedBuffer, MemoryAccess,
    MemoryPool, Pitch, PitchedBuffer, Resource, SyncAlloc, UnifiedBuffer,
};
use curium_sim::Simulator;
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, in_own_process, kernels, on_peers};

const LEN: usize = 4096;

/// Runs a test with a stream on each of two devices.
fn with_streams(test: impl Fn(&TestDriver, &Stream, &Stream) -> TestResult) -> TestResult {
    on_peers(|driver, first, second| test(driver, &first.stream()?, &second.stream()?))
}

/// Fills memory on a stream by a kernel.
fn fill(stream: &Stream, target: &mut DeviceBuffer<u32, impl Resource>, value: u32) -> TestResult {
    let library = Library::from_ptx(stream.context(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let len = u32::try_from(target.len())?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe {
        fill.launch(
            stream,
            LaunchConfig::for_elements(target.len()),
            (target, value, len),
        )
    }?;
    Ok(())
}

/// Buffers are copied between devices on streams of both.
#[driver_test(with_streams)]
fn copies_between_devices_use_either_stream(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let source: Vec<u32> = (0..LEN as u32).collect();
    let first = DeviceBuffer::from_slice(here, &source)?;
    let mut second = DeviceBuffer::<u32>::zeroed(there, LEN)?;
    second.copy_from_device(&first)?;
    assert_eq!(second.to_vec()?, source);
    fill(there, &mut second, 3)?;
    let mut back = DeviceBuffer::<u32>::zeroed(here, LEN)?;
    back.on_mut(there).copy_from_device(&second)?;
    assert_eq!(back.to_vec()?, [3; LEN]);
    let options = CopyOptions::new().with_prefer_overlap(true);
    back.on_mut(here).copy_from_device_with(&first, options)?;
    assert_eq!(back.to_vec()?, source);
    Ok(())
}

/// A copy between devices waits for the work of the other.
#[driver_test(with_streams)]
fn copy_between_devices_waits_for_the_peer(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let mut source = DeviceBuffer::<u32>::zeroed(there, LEN)?;
    let mut target = DeviceBuffer::<u32>::zeroed(here, LEN)?;
    let gate = Gate::on(there);
    source.fill(8)?;
    target.copy_from_device(&source)?;
    source.fill(9)?;
    assert!(!here.is_finished()?, "nothing waits for the other device");
    gate.open();
    assert_eq!(target.to_vec()?, [8; LEN]);
    assert_eq!(source.to_vec()?, [9; LEN]);
    Ok(())
}

#[driver_test(with_streams)]
fn batch_copies_between_devices_both_ways(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let mut first = DeviceBuffer::from_slice(here, &[1_u32; LEN])?;
    let mut second = DeviceBuffer::from_slice(there, &[2_u32; LEN])?;
    let (low, high) = first.split_at_mut(LEN / 2)?;
    let (other_low, other_high) = second.split_at_mut(LEN / 2)?;
    let batch = CopyBatch::new().copy(low, &other_low)?;
    let batch = batch.copy(other_high, &high)?;
    batch.enqueue(here)?;
    let halves = |low: u32, high: u32| [vec![low; LEN / 2], vec![high; LEN / 2]].concat();
    assert_eq!(first.to_vec()?, halves(2, 1));
    assert_eq!(second.to_vec()?, halves(2, 1));
    Ok(())
}

#[driver_test(with_streams)]
fn batch_copies_rows_on_another_device(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let source: Vec<u32> = (0..120).collect();
    let extent = Extent::new_2d(30, 4);
    let bytes = Pitch::tight::<u32>(Extent::new_2d(30, 4));
    let far = DeviceBuffer::from_slice(there, &source)?;
    let mut near = DeviceBuffer::<u32>::zeroed(here, 120)?;
    let mut on_far = DeviceBuffer::<u32>::zeroed(there, 120)?;
    let from = far.pitched(extent, bytes)?;
    let to = near.pitched_mut(extent, bytes)?;
    let beside = on_far.pitched_mut(extent, bytes)?;
    let batch = CopyBatch::new().copy_pitched(to, from)?;
    let batch = batch.copy_pitched(beside, from)?;
    batch.enqueue(here)?;
    assert_eq!(near.to_vec()?, source);
    assert_eq!(on_far.to_vec()?, source);
    Ok(())
}

/// Copies within a device run on a stream of another device.
#[driver_test(with_streams)]
fn local_copies_run_on_a_foreign_stream(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let source: Vec<u32> = (0..120).collect();
    let extent = Extent::new_2d(30, 4);
    let bytes = Pitch::tight::<u32>(Extent::new_2d(30, 4));
    let from = DeviceBuffer::from_slice(there, &source)?;
    let mut line = DeviceBuffer::<u32>::zeroed(there, 120)?;
    let mut rows = DeviceBuffer::<u32>::zeroed(there, 120)?;
    line.on_mut(here).copy_from_device(&from)?;
    let grid = from.pitched(extent, bytes)?;
    let target = rows.pitched_mut(extent, bytes)?;
    CopyBatch::new()
        .copy_pitched(target, grid)
        .and_then(|batch| batch.enqueue(here))?;
    assert_eq!(line.to_vec()?, source);
    assert_eq!(rows.to_vec()?, source);
    Ok(())
}

/// A copy between devices with options is done without them.
#[driver_test(with_streams)]
fn copy_options_are_dropped_between_devices(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let source: Vec<u32> = (0..LEN as u32).collect();
    let options = CopyOptions::new().with_prefer_overlap(true);
    let far = DeviceBuffer::from_slice(there, &source)?;
    for stream in [here, there] {
        let mut near = DeviceBuffer::<u32>::zeroed(here, LEN)?;
        near.on_mut(stream).copy_from_device_with(&far, options)?;
        assert_eq!(near.to_vec()?, source);
    }
    Ok(())
}

#[driver_test(with_streams)]
fn rows_and_layers_are_copied_between_devices(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let mut rows = PitchedBuffer::<u32>::zeroed(here, 30, 4)?;
    let source: Vec<u32> = (0..120).collect();
    let buffer = DeviceBuffer::from_slice(there, &source)?;
    let plane = Extent::new_2d(30, 4);
    let grid = buffer.pitched(plane, Pitch::tight::<u32>(plane))?;
    rows.as_pitched_mut().copy_from(&grid)?;
    assert_eq!(rows.row(3)?.to_vec()?, source[90..]);
    let volume = Extent::new_3d(5, 4, 6);
    let pitch = Pitch::tight::<u32>(volume);
    let mut target = DeviceBuffer::<u32>::zeroed(here, 120)?;
    let grid = buffer.pitched(volume, pitch)?;
    let mut volume = target.pitched_mut(volume, pitch)?;
    volume.on_mut(there).copy_from(&grid)?;
    assert_eq!(target.to_vec()?, source);
    Ok(())
}

/// Arrays are copied between devices and from and to memory of the other.
#[driver_test(with_streams)]
fn arrays_are_copied_between_devices(
    test: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let source: Vec<u32> = (0..120).collect();
    let shape = ArrayShape::new_2d(30, 4);
    let extent = Extent::new_2d(30, 4);
    let whole = ArrayRegion::whole(shape);
    let near = Array::from_slice(here, &source, shape, ArrayFlags::empty())?;
    let far = Array::<u32>::new(there, shape, ArrayFlags::empty())?;
    let mut target = DeviceBuffer::<u32>::zeroed(here, 120)?;
    const PEER: Function = Function::cuMemcpy3DPeerAsync;
    test.assert_calls(PEER, 1, || far.copy_from_array([0; 3], &near, whole))?;
    assert_eq!(far.to_vec()?, source);
    test.assert_calls(PEER, 1, || far.copy_to_device(whole, &mut target))?;
    assert_eq!(target.to_vec()?, source);
    target.fill(7)?;
    test.assert_calls(PEER, 1, || far.copy_from_device(whole, &target))?;
    assert_eq!(far.to_vec()?, [7; 120]);
    // As a batch on a stream of a device that owns neither.
    let grid = target.pitched_mut(extent, Pitch::tight::<u32>(extent))?;
    let batch = CopyBatch::new().copy_from_array(grid, &near, [0; 3])?;
    test.assert_calls(PEER, 1, || batch.enqueue(there))?;
    assert_eq!(target.to_vec()?, source);
    Ok(())
}

/// A kernel writes memory of a pool of the other device and plain memory.
#[driver_test(with_streams)]
fn kernel_writes_pool_memory_on_the_peer(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let mut buffer = DeviceBuffer::<u32>::zeroed(here, LEN)?;
    fill(there, &mut buffer, 4)?;
    assert_eq!(buffer.to_vec()?, [4; LEN]);
    let mut plain = DeviceBuffer::<u32, _>::zeroed_in(here, LEN, SyncAlloc)?;
    fill(there, &mut plain, 5)?;
    fill(here, &mut plain, 6)?;
    fill(there, &mut plain, 7)?;
    assert_eq!(plain.to_vec()?, [7; LEN]);
    Ok(())
}

/// A kernel that uses plain memory of a device without access fails.
#[test]
fn kernel_needs_peer_access() -> TestResult {
    in_own_process(|| -> TestResult {
        with_streams(|driver, here, there| -> TestResult {
            let plain = DeviceBuffer::<u32, _>::zeroed_in(here, LEN, SyncAlloc)?;
            here.synchronize()?;
            let library = Library::from_ptx(there.context(), kernels::FILL)?;
            let fill = library.kernel::<(DevicePointer<u32>, u32, u32)>("fill")?;
            let arguments = (plain.as_pointer(), 1, LEN as u32);
            // SAFETY: the memory has this many words; the missing access of the device is the
            // subject of the test.
            unsafe { fill.launch(there, LaunchConfig::for_elements(LEN), arguments) }?;
            let error = there
                .synchronize()
                .expect_err("the device has no access to the memory");
            assert_eq!(
                error.code(),
                Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
                "{error}"
            );
            driver
                .simulator()
                .into_iter()
                .for_each(Simulator::reset_errors);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[driver_test(with_streams)]
fn pool_on_one_device_serves_both(
    driver: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let pool = MemoryPool::new(here.device())?;
    pool.set_access(there.device(), MemoryAccess::ReadWrite)?;
    assert_eq!(pool.access(there.device())?, MemoryAccess::ReadWrite);
    let mut first = DeviceBuffer::<u32, _>::zeroed_in(here, LEN, pool.clone())?;
    let mut second = DeviceBuffer::<u32, _>::zeroed_in(there, LEN, pool.clone())?;
    fill(there, &mut first, 1)?;
    fill(there, &mut second, 2)?;
    assert_eq!(first.to_vec()?, [1; LEN]);
    assert_eq!(second.to_vec()?, [2; LEN]);
    drop((first, second));
    driver.context().synchronize()?;
    there.synchronize()?;
    here.synchronize()?;
    Ok(())
}

/// Memory of the host and managed memory are used by both.
#[driver_test(with_streams)]
fn host_and_managed_memory_are_used_by_both(
    _: &TestDriver,
    here: &Stream,
    there: &Stream,
) -> TestResult {
    let mut mapped = MappedBuffer::<u32>::zeroed(here, LEN)?;
    let mut unified = UnifiedBuffer::<u32>::zeroed(here, LEN)?;
    let library = Library::from_ptx(there.context(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let config = LaunchConfig::for_elements(LEN);
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { fill.launch(there, config, (&mut mapped, 4, LEN as u32)) }?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe { fill.launch(there, config, (&mut unified, 5, LEN as u32)) }?;
    assert_eq!(mapped.host_view()?[..], [4; LEN]);
    assert_eq!(unified.host_view()?[..], [5; LEN]);
    unified.copy_from_device(&mapped)?;
    assert_eq!(unified.host_view()?[..], [4; LEN]);
    Ok(())
}

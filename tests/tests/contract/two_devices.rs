//! Two devices with peer access: copies of every form, kernel arguments, and pools that both allocate from. On a
//! machine with one GPU nothing of this runs.

use curium_driver::{Context, DevicePointer, Function, LaunchConfig, Library, Stream};
use curium_memory::copy::{CopyBatch, CopyOptions};
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, DeviceSlice, Extent, MappedBuffer,
    MemoryAccess, MemoryPool, Pitch, PitchedBuffer, Resource, SyncAlloc, UnifiedBuffer,
};
use curium_sim::Simulator;
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, in_own_process, kernels, on_peers};

const LEN: usize = 4096;

/// Runs a test with a stream on each of two devices.
fn with_streams(test: impl Fn(&TestDriver, &Stream, &Stream)) {
    on_peers(|driver, first, second| test(driver, &stream(first), &stream(second)));
}

fn stream(context: &Context) -> Stream {
    context.stream().expect("a stream can be created")
}

/// Fills memory on a stream by a kernel.
fn fill(stream: &Stream, target: &mut DeviceBuffer<u32, impl Resource>, value: u32) {
    let library = Library::from_ptx(stream.context(), kernels::FILL).expect("the kernels load");
    let fill = library
        .kernel::<(&mut [u32], u32, u32)>("fill")
        .expect("there is such a kernel");
    let len = u32::try_from(target.len()).expect("buffers of tests are short");
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe {
        fill.launch(
            stream,
            LaunchConfig::for_elements(len),
            (target, value, len),
        )
    }
    .expect("it can be launched");
}

#[test]
fn buffers_are_copied_between_devices_on_streams_of_both() {
    with_streams(|_, here, there| {
        let source: Vec<u32> = (0..LEN as u32).collect();
        let first = DeviceBuffer::from_slice(here, &source).expect("memory suffices");
        let mut second = DeviceBuffer::<u32>::zeroed(there, LEN).expect("memory suffices");
        second
            .copy_from_device(&first)
            .expect("the lengths are equal");
        assert_eq!(second.to_vec().expect("the buffer can be read"), source);
        fill(there, &mut second, 3);
        let mut back = DeviceBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
        back.as_slice_mut()
            .copy_from_device_on(there, &second)
            .expect("the lengths are equal");
        assert_eq!(back.to_vec().expect("the buffer can be read"), [3; LEN]);
        let options = CopyOptions::new().with_prefer_overlap(true);
        back.as_slice_mut()
            .copy_from_device_with(here, &first, options)
            .expect("the lengths are equal");
        assert_eq!(back.to_vec().expect("the buffer can be read"), source);
    });
}

#[test]
fn copy_between_devices_waits_for_the_work_of_the_other() {
    with_streams(|_, here, there| {
        let mut source = DeviceBuffer::<u32>::zeroed(there, LEN).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
        let gate = Gate::on(there);
        source.as_slice_mut().fill(8).expect("memory can be filled");
        target
            .copy_from_device(&source)
            .expect("the lengths are equal");
        source.as_slice_mut().fill(9).expect("memory can be filled");
        assert!(
            !here.is_finished().expect("the stream can be queried"),
            "nothing waits for the other device"
        );
        gate.open();
        assert_eq!(target.to_vec().expect("the buffer can be read"), [8; LEN]);
        assert_eq!(source.to_vec().expect("the buffer can be read"), [9; LEN]);
    });
}

#[test]
fn batch_copies_between_devices_both_ways() {
    with_streams(|_, here, there| {
        let mut first = DeviceBuffer::from_slice(here, &[1_u32; LEN]).expect("memory suffices");
        let mut second = DeviceBuffer::from_slice(there, &[2_u32; LEN]).expect("memory suffices");
        let (low, high) = first
            .as_slice_mut()
            .split_at(LEN / 2)
            .expect("the buffer is longer");
        let (other_low, other_high) = second
            .as_slice_mut()
            .split_at(LEN / 2)
            .expect("the buffer is longer");
        let batch = CopyBatch::new()
            .copy(low, other_low.as_slice())
            .expect("the lengths are equal");
        let batch = batch
            .copy(other_high, high.as_slice())
            .expect("the lengths are equal");
        batch.enqueue(here).expect("the copies can be enqueued");
        let halves = |low: u32, high: u32| [vec![low; LEN / 2], vec![high; LEN / 2]].concat();
        assert_eq!(
            first.to_vec().expect("the buffer can be read"),
            halves(2, 1)
        );
        assert_eq!(
            second.to_vec().expect("the buffer can be read"),
            halves(2, 1)
        );
    });
}

#[test]
fn batch_of_another_device_copies_rows_as_well() {
    with_streams(|_, here, there| {
        let source: Vec<u32> = (0..120).collect();
        let (extent, bytes) = (
            Extent::new_2d(30, 4),
            Pitch::tight::<u32>(Extent::new_2d(30, 4)),
        );
        let far = DeviceBuffer::from_slice(there, &source).expect("memory suffices");
        let mut near = DeviceBuffer::<u32>::zeroed(here, 120).expect("memory suffices");
        let mut on_far = DeviceBuffer::<u32>::zeroed(there, 120).expect("memory suffices");
        let from = far
            .as_slice()
            .pitched(extent, bytes)
            .expect("the rows lie within");
        let to = near
            .as_slice_mut()
            .pitched(extent, bytes)
            .expect("the rows lie within");
        let beside = on_far
            .as_slice_mut()
            .pitched(extent, bytes)
            .expect("the rows lie within");
        let batch = CopyBatch::new()
            .copy_pitched(to, from)
            .expect("the extents are equal");
        let batch = batch
            .copy_pitched(beside, from)
            .expect("the extents are equal");
        batch.enqueue(here).expect("the copies can be enqueued");
        assert_eq!(near.to_vec().expect("the buffer can be read"), source);
        assert_eq!(on_far.to_vec().expect("the buffer can be read"), source);
    });
}

#[test]
fn copies_within_a_device_run_on_a_stream_of_another_device() {
    with_streams(|_, here, there| {
        let source: Vec<u32> = (0..120).collect();
        let (extent, bytes) = (
            Extent::new_2d(30, 4),
            Pitch::tight::<u32>(Extent::new_2d(30, 4)),
        );
        let from = DeviceBuffer::from_slice(there, &source).expect("memory suffices");
        let mut line = DeviceBuffer::<u32>::zeroed(there, 120).expect("memory suffices");
        let mut rows = DeviceBuffer::<u32>::zeroed(there, 120).expect("memory suffices");
        line.as_slice_mut()
            .copy_from_device_on(here, &from)
            .expect("the lengths are equal");
        let grid = from
            .as_slice()
            .pitched(extent, bytes)
            .expect("the rows lie within");
        let target = rows
            .as_slice_mut()
            .pitched(extent, bytes)
            .expect("the rows lie within");
        CopyBatch::new()
            .copy_pitched(target, grid)
            .and_then(|batch| batch.enqueue(here))
            .expect("the extents are equal");
        assert_eq!(line.to_vec().expect("the buffer can be read"), source);
        assert_eq!(rows.to_vec().expect("the buffer can be read"), source);
    });
}

#[test]
fn copy_between_devices_with_options_is_done_without_them() {
    with_streams(|_, here, there| {
        let source: Vec<u32> = (0..LEN as u32).collect();
        let options = CopyOptions::new().with_prefer_overlap(true);
        let far = DeviceBuffer::from_slice(there, &source).expect("memory suffices");
        for stream in [here, there] {
            let mut near = DeviceBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
            near.as_slice_mut()
                .copy_from_device_with(stream, &far, options)
                .expect("the lengths are equal");
            assert_eq!(near.to_vec().expect("the buffer can be read"), source);
        }
    });
}

#[test]
fn rows_and_layers_are_copied_between_devices() {
    with_streams(|_, here, there| {
        let mut rows = PitchedBuffer::<u32>::zeroed(here, 30, 4).expect("memory suffices");
        let source: Vec<u32> = (0..120).collect();
        let buffer = DeviceBuffer::from_slice(there, &source).expect("memory suffices");
        let plane = Extent::new_2d(30, 4);
        let grid = buffer
            .as_slice()
            .pitched(plane, Pitch::tight::<u32>(plane))
            .expect("the rows lie within");
        rows.as_pitched_mut()
            .copy_from(&grid)
            .expect("the extents are equal");
        assert_eq!(
            rows.row(3)
                .and_then(DeviceSlice::to_vec)
                .expect("the row can be read"),
            source[90..]
        );
        let volume = Extent::new_3d(5, 4, 6);
        let pitch = Pitch::tight::<u32>(volume);
        let mut target = DeviceBuffer::<u32>::zeroed(here, 120).expect("memory suffices");
        let grid = buffer
            .as_slice()
            .pitched(volume, pitch)
            .expect("the layers lie within");
        let mut volume = target
            .as_slice_mut()
            .pitched(volume, pitch)
            .expect("the layers lie within");
        volume
            .copy_from_on(there, &grid)
            .expect("the extents are equal");
        assert_eq!(target.to_vec().expect("the buffer can be read"), source);
    });
}

#[test]
fn arrays_are_copied_between_devices_and_from_and_to_memory_of_the_other() {
    with_streams(|test, here, there| {
        let source: Vec<u32> = (0..120).collect();
        let (shape, extent) = (ArrayShape::new_2d(30, 4), Extent::new_2d(30, 4));
        let whole = ArrayRegion::whole(shape);
        let near =
            Array::from_slice(here, &source, shape, ArrayFlags::empty()).expect("memory suffices");
        let far = Array::<u32>::new(there, shape, ArrayFlags::empty()).expect("memory suffices");
        let mut target = DeviceBuffer::<u32>::zeroed(here, 120).expect("memory suffices");
        const PEER: Function = Function::cuMemcpy3DPeerAsync;
        test.assert_calls(PEER, 1, || far.copy_from_array([0; 3], &near, whole))
            .expect("the shapes are equal");
        assert_eq!(far.to_vec().expect("the array can be read"), source);
        test.assert_calls(PEER, 1, || far.copy_to_device(whole, &mut target))
            .expect("the lengths are equal");
        assert_eq!(target.to_vec().expect("the buffer can be read"), source);
        target.as_slice_mut().fill(7).expect("memory can be filled");
        test.assert_calls(PEER, 1, || far.copy_from_device(whole, &target))
            .expect("the lengths are equal");
        assert_eq!(far.to_vec().expect("the array can be read"), [7; 120]);
        // As a batch on a stream of a device that owns neither.
        let grid = target
            .as_slice_mut()
            .pitched(extent, Pitch::tight::<u32>(extent))
            .expect("the rows lie within");
        let batch = CopyBatch::new()
            .copy_from_array(grid, &near, [0; 3])
            .expect("the extents are equal");
        test.assert_calls(PEER, 1, || batch.enqueue(there))
            .expect("it was stored there");
        assert_eq!(target.to_vec().expect("the buffer can be read"), source);
    });
}

#[test]
fn kernel_writes_memory_of_a_pool_of_the_other_device_and_plain_memory() {
    with_streams(|_, here, there| {
        let mut buffer = DeviceBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
        fill(there, &mut buffer, 4);
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [4; LEN]);
        let mut plain =
            DeviceBuffer::<u32, _>::zeroed_in(here, LEN, SyncAlloc).expect("memory suffices");
        fill(there, &mut plain, 5);
        fill(here, &mut plain, 6);
        fill(there, &mut plain, 7);
        assert_eq!(plain.to_vec().expect("the buffer can be read"), [7; LEN]);
    });
}

#[test]
fn kernel_that_uses_plain_memory_of_a_device_without_access_fails() {
    in_own_process(
        "two_devices::kernel_that_uses_plain_memory_of_a_device_without_access_fails",
        || {
            with_streams(|driver, here, there| {
                let plain = DeviceBuffer::<u32, _>::zeroed_in(here, LEN, SyncAlloc)
                    .expect("memory suffices");
                here.synchronize().expect("the stream works");
                let library =
                    Library::from_ptx(there.context(), kernels::FILL).expect("the kernels load");
                let fill = library
                    .kernel::<(DevicePointer<u32>, u32, u32)>("fill")
                    .expect("there is such a kernel");
                let arguments = (plain.as_pointer(), 1, LEN as u32);
                // SAFETY: the memory has this many words; the missing access of the device is the subject of the test.
                unsafe { fill.launch(there, LaunchConfig::for_elements(LEN as u32), arguments) }
                    .expect("it is launched");
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
            });
        },
    );
}

#[test]
fn pool_of_one_device_serves_both() {
    with_streams(|driver, here, there| {
        let pool = MemoryPool::new(here.device()).expect("the device has pools");
        pool.set_access(there.device(), MemoryAccess::ReadWrite)
            .expect("the devices have peer access");
        assert_eq!(
            pool.access(there.device()).expect("the device exists"),
            MemoryAccess::ReadWrite
        );
        let mut first =
            DeviceBuffer::<u32, _>::zeroed_in(here, LEN, pool.clone()).expect("memory suffices");
        let mut second =
            DeviceBuffer::<u32, _>::zeroed_in(there, LEN, pool.clone()).expect("memory suffices");
        fill(there, &mut first, 1);
        fill(there, &mut second, 2);
        assert_eq!(first.to_vec().expect("the buffer can be read"), [1; LEN]);
        assert_eq!(second.to_vec().expect("the buffer can be read"), [2; LEN]);
        drop((first, second));
        driver
            .context()
            .synchronize()
            .expect("the work has completed");
        there.synchronize().expect("the work has completed");
        here.synchronize().expect("the work has completed");
    });
}

#[test]
fn memory_of_the_host_and_managed_memory_are_used_by_both() {
    with_streams(|_, here, there| {
        let mut mapped = MappedBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
        let mut unified = UnifiedBuffer::<u32>::zeroed(here, LEN).expect("memory suffices");
        let library = Library::from_ptx(there.context(), kernels::FILL).expect("the kernels load");
        let fill = library
            .kernel::<(&mut [u32], u32, u32)>("fill")
            .expect("there is such a kernel");
        let config = LaunchConfig::for_elements(LEN as u32);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { fill.launch(there, config, (&mut mapped, 4, LEN as u32)) }
            .expect("it can be launched");
        // SAFETY: as above.
        unsafe { fill.launch(there, config, (&mut unified, 5, LEN as u32)) }
            .expect("it can be launched");
        assert_eq!(mapped.host_view().expect("the work ends")[..], [4; LEN]);
        assert_eq!(unified.host_view().expect("the work ends")[..], [5; LEN]);
        unified
            .as_slice_mut()
            .copy_from_device(&mapped)
            .expect("the lengths are equal");
        assert_eq!(unified.host_view().expect("the work ends")[..], [4; LEN]);
    });
}

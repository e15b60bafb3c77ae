//! A graph outlives its inputs: each object is dropped, and its memory is allocated again by other
//! code, before the graph is launched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use curium_driver::{
    ContextOptions, Error, Event, EventFlags, Graph, GraphExec, LaunchConfig, Library, RecordFlags,
    SafeKernel, Signature, Stream,
};
use curium_memory::copy::CopyBatch;
use curium_memory::{
    Array, ArrayFlags, ArrayShape, CachingOptions, CachingResource, DeviceBuffer, DeviceVec,
    Extent, MemoryPool, Pitch, PitchedBuffer, Surface, SurfaceObject, Texture, TextureObject,
    TextureOptions,
};
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

use super::{LEN, buffer, captured, values};

/// Returns a kernel declared safe for the arguments of these tests.
fn kernel<S: Signature>(test: &TestDriver, ptx: &str, name: &str) -> TestResult<SafeKernel<S>> {
    let kernel = Library::from_ptx(test.driver(), ptx).and_then(|library| library.kernel(name));
    // SAFETY: the tests pass buffers as long as the kernel's comment requires, and the counts that
    // the kernel compares its indices with.
    unsafe { Ok(kernel?.declare_safe()) }
}

/// Allocates memory of all kinds, which would reuse memory that was freed too early.
fn others(test: &TestDriver) -> (Vec<DeviceBuffer<u32>>, Vec<Array<u32>>) {
    let stream = test.stream();
    let buffers = (0..16).map(|value| buffer(&stream, 100 + value)).collect();
    let shape = ArrayShape::new_1d(LEN);
    (
        buffers,
        (0..4)
            .map(|_| {
                Array::from_slice(&stream, &[77; LEN], shape, ArrayFlags::SURFACE)
                    .expect("allocation failed")
            })
            .collect(),
    )
}

/// Launches the graph twice, and checks that it writes `result` and none of the other allocations.
#[track_caller]
fn assert_replays(
    test: &TestDriver,
    executable: &mut GraphExec,
    result: &mut DeviceBuffer<u32>,
    expected: &[u32],
) -> TestResult {
    let (buffers, arrays) = others(test);
    for _ in 0..2 {
        executable.launch(&test.stream())?;
        assert_eq!(values(result)[..expected.len()], *expected);
        result.fill(0)?;
    }
    buffers
        .iter()
        .zip(100..)
        .for_each(|(other, value)| assert_eq!(values(other), [value; LEN]));
    arrays
        .iter()
        .for_each(|other| assert_eq!(other.to_vec().expect("read failed"), [77; LEN]));
    Ok(())
}

#[driver_test]
fn vector_and_rows_outlive_their_owners(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let mut executable = {
        let mut vector = DeviceVec::from_slice(&test.stream(), &[3_u32; LEN])?;
        vector.reserve(1 << 20)?;
        let mut rows = PitchedBuffer::<u32>::zeroed(&test.stream(), LEN / 2, 2)?;
        let executable = captured(test, |scope| {
            vector.slice_mut(..4)?.on_mut(scope).fill(4)?;
            rows.row_mut(1)?
                .on_mut(scope)
                .copy_from_device(&vector.slice(..LEN / 2)?)?;
            result
                .slice_mut(..LEN / 2)?
                .on_mut(scope)
                .copy_from_device(&rows.row(1)?)
        })?;
        vector.truncate(1);
        let error = vector
            .shrink_to_fit()
            .expect_err("the graph needs all of it");
        assert!(
            error.function().is_none() && error.to_string().contains("graph"),
            "{error}"
        );
        vector.push(9)?;
        executable
    };
    let expected: Vec<_> = [4; 4].into_iter().chain([3; LEN / 2 - 4]).collect();
    // The owner's push overlaps the memory that the graph writes.
    assert_replays(test, &mut executable, &mut result, &expected)?;
    Ok(())
}

#[driver_test]
fn vector_that_is_closed_ends_with_its_graph(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let vector = DeviceVec::from_slice(&test.stream(), &[3_u32; LEN])?;
    let mut executable = captured(test, |scope| result.on_mut(scope).copy_from_device(&vector))?;
    vector.close()?;
    assert_replays(test, &mut executable, &mut result, &[3; LEN])?;
    Ok(())
}

#[driver_test]
fn array_and_surface_outlive_their_owners(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let add = kernel::<(SurfaceObject, u32, u32)>(test, kernels::TEXTURE, "surface_add")?;
    let mut executable = {
        let stream = test.stream();
        let start = DeviceBuffer::from_slice(&stream, &[5_u32; LEN])?;
        let line = Array::new(&stream, ArrayShape::new_1d(LEN), ArrayFlags::SURFACE)?;
        let line = Arc::new(line);
        let surface = Surface::new(&line)?;
        let executable = captured(test, |scope| {
            let extent = Extent::new_2d(LEN, 1);
            let pitch = Pitch::from_row_len::<u32>(LEN);
            CopyBatch::new()
                .copy_to_array(&line, [0; 3], start.pitched(extent, pitch)?)?
                .enqueue(scope)?;
            add.launch(scope, LaunchConfig::for_elements(8), (&surface, 8, 8))?;
            let to = result.pitched_mut(extent, pitch)?;
            CopyBatch::new()
                .copy_from_array(to, &line, [0; 3])?
                .enqueue(scope)
        })?;
        let (surface, error) = surface.close().expect_err("the graph uses it").into_parts();
        assert!(error.function().is_none(), "{error}");
        drop(surface);
        executable
    };
    drop(add);
    let expected: Vec<_> = (5..13).chain([5; LEN - 8]).collect();
    assert_replays(test, &mut executable, &mut result, &expected)?;
    Ok(())
}

/// Textures of arrays and buffers outlive their owners.
#[driver_test]
fn textures_outlive_their_owners(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut result = buffer(&origin, 0);
    let read =
        kernel::<(TextureObject, &[f32], &mut [f32], u32)>(test, kernels::TEXTURE, "read_line")?;
    let fetch =
        kernel::<(TextureObject, &[i32], &mut [u32], u32)>(test, kernels::TEXTURE, "fetch")?;
    let mut sampled = DeviceBuffer::<f32>::zeroed(&origin, 4)?;
    let mut executable = {
        let stream = test.stream();
        let line = Array::from_slice(
            &stream,
            &[1.0_f32, 2.0, 4.0, 8.0],
            ArrayShape::new_1d(4),
            ArrayFlags::empty(),
        );
        let line = Texture::from_array(&Arc::new(line?), &TextureOptions::new())?;
        let elements: Vec<u32> = (0..4096).map(|index| index * 3).collect();
        let elements = DeviceBuffer::from_slice(&stream, &elements)?;
        let elements = Texture::from_buffer(&Arc::new(elements), &TextureOptions::new())?;
        let index = DeviceBuffer::from_slice(&stream, &[0.5_f32, 1.5, 2.5, 3.5])?;
        let indices = DeviceBuffer::from_slice(&stream, &[7_i32, 5, 3, 1])?;
        captured(test, |scope| {
            read.launch(
                scope,
                LaunchConfig::for_elements(4),
                (&line, &index, &mut sampled, 4),
            )?;
            fetch.launch(
                scope,
                LaunchConfig::for_elements(4),
                (&elements, &indices, &mut result, 4),
            )
        })?
    };
    assert_replays(test, &mut executable, &mut result, &[21, 15, 9, 3])?;
    assert_eq!(sampled.to_vec()?, [1.0, 2.0, 4.0, 8.0]);
    Ok(())
}

/// Pools outlive their owners with the buffers of them.
#[driver_test]
fn pools_with_buffers_outlive_their_owners(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let mut executable = {
        let stream = test.stream();
        let pool = MemoryPool::new(&test.device())?;
        let caching =
            CachingResource::with_options(&test.context(), &CachingOptions::new().with_cache(true));
        let private = caching.and_then(|caching| caching.private_pool())?;
        let x = DeviceBuffer::from_slice_in(&stream, &[6_u32; LEN], pool)?;
        let y = DeviceBuffer::from_slice_in(&stream, &[7_u32; LEN], private)?;
        captured(test, |scope| {
            result
                .slice_mut(..LEN / 2)?
                .on_mut(scope)
                .copy_from_device(&x.slice(..LEN / 2)?)?;
            result
                .slice_mut(LEN / 2..)?
                .on_mut(scope)
                .copy_from_device(&y.slice(LEN / 2..)?)
        })?
    };
    let expected: Vec<_> = [6; LEN / 2].into_iter().chain([7; LEN / 2]).collect();
    assert_replays(test, &mut executable, &mut result, &expected)?;
    Ok(())
}

#[driver_test]
fn events_outlive_their_owners(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let mut executable = {
        let [inside, outside] = [(); 2].map(|()| {
            Event::new(&test.context(), EventFlags::DISABLE_TIMING)
                .expect("failed to create an event")
        });
        let graph = Graph::capture(&test.context(), |scope| {
            let branch = scope.fork()?;
            result.on_mut(&branch).fill(8)?;
            inside.record(&branch)?;
            scope.wait_event(&inside)?;
            outside.record_with_flags(scope, RecordFlags::EXTERNAL)
        });
        graph.and_then(|graph| graph.instantiate())?
    };
    // Freed memory would be reused here, and recorded by the graph.
    let others = [(); 4].map(|()| {
        Event::new(&test.context(), EventFlags::empty()).expect("failed to create an event")
    });
    assert_replays(test, &mut executable, &mut result, &[8; LEN])?;
    others
        .iter()
        .for_each(|event| assert!(event.is_finished().expect("query failed")));
    Ok(())
}

#[driver_test]
fn context_outlives_its_other_handles(test: &TestDriver) -> TestResult {
    let mut executable = {
        let context = test.device().create_context(ContextOptions::new())?;
        let stream = context.stream()?;
        let mut x = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
        let graph = Graph::capture(&context, |scope| x.on_mut(scope).fill(3));
        graph.and_then(|graph| graph.instantiate())?
    };
    let stream = executable.context().stream()?;
    executable.launch(&stream)?;
    stream.synchronize()?;
    drop(stream);
    drop(executable);
    Ok(())
}

#[driver_test]
fn captured_host_function_keeps_what_it_owns(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let count = Arc::new(AtomicU32::new(0));
    let mut result = buffer(&origin, 0);
    let add = |scope: &curium_driver::CaptureScope, stream: &Stream, more: u32| {
        let counter = Arc::clone(&count);
        scope.add_host(stream, move || {
            counter.fetch_add(more, Ordering::Relaxed);
        })
    };
    let graph = Graph::capture(&test.context(), |scope| {
        add(scope, scope, 1)?;
        let branch = scope.fork()?;
        result.on_mut(&branch).fill(2)?;
        add(scope, &branch, 10)?;
        let error = add(scope, &origin, 100).expect_err("the stream is not part of the capture");
        assert!(
            error.function().is_none()
                && error.to_string().contains("does not belong to the capture"),
            "{error}"
        );
        Ok::<_, Error>(())
    })?;
    let mut executable = graph.instantiate()?;
    assert_eq!(
        (Arc::strong_count(&count), count.load(Ordering::Relaxed)),
        (3, 0),
        "nothing has run"
    );
    drop(graph);
    assert_replays(test, &mut executable, &mut result, &[2; LEN])?;
    assert_eq!(count.load(Ordering::Relaxed), 22);
    drop(executable);
    super::super::graph::keeping::await_last(&count);
    Ok(())
}

#[driver_test]
fn slice_that_is_copied_in_a_capture_keeps_its_values(test: &TestDriver) -> TestResult {
    let mut result = buffer(&test.stream(), 0);
    let mut executable = {
        let mut source: Vec<u32> = (0..LEN as u32).collect();
        let executable = captured(test, |scope| {
            let mut scratch = DeviceBuffer::from_slice(scope, &source)?;
            scratch.slice_mut(..2)?.copy_from_slice(&[50, 51])?;
            result.on_mut(scope).copy_from_device(&scratch)?;
            let error = scratch.to_vec().expect_err("its work cannot be waited for");
            assert!(
                error.function().is_none() && error.to_string().contains("captured"),
                "{error}"
            );
            Ok(())
        })?;
        source.fill(9);
        executable
    };
    let expected: Vec<_> = [50, 51].into_iter().chain(2..LEN as u32).collect();
    assert_replays(test, &mut executable, &mut result, &expected)?;
    Ok(())
}

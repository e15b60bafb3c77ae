//! A launch and a graph update allocate no memory.
#![cfg(not(miri))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use curium_driver::{
    DevicePointer, Driver, FillValue, Graph, GraphFill, LaunchAttributes, LaunchConfig, Library,
    Stream,
};
use curium_memory::DeviceBuffer;
use curium_tests::{TestResult, idle_driver, kernels, uses_cuda};

/// The system allocator, with a counter of the requests of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every request is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the layout is guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer was returned by `alloc`, and thus by the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the pointer was returned by `alloc`, and thus by the system allocator; the caller
        // guarantees the rest.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the number of allocations of this thread during `operation`.
fn allocations(operation: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    operation();
    ALLOCATIONS.get() - before
}

#[test]
fn launch_allocates_nothing() -> TestResult {
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        idle_driver()
    };
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let own = context.stream()?;
    let other = context.stream()?;
    let saxpy = Library::from_ptx(&driver, kernels::SAXPY)?;
    let saxpy = saxpy.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;
    let x = DeviceBuffer::from_slice(&own, &[1.0; 256])?;
    let mut y = DeviceBuffer::from_slice(&own, &[2.0; 256])?;
    let mut z = DeviceBuffer::from_slice(&other, &[3.0; 256])?;
    let config = LaunchConfig::for_elements(256);
    let mut launch = || {
        // SAFETY: `saxpy` reads x, writes y, and guards its index with the length of both.
        unsafe { saxpy.launch(&own, config, (2.0, &x, &mut y, 256)) }.expect("it launches");
        // SAFETY: `saxpy` reads x, writes y, and guards its index with the length of both.
        unsafe {
            saxpy.launch_with(
                &own,
                config,
                &LaunchAttributes::new(),
                (2.0, &x, &mut y, 256),
            )
        }
        .expect("it launches");
        // SAFETY: `saxpy` reads x, writes y, and guards its index with the length of both; with z
        // in place of y.
        unsafe { saxpy.launch(&other, config, (2.0, &x, &mut z, 256)) }.expect("it launches");
    };
    assert!(
        allocations(&mut launch) > 0,
        "the first use on another stream allocates a record, so the counter works"
    );
    assert_eq!(allocations(|| (0..100).for_each(|_| launch())), 0);
    own.synchronize().and_then(|()| other.synchronize())?;
    Ok(())
}

#[test]
fn graph_launch_allocates_nothing() -> TestResult {
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        idle_driver()
    };
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let own = context.stream()?;
    let other = context.stream()?;
    let buffer = DeviceBuffer::from_slice(&own, &[1_u32; 256])?;
    let mut graph = Graph::new(&context)?;
    let fill = GraphFill::new(buffer.as_pointer().cast(), FillValue::U32(2), 256);
    for _ in 0..20 {
        // SAFETY: the buffer has this length and outlives the launches, which are waited for.
        unsafe { graph.add_fill(&[], fill) }?;
    }
    let mut exec = graph.instantiate()?;
    let mut launch = || {
        exec.launch(&own).expect("launch failed");
        exec.launch(&other).expect("launch failed");
    };
    launch();
    assert_eq!(allocations(|| (0..100).for_each(|_| launch())), 0);
    own.synchronize().and_then(|()| other.synchronize())?;
    Ok(())
}

#[test]
fn graph_launch_with_leases() -> TestResult {
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        idle_driver()
    };
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let own = context.stream()?;
    let other = context.stream()?;
    let x = DeviceBuffer::from_slice(&own, &[1_u32; 256])?;
    let mut y = DeviceBuffer::from_slice(&own, &[2_u32; 256])?;
    let graph = Graph::capture(&context, |scope| y.on_mut(scope).copy_from_device(&x));
    let mut exec = graph.and_then(|graph| graph.instantiate())?;
    let mut launch = |stream: &Stream| exec.launch(stream).expect("launch failed");
    launch(&own);
    assert_eq!(allocations(|| (0..100).for_each(|_| launch(&own))), 0);
    let first = allocations(|| launch(&other));
    assert!(
        first > 0,
        "the first wait on another stream allocates a record, so the counter works"
    );
    launch(&own);
    let mut alternate = || [&other, &own].into_iter().for_each(&mut launch);
    assert_eq!(allocations(|| (0..100).for_each(|_| alternate())), 0);
    own.synchronize().and_then(|()| other.synchronize())?;
    Ok(())
}

#[test]
fn node_update_allocates_nothing() -> TestResult {
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        idle_driver()
    };
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let fill = Library::from_ptx(&driver, kernels::FILL)?;
    let fill = fill.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let mut graph = Graph::new(&context)?;
    let pointer = DevicePointer::from_raw(0);
    // SAFETY: the kernel writes the number of words in its argument, which is zero.
    let node = unsafe { graph.add_kernel(&[], &fill, LaunchConfig::new(1, 32), (pointer, 0, 0)) }?;
    let mut exec = graph.instantiate()?;
    let mut update = |value| {
        // SAFETY: the kernel writes the number of words in its argument, which is zero.
        unsafe { exec.set_kernel(&node, (pointer, value, 0)) }.expect("it fits");
    };
    assert!(
        allocations(|| update(1)) > 0,
        "the first update of a node allocates a record, so the counter works"
    );
    assert_eq!(allocations(|| (0..100).for_each(&mut update)), 0);
    drop(graph);
    assert_eq!(allocations(|| (0..100).for_each(&mut update)), 0);
    Ok(())
}

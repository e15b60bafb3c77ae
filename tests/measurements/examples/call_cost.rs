//! Launches a kernel many times, or updates the arguments of a graph node, as a C program does or
//! through Curium, with driver functions that do nothing: `cargo xtask cost` counts the
//! instructions of both.
//!
//! Usage: `call_cost MODE COUNT`. A mode is the name of the function that is counted.

use std::error::Error;
use std::ffi::c_void;
use std::hint::black_box;

use curium_driver::AsRawStream as _;
use curium_driver::sys::{
    Api, CUDA_KERNEL_NODE_PARAMS, CUcontext, CUdeviceptr, CUfunction, CUgraphExec, CUgraphNode,
    CUresult, CUstream,
};
use curium_driver::{
    Context, DevicePointer, Graph, GraphExec, Kernel, KernelNode, LaunchConfig, Library, Result,
    Stream,
};
use curium_memory::DeviceBuffer;
use curium_tests::{idle_driver, kernels};

type Saxpy = (f32, &'static [f32], &'static mut [f32], u32);

const COUNT: u32 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else {
        return Err("usage: call_cost MODE COUNT".into());
    };
    let driver = idle_driver();
    let count = count.parse()?;
    let context = driver.device(0)?.primary_context()?;
    let saxpy = Library::from_ptx(&driver, kernels::SAXPY)?.kernel("saxpy")?;
    match mode.as_str() {
        "c_launches" | "curium_launches" | "leased_launches" => {
            launches(mode, &context, &saxpy, count)
        }
        "c_updates" | "curium_updates" => updates(mode, &context, &saxpy, count),
        "c_graph_launches" | "curium_graph_launches" => graph_launches(mode, &context, count),
        other => Err(format!("there is no mode {other}").into()),
    }
}

fn launches(
    mode: &str,
    context: &Context,
    saxpy: &Kernel<Saxpy>,
    count: u64,
) -> Result<(), Box<dyn Error>> {
    let stream = context.stream()?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0; COUNT as usize])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[2.0; COUNT as usize])?;
    if mode == "curium_launches" {
        return Ok(curium_launches(saxpy, &stream, &x, &mut y, count)?);
    }
    if mode == "leased_launches" {
        // The graph reads one buffer and writes the other.
        let _graph = Graph::capture(context, |scope| y.on_mut(scope).copy_from_device(&x))?;
        return Ok(leased_launches(saxpy, &stream, &x, &mut y, count)?);
    }
    let x = x.as_pointer().as_raw();
    let y = y.as_pointer().as_raw();
    c_launches(
        context.driver().api(),
        saxpy.as_raw(),
        stream.as_raw(),
        x,
        y,
        count,
    )
    .map_err(code_error)
}

fn updates(
    mode: &str,
    context: &Context,
    saxpy: &Kernel<Saxpy>,
    count: u64,
) -> Result<(), Box<dyn Error>> {
    let mut graph = Graph::new(context)?;
    let pointer = DevicePointer::from_raw(0);
    // SAFETY: the graph is not launched.
    let node = unsafe {
        graph.add_kernel(
            &[],
            saxpy,
            LaunchConfig::for_elements(COUNT as usize),
            (2.0, pointer, pointer, COUNT),
        )
    }?;
    let mut exec = graph.instantiate()?;
    let raw = graph.as_raw_node(*node)?;
    drop(graph);
    if mode == "curium_updates" {
        return Ok(curium_updates(&mut exec, &node, count)?);
    }
    let node = Node {
        exec: exec.as_raw(),
        node: raw,
        kernel: saxpy.as_raw(),
        context: context.as_raw(),
    };
    c_updates(context.driver().api(), &node, count).map_err(code_error)
}

fn graph_launches(mode: &str, context: &Context, count: u64) -> Result<(), Box<dyn Error>> {
    let mut exec = Graph::new(context)?.instantiate()?;
    let stream = context.stream()?;
    if mode == "curium_graph_launches" {
        return Ok(curium_graph_launches(&mut exec, &stream, count)?);
    }
    c_graph_launches(
        context.driver().api(),
        exec.as_raw(),
        stream.as_raw(),
        count,
    )
    .map_err(code_error)
}

fn code_error(code: CUresult) -> Box<dyn Error> {
    format!("a call returned {}", code.0).into()
}

/// Launches as a C program does: the addresses of the arguments, the call, and a check of its
/// result.
#[inline(never)]
fn c_launches(
    api: &Api,
    kernel: CUfunction,
    stream: CUstream,
    x: CUdeviceptr,
    y: CUdeviceptr,
    count: u64,
) -> Result<(), CUresult> {
    let config = LaunchConfig::for_elements(COUNT as usize);
    for _ in 0..count {
        // SAFETY: `main` set a function there.
        let launch = unsafe { black_box(api).cuLaunchKernel.unwrap_unchecked() };
        let config = *black_box(&config);
        let grid = config.grid;
        let block = config.block;
        let kernel = black_box(kernel);
        let stream = black_box(stream);
        let shared = config.shared_bytes;
        let mut a = 2.0_f32;
        let mut x = x;
        let mut y = y;
        let mut n = COUNT;
        let mut arguments = [
            (&raw mut a).cast(),
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast::<c_void>(),
        ];
        let extra = std::ptr::null_mut();
        // SAFETY: this launch does nothing.
        let code = unsafe {
            launch(
                kernel,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared,
                stream,
                arguments.as_mut_ptr(),
                extra,
            )
        };
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_launches(
    kernel: &Kernel<Saxpy>,
    stream: &Stream,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    let config = LaunchConfig::for_elements(COUNT as usize);
    for _ in 0..count {
        let kernel = black_box(kernel);
        let stream = black_box(stream);
        // SAFETY: this launch does nothing.
        unsafe { kernel.launch(stream, *black_box(&config), (2.0, x, &mut *y, COUNT)) }?;
    }
    Ok(())
}

/// Launches with buffers that a graph leases.
#[inline(never)]
fn leased_launches(
    kernel: &Kernel<Saxpy>,
    stream: &Stream,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    curium_launches(kernel, stream, x, y, count)
}

/// A node of an executable graph as a C program holds it.
struct Node {
    exec: CUgraphExec,
    node: CUgraphNode,
    kernel: CUfunction,
    context: CUcontext,
}

/// Updates as a C program does: the addresses of the arguments, the parameters of the node, the
/// call, and a check of its result.
#[inline(never)]
fn c_updates(api: &Api, node: &Node, count: u64) -> Result<(), CUresult> {
    let config = LaunchConfig::for_elements(COUNT as usize);
    for _ in 0..count {
        // SAFETY: the simulator set a function there, and `idle_driver` replaced it by another.
        let update = unsafe {
            black_box(api)
                .cuGraphExecKernelNodeSetParams_v2
                .unwrap_unchecked()
        };
        let node = black_box(node);
        let config = *black_box(&config);
        let mut a = 2.0_f32;
        let mut x = 0_u64;
        let mut y = 0_u64;
        let mut n = COUNT;
        let mut arguments = [
            (&raw mut a).cast(),
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast::<c_void>(),
        ];
        let params = CUDA_KERNEL_NODE_PARAMS {
            kern: node.kernel.cast(),
            ctx: node.context,
            gridDimX: config.grid.x,
            gridDimY: config.grid.y,
            gridDimZ: config.grid.z,
            blockDimX: config.block.x,
            blockDimY: config.block.y,
            blockDimZ: config.block.z,
            sharedMemBytes: config.shared_bytes,
            kernelParams: arguments.as_mut_ptr(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        };
        // SAFETY: this update does nothing.
        let code = unsafe { update(node.exec, node.node, &raw const params) };
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_updates(exec: &mut GraphExec, node: &KernelNode<Saxpy>, count: u64) -> Result<()> {
    let pointer = DevicePointer::from_raw(0);
    for _ in 0..count {
        let exec = black_box(&mut *exec);
        let node = black_box(node);
        // SAFETY: this update does nothing.
        unsafe { exec.set_kernel(node, (2.0, pointer, pointer, COUNT)) }?;
    }
    Ok(())
}

/// Launches a graph as a C program does: the call, and a test of its result.
#[inline(never)]
fn c_graph_launches(
    api: &Api,
    exec: CUgraphExec,
    stream: CUstream,
    count: u64,
) -> Result<(), CUresult> {
    for _ in 0..count {
        // SAFETY: `idle_driver` has put a function there.
        let launch = unsafe { black_box(api).cuGraphLaunch.unwrap_unchecked() };
        // SAFETY: this launch does nothing.
        let code = unsafe { launch(black_box(exec), black_box(stream)) };
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_graph_launches(exec: &mut GraphExec, stream: &Stream, count: u64) -> Result<()> {
    for _ in 0..count {
        black_box(&mut *exec).launch(black_box(stream))?;
    }
    Ok(())
}

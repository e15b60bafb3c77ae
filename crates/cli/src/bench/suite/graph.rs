//! The host cost of graphs: launching a chain of small kernels, running a graph of many nodes, and
//! updating the arguments of a node.

use std::ffi::c_void;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::driver::{GraphExec, KernelNode};
use curium::prelude::{
    Context, DeviceBuffer, DevicePointer, Graph, Kernel, LaunchConfig, Library, Stream,
};
use curium::sys::{CUDA_KERNEL_NODE_PARAMS, CUgraphNode};

use super::{Implementation, Measurement, Observer, Plan, call};

type Empty = (&'static mut [f32], u32);

const PTX: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry empty(.param .u64 x, .param .u32 n)\n{\n ret;\n}\n";

/// Launches of a chain of 20 kernels, without waiting; nanoseconds per launch.
const CHAIN: &str = "graph/chain/20";
/// One launch of a chain of 1,000 kernels, with waiting; nanoseconds.
const NODES: &str = "graph/nodes/1000";
/// Updates of one node's arguments; nanoseconds per update.
const UPDATE: &str = "graph/update/1";
/// Launches of a captured chain of 20 kernels with leased buffers, without waiting; nanoseconds per
/// launch.
const LEASED: [(&str, usize); 3] = [
    ("graph/leased/1", 1),
    ("graph/leased/8", 8),
    ("graph/leased/64", 64),
];
/// The minimum number of kernels in the captured chain.
const LEASED_KERNELS: usize = 20;

/// The number of kernel launches that count as one launch of a chain, which runs as long as all of
/// its kernels together.
const KERNELS_PER_LAUNCH: usize = 10;

/// An executable graph with a chain of empty kernels.
struct Chain {
    exec: GraphExec,
    first: KernelNode<Empty>,
    /// The raw handles for C: the executable graph keeps its graph alive.
    raw_first: CUgraphNode,
    stream: Stream,
}

/// Repeats an operation on a chain, and returns the elapsed time.
type Operation = fn(&mut Chain, Implementation, usize) -> Result<Duration>;

pub(super) fn ids() -> Vec<String> {
    [CHAIN, NODES, UPDATE]
        .into_iter()
        .chain(LEASED.map(|(id, _)| id))
        .map(str::to_owned)
        .collect()
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    let batch = (plan.launches / KERNELS_PER_LAUNCH).max(1);
    let chains: [(&str, usize, usize, Operation); 3] = [
        (CHAIN, 20, batch, Chain::measure_launches),
        (NODES, 1_000, 1, Chain::measure_completions),
        (UPDATE, 20, plan.launches, Chain::measure_updates),
    ];
    for (id, kernels, batch, operation) in chains {
        if plan.wants(id) {
            let mut chain = Chain::new(context, kernels)?;
            let measurement = Measurement::new(
                id.to_owned(),
                plan.rounds,
                [batch; 2],
                |implementation, count| operation(&mut chain, implementation, count),
            );
            observe(measurement.compare()?)?;
        }
    }
    for (id, buffers) in LEASED {
        if plan.wants(id) {
            let mut leased = Leased::new(context, buffers)?;
            let measurement = Measurement::new(
                id.to_owned(),
                plan.rounds,
                [batch; 2],
                |implementation, count| leased.measure_launches(implementation, count),
            );
            observe(measurement.compare()?)?;
        }
    }
    Ok(())
}

impl Chain {
    fn new(context: &Context, len: usize) -> Result<Self> {
        let kernel: Kernel<Empty> = Library::from_ptx(context.driver(), PTX)?.kernel("empty")?;
        let mut graph = Graph::new(context)?;
        let config = LaunchConfig::new(1, 32);
        let arguments = (DevicePointer::from_raw(0), 0);
        // SAFETY: the kernel does nothing.
        let first = unsafe { graph.add_kernel(&[], &kernel, config, arguments) }?;
        let mut last = *first;
        for _ in 1..len {
            // SAFETY: the kernel does nothing.
            last = *unsafe { graph.add_kernel(&[last], &kernel, config, arguments) }?;
        }
        let mut exec = graph.instantiate()?;
        let stream = context.stream()?;
        let raw_first = graph.as_raw_node(*first)?;
        exec.launch(&stream)?;
        stream.synchronize()?;
        Ok(Self {
            exec,
            first,
            raw_first,
            stream,
        })
    }

    /// Measures launches without waiting.
    fn measure_launches(
        &mut self,
        implementation: Implementation,
        count: usize,
    ) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|_| self.launch(implementation))?;
        let time = begin.elapsed();
        self.stream.synchronize()?;
        Ok(time)
    }

    /// Measures launches, each with waiting.
    fn measure_completions(
        &mut self,
        implementation: Implementation,
        count: usize,
    ) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            self.launch(implementation)?;
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }

    fn measure_updates(
        &mut self,
        implementation: Implementation,
        count: usize,
    ) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|value| self.update(implementation, value as u32))?;
        Ok(begin.elapsed())
    }

    #[inline]
    fn launch(&mut self, implementation: Implementation) -> Result<()> {
        match implementation {
            Implementation::C => launch_as_c(&self.exec, &self.stream),
            Implementation::Curium => launch_as_curium(&mut self.exec, &self.stream),
        }
    }

    #[inline]
    fn update(&mut self, implementation: Implementation, value: u32) -> Result<()> {
        match implementation {
            Implementation::C => self.update_as_c(value),
            Implementation::Curium => self.update_as_curium(value),
        }
    }

    /// Updates the node as a C program does: addresses of the arguments, parameters, call, check.
    #[inline(never)]
    fn update_as_c(&mut self, value: u32) -> Result<()> {
        let mut x = 0_u64;
        let mut n = black_box(value);
        let mut arguments: [*mut c_void; 2] = [(&raw mut x).cast(), (&raw mut n).cast()];
        let params = CUDA_KERNEL_NODE_PARAMS {
            kern: self.first.kernel().as_raw().cast(),
            ctx: self.stream.context().as_raw(),
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: arguments.as_mut_ptr(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        };
        // SAFETY: the executable graph, the node and the kernel are live, and the kernel has
        // parameters of these sizes, which it ignores.
        unsafe {
            call!(
                self.stream.driver(),
                cuGraphExecKernelNodeSetParams_v2(
                    self.exec.as_raw(),
                    self.raw_first,
                    &raw const params,
                )
            )
        }
    }

    #[inline(never)]
    fn update_as_curium(&mut self, value: u32) -> Result<()> {
        let arguments = (DevicePointer::from_raw(0), black_box(value));
        // SAFETY: the kernel does nothing.
        unsafe { self.exec.set_kernel(&self.first, arguments) }?;
        Ok(())
    }
}

/// An executable graph from a capture that leases buffers.
struct Leased {
    exec: GraphExec,
    stream: Stream,
    _buffers: Vec<DeviceBuffer<f32>>,
}

impl Leased {
    fn new(context: &Context, count: usize) -> Result<Self> {
        let kernel: Kernel<Empty> = Library::from_ptx(context.driver(), PTX)?.kernel("empty")?;
        let stream = context.stream()?;
        let config = LaunchConfig::new(1, 32);
        let mut buffers = (0..count)
            .map(|_| DeviceBuffer::zeroed(&stream, 32))
            .collect::<Result<Vec<_>, _>>()?;
        let graph = Graph::capture(context, |scope| {
            (0..LEASED_KERNELS.max(count)).try_for_each(|index| {
                let buffer = &mut buffers[index % count];
                // SAFETY: the kernel does nothing.
                unsafe { kernel.launch(scope, config, (buffer, 0)) }
            })
        })?;
        let mut exec = graph.instantiate()?;
        exec.launch(&stream)?;
        stream.synchronize()?;
        Ok(Self {
            exec,
            stream,
            _buffers: buffers,
        })
    }

    /// Measures launches without waiting.
    fn measure_launches(
        &mut self,
        implementation: Implementation,
        count: usize,
    ) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|_| match implementation {
            Implementation::C => launch_as_c(&self.exec, &self.stream),
            Implementation::Curium => launch_as_curium(&mut self.exec, &self.stream),
        })?;
        let time = begin.elapsed();
        self.stream.synchronize()?;
        Ok(time)
    }
}

/// Launches the graph once. The leased buffers are used on this stream only.
#[inline(never)]
pub(super) fn launch_as_c(exec: &GraphExec, stream: &Stream) -> Result<()> {
    // SAFETY: the executable graph, the stream and the memory of its nodes are live, and used on
    // this stream only.
    unsafe {
        call!(
            stream.driver(),
            cuGraphLaunch(exec.as_raw(), stream.as_raw())
        )
    }
}

#[inline(never)]
fn launch_as_curium(exec: &mut GraphExec, stream: &Stream) -> Result<()> {
    Ok(exec.launch(stream)?)
}

//! The host cost of graphs: launching a chain of small kernels, running a graph of many nodes, and updating the
//! arguments of a node.

use std::ffi::c_void;
use std::hint::black_box;
use std::time::{Duration, Instant};

use curium_driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUgraphNode};
use curium_driver::{
    Context, DevicePointer, Function, Graph, GraphExec, Kernel, KernelNode, LaunchConfig, Library,
    Stream,
};

use curium_memory::DeviceBuffer;

use crate::error::checked;
use crate::{Error, Measurement, Plan, Result, Visit, Way};

type Nothing = (&'static mut [f32], u32);

const NOTHING: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry nothing(.param .u64 x, .param .u32 n)\n{\n ret;\n}\n";

/// Launches of a chain of 20 kernels, without waiting; nanoseconds per launch.
const CHAIN: &str = "graph/chain/20";
/// One launch of a chain of 1,000 kernels, with waiting; nanoseconds.
const NODES: &str = "graph/nodes/1000";
/// Updates of one node's arguments; nanoseconds per update.
const UPDATE: &str = "graph/update/1";
/// Launches of a captured chain of 20 kernels with leased buffers, without waiting; nanoseconds per launch.
const LEASED: [(&str, usize); 3] = [
    ("graph/leased/1", 1),
    ("graph/leased/8", 8),
    ("graph/leased/64", 64),
];
/// The minimum number of kernels in the captured chain.
const LEASED_KERNELS: usize = 20;

/// The number of kernel launches that count as one launch of a chain, which runs as long as all of its kernels
/// together.
const KERNELS_PER_LAUNCH: usize = 10;

/// An executable graph with a chain of empty kernels.
struct Chain {
    exec: GraphExec,
    first: KernelNode<Nothing>,
    /// The raw handles for C: the executable graph keeps its graph alive.
    raw_first: CUgraphNode,
    stream: Stream,
}

/// An operation on a chain, repeated in one way.
type Run = fn(&mut Chain, Way, usize) -> Result<Duration>;

pub(crate) fn ids(_plan: &Plan) -> Vec<String> {
    [CHAIN, NODES, UPDATE]
        .into_iter()
        .chain(LEASED.map(|(id, _)| id))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    let measurement = |id: &str, batch, run| -> Result<_> {
        let (mut chain, run): (_, Run) = (
            Chain::new(context, if id == NODES { 1_000 } else { 20 })?,
            run,
        );
        Ok(Measurement::new(
            id.to_owned(),
            plan.rounds,
            [batch; 2],
            move |way, count| run(&mut chain, way, count),
        ))
    };
    if plan.wants(CHAIN) {
        visit(&mut measurement(
            CHAIN,
            (plan.launches / KERNELS_PER_LAUNCH).max(1),
            Chain::launches,
        )?)?;
    }
    if plan.wants(NODES) {
        visit(&mut measurement(NODES, 1, Chain::runs)?)?;
    }
    if plan.wants(UPDATE) {
        visit(&mut measurement(UPDATE, plan.launches, Chain::updates)?)?;
    }
    for (id, buffers) in LEASED {
        if plan.wants(id) {
            let (batch, mut leased) = (
                (plan.launches / KERNELS_PER_LAUNCH).max(1),
                Leased::new(context, buffers)?,
            );
            let launches = move |way, count| leased.launches(way, count);
            visit(&mut Measurement::new(
                id.to_owned(),
                plan.rounds,
                [batch; 2],
                launches,
            ))?;
        }
    }
    Ok(())
}

impl Chain {
    fn new(context: &Context, len: usize) -> Result<Self> {
        let kernel: Kernel<Nothing> =
            Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?;
        let (mut graph, config) = (Graph::new(context)?, LaunchConfig::new(1, 32));
        let arguments = || (DevicePointer::from_raw(0), 0);
        // SAFETY: the kernel does nothing.
        let first = unsafe { graph.add_kernel(&[], &kernel, config, arguments()) }?;
        let mut last = *first;
        for _ in 1..len {
            // SAFETY: as above.
            last = *unsafe { graph.add_kernel(&[last], &kernel, config, arguments()) }?;
        }
        let (mut exec, stream, raw_first) = (
            graph.instantiate()?,
            context.stream()?,
            graph.as_raw_node(*first)?,
        );
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
    fn launches(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|_| self.launch(way))?;
        let time = begin.elapsed();
        self.stream.synchronize()?;
        Ok(time)
    }

    /// Measures launches, each with waiting.
    fn runs(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            self.launch(way)?;
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }

    fn updates(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|value| self.update(way, value as u32))?;
        Ok(begin.elapsed())
    }

    #[inline]
    fn launch(&mut self, way: Way) -> Result<()> {
        match way {
            Way::C => launch_as_c(&self.exec, &self.stream),
            Way::Curium => launch_as_curium(&mut self.exec, &self.stream),
        }
    }

    #[inline]
    fn update(&mut self, way: Way, value: u32) -> Result<()> {
        match way {
            Way::C => self.update_as_c(value),
            Way::Curium => self.update_as_curium(value),
        }
    }

    /// Updates the node as a C program does: addresses of the arguments, parameters, call, check.
    #[inline(never)]
    fn update_as_c(&mut self, value: u32) -> Result<()> {
        let function = Function::cuGraphExecKernelNodeSetParams_v2;
        let update = self
            .stream
            .driver()
            .api()
            .cuGraphExecKernelNodeSetParams_v2
            .ok_or(Error::Missing(function))?;
        let (mut x, mut n) = (0_u64, black_box(value));
        let mut places = [(&raw mut x).cast(), (&raw mut n).cast::<c_void>()];
        let params = CUDA_KERNEL_NODE_PARAMS {
            kern: self.first.kernel().as_raw().cast(),
            ctx: self.stream.context().as_raw(),
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: places.as_mut_ptr(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        };
        // SAFETY: the executable graph, the node and the kernel are live, and the kernel has parameters of these sizes, which it ignores.
        checked(function, unsafe {
            update(self.exec.as_raw(), self.raw_first, &raw const params)
        })
    }

    #[inline(never)]
    fn update_as_curium(&mut self, value: u32) -> Result<()> {
        let arguments = (DevicePointer::from_raw(0), black_box(value));
        // SAFETY: the kernel does nothing.
        Ok(unsafe { self.exec.set_kernel(&self.first, arguments) }?)
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
        let kernel: Kernel<Nothing> =
            Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?;
        let (stream, config) = (context.stream()?, LaunchConfig::new(1, 32));
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
    fn launches(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        (0..count).try_for_each(|_| match way {
            Way::C => launch_as_c(&self.exec, &self.stream),
            Way::Curium => launch_as_curium(&mut self.exec, &self.stream),
        })?;
        let time = begin.elapsed();
        self.stream.synchronize()?;
        Ok(time)
    }
}

/// Launches the graph once. The leased buffers are used on this stream only.
#[inline(never)]
pub(crate) fn launch_as_c(exec: &GraphExec, stream: &Stream) -> Result<()> {
    let function = Function::cuGraphLaunch;
    let launch = stream
        .driver()
        .api()
        .cuGraphLaunch
        .ok_or(Error::Missing(function))?;
    // SAFETY: the executable graph, the stream and the memory of its nodes are live, and used on this stream only.
    checked(function, unsafe { launch(exec.as_raw(), stream.as_raw()) })
}

#[inline(never)]
fn launch_as_curium(exec: &mut GraphExec, stream: &Stream) -> Result<()> {
    Ok(exec.launch(stream)?)
}

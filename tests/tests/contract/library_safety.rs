//! Hostile programs without `unsafe` code against the bindings of cuBLAS, cuRAND, cuFFT and NCCL:
//! types that implement their traits and lie, memory of a handle that other work uses, and extreme
//! shapes.
#![cfg(not(miri))]

use std::cell::OnceCell;
use std::error::Error;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use curium_blas::lt::{BlasLt, Matmul, MatmulPlan, PlanOptions, TypedLayout};
use curium_blas::{
    BandLayout, Banded, Batches, Blas, Matrix, MatrixLayout, MatrixMut, Packed, Triangle, Vector,
    VectorMut,
};
use curium_driver::{Graph, GraphExec, Stream};
use curium_fft::{Complex32, Embedding, Plan, Shape};
use curium_memory::{DeviceBuffer, DeviceSlice, PinnedBuffer, PinnedFlags, copy};
use curium_nccl::{Communicator, Operation, Reduction, RegisteredBuffer, UniqueId};
use curium_rand::{
    Algorithm, Generator, Mrg32k3a, Mt19937, Mtgp32, Philox4x32, ScrambledSobol32,
    ScrambledSobol64, Sobol32, Sobol64, Xorwow,
};
use curium_sim::{Checks, Config, Simulator};
use curium_sim_libraries::{cublas, cublaslt, cufft, curand, nccl};
use curium_tests::{TestDriver, on_simulator};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Runs a test on a simulator that checks races between streams, and expects that it reports no
/// error.
fn on_checked_simulator(test: fn(&TestDriver) -> Result) -> Result {
    let config = Config::new()
        .with_race_checks(true)
        .with_checks(Checks::Quiet);
    let mut result = Ok(());
    on_simulator(config, |driver, simulator: &Simulator| {
        result = test(driver);
        let reports = simulator.reports();
        assert!(reports.is_empty(), "{reports:?}");
    });
    result
}

/// Memory that is long when it is read, and short when it is written.
struct Shrinking {
    long: DeviceBuffer<f32>,
    short: DeviceBuffer<f32>,
}

impl Deref for Shrinking {
    type Target = DeviceSlice<f32>;

    fn deref(&self) -> &DeviceSlice<f32> {
        self.long.as_slice()
    }
}

impl DerefMut for Shrinking {
    fn deref_mut(&mut self) -> &mut DeviceSlice<f32> {
        self.short.as_slice_mut()
    }
}

/// The length and the address of the numbers are those of one view.
#[test]
fn generator_takes_one_view() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let mut output = Shrinking {
            long: DeviceBuffer::zeroed(&stream, 4096)?,
            short: DeviceBuffer::zeroed(&stream, 16)?,
        };
        let mut generator = Generator::<Philox4x32>::seeded(&curand(), &stream, 1)?;
        generator.uniform(&mut output)?;
        assert!(output.short.to_vec()?.iter().all(|number| *number > 0.0));
        assert!(output.long.to_vec()?.iter().all(|number| *number == 0.0));
        Ok(())
    })
}

/// Memory that is freed and allocated again when it is viewed for a second time.
struct Replacing {
    buffer: DeviceBuffer<f32>,
    views: Arc<AtomicUsize>,
}

impl Deref for Replacing {
    type Target = DeviceSlice<f32>;

    fn deref(&self) -> &DeviceSlice<f32> {
        self.views.fetch_add(1, Ordering::Relaxed);
        self.buffer.as_slice()
    }
}

impl DerefMut for Replacing {
    fn deref_mut(&mut self) -> &mut DeviceSlice<f32> {
        if self.views.fetch_add(1, Ordering::Relaxed) > 0
            && let Ok(buffer) = DeviceBuffer::zeroed(self.buffer.stream(), 64)
        {
            self.buffer = buffer;
        }
        self.buffer.as_slice_mut()
    }
}

/// The memory that NCCL has registered is the memory of the operations, and is freed after the
/// registration.
#[test]
fn registration_keeps_the_view() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut communicator = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let views = Arc::new(AtomicUsize::new(0));
        let memory = Replacing {
            buffer: DeviceBuffer::from_slice(&stream, &[3.0; 1024])?,
            views: Arc::clone(&views),
        };
        let address = memory.buffer.as_pointer().as_raw();
        let mut registered = communicator.register(memory)?;
        communicator.all_reduce_in_place(&stream, &mut registered, Reduction::Sum)?;
        assert_eq!(registered.to_vec()?, [3.0; 1024]);
        let viewed = registered.slice_mut(..)?.as_pointer().as_raw();
        assert_eq!(viewed, address);
        let memory = registered.into_inner()?;
        assert_eq!(memory.buffer.as_pointer().as_raw(), address);
        assert_eq!(views.load(Ordering::Relaxed), 1);
        let dropped = communicator.register(memory)?;
        drop(dropped);
        assert_eq!(views.load(Ordering::Relaxed), 2);
        Ok(())
    })
}

/// The workspace of a plan that was created in a capture is memory of the graph.
#[test]
fn captured_plan_is_refused() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let other = test.stream();
        let mut data = DeviceBuffer::<Complex32>::zeroed(&stream, 64)?;
        let mut more = DeviceBuffer::<Complex32>::zeroed(&stream, 64)?;
        let mut retained = None;
        let graph = Graph::capture(stream.context(), |scope| {
            let plan = Plan::<Complex32, Complex32>::new(&cufft(), scope, &Shape::new([64]))?;
            retained.insert(plan).forward_in_place(&mut data)
        })?;
        let mut plan = retained.ok_or("no plan")?;
        let mut executable = graph.instantiate()?;
        expect_refused(plan.forward_in_place(&mut more), "capture")?;
        executable.launch(&other)?;
        expect_refused(plan.forward_in_place(&mut more), "capture")?;
        drop((executable, graph));
        expect_refused(plan.forward_in_place(&mut more), "capture")
    })
}

/// As for a plan; also if the workspace is the library's own.
#[test]
fn captured_blas_is_refused() -> Result {
    on_checked_simulator(|test| {
        for has_workspace in [true, false] {
            let stream = test.stream();
            let other = test.stream();
            let mut a = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
            let mut b = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
            let mut retained = None;
            let graph = Graph::capture(stream.context(), |scope| {
                let mut blas = Blas::new(&cublas(), scope)?;
                if !has_workspace {
                    blas.set_workspace(0)?;
                }
                retained.insert(blas).scal(2.0, &mut VectorMut::new(&mut a))
            })?;
            let mut blas = retained.ok_or("no handle")?;
            let mut executable = graph.instantiate()?;
            executable.launch(&other)?;
            expect_refused(blas.scal(2.0, &mut VectorMut::new(&mut b)), "capture")?;
            drop((executable, graph));
        }
        Ok(())
    })
}

fn expect_refused<E: Error>(result: std::result::Result<(), E>, reason: &str) -> Result {
    let error = result.err().ok_or("the operation was accepted")?;
    if error.to_string().contains(reason) {
        Ok(())
    } else {
        Err(format!("another error: {error}").into())
    }
}

/// Captures an operation on a generator, which is moved to the capture.
fn captured<A: Algorithm>(
    generator: &mut Generator<A>,
    output: &mut DeviceBuffer<f32>,
) -> Result<GraphExec> {
    let context = generator.stream().context().clone();
    let graph = Graph::capture(&context, |scope| {
        generator.set_stream(scope)?;
        generator.uniform(output)
    })?;
    Ok(graph.instantiate()?)
}

/// Every use of the state of one generator waits for the others: launches of two graphs, and direct
/// calls.
fn state_is_ordered<A: Algorithm>(
    test: &TestDriver,
    mut generator: Generator<A>,
) -> Result<Generator<A>> {
    let streams = [(); 4].map(|()| test.stream());
    let [stream, first, second, third] = &streams;
    let mut outputs = Vec::new();
    for _ in 0..4 {
        outputs.push(DeviceBuffer::<f32>::zeroed(stream, 256)?);
    }
    let mut one = captured(&mut generator, &mut outputs[0])?;
    let mut other = captured(&mut generator, &mut outputs[1])?;
    one.launch(first)?;
    other.launch(second)?;
    generator.set_stream(third)?;
    generator.uniform(&mut outputs[2])?;
    one.launch(first)?;
    generator.set_stream(stream)?;
    generator.uniform(&mut outputs[3])?;
    for output in &outputs {
        assert!(output.to_vec()?.iter().all(|number| *number > 0.0));
    }
    Ok(generator)
}

#[test]
fn generator_states_are_ordered() -> Result {
    on_checked_simulator(|test| {
        let library = &curand();
        let stream = &test.stream();
        state_is_ordered(test, Generator::<Xorwow>::seeded(library, stream, 1)?)?;
        state_is_ordered(test, Generator::<Philox4x32>::seeded(library, stream, 1)?)?;
        state_is_ordered(test, Generator::<Mrg32k3a>::seeded(library, stream, 1)?)?;
        state_is_ordered(test, Generator::<Mt19937>::seeded(library, stream, 1)?)?;
        state_is_ordered(test, Generator::<Mtgp32>::seeded(library, stream, 1)?)?;
        let sobol = Generator::<Sobol32>::with_dimensions(library, stream, 2)?;
        state_is_ordered(test, sobol)?;
        let sobol = Generator::<ScrambledSobol32>::with_dimensions(library, stream, 2)?;
        state_is_ordered(test, sobol)?;
        let sobol = Generator::<Sobol64>::with_dimensions(library, stream, 2)?;
        state_is_ordered(test, sobol)?;
        let sobol = Generator::<ScrambledSobol64>::with_dimensions(library, stream, 2)?;
        state_is_ordered(test, sobol)?;
        Ok(())
    })
}

/// The library may allocate the state again when the seed or the order changes, and the nodes of a
/// graph contain its address.
#[test]
fn captured_generator_is_fixed() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
        let mut generator = Generator::<Xorwow>::seeded(&curand(), &stream, 1)?;
        let executable = captured(&mut generator, &mut output)?;
        generator.set_stream(&stream)?;
        expect_refused(generator.set_seed(2), "a graph uses the state")?;
        expect_refused(generator.set_offset(2), "a graph uses the state")?;
        generator.uniform(&mut output)?;
        drop(executable);
        generator.set_seed(2)?;
        Ok(())
    })
}

/// A graph keeps a generator and leases its state, and releases both when either is dropped first.
#[test]
fn generator_drops_in_any_order() -> Result {
    on_checked_simulator(|test| {
        for is_generator_first in [true, false] {
            let stream = test.stream();
            let mut output = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
            let mut generator = Generator::<Xorwow>::seeded(&curand(), &stream, 1)?;
            let mut executable = captured(&mut generator, &mut output)?;
            executable.launch(&stream)?;
            if is_generator_first {
                drop(generator);
                executable.launch(&stream)?;
                drop(executable);
            } else {
                drop(executable);
                generator.set_stream(&stream)?;
                generator.uniform(&mut output)?;
            }
            assert!(output.to_vec()?.iter().all(|number| *number > 0.0));
        }
        Ok(())
    })
}

/// Numbers at the limits of sizes, of the types of the libraries, and of their products.
const EXTREMES: [usize; 14] = [
    0,
    1,
    2,
    3,
    8,
    63,
    64,
    1 << 31,
    1 << 32,
    1 << 62,
    usize::MAX / 2,
    usize::MAX / 2 + 1,
    usize::MAX - 1,
    usize::MAX,
];

/// Draws small numbers more often, so that some shapes are valid.
fn draw(random: &mut fastrand::Rng) -> usize {
    if random.u8(..8) == 0 {
        EXTREMES[random.usize(..EXTREMES.len())]
    } else {
        random.usize(1..4)
    }
}

#[test]
fn extreme_plans_are_errors() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let mut data = DeviceBuffer::<Complex32>::zeroed(&stream, 64)?;
        let mut random = fastrand::Rng::with_seed(1);
        let mut executed = 0;
        for _ in 0..3000 {
            let mut embedding = || {
                let embedding = Embedding::new([draw(&mut random), draw(&mut random)])
                    .with_stride(draw(&mut random));
                match draw(&mut random) {
                    0 => embedding,
                    distance => embedding.with_distance(distance),
                }
            };
            let input = embedding();
            let output = embedding();
            let mut shape =
                Shape::new([draw(&mut random), draw(&mut random)]).with_batches(draw(&mut random));
            if random.bool() {
                shape = shape.with_input(input);
            }
            if random.bool() {
                shape = shape.with_output(output);
            }
            let Ok(mut plan) = Plan::<Complex32, Complex32>::new(&cufft(), &stream, &shape) else {
                continue;
            };
            executed += usize::from(plan.forward_in_place(&mut data).is_ok());
            let _ = Plan::<f32, Complex32>::new(&cufft(), &stream, &shape.in_place());
        }
        assert!(executed > 10, "{executed} plans were executed");
        Ok(())
    })
}

fn layout(random: &mut fastrand::Rng) -> MatrixLayout {
    let rows = draw(random);
    let columns = draw(random);
    let layout = if random.bool() {
        MatrixLayout::row_major(rows, columns)
    } else {
        MatrixLayout::column_major(rows, columns)
    };
    if random.bool() {
        layout.with_leading_dimension(draw(random))
    } else {
        layout
    }
}

#[test]
fn extreme_shapes_are_errors() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        let mut result = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        let mut blas = Blas::new(&cublas(), &stream)?;
        let mut random = fastrand::Rng::with_seed(2);
        let mut executed = 0;
        for _ in 0..8000 {
            executed += usize::from(
                extreme_operation(&mut blas, &memory, &mut result, &mut random).is_ok(),
            );
        }
        assert!(executed > 10, "{executed} operations were executed");
        Ok(())
    })
}

fn extreme_operation(
    blas: &mut Blas,
    memory: &DeviceBuffer<f32>,
    result: &mut DeviceBuffer<f32>,
    random: &mut fastrand::Rng,
) -> curium_blas::Result<()> {
    match random.u8(..5) {
        0 => {
            let a = Matrix::new(memory, layout(random))?;
            let b = Matrix::new(memory, layout(random))?;
            let batches = Batches {
                count: draw(random),
                stride_a: draw(random),
                stride_b: draw(random),
                stride_c: draw(random),
            };
            let mut c = MatrixMut::new(result, layout(random))?;
            blas.gemm_strided_batched(1.0, a, b, 0.0, &mut c, batches)
        }
        1 => {
            let a = Matrix::new(memory, layout(random))?;
            let b = Matrix::new(memory, layout(random))?;
            let mut c = MatrixMut::new(result, layout(random))?;
            blas.gemm(1.0, a, b, 0.0, &mut c)
        }
        2 => {
            let band =
                BandLayout::row_major(draw(random), draw(random), draw(random), draw(random));
            let a = Banded::new(memory, band.with_leading_dimension(draw(random)))?;
            let x = Vector::strided(memory, draw(random), draw(random))?;
            let mut y = VectorMut::strided(result, draw(random), draw(random))?;
            blas.gbmv(1.0, a, x, 0.0, &mut y)
        }
        3 => {
            let a = Packed::row_major(memory, draw(random), Triangle::Upper)?;
            let x = Vector::strided(memory, draw(random), draw(random))?;
            let mut y = VectorMut::strided(result, draw(random), draw(random))?;
            blas.spmv(1.0, a, x, 0.0, &mut y)
        }
        _ => {
            let a = Matrix::new(memory, layout(random))?;
            let x = Vector::strided(memory, draw(random), draw(random))?;
            let mut y = VectorMut::strided(result, draw(random), draw(random))?;
            blas.gemv(1.0, a, x, 0.0, &mut y)
        }
    }
}

#[test]
fn extreme_products_are_errors() -> Result {
    on_checked_simulator(|test| {
        let lt = BlasLt::new(&cublaslt(), &test.context())?;
        let mut random = fastrand::Rng::with_seed(3);
        let mut created = 0;
        for _ in 0..4000 {
            let is_half = random.u8(..4) == 0;
            let [a, b, d] = [(); 3].map(|()| {
                let layout = layout(&mut random);
                let layout = if is_half {
                    TypedLayout::new::<half::f16>(layout)
                } else {
                    TypedLayout::new::<f32>(layout)
                };
                match random.bool() {
                    true => layout.with_stride(draw(&mut random)),
                    false => layout,
                }
            });
            let mut matmul = Matmul::new(a, b, d).with_batches(draw(&mut random));
            if random.u8(..4) == 0 {
                matmul = matmul
                    .with_alignment(draw(&mut random))
                    .with_auxiliary_leading_dimension(draw(&mut random));
            }
            let _ = (matmul.bias_len(), matmul.auxiliary_len());
            created += usize::from(MatmulPlan::new(&lt, &matmul, PlanOptions::default()).is_ok());
        }
        assert!(created > 10, "{created} plans were created");
        Ok(())
    })
}

#[test]
fn extreme_dimensions_are_errors() -> Result {
    on_checked_simulator(|test| {
        let stream: Stream = test.stream();
        let mut generator = Generator::<Sobol32>::with_dimensions(&curand(), &stream, 20_000)?;
        let mut output = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        assert!(generator.uniform(&mut output).is_err());
        for dimensions in [0, 20_001, u32::MAX] {
            assert!(generator.set_dimensions(dimensions).is_err());
        }
        generator.set_offset(u64::MAX)?;
        generator.set_dimensions(64)?;
        generator.uniform(&mut output)?;
        Ok(())
    })
}

/// Memory whose views alternate between a long buffer and a short one, and that counts them.
struct Alternating {
    long: DeviceBuffer<f32>,
    short: DeviceBuffer<f32>,
    views: AtomicUsize,
}

impl Alternating {
    fn new(stream: &Stream) -> Result<Self> {
        Ok(Self {
            long: DeviceBuffer::zeroed(stream, 4096)?,
            short: DeviceBuffer::zeroed(stream, 1)?,
            views: AtomicUsize::new(0),
        })
    }

    /// Expects that memory was viewed once since the last call.
    fn expect_one_view(&self, operation: &str) -> Result {
        match self.views.swap(0, Ordering::Relaxed) {
            1 => Ok(()),
            count => Err(format!("{operation} took {count} views").into()),
        }
    }
}

impl Deref for Alternating {
    type Target = DeviceSlice<f32>;

    fn deref(&self) -> &DeviceSlice<f32> {
        if self.views.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            self.long.as_slice()
        } else {
            self.short.as_slice()
        }
    }
}

impl DerefMut for Alternating {
    fn deref_mut(&mut self) -> &mut DeviceSlice<f32> {
        if self.views.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            self.long.as_slice_mut()
        } else {
            self.short.as_slice_mut()
        }
    }
}

/// Operations of each crate view memory of another crate's type once.
#[test]
fn operations_view_memory_once() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let mut memory = Alternating::new(&stream)?;
        let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 4096)?;

        buffer.copy_from_device(&memory)?;
        memory.expect_one_view("DeviceBuffer::copy_from_device")?;
        let pinned = PinnedBuffer::<f32>::zeroed(stream.context(), 4096, PinnedFlags::empty())?;
        let pinned = copy::upload(&stream, pinned, &mut memory)?.wait()?;
        memory.expect_one_view("copy::upload")?;
        let mut pinned = copy::download(&stream, &memory, pinned)?.wait()?;
        memory.expect_one_view("copy::download")?;
        copy::copy_scope(&stream, |scope| scope.upload(&pinned, &mut memory))?;
        memory.expect_one_view("CopyScope::upload")?;
        copy::copy_scope(&stream, |scope| scope.download(&memory, &mut pinned))?;
        memory.expect_one_view("CopyScope::download")?;

        let mut blas = Blas::new(&cublas(), &stream)?;
        blas.scal(2.0, &mut VectorMut::new(&mut memory))?;
        memory.expect_one_view("VectorMut::new")?;
        let layout = MatrixLayout::row_major(64, 64);
        let matrix = Matrix::new(&memory, layout)?;
        blas.gemm(
            1.0,
            matrix,
            matrix,
            0.0,
            &mut MatrixMut::new(&mut buffer, layout)?,
        )?;
        memory.expect_one_view("Matrix::new")?;

        let shape = Shape::new([4096]);
        let mut spectrum = DeviceBuffer::<Complex32>::zeroed(&stream, 4096)?;
        let mut plan = Plan::<f32, Complex32>::new(&cufft(), &stream, &shape)?;
        plan.forward(&memory, &mut spectrum)?;
        memory.expect_one_view("Plan::forward")?;
        let mut plan = Plan::<Complex32, f32>::new(&cufft(), &stream, &shape)?;
        plan.inverse(&mut spectrum, &mut memory)?;
        memory.expect_one_view("Plan::inverse")?;

        let mut generator = Generator::<Xorwow>::seeded(&curand(), &stream, 1)?;
        generator.normal(&mut memory, 0.0, 1.0)?;
        memory.expect_one_view("Generator::normal")?;

        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut communicator = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        communicator.all_reduce(&stream, &memory, &mut buffer, Reduction::Sum)?;
        memory.expect_one_view("Communicator::all_reduce")?;
        communicator.all_reduce_in_place(&stream, &mut memory, Reduction::Sum)?;
        memory.expect_one_view("Communicator::all_reduce_in_place")?;
        communicator.synchronize(&stream)?;
        Ok(())
    })
}

/// The rules for 8-bit floats compare leading dimensions in bytes.
#[test]
fn extreme_fp8_leading_dimensions() -> Result {
    on_checked_simulator(|test| {
        let lt = BlasLt::new(&cublaslt(), &test.context())?;
        let a = TypedLayout::new::<float8::F8E4M3>(MatrixLayout::row_major(16, 16));
        let b = TypedLayout::new::<float8::F8E4M3>(MatrixLayout::column_major(16, 1));
        let mut created = 0;
        for leading_dimension in EXTREMES.into_iter().chain([16, 1 << 61]) {
            let layout =
                MatrixLayout::column_major(16, 1).with_leading_dimension(leading_dimension);
            for d in [
                TypedLayout::new::<half::bf16>(layout),
                TypedLayout::new::<f32>(layout),
            ] {
                let matmul = Matmul::new(a, b, d);
                created +=
                    usize::from(MatmulPlan::new(&lt, &matmul, PlanOptions::default()).is_ok());
            }
        }
        assert!(
            created > 0,
            "the shapes are valid but for the leading dimension"
        );
        Ok(())
    })
}

/// An operation of a group keeps its capture open, which would wait forever at its end.
#[test]
fn group_refuses_its_capture() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut rank = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        let scopes = OnceCell::<Stream>::new();
        let grouped = nccl.group(|group| {
            Graph::capture(stream.context(), |scope| {
                let scope = scopes.get_or_init(|| Stream::clone(scope));
                let operation = Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
                group.enqueue(&mut rank, scope, operation)
            })
            .map(drop)
        });
        expect_refused(grouped, "outside this capture")?;
        Graph::capture(stream.context(), |scope| {
            nccl.group(|group| {
                let operation = Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
                group.enqueue(&mut rank, scope, operation)
            })
        })?;
        Ok(())
    })
}

/// A capture of other memory does not take references to a registration, which would look like
/// those of a graph.
#[test]
fn capture_shares_no_registration() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut rank = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        for _ in 0..10 {
            let mut registered = Vec::new();
            for _ in 0..100 {
                let memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
                registered.push(rank.register(memory)?);
            }
            thread::scope(|scope| {
                let released = scope.spawn(|| {
                    let released: curium_nccl::Result<Vec<_>> = registered
                        .into_iter()
                        .map(RegisteredBuffer::into_inner)
                        .collect();
                    released.map(drop)
                });
                while !released.is_finished() {
                    Graph::capture(stream.context(), |scope| {
                        (0..20).try_for_each(|_| {
                            rank.all_reduce_in_place(scope, &mut memory, Reduction::Sum)
                        })
                    })?;
                }
                Ok::<_, Box<dyn Error>>(released.join().map_err(|_| "it does not panic")??)
            })?;
        }
        Ok(())
    })
}

/// Memory of another crate's type whose drop panics.
struct PanicsOnDrop(DeviceBuffer<f32>);

impl Deref for PanicsOnDrop {
    type Target = DeviceSlice<f32>;

    fn deref(&self) -> &DeviceSlice<f32> {
        self.0.as_slice()
    }
}

impl DerefMut for PanicsOnDrop {
    fn deref_mut(&mut self) -> &mut DeviceSlice<f32> {
        self.0.as_slice_mut()
    }
}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("this panic is part of the test")
    }
}

/// The panic would make the drop of the graph panic, and leak the other memory that it leases.
#[test]
fn memory_drop_may_panic() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut rank = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let memory = PanicsOnDrop(DeviceBuffer::zeroed(&stream, 64)?);
        let mut registered = rank.register(memory)?;
        let graph = Graph::capture(stream.context(), |scope| {
            rank.all_reduce_in_place(scope, &mut registered, Reduction::Sum)
        })?;
        let mut executable = graph.instantiate()?;
        executable.launch(&stream)?;
        drop((registered, graph, executable));
        Ok(())
    })
}

/// A value that a graph keeps for a crate that extends this one.
struct KeptPanicsOnDrop;

impl Drop for KeptPanicsOnDrop {
    fn drop(&mut self) {
        panic!("this panic is part of the test")
    }
}

/// The drops of values that a graph keeps do not make the drop of the graph panic, nor a capture
/// that fails.
#[test]
fn value_drop_may_panic() -> Result {
    on_checked_simulator(|test| {
        let context = test.context();
        for fails in [false, true] {
            let graph = Graph::capture(&context, |scope| {
                let operation = scope.enqueue("test")?;
                operation.keep(&Arc::new(KeptPanicsOnDrop));
                operation.keep(&Arc::new(KeptPanicsOnDrop));
                if fails {
                    return Err(curium_driver::Error::argument("test", "it fails"));
                }
                Ok(())
            });
            assert_eq!(graph.is_err(), fails);
            if let Ok(graph) = graph {
                drop(graph.instantiate()?);
            }
        }
        Ok(())
    })
}

/// NCCL would keep an address that is mapped only while the graph runs.
#[test]
fn graph_memory_is_refused() -> Result {
    on_checked_simulator(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut rank = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let mut memory = None;
        let graph = Graph::capture(stream.context(), |scope| -> curium_driver::Result<()> {
            memory = Some(DeviceBuffer::<f32>::zeroed(scope, 64)?);
            Ok(())
        })?;
        let memory = memory.ok_or("no memory")?;
        expect_refused(rank.register(memory).map(drop), "allocated in a capture")?;
        drop(graph);
        Ok(())
    })
}

/// One thread is in a group with two communicators. A second one releases memory that is registered
/// with the second communicator, and waits for the launch of a third one, which waits for the
/// group.
#[test]
fn release_does_not_hold_a_group() -> Result {
    on_checked_simulator(|test| {
        let [stream, launching] = [test.stream(), test.stream()];
        let nccl = nccl();
        let [mut first, mut second] = [
            Communicator::new(&nccl, stream.context(), UniqueId::new(&nccl)?, 0, 1)?,
            Communicator::new(&nccl, stream.context(), UniqueId::new(&nccl)?, 0, 1)?,
        ];
        let mut other = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        // A launch claims memory in the order of addresses, which differs between the rounds.
        for round in 0..8 {
            let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
            let mut registered = second.register(DeviceBuffer::<f32>::zeroed(&stream, 64)?)?;
            // Only the lease of the registered memory is in the graph: not its registration.
            let graph = Graph::capture(stream.context(), |scope| -> curium_driver::Result<()> {
                if round % 2 == 0 {
                    memory.on_mut(scope).fill(1.0)?;
                }
                registered.on_mut(scope).fill(1.0)?;
                memory.on_mut(scope).fill(2.0)
            })?;
            let mut executable = graph.instantiate()?;
            thread::scope(|scope| {
                let nccl = &nccl;
                let stream = &stream;
                let launching = &launching;
                let first = &mut first;
                let second = &mut second;
                let memory = &mut memory;
                let other = &mut other;
                let (started, wait_for_start) = mpsc::channel();
                let group = scope.spawn(move || {
                    nccl.group(|group| {
                        let operation = Operation::all_reduce_in_place(memory, Reduction::Sum);
                        group.enqueue(first, stream, operation)?;
                        let _ = started.send(());
                        thread::sleep(Duration::from_millis(60));
                        let operation = Operation::all_reduce_in_place(other, Reduction::Sum);
                        group.enqueue(second, stream, operation)
                    })
                });
                wait_for_start.recv()?;
                let launch = scope.spawn(move || executable.launch(launching));
                thread::sleep(Duration::from_millis(20));
                drop(registered.into_inner()?);
                group.join().map_err(|_| "it does not panic")??;
                launch.join().map_err(|_| "it does not panic")??;
                Ok::<_, Box<dyn Error>>(())
            })?;
        }
        Ok(())
    })
}

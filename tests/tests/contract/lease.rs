//! Leases: memory leased by a graph lives as long as the graph, and each launch is a tracked
//! access.

#[cfg(not(miri))]
mod concurrent;
#[cfg(not(miri))]
mod outliving;

use curium_driver::{Graph, GraphExec, LaunchConfig, Library, Result, Stream};
use curium_memory::{
    DeviceBuffer, LimitedResource, MappedBuffer, StreamOrdered, SyncAlloc, UnifiedBuffer,
};
use curium_sim::Config;
use curium_tests::{TestDriver, TestResult, driver_test, kernels, on_simulator};

const LEN: usize = 64;

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[value; LEN]).expect("allocation failed")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("read failed")
}

fn captured(test: &TestDriver, work: impl FnOnce(&Stream) -> Result<()>) -> TestResult<GraphExec> {
    let graph = Graph::capture(&test.context(), |scope| work(scope))?;
    Ok(graph.instantiate()?)
}

/// A replay after everything that it touches was dropped does the work.
#[driver_test]
fn replay_works_after_its_operands_are_dropped(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut result = buffer(&origin, 0);
    let mut executable = {
        let stream = test.stream();
        let x = buffer(&stream, 5);
        let plain = DeviceBuffer::from_slice_in(&stream, &[1_u32; LEN], SyncAlloc)?;
        let mut y = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let kernel = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
        let mut filled = buffer(&stream, 0);
        captured(test, |scope| {
            // SAFETY: the kernel writes only elements below the length argument, which is the
            // length of the buffer.
            unsafe {
                kernel.launch(
                    scope,
                    LaunchConfig::for_elements(LEN),
                    (&mut filled, 9, LEN as u32),
                )
            }?;
            y.on_mut(scope).copy_from_device(&x)?;
            result
                .slice_mut(..LEN / 2)?
                .on_mut(scope)
                .copy_from_device(&y.slice(..LEN / 2)?)?;
            result
                .slice_mut(LEN / 2..LEN - 1)?
                .on_mut(scope)
                .copy_from_device(&filled.slice(LEN / 2..LEN - 1)?)?;
            result
                .slice_mut(LEN - 1..)?
                .on_mut(scope)
                .copy_from_device(&plain.slice(LEN - 1..)?)
        })?
    };
    // Freed memory would be reused here.
    let others: Vec<_> = (0..16).map(|value| buffer(&origin, 100 + value)).collect();
    for _ in 0..2 {
        executable.launch(&origin)?;
        let expected: Vec<_> = [5; LEN / 2]
            .into_iter()
            .chain([9; LEN / 2 - 1])
            .chain([1])
            .collect();
        assert_eq!(values(&result), expected);
        result.fill(0)?;
    }
    others
        .iter()
        .zip(100..)
        .for_each(|(other, value)| assert_eq!(values(other), [value; LEN]));
    Ok(())
}

/// A launch is ordered with uses of the owner on other streams.
#[test]
fn launch_is_ordered() -> TestResult {
    for seed in 0..if cfg!(miri) { 2 } else { 40 } {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let one = test.stream();
            let other = test.stream();
            let third = test.stream();
            let mut x = buffer(&one, 1);
            let mut y = buffer(&other, 2);
            let mut copy = captured(test, |scope| y.on_mut(scope).copy_from_device(&x))?;
            for value in 3..6 {
                x.on_mut(&one).fill(value)?;
                copy.launch(&third)?;
                x.on_mut(&other).fill(0)?;
                assert_eq!(values(&y), [value; LEN], "seed {seed}");
                y.on_mut(&one).fill(0)?;
            }
            copy.launch(&third)?;
            drop((x, copy));
            assert_eq!(values(&y), [0; LEN]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Launches of two graphs that share memory are ordered on any streams.
#[test]
fn graphs_sharing_memory_are_ordered() -> TestResult {
    for seed in 0..if cfg!(miri) { 2 } else { 20 } {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let one = test.stream();
            let other = test.stream();
            let mut x = buffer(&one, 1);
            let mut y = buffer(&one, 0);
            let mut first = captured(test, |scope| y.on_mut(scope).copy_from_device(&x))?;
            let mut second = captured(test, |scope| x.on_mut(scope).fill(7))?;
            first.launch(&one)?;
            second.launch(&other)?;
            assert_eq!(values(&y), [1; LEN], "seed {seed}");
            first.launch(&one)?;
            assert_eq!(
                (values(&x), values(&y)),
                (vec![7; LEN], vec![7; LEN]),
                "seed {seed}"
            );
            Ok(())
        })?;
    }
    Ok(())
}

#[driver_test]
fn graph_that_contains_a_captured_one_has_its_memory(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut x = buffer(&origin, 1);
    let mut y = buffer(&origin, 0);
    let context = test.context();
    let inner = Graph::capture(&context, |scope| x.on_mut(scope).fill(4))?;
    let copied = Graph::capture(&context, |scope| y.on_mut(scope).copy_from_device(&x));
    let mut outer = Graph::new(&context)?;
    let filled = outer.add_child(&[], &inner)?;
    outer.add_child(&[*filled], &copied?)?;
    let mut outer = outer.instantiate()?;
    drop((inner, x));
    let others: Vec<_> = (0..8).map(|value| buffer(&origin, 100 + value)).collect();
    outer.launch(&origin)?;
    assert_eq!(values(&y), [4; LEN]);
    others
        .iter()
        .zip(100..)
        .for_each(|(other, value)| assert_eq!(values(other), [value; LEN]));
    Ok(())
}

/// The host views memory of a graph only while the graph cannot be launched.
#[driver_test]
fn host_view_excludes_graph_launches(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut mapped = MappedBuffer::from_slice(&origin, &[1_u32; LEN])?;
    let mut unified = UnifiedBuffer::from_slice(&origin, &[2_u32; LEN])?;
    let mut reader = captured(test, |scope| {
        unified.on_mut(scope).copy_from_device(&mapped)
    })?;
    assert_eq!(mapped.host_view()?[..], [1; LEN]);
    reader.launch(&origin)?;
    {
        let view = unified.host_view()?;
        assert_eq!(*view, [1; LEN]);
        let error = reader
            .launch(&origin)
            .expect_err("the host reads the memory that it writes");
        assert!(
            error.function().is_none() && error.to_string().contains("view"),
            "{error}"
        );
    }
    mapped.host_view_mut()?.fill(6);
    reader.launch(&origin)?;
    assert_eq!(*unified.host_view()?, [6; LEN]);
    drop(reader);
    mapped.host_view_mut()?.fill(7);
    assert_eq!(unified.host_view()?[..], [6; LEN]);
    Ok(())
}

#[driver_test]
fn host_memory_outlives_its_owner_with_the_graph(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut result = buffer(&origin, 0);
    let mapped = MappedBuffer::from_slice(&origin, &[1_u32; LEN])?;
    let unified = UnifiedBuffer::from_slice(&origin, &[2_u32; LEN])?;
    let mut executable = captured(test, |scope| {
        result
            .slice_mut(..LEN / 2)?
            .on_mut(scope)
            .copy_from_device(&mapped.slice(..LEN / 2)?)?;
        result
            .slice_mut(LEN / 2..)?
            .on_mut(scope)
            .copy_from_device(&unified.slice(LEN / 2..)?)
    })?;
    drop((mapped, unified));
    executable.launch(&origin)?;
    let result = values(&result);
    assert_eq!(
        (&result[..LEN / 2], &result[LEN / 2..]),
        (&[1; LEN / 2][..], &[2; LEN / 2][..])
    );
    Ok(())
}

/// Memory of a borrowed resource ends with its buffer and its graph is refused.
#[driver_test]
fn graph_is_refused_after_borrowed_memory_ends(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let limit = LimitedResource::new(StreamOrdered, 1 << 20);
    let x = DeviceBuffer::from_slice_in(&origin, &[3_u32; LEN], &limit)?;
    let mut y = buffer(&origin, 0);
    let mut copy = captured(test, |scope| y.on_mut(scope).copy_from_device(&x))?;
    copy.launch(&origin)?;
    assert_eq!(values(&y), [3; LEN]);
    drop(x);
    assert_eq!(limit.used(), 0);
    let error = copy.launch(&origin).expect_err("the memory is freed");
    assert!(
        error.function().is_none() && error.to_string().contains("borrowed"),
        "{error}"
    );
    Ok(())
}

/// A leased buffer cannot become raw parts while the graph exists.
#[driver_test]
fn leased_buffer_refuses_into_raw_parts(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut x = buffer(&origin, 1);
    let graph = captured(test, |scope| x.on_mut(scope).fill(4))?;
    let (x, error) = x
        .into_raw()
        .expect_err("a graph uses the memory")
        .into_parts();
    assert!(error.function().is_none(), "{error}");
    drop(graph);
    let (pointer, resource) = x.into_raw()?;
    // SAFETY: the memory is that of the buffer, and no work uses it.
    drop(unsafe { DeviceBuffer::<u32>::from_raw(&origin, pointer, LEN, resource) }?);
    Ok(())
}

/// A seeded random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One operation of captured work: a fill, or a copy between buffers.
#[derive(Clone, Copy)]
enum Step {
    Fill(usize, u32),
    Copy(usize, usize),
}

const BUFFERS: usize = 3;

fn steps(dice: &mut Dice) -> Vec<Step> {
    let step = |dice: &mut Dice| {
        let to = dice.below(BUFFERS);
        let from = dice.below(BUFFERS);
        if to == from {
            Step::Fill(to, dice.below(1000) as u32)
        } else {
            Step::Copy(to, from)
        }
    };
    (0..1 + dice.below(6)).map(|_| step(dice)).collect()
}

fn put(stream: &Stream, buffers: &mut [DeviceBuffer<u32>], step: Step) -> Result<()> {
    match step {
        Step::Fill(to, value) => buffers[to].on_mut(stream).fill(value),
        Step::Copy(to, from) => {
            let [target, source] = buffers
                .get_disjoint_mut([to, from])
                .expect("they are distinct");
            target.on_mut(stream).copy_from_device(source)
        }
    }
}

fn put_in_model(model: &mut [u32; BUFFERS], step: Step) {
    match step {
        Step::Fill(to, value) => model[to] = value,
        Step::Copy(to, from) => model[to] = model[from],
    }
}

/// Random programs with captures and replays match direct execution.
#[test]
fn random_replays_match() -> TestResult {
    for seed in 0..if cfg!(miri) { 2 } else { 150 } {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            run_random(test, seed)?;
            Ok(())
        })?;
    }
    Ok(())
}

fn run_random(test: &TestDriver, seed: u64) -> TestResult {
    let mut dice = Dice(seed);
    let streams = [test.stream(), test.stream(), test.stream()];
    let mut model: [u32; BUFFERS] = std::array::from_fn(|index| index as u32);
    let mut buffers = model.map(|value| buffer(&streams[value as usize], value));
    let mut graphs: Vec<(GraphExec, Vec<Step>)> = Vec::new();
    for _ in 0..24 {
        let stream = &streams[dice.below(streams.len())];
        match dice.below(8) {
            0 | 1 => {
                let work = steps(&mut dice);
                let forks: Vec<_> = work.iter().map(|_| dice.below(3)).collect();
                let graph = Graph::capture(&test.context(), |scope| {
                    let branches = [(**scope).clone(), scope.fork()?, scope.fork()?];
                    work.iter()
                        .zip(&forks)
                        .try_for_each(|(step, fork)| put(&branches[*fork], &mut buffers, *step))
                });
                graphs.push((graph.and_then(|graph| graph.instantiate())?, work));
            }
            2..=4 if !graphs.is_empty() => {
                let chosen = dice.below(graphs.len());
                let (executable, work) = &mut graphs[chosen];
                executable.launch(stream)?;
                work.iter().for_each(|step| put_in_model(&mut model, *step));
            }
            5 if !graphs.is_empty() => drop(graphs.swap_remove(dice.below(graphs.len()))),
            6 => {
                let chosen = dice.below(BUFFERS);
                assert_eq!(
                    values(&buffers[chosen]),
                    [model[chosen]; LEN],
                    "seed {seed}"
                );
            }
            _ => steps(&mut dice).into_iter().for_each(|step| {
                put(stream, &mut buffers, step).expect("the work is correct");
                put_in_model(&mut model, step);
            }),
        }
    }
    for (buffer, value) in buffers.iter().zip(model) {
        assert_eq!(values(buffer), [value; LEN], "seed {seed}");
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Graph;
    use curium_memory::DeviceBuffer;

    use crate::capture_scope::operations::captured;
    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("GraphExec::launch, of leased memory", |fixture| {
            let mut executable = captured(fixture)?;
            executable.launch(&fixture.other)?;
            fixture.other.synchronize()?;
            made(fixture.buffer.to_vec()?)
        }),
        (
            "Graph::instantiate, of leased memory that was dropped",
            |fixture| {
                let buffer = DeviceBuffer::from_slice(&fixture.stream, &[1; LEN])?;
                let target = &mut fixture.target;
                let graph = Graph::capture(&fixture.context, |scope| {
                    target.on_mut(scope).copy_from_device(&buffer)
                })?;
                drop(buffer);
                made(graph.instantiate()?)
            },
        ),
        ("MappedBuffer::host_view", |fixture| {
            let executable = captured(fixture)?;
            fixture.mapped.host_view().map(drop)?;
            made(executable)
        }),
        ("MappedBuffer::host_view_mut", |fixture| {
            let executable = captured(fixture)?;
            fixture.mapped.host_view_mut().map(drop)?;
            made(executable)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}

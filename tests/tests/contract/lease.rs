//! Leases: memory leased by a graph lives as long as the graph, and each launch is a tracked access.

#[cfg(not(miri))]
mod concurrent;
#[cfg(not(miri))]
mod outliving;

use curium_driver::{Graph, GraphExec, LaunchConfig, Library, Result, Stream};
use curium_memory::{
    DeviceBuffer, LimitedResource, MappedBuffer, StreamOrdered, SyncAlloc, UnifiedBuffer,
};
use curium_sim::Config;
use curium_tests::{TestDriver, kernels, on_driver, on_simulator};

const LEN: usize = 64;

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[value; LEN]).expect("memory suffices")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("the buffer can be read")
}

fn captured(test: &TestDriver, work: impl FnOnce(&Stream) -> Result<()>) -> GraphExec {
    let graph =
        Graph::capture(&test.context(), |scope| work(scope)).expect("the work can be captured");
    graph.instantiate().expect("the graph is valid")
}

#[test]
fn replay_after_everything_that_it_touches_was_dropped_does_the_work() {
    on_driver(|test| {
        let own = test.stream();
        let mut result = buffer(&own, 0);
        let mut executable = {
            let stream = test.stream();
            let x = buffer(&stream, 5);
            let plain = DeviceBuffer::from_slice_in(&stream, &[1_u32; LEN], SyncAlloc)
                .expect("memory suffices");
            let mut y = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
            let library =
                Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
            let kernel = library
                .kernel::<(&mut [u32], u32, u32)>("fill")
                .expect("the kernel is there");
            let mut filled = buffer(&stream, 0);
            captured(test, |scope| {
                // SAFETY: the kernel writes only elements below the length argument, which is the length of the buffer.
                unsafe {
                    kernel.launch(
                        scope,
                        LaunchConfig::for_elements(LEN as u32),
                        (&mut filled, 9, LEN as u32),
                    )
                }?;
                y.as_slice_mut().copy_from_device_on(scope, &x)?;
                result
                    .slice_mut(..LEN / 2)?
                    .copy_from_device_on(scope, &y.slice(..LEN / 2)?)?;
                result
                    .slice_mut(LEN / 2..LEN - 1)?
                    .copy_from_device_on(scope, &filled.slice(LEN / 2..LEN - 1)?)?;
                result
                    .slice_mut(LEN - 1..)?
                    .copy_from_device_on(scope, &plain.slice(LEN - 1..)?)
            })
        };
        // Freed memory would be reused here.
        let others: Vec<_> = (0..16).map(|value| buffer(&own, 100 + value)).collect();
        for _ in 0..2 {
            executable.launch(&own).expect("every object is still live");
            let expected: Vec<_> = [5; LEN / 2]
                .into_iter()
                .chain([9; LEN / 2 - 1])
                .chain([1])
                .collect();
            assert_eq!(values(&result), expected);
            result.as_slice_mut().fill(0).expect("the owner may write");
        }
        others
            .iter()
            .zip(100..)
            .for_each(|(other, value)| assert_eq!(values(other), [value; LEN]));
    });
}

#[test]
fn launch_is_ordered_with_uses_of_the_owner_on_other_streams() {
    for seed in 0..if cfg!(miri) { 2 } else { 40 } {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            let (one, other, third) = (test.stream(), test.stream(), test.stream());
            let (mut x, mut y) = (buffer(&one, 1), buffer(&other, 2));
            let mut copy = captured(test, |scope| {
                y.as_slice_mut().copy_from_device_on(scope, &x)
            });
            for value in 3..6 {
                x.as_slice_mut()
                    .fill_on(&one, value)
                    .expect("the owner may write");
                copy.launch(&third).expect("it can be launched");
                x.as_slice_mut()
                    .fill_on(&other, 0)
                    .expect("the owner may write");
                assert_eq!(values(&y), [value; LEN], "seed {seed}");
                y.as_slice_mut()
                    .fill_on(&one, 0)
                    .expect("the owner may write");
            }
            copy.launch(&third).expect("it can be launched");
            drop((x, copy));
            assert_eq!(values(&y), [0; LEN]);
        });
    }
}

#[test]
fn launches_of_two_graphs_that_share_memory_are_ordered_on_any_streams() {
    for seed in 0..if cfg!(miri) { 2 } else { 20 } {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            let (one, other) = (test.stream(), test.stream());
            let (mut x, mut y) = (buffer(&one, 1), buffer(&one, 0));
            let mut first = captured(test, |scope| {
                y.as_slice_mut().copy_from_device_on(scope, &x)
            });
            let mut second = captured(test, |scope| x.as_slice_mut().fill_on(scope, 7));
            first.launch(&one).expect("it can be launched");
            second.launch(&other).expect("it can be launched");
            assert_eq!(values(&y), [1; LEN], "seed {seed}");
            first.launch(&one).expect("it can be launched");
            assert_eq!(
                (values(&x), values(&y)),
                (vec![7; LEN], vec![7; LEN]),
                "seed {seed}"
            );
        });
    }
}

#[test]
fn graph_that_contains_a_captured_one_has_its_memory() {
    on_driver(|test| {
        let own = test.stream();
        let (mut x, mut y) = (buffer(&own, 1), buffer(&own, 0));
        let context = test.context();
        let inner = Graph::capture(&context, |scope| x.as_slice_mut().fill_on(scope, 4))
            .expect("it can be captured");
        let copied = Graph::capture(&context, |scope| {
            y.as_slice_mut().copy_from_device_on(scope, &x)
        });
        let mut outer = Graph::new(&context).expect("a graph can be created");
        let filled = outer.add_child(&[], &inner).expect("the node can be added");
        outer
            .add_child(&[*filled], &copied.expect("it can be captured"))
            .expect("the node can be added");
        let mut outer = outer.instantiate().expect("the graph is valid");
        drop((inner, x));
        let others: Vec<_> = (0..8).map(|value| buffer(&own, 100 + value)).collect();
        outer
            .launch(&own)
            .expect("the memory of both is still there");
        assert_eq!(values(&y), [4; LEN]);
        others
            .iter()
            .zip(100..)
            .for_each(|(other, value)| assert_eq!(values(other), [value; LEN]));
    });
}

#[test]
fn host_views_memory_of_a_graph_only_while_the_graph_cannot_be_launched() {
    on_driver(|test| {
        let own = test.stream();
        let mut mapped = MappedBuffer::from_slice(&own, &[1_u32; LEN]).expect("memory suffices");
        let mut unified = UnifiedBuffer::from_slice(&own, &[2_u32; LEN]).expect("memory suffices");
        let mut reader = captured(test, |scope| {
            unified.as_slice_mut().copy_from_device_on(scope, &mapped)
        });
        assert_eq!(
            mapped.host_view().expect("the graph only reads it")[..],
            [1; LEN]
        );
        reader.launch(&own).expect("no view exists");
        {
            let view = unified.host_view().expect("no other view exists");
            assert_eq!(*view, [1; LEN]);
            let error = reader
                .launch(&own)
                .expect_err("the host reads the memory that it writes");
            assert!(
                error.function().is_none() && error.to_string().contains("view"),
                "{error}"
            );
        }
        mapped
            .host_view_mut()
            .expect("no other view exists")
            .fill(6);
        reader.launch(&own).expect("the view is dropped");
        assert_eq!(
            *unified.host_view().expect("no other view exists"),
            [6; LEN]
        );
        drop(reader);
        mapped
            .host_view_mut()
            .expect("no graph uses it any more")
            .fill(7);
        assert_eq!(
            unified.host_view().expect("no graph uses it any more")[..],
            [6; LEN]
        );
    });
}

#[test]
fn host_memory_outlives_its_owner_with_the_graph() {
    on_driver(|test| {
        let own = test.stream();
        let mut result = buffer(&own, 0);
        let mapped = MappedBuffer::from_slice(&own, &[1_u32; LEN]).expect("memory suffices");
        let unified = UnifiedBuffer::from_slice(&own, &[2_u32; LEN]).expect("memory suffices");
        let mut executable = captured(test, |scope| {
            result
                .slice_mut(..LEN / 2)?
                .copy_from_device_on(scope, &mapped.slice(..LEN / 2)?)?;
            result
                .slice_mut(LEN / 2..)?
                .copy_from_device_on(scope, &unified.slice(LEN / 2..)?)
        });
        drop((mapped, unified));
        executable.launch(&own).expect("every object is still live");
        let result = values(&result);
        assert_eq!(
            (&result[..LEN / 2], &result[LEN / 2..]),
            (&[1; LEN / 2][..], &[2; LEN / 2][..])
        );
    });
}

#[test]
fn memory_of_a_borrowed_resource_ends_with_its_buffer_and_its_graph_is_refused() {
    on_driver(|test| {
        let own = test.stream();
        let limit = LimitedResource::new(StreamOrdered, 1 << 20);
        let x = DeviceBuffer::from_slice_in(&own, &[3_u32; LEN], &limit).expect("memory suffices");
        let mut y = buffer(&own, 0);
        let mut copy = captured(test, |scope| {
            y.as_slice_mut().copy_from_device_on(scope, &x)
        });
        copy.launch(&own).expect("the buffer exists");
        assert_eq!(values(&y), [3; LEN]);
        drop(x);
        assert_eq!(limit.used(), 0);
        let error = copy.launch(&own).expect_err("the memory is freed");
        assert!(
            error.function().is_none() && error.to_string().contains("borrowed"),
            "{error}"
        );
    });
}

#[test]
fn leased_buffer_cannot_become_raw_parts_while_the_graph_exists() {
    on_driver(|test| {
        let own = test.stream();
        let mut x = buffer(&own, 1);
        let graph = captured(test, |scope| x.as_slice_mut().fill_on(scope, 4));
        let (x, error) = x
            .into_raw()
            .expect_err("a graph uses the memory")
            .into_parts();
        assert!(error.function().is_none(), "{error}");
        drop(graph);
        let (pointer, resource) = x.into_raw().expect("nothing else uses it");
        // SAFETY: the memory is that of the buffer, and no work uses it.
        drop(
            unsafe { DeviceBuffer::<u32>::from_raw(&own, pointer, LEN, resource) }
                .expect("it is a buffer"),
        );
    });
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
        let (to, from) = (dice.below(BUFFERS), dice.below(BUFFERS));
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
        Step::Fill(to, value) => buffers[to].as_slice_mut().fill_on(stream, value),
        Step::Copy(to, from) => {
            let [target, source] = buffers
                .get_disjoint_mut([to, from])
                .expect("they are distinct");
            target.as_slice_mut().copy_from_device_on(stream, source)
        }
    }
}

fn put_in_model(model: &mut [u32; BUFFERS], step: Step) {
    match step {
        Step::Fill(to, value) => model[to] = value,
        Step::Copy(to, from) => model[to] = model[from],
    }
}

#[test]
fn random_programs_with_captures_and_replays_match_direct_execution() {
    for seed in 0..if cfg!(miri) { 2 } else { 150 } {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            run_random(test, seed);
        });
    }
}

fn run_random(test: &TestDriver, seed: u64) {
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
                graphs.push((
                    graph
                        .and_then(|graph| graph.instantiate())
                        .expect("the work can be captured"),
                    work,
                ));
            }
            2..=4 if !graphs.is_empty() => {
                let chosen = dice.below(graphs.len());
                let (executable, work) = &mut graphs[chosen];
                executable.launch(stream).expect("it can be launched");
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
}

pub(crate) mod operations {
    use curium_driver::Graph;
    use curium_memory::DeviceBuffer;

    use crate::capture_scope::operations::captured;
    use crate::operations::{LEN, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
                    target.as_slice_mut().copy_from_device_on(scope, &buffer)
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
}

//! Random programs over the safe memory interface, compared with a model on the host: for every
//! sequence of operations and streams, the contents equal those of the model, and nothing leaks.

mod copies;
mod graphs;
mod memory;

use std::ops::Range;

use curium_driver::{LaunchConfig, Library, SafeKernel, Stream};
use curium_memory::copy::Pending;
use curium_memory::{
    Array, ArrayFlags, ArrayShape, CachingOptions, CachingResource, MemoryLocation,
};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, kernels, on_driver, on_simulator, stream_work};

use self::graphs::Graphs;
use self::memory::Memory;

/// The number of programs per run.
const PROGRAMS: u64 = if cfg!(miri) { 4 } else { 4000 };
/// The number of steps of a program.
const STEPS: usize = 24;
/// The number of elements of an allocation.
const LEN: usize = 24;

/// A seeded random number generator.
struct Dice(fastrand::Rng);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    fn range(&mut self) -> Range<usize> {
        let one = self.below(LEN + 1);
        let other = self.below(LEN + 1);
        one.min(other)..one.max(other)
    }

    fn values(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.next() as u32).collect()
    }
}

/// The allocations of a program, each with its expected content.
struct Program<'a> {
    dice: Dice,
    world: &'a World<'a>,
    pieces: Vec<Piece>,
    /// Copies that may be pending, each with the expected content of its buffer.
    pending: Vec<(Pending<u32>, Vec<u32>)>,
    /// An array of [`LEN`] elements, and its expected content.
    array: (Array<u32>, Vec<u32>),
    graphs: Graphs,
    /// The number of allocations so far.
    made: u64,
}

/// The state shared by all programs.
struct World<'a> {
    test: &'a TestDriver,
    streams: Vec<Stream>,
    cache: CachingResource,
    fill: SafeKernel<(&'static mut [u32], u32, u32)>,
    read: SafeKernel<(&'static [u32], u64, &'static mut [u32])>,
}

/// An allocation and its expected content.
struct Piece {
    number: u64,
    memory: Memory,
    model: Vec<u32>,
}

impl<'a> World<'a> {
    fn new(test: &'a TestDriver) -> TestResult<Self> {
        let streams = (0..3).map(|_| test.stream()).collect();
        // Small segments, so that the cache grows and coalesces.
        let options = CachingOptions::new()
            .with_cache(true)
            .with_segment_bytes(2 << 20);
        let cache = CachingResource::with_options(&test.context(), &options)?;
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let kernel = library.kernel("fill")?;
        // SAFETY: the kernel writes only elements below the length argument, which is the length of
        // the buffer.
        let fill = unsafe { kernel.declare_safe() };
        let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
        let kernel = library.kernel("read_at")?;
        // SAFETY: the kernel copies the element at the index, which all allocations here have, to
        // the first element of the other argument.
        let read = unsafe { kernel.declare_safe() };
        Ok(Self {
            test,
            streams,
            cache,
            fill,
            read,
        })
    }

    /// Runs programs with these seeds, and asserts that the simulator reported nothing.
    fn run(&self, seeds: Range<u64>) -> TestResult<usize> {
        let mut launches = 0;
        for seed in seeds.clone() {
            launches += run(self, seed)?;
        }
        let faults = self
            .test
            .simulator()
            .map(Simulator::reports)
            .unwrap_or_default();
        assert!(faults.is_empty(), "programs {seeds:?}: {faults:?}");
        Ok(launches)
    }
}

impl<'a> Program<'a> {
    fn new(world: &'a World<'a>, seed: u64) -> TestResult<Self> {
        let mut dice = Dice(fastrand::Rng::with_seed(seed));
        let stream = &world.streams[dice.below(world.streams.len())];
        let model = dice.values(LEN);
        let array =
            Array::from_slice(stream, &model, ArrayShape::new_1d(LEN), ArrayFlags::empty())?;
        let mut program = Self {
            dice,
            world,
            pieces: Vec::new(),
            pending: Vec::new(),
            array: (array, model),
            graphs: Graphs::default(),
            made: 0,
        };
        for _ in 0..4 {
            let piece = program.piece()?;
            program.pieces.push(piece);
        }
        Ok(program)
    }

    fn stream(&mut self) -> Stream {
        self.world.streams[self.dice.below(self.world.streams.len())].clone()
    }

    fn piece(&mut self) -> TestResult<Piece> {
        let stream = self.stream();
        let model = self.dice.values(LEN);
        let memory = Memory::new(&mut self.dice, &self.world.cache, &stream, &model)?;
        self.made += 1;
        Ok(Piece {
            number: self.made,
            memory,
            model,
        })
    }

    /// Removes one allocation from the list, passes it to `operation` together with the others, and
    /// puts it back.
    fn with_piece(
        &mut self,
        operation: impl FnOnce(&mut Self, &mut Memory, &mut Vec<u32>) -> TestResult,
    ) -> TestResult {
        let index = self.dice.below(self.pieces.len());
        let mut piece = self.pieces.swap_remove(index);
        operation(self, &mut piece.memory, &mut piece.model)?;
        self.pieces.push(piece);
        Ok(())
    }

    fn step(&mut self) -> TestResult {
        match self.dice.below(26) {
            0 => self.replace(),
            1 | 2 => self.fill(),
            3 | 4 => self.copy_part(),
            5 => self.copy_within(),
            6 => self.upload(),
            7 => self.scope(),
            8 => self.batch(),
            9 => self.grid(),
            10 => self.host(),
            11 => self.threads(),
            12 => self.kernel_like(),
            13 => self.kernel(),
            14 => self.breathe(),
            15 => self.capture(),
            16 | 17 => self.launch(),
            18 => self.read(),
            19 => self.store(),
            20 => self.load(),
            21 => {
                self.graphs.end(self.dice.next() as usize);
                Ok(())
            }
            22 => self.download(),
            23 => self.upload_slice(),
            24 => self.settle(),
            _ => self.check_one(),
        }
    }

    fn replace(&mut self) -> TestResult {
        let piece = self.piece()?;
        let index = self.dice.below(self.pieces.len());
        let before = std::mem::replace(&mut self.pieces[index], piece);
        self.graphs.keep(before.number, &before.model);
        Ok(())
    }

    fn fill(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let range = this.dice.range();
            let value = this.dice.next() as u32;
            memory
                .view_mut()
                .slice_mut(range.clone())?
                .on_mut(&stream)
                .fill(value)?;
            model[range].fill(value);
            Ok(())
        })
    }

    fn host(&mut self) -> TestResult {
        // Graphs may be launched at any time, and change the memory that the host views.
        let is_used = |piece: &Piece| self.graphs.use_piece(piece.number);
        let Some(at) = self.pieces.iter().position(|piece| !is_used(piece)) else {
            return Ok(());
        };
        let offset = self.dice.below(LEN);
        let value = self.dice.next() as u32;
        let stream = self.stream();
        let only_reads = self.dice.below(2) == 0;
        let Piece { memory, model, .. } = &mut self.pieces[at];
        if only_reads {
            assert!(memory.seen()?.is_none_or(|seen| *seen == *model.as_slice()));
        } else if let Some(mut host) = memory.host()? {
            assert_eq!(*host, **model);
            host[offset] = value;
            model[offset] = value;
        }
        if let Memory::Unified(buffer) = memory {
            buffer.prefetch(&stream, .., MemoryLocation::Host)?;
        }
        self.pieces.rotate_left(1);
        Ok(())
    }

    /// Two threads write disjoint parts of one allocation on two streams.
    fn threads(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let one = this.stream();
            let other = this.stream();
            let middle = this.dice.below(LEN + 1);
            let first = this.dice.next() as u32;
            let second = this.dice.next() as u32;
            let mut whole = memory.view_mut();
            let (mut low, mut high) = whole.split_at_mut(middle)?;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    low.on_mut(&one).fill(first).expect("fill failed");
                });
                scope.spawn(|| {
                    high.on_mut(&other).fill(second).expect("fill failed");
                });
            });
            model[..middle].fill(first);
            model[middle..].fill(second);
            Ok(())
        })
    }

    /// Fills or copies buffers like a launch.
    fn kernel_like(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let value = this.dice.next() as u32;
            if let Memory::Pooled(buffer) = memory {
                stream_work::fill(&stream, buffer, value)?;
                model.fill(value);
            }
            Ok(())
        })
    }

    /// Launches a kernel on a buffer, or on a part of any memory.
    fn kernel(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let value = this.dice.next() as u32;
            let range = this.dice.range();
            let fill = &this.world.fill;
            let config = LaunchConfig::for_elements(LEN);
            let (launched, range) = match memory {
                Memory::Pooled(buffer) => (
                    fill.launch(&stream, config, (buffer, value, LEN as u32)),
                    0..LEN,
                ),
                Memory::Cached(buffer) => (
                    fill.launch(&stream, config, (buffer, value, LEN as u32)),
                    0..LEN,
                ),
                Memory::Growing(vector) => (
                    fill.launch(&stream, config, (vector, value, LEN as u32)),
                    0..LEN,
                ),
                Memory::Unified(buffer) => (
                    fill.launch(&stream, config, (buffer, value, LEN as u32)),
                    0..LEN,
                ),
                _ if range.is_empty() => return Ok(()),
                _ => {
                    let mut whole = memory.view_mut();
                    let mut part = whole.slice_mut(range.clone())?;
                    (
                        fill.launch(&stream, config, (&mut part, value, range.len() as u32)),
                        range,
                    )
                }
            };
            launched?;
            model[range].fill(value);
            Ok(())
        })
    }

    /// Launches a kernel that reads an element of one allocation and writes one of another.
    fn read(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let from = this.dice.below(LEN);
            let to = this.dice.below(LEN);
            let Piece {
                memory: source,
                model: source_model,
                ..
            } = &this.pieces[this.dice.below(this.pieces.len())];
            let mut target = memory.view_mut();
            let mut element = target.slice_mut(to..=to)?;
            let arguments = (source.view(), from as u64, &mut element);
            this.world
                .read
                .launch(&stream, LaunchConfig::new(1, 1), arguments)?;
            model[to] = source_model[from];
            Ok(())
        })
    }

    fn breathe(&mut self) -> TestResult {
        let index = self.dice.below(self.pieces.len());
        let count = self.dice.below(100);
        let values = self.dice.values(count);
        // Memory that a graph uses does not shrink.
        if !self.graphs.use_piece(self.pieces[index].number) {
            self.pieces[index].memory.breathe(&values)?;
        }
        Ok(())
    }

    /// Captures a copy of a part of one allocation to another, optionally followed by a fill. Both
    /// may be dropped before the graph.
    fn capture(&mut self) -> TestResult {
        let range = self.dice.range();
        let context = self.world.test.context();
        let then = (self.dice.below(2) == 0).then(|| self.dice.next() as u32);
        let mut target = self.pieces.swap_remove(self.dice.below(self.pieces.len()));
        let index = self.dice.below(self.pieces.len());
        if !range.is_empty() {
            self.graphs
                .capture(&context, &mut self.pieces[index], &mut target, range, then)?;
        }
        self.pieces.push(target);
        Ok(())
    }

    fn launch(&mut self) -> TestResult {
        let which = self.dice.next() as usize;
        let stream = self.stream();
        self.graphs.launch(which, &stream, &mut self.pieces)?;
        Ok(())
    }

    fn check_one(&mut self) -> TestResult {
        let range = self.dice.range();
        let Piece { memory, model, .. } = &self.pieces[self.dice.below(self.pieces.len())];
        let part = memory.view().slice(range.clone())?.to_vec()?;
        assert_eq!(part, model[range]);
        Ok(())
    }

    fn check(&self, seed: u64) -> TestResult {
        for (index, Piece { memory, model, .. }) in self.pieces.iter().enumerate() {
            assert_eq!(
                &memory.view().to_vec()?,
                model,
                "piece {index} of program {seed}"
            );
        }
        let (array, model) = &self.array;
        assert_eq!(&array.to_vec()?, model, "the array of program {seed}");
        Ok(())
    }
}

/// Runs the program of a seed, and returns its number of graph launches.
fn run(world: &World<'_>, seed: u64) -> TestResult<usize> {
    let mut program = Program::new(world, seed)?;
    for _ in 0..STEPS {
        program.step()?;
    }
    program.settle()?;
    program.check(seed)?;
    Ok(program.graphs.launches())
}

#[test]
#[expect(clippy::print_stdout, reason = "the test reports its coverage")]
fn random_programs_match_the_model() -> TestResult {
    let mut launches = 0;
    on_driver(|test| -> TestResult {
        launches += World::new(test)?.run(0..PROGRAMS / 4)?;
        Ok(())
    })?;
    // Simulators with a stream schedule derived from the seed.
    const EACH: u64 = 50;
    for seed in (PROGRAMS / 4..PROGRAMS).step_by(EACH as usize) {
        on_simulator(
            Config::new().with_seed(seed).with_workers(1),
            |test, _| -> TestResult {
                launches += World::new(test)?.run(seed..seed + EACH)?;
                Ok(())
            },
        )?;
    }
    println!("{PROGRAMS} programs of {STEPS} steps, {launches} launches of graphs");
    assert!(launches > 0, "no program launched a graph");
    Ok(())
}

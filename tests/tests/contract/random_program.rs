//! Random programs over the safe interface of memory, beside a model of it on the host: whatever is done on whatever streams, the
//! contents are those of the model, and nothing leaks.

use std::ops::Range;

use curium_driver::Stream;
use curium_memory::copy::{self, CopyBatch};
use curium_memory::{
    AsDeviceSlice, DeviceBuffer, DeviceSlice, DeviceSliceMut, Extent, MappedBuffer, MemoryLocation, PinnedBuffer,
    PinnedFlags, Pitch, Plain, UnifiedBuffer,
};
use curium_sim::Config;
use curium_tests::{TestDriver, on_driver, on_simulator, stream_work};

/// How many programs a run has.
const PROGRAMS: u64 = if cfg!(miri) { 3 } else { 2000 };
/// How many steps a program has.
const STEPS: usize = 24;
/// The elements of a piece of memory.
const LEN: usize = 24;

/// A generator of numbers that a seed repeats.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn range(&mut self) -> Range<usize> {
        let (one, other) = (self.below(LEN + 1), self.below(LEN + 1));
        one.min(other)..one.max(other)
    }

    fn values(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.next() as u32).collect()
    }
}

/// A piece of memory of any kind.
enum Memory {
    Pooled(DeviceBuffer<u32>),
    Plain(DeviceBuffer<u32, Plain>),
    Mapped(MappedBuffer<u32>),
    Unified(UnifiedBuffer<u32>),
}

impl Memory {
    fn new(dice: &mut Dice, stream: &Stream, values: &[u32]) -> Self {
        let made = match dice.below(6) {
            0 => DeviceBuffer::from_slice_in(Plain, stream, values).map(Self::Plain),
            1 => MappedBuffer::from_slice(stream, values).map(Self::Mapped),
            2 => UnifiedBuffer::from_slice(stream, values).map(Self::Unified),
            _ => DeviceBuffer::from_slice(stream, values).map(Self::Pooled),
        };
        made.expect("memory suffices")
    }

    fn view(&self) -> DeviceSlice<'_, u32> {
        match self {
            Self::Pooled(buffer) => buffer.as_slice(),
            Self::Plain(buffer) => buffer.as_slice(),
            Self::Mapped(buffer) => buffer.as_slice(),
            Self::Unified(buffer) => buffer.as_slice(),
        }
    }

    fn view_mut(&mut self) -> DeviceSliceMut<'_, u32> {
        match self {
            Self::Pooled(buffer) => buffer.as_slice_mut(),
            Self::Plain(buffer) => buffer.as_slice_mut(),
            Self::Mapped(buffer) => buffer.as_slice_mut(),
            Self::Unified(buffer) => buffer.as_slice_mut(),
        }
    }

    /// The elements as the host sees them in place, where it can.
    fn host(&mut self) -> Option<&mut [u32]> {
        match self {
            Self::Pooled(_) | Self::Plain(_) => None,
            Self::Mapped(buffer) => Some(buffer.host_mut().expect("the work ends")),
            Self::Unified(buffer) => Some(buffer.host_mut().expect("the work ends")),
        }
    }
}

/// Pieces of memory, and what they hold if all is well.
struct Program<'a> {
    dice: Dice,
    test: &'a TestDriver,
    streams: Vec<Stream>,
    pieces: Vec<(Memory, Vec<u32>)>,
}

impl<'a> Program<'a> {
    fn new(test: &'a TestDriver, streams: &[Stream], seed: u64) -> Self {
        let mut program = Self { dice: Dice(seed), test, streams: streams.to_vec(), pieces: Vec::new() };
        (0..4).for_each(|_| {
            let piece = program.piece();
            program.pieces.push(piece);
        });
        program
    }

    fn stream(&mut self) -> Stream {
        self.streams[self.dice.below(self.streams.len())].clone()
    }

    fn piece(&mut self) -> (Memory, Vec<u32>) {
        let (stream, values) = (self.stream(), self.dice.values(LEN));
        (Memory::new(&mut self.dice, &stream, &values), values)
    }

    /// Takes one piece out, to be used with the others, and puts it back.
    fn with_piece(&mut self, operation: impl FnOnce(&mut Self, &mut Memory, &mut Vec<u32>)) {
        let at = self.dice.below(self.pieces.len());
        let (mut memory, mut model) = self.pieces.swap_remove(at);
        operation(self, &mut memory, &mut model);
        self.pieces.push((memory, model));
    }

    fn step(&mut self) {
        match self.dice.below(14) {
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
            _ => self.check_one(),
        }
    }

    fn replace(&mut self) {
        let piece = self.piece();
        let at = self.dice.below(self.pieces.len());
        self.pieces[at] = piece;
    }

    fn fill(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, range, value) = (this.stream(), this.dice.range(), this.dice.next() as u32);
            memory.view_mut().slice(range.clone()).and_then(|mut part| part.fill_on(&stream, value)).expect("it fits");
            model[range].fill(value);
        });
    }

    fn copy_part(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, range) = (this.stream(), this.dice.range());
            let from = this.dice.below(LEN + 1 - range.len());
            let (source, source_model) = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source.view().slice(from..from + range.len()).expect("it fits");
            let target = memory.view_mut().slice(range.clone());
            target.and_then(|mut part| part.copy_from_device_on(&stream, &source)).expect("it fits");
            model[range.clone()].copy_from_slice(&source_model[from..from + range.len()]);
        });
    }

    fn copy_within(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, middle) = (this.stream(), this.dice.below(LEN / 2 + 1));
            let (low, high) = memory.view_mut().split_at(middle).expect("it fits");
            let target = high.slice(..middle);
            target.and_then(|mut high| high.copy_from_device_on(&stream, &low)).expect("it fits");
            model.copy_within(..middle, middle);
        });
    }

    fn upload(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, values) = (this.stream(), this.dice.values(LEN));
            let pinned = PinnedBuffer::from_slice(&this.test.context(), &values, PinnedFlags::empty());
            let pinned = pinned.expect("memory suffices");
            let pending = copy::upload(&stream, pinned, &mut memory.view_mut()).map_err(|(_, error)| error);
            let pending = pending.expect("the lengths are equal");
            if this.dice.below(2) == 0 {
                drop(pending);
            } else {
                let other = this.stream();
                let pinned = pending.wait().map_err(|(_, error)| error).expect("the copy ends");
                let pending = copy::download(&other, &memory.view(), pinned).map_err(|(_, error)| error);
                let pinned = pending.expect("the lengths are equal").wait().map_err(|(_, error)| error);
                assert_eq!(&*pinned.expect("the copy ends"), values);
            }
            *model = values;
        });
    }

    fn scope(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, middle) = (this.stream(), this.dice.below(LEN + 1));
            let (first, second) = (this.dice.values(middle), this.dice.values(LEN - middle));
            let mut result = vec![0; LEN];
            copy::copy_scope(&stream, |scope| {
                let (mut low, mut high) = memory.view_mut().split_at(middle)?;
                scope.upload(&first, &mut low)?;
                scope.upload(&second, &mut high)?;
                scope.download(&memory.view(), &mut result)
            })
            .expect("the copies fit");
            *model = [first, second].concat();
            assert_eq!(&result, model);
        });
    }

    fn batch(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, middle) = (this.stream(), this.dice.below(LEN + 1));
            let (one, other) = (this.dice.below(this.pieces.len()), this.dice.below(this.pieces.len()));
            let (low, high) = memory.view_mut().split_at(middle).expect("it fits");
            let [(first, first_model), (second, second_model)] = [&this.pieces[one], &this.pieces[other]];
            let batch = first.view().slice(..middle).and_then(|part| CopyBatch::new().copy(low, part));
            let batch = batch.and_then(|batch| batch.copy(high, second.view().slice(middle..)?));
            batch.and_then(|batch| batch.enqueue(&stream)).expect("it fits");
            *model = [&first_model[..middle], &second_model[middle..]].concat();
        });
    }

    fn grid(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, extent) = (this.stream(), Extent::volume(2, 2, 2));
            let pitch = Pitch::rows::<u32>(3).with_layers(4);
            let (source, source_model) = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source.view().grid(extent, pitch).expect("it fits");
            let target = memory.view_mut().grid(extent, pitch);
            target.and_then(|mut target| target.copy_from_on(&stream, &source)).expect("it fits");
            for index in (0..2).flat_map(|z| (0..2).flat_map(move |y| (0..2).map(move |x| (z * 4 + y) * 3 + x))) {
                model[index] = source_model[index];
            }
        });
    }

    fn host(&mut self) {
        self.with_piece(|this, memory, model| {
            let (at, value) = (this.dice.below(LEN), this.dice.next() as u32);
            if let Some(host) = memory.host() {
                assert_eq!(host, model);
                host[at] = value;
                model[at] = value;
            }
            if let Memory::Unified(buffer) = memory {
                let stream = this.stream();
                buffer.prefetch(&stream, .., MemoryLocation::Host).expect("it can be prefetched");
            }
        });
    }

    /// Two threads write parts of one piece on two streams.
    fn threads(&mut self) {
        self.with_piece(|this, memory, model| {
            let (one, other, middle) = (this.stream(), this.stream(), this.dice.below(LEN + 1));
            let (first, second) = (this.dice.next() as u32, this.dice.next() as u32);
            let (mut low, mut high) = memory.view_mut().split_at(middle).expect("it fits");
            std::thread::scope(|scope| {
                scope.spawn(|| low.fill_on(&one, first).expect("the part can be filled"));
                scope.spawn(|| high.fill_on(&other, second).expect("the part can be filled"));
            });
            model[..middle].fill(first);
            model[middle..].fill(second);
        });
    }

    /// What a launch does with buffers.
    fn kernel_like(&mut self) {
        self.with_piece(|this, memory, model| {
            let (stream, value) = (this.stream(), this.dice.next() as u32);
            if let Memory::Pooled(buffer) = memory {
                stream_work::fill(&stream, buffer, value).expect("the buffer can be filled");
                model.fill(value);
            }
        });
    }

    fn check_one(&mut self) {
        let range = self.dice.range();
        let (memory, model) = &self.pieces[self.dice.below(self.pieces.len())];
        let part = memory.view().slice(range.clone()).expect("it fits");
        assert_eq!(part.as_device_slice().to_vec().expect("the work ends"), model[range]);
    }

    fn check(&self, seed: u64) {
        for (index, (memory, model)) in self.pieces.iter().enumerate() {
            assert_eq!(&memory.view().to_vec().expect("the work ends"), model, "piece {index} of program {seed}");
        }
    }
}

fn run(test: &TestDriver, streams: &[Stream], seed: u64) {
    let mut program = Program::new(test, streams, seed);
    (0..STEPS).for_each(|_| program.step());
    program.check(seed);
}

#[test]
fn random_programs_hold_what_the_model_holds_and_leak_nothing() {
    on_driver(|test| {
        let streams: Vec<_> = (0..3).map(|_| test.stream()).collect();
        (0..PROGRAMS / 4).for_each(|seed| run(test, &streams, seed));
    });
    // Simulators whose streams run in an order that the seed decides.
    const EACH: u64 = 50;
    for seed in (PROGRAMS / 4..PROGRAMS).step_by(EACH as usize) {
        on_simulator(Config::new().with_seed(seed).with_workers(1), |test, _| {
            let streams: Vec<_> = (0..3).map(|_| test.stream()).collect();
            (seed..seed + EACH).for_each(|seed| run(test, &streams, seed));
        });
    }
}

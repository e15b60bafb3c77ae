//! The copy operations of a random program, in every form.

use curium_memory::copy::{self, CopyBatch};
use curium_memory::{ArrayRegion, Extent, PinnedBuffer, PinnedFlags, Pitch};

use super::{LEN, Piece, Program};

impl Program<'_> {
    pub(super) fn copy_part(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let range = this.dice.range();
            let from = this.dice.below(LEN + 1 - range.len());
            let Piece {
                memory: source,
                model: source_model,
                ..
            } = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source
                .view()
                .slice(from..from + range.len())
                .expect("it fits");
            let target = memory.view_mut().slice(range.clone());
            target
                .and_then(|mut part| part.copy_from_device_on(&stream, &source))
                .expect("it fits");
            model[range.clone()].copy_from_slice(&source_model[from..from + range.len()]);
        });
    }

    pub(super) fn copy_within(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let middle = this.dice.below(LEN / 2 + 1);
            let (low, high) = memory.view_mut().split_at(middle).expect("it fits");
            let target = high.slice(..middle);
            target
                .and_then(|mut high| high.copy_from_device_on(&stream, &low))
                .expect("it fits");
            model.copy_within(..middle, middle);
        });
    }

    pub(super) fn upload(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let values = this.dice.values(LEN);
            let pinned =
                PinnedBuffer::from_slice(&this.world.test.context(), &values, PinnedFlags::empty());
            let pinned = pinned.expect("memory suffices");
            let pending = copy::upload(&stream, pinned, &mut memory.view_mut())
                .map_err(|returned| returned.error);
            let pending = pending.expect("the lengths are equal");
            match this.dice.below(3) {
                0 => drop(pending),
                1 => this.pending.push((pending, values.clone())),
                _ => {
                    let other = this.stream();
                    let pinned = pending.wait().expect("the copy ends");
                    let pending = copy::download(&other, &memory.view(), pinned)
                        .map_err(|returned| returned.error);
                    this.pending
                        .push((pending.expect("the lengths are equal"), values.clone()));
                }
            }
            *model = values;
        });
    }

    pub(super) fn download(&mut self) {
        let stream = self.stream();
        let range = self.dice.range();
        if range.is_empty() {
            return;
        }
        let Piece { memory, model, .. } = &self.pieces[self.dice.below(self.pieces.len())];
        let pinned = PinnedBuffer::zeroed(
            &self.world.test.context(),
            range.len(),
            PinnedFlags::empty(),
        );
        let part = memory.view().slice(range.clone()).expect("it fits");
        let pending = copy::download(&stream, &part, pinned.expect("memory suffices"))
            .map_err(|returned| returned.error);
        self.pending.push((
            pending.expect("the lengths are equal"),
            model[range].to_vec(),
        ));
    }

    pub(super) fn upload_slice(&mut self) {
        self.with_piece(|this, memory, model| {
            let range = this.dice.range();
            let values = this.dice.values(range.len());
            memory
                .view_mut()
                .slice(range.clone())
                .and_then(|mut part| part.copy_from_slice(&values))
                .expect("it fits");
            model[range].copy_from_slice(&values);
        });
    }

    /// Waits for the pending copies.
    pub(super) fn settle(&mut self) {
        for (pending, values) in self.pending.drain(..) {
            let pinned = pending.wait().expect("the copy ends");
            assert_eq!(&*pinned, values);
        }
    }

    /// Copies in a scope, interleaved with a fill of a part on another stream.
    pub(super) fn scope(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let other = this.stream();
            let middle = this.dice.below(LEN + 1);
            let [before, behind] = [this.dice.next() as u32, this.dice.next() as u32];
            let first = this.dice.values(middle);
            let second = this.dice.values(LEN - middle);
            // The driver itself waits for a copy to pageable memory.
            let result =
                PinnedBuffer::zeroed(&this.world.test.context(), LEN, PinnedFlags::empty());
            let mut result = result.expect("memory suffices");
            copy::copy_scope(&stream, |scope| {
                let (mut low, mut high) = memory.view_mut().split_at(middle)?;
                scope.upload(&first, &mut low)?;
                scope.upload(&second, &mut high)?;
                low.fill_on(&other, before)?;
                scope.download(&memory.view(), &mut result)?;
                memory.view_mut().slice(..middle)?.fill_on(&other, behind)
            })
            .expect("the copies fit");
            assert_eq!(&*result, [vec![before; middle], second.clone()].concat());
            *model = [vec![behind; middle], second].concat();
        });
    }

    pub(super) fn batch(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let middle = this.dice.below(LEN + 1);
            let one = this.dice.below(this.pieces.len());
            let other = this.dice.below(this.pieces.len());
            let (low, high) = memory.view_mut().split_at(middle).expect("it fits");
            let [first, second] = [&this.pieces[one], &this.pieces[other]];
            let first_model = &first.model;
            let second_model = &second.model;
            let batch = first
                .memory
                .view()
                .slice(..middle)
                .and_then(|part| CopyBatch::new().copy(low, part));
            let batch =
                batch.and_then(|batch| batch.copy(high, second.memory.view().slice(middle..)?));
            batch
                .and_then(|batch| batch.enqueue(&stream))
                .expect("it fits");
            *model = [&first_model[..middle], &second_model[middle..]].concat();
        });
    }

    pub(super) fn grid(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let extent = Extent::new_3d(2, 2, 2);
            let pitch = Pitch::from_row_len::<u32>(3).with_layer_rows(4);
            let Piece {
                memory: source,
                model: source_model,
                ..
            } = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source.view().pitched(extent, pitch).expect("it fits");
            let target = memory.view_mut().pitched(extent, pitch);
            target
                .and_then(|mut target| target.copy_from_on(&stream, &source))
                .expect("it fits");
            for index in (0..2)
                .flat_map(|z| (0..2).flat_map(move |y| (0..2).map(move |x| (z * 4 + y) * 3 + x)))
            {
                model[index] = source_model[index];
            }
        });
    }

    /// Copies to the array.
    pub(super) fn store(&mut self) {
        let stream = self.stream();
        let range = self.dice.range();
        let Piece { memory, model, .. } = &self.pieces[self.dice.below(self.pieces.len())];
        let (array, array_model) = &mut self.array;
        if range.is_empty() {
            return;
        }
        let source = memory.view().slice(range.clone()).expect("it fits");
        let origin = [range.start, 0, 0];
        let extent = Extent::new_2d(range.len(), 1);
        if self.dice.below(2) == 0 {
            array
                .copy_from_device(
                    ArrayRegion {
                        origin,
                        extent: [range.len(), 1, 1],
                    },
                    &source,
                )
                .expect("it fits");
        } else {
            let rows = source
                .pitched(extent, Pitch::tight::<u32>(extent))
                .expect("it fits");
            let batch = CopyBatch::new()
                .copy_to_array(array, origin, rows)
                .and_then(|batch| batch.enqueue(&stream));
            batch.expect("it fits");
        }
        array_model[range.clone()].copy_from_slice(&model[range]);
    }

    /// Copies from the array.
    pub(super) fn load(&mut self) {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let range = this.dice.range();
            let (array, array_model) = &this.array;
            if range.is_empty() {
                return;
            }
            let mut target = memory.view_mut().slice(range.clone()).expect("it fits");
            let origin = [range.start, 0, 0];
            let extent = Extent::new_2d(range.len(), 1);
            if this.dice.below(2) == 0 {
                let region = ArrayRegion {
                    origin,
                    extent: [range.len(), 1, 1],
                };
                array.copy_to_device(region, &mut target).expect("it fits");
            } else {
                let rows = target
                    .pitched(extent, Pitch::tight::<u32>(extent))
                    .expect("it fits");
                let batch = CopyBatch::new().copy_from_array(rows, array, origin);
                batch
                    .and_then(|batch| batch.enqueue(&stream))
                    .expect("it fits");
            }
            model[range.clone()].copy_from_slice(&array_model[range]);
        });
    }
}

//! The copy operations of a random program, in every form.

use curium_memory::copy::{self, CopyBatch};
use curium_memory::{ArrayRegion, Extent, PinnedBuffer, PinnedFlags, Pitch};

use curium_tests::TestResult;

use super::{LEN, Piece, Program};

impl Program<'_> {
    pub(super) fn copy_part(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let range = this.dice.range();
            let from = this.dice.below(LEN + 1 - range.len());
            let Piece {
                memory: source,
                model: source_model,
                ..
            } = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source.view();
            let source = source.slice(from..from + range.len())?;
            let mut target = memory.view_mut();
            let mut target = target.slice_mut(range.clone())?;
            target.on_mut(&stream).copy_from_device(&source)?;
            model[range.clone()].copy_from_slice(&source_model[from..from + range.len()]);
            Ok(())
        })
    }

    pub(super) fn copy_within(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let middle = this.dice.below(LEN / 2 + 1);
            let mut whole = memory.view_mut();
            let (low, mut high) = whole.split_at_mut(middle)?;
            let mut target = high.slice_mut(..middle)?;
            target.on_mut(&stream).copy_from_device(&low)?;
            model.copy_within(..middle, middle);
            Ok(())
        })
    }

    pub(super) fn upload(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let values = this.dice.values(LEN);
            let pinned = PinnedBuffer::from_slice(
                &this.world.test.context(),
                &values,
                PinnedFlags::empty(),
            )?;
            let pending = copy::upload(&stream, pinned, &mut memory.view_mut())
                .map_err(|returned| returned.error)?;
            match this.dice.below(3) {
                0 => drop(pending),
                1 => this.pending.push((pending, values.clone())),
                _ => {
                    let other = this.stream();
                    let pinned = pending.wait()?;
                    let pending = copy::download(&other, &memory.view(), pinned)
                        .map_err(|returned| returned.error);
                    this.pending.push((pending?, values.clone()));
                }
            }
            *model = values;
            Ok(())
        })
    }

    pub(super) fn download(&mut self) -> TestResult {
        let stream = self.stream();
        let range = self.dice.range();
        if range.is_empty() {
            return Ok(());
        }
        let Piece { memory, model, .. } = &self.pieces[self.dice.below(self.pieces.len())];
        let pinned = PinnedBuffer::zeroed(
            &self.world.test.context(),
            range.len(),
            PinnedFlags::empty(),
        );
        let whole = memory.view();
        let part = whole.slice(range.clone())?;
        let pending = copy::download(&stream, &part, pinned?).map_err(|returned| returned.error);
        self.pending.push((pending?, model[range].to_vec()));
        Ok(())
    }

    pub(super) fn upload_slice(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let range = this.dice.range();
            let values = this.dice.values(range.len());
            memory
                .view_mut()
                .slice_mut(range.clone())?
                .copy_from_slice(&values)?;
            model[range].copy_from_slice(&values);
            Ok(())
        })
    }

    /// Waits for the pending copies.
    pub(super) fn settle(&mut self) -> TestResult {
        for (pending, values) in self.pending.drain(..) {
            let pinned = pending.wait()?;
            assert_eq!(&*pinned, values);
        }
        Ok(())
    }

    /// Copies in a scope, interleaved with a fill of a part on another stream.
    pub(super) fn scope(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let other = this.stream();
            let middle = this.dice.below(LEN + 1);
            let [before, behind] = [this.dice.next() as u32, this.dice.next() as u32];
            let first = this.dice.values(middle);
            let second = this.dice.values(LEN - middle);
            // The driver itself waits for a copy to pageable memory.
            let mut result =
                PinnedBuffer::zeroed(&this.world.test.context(), LEN, PinnedFlags::empty())?;
            copy::copy_scope(&stream, |scope| {
                let mut whole = memory.view_mut();
                let (mut low, mut high) = whole.split_at_mut(middle)?;
                scope.upload(&first, &mut low)?;
                scope.upload(&second, &mut high)?;
                low.on_mut(&other).fill(before)?;
                scope.download(&memory.view(), &mut result)?;
                memory
                    .view_mut()
                    .slice_mut(..middle)?
                    .on_mut(&other)
                    .fill(behind)
            })?;
            assert_eq!(&*result, [vec![before; middle], second.clone()].concat());
            *model = [vec![behind; middle], second].concat();
            Ok(())
        })
    }

    pub(super) fn batch(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let middle = this.dice.below(LEN + 1);
            let one = this.dice.below(this.pieces.len());
            let other = this.dice.below(this.pieces.len());
            let mut whole = memory.view_mut();
            let (low, high) = whole.split_at_mut(middle)?;
            let [first, second] = [&this.pieces[one], &this.pieces[other]];
            let first_model = &first.model;
            let second_model = &second.model;
            let [first, second] = [first.memory.view(), second.memory.view()];
            CopyBatch::new()
                .copy(low, first.slice(..middle)?)?
                .copy(high, second.slice(middle..)?)?
                .enqueue(&stream)?;
            *model = [&first_model[..middle], &second_model[middle..]].concat();
            Ok(())
        })
    }

    pub(super) fn grid(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let extent = Extent::new_3d(2, 2, 2);
            let pitch = Pitch::from_row_len::<u32>(3).with_layer_rows(4);
            let Piece {
                memory: source,
                model: source_model,
                ..
            } = &this.pieces[this.dice.below(this.pieces.len())];
            let source = source.view();
            let source = source.pitched(extent, pitch)?;
            let mut target = memory.view_mut();
            let mut target = target.pitched_mut(extent, pitch)?;
            target.on_mut(&stream).copy_from(&source)?;
            for index in (0..2)
                .flat_map(|z| (0..2).flat_map(move |y| (0..2).map(move |x| (z * 4 + y) * 3 + x)))
            {
                model[index] = source_model[index];
            }
            Ok(())
        })
    }

    /// Copies to the array.
    pub(super) fn store(&mut self) -> TestResult {
        let stream = self.stream();
        let range = self.dice.range();
        let Piece { memory, model, .. } = &self.pieces[self.dice.below(self.pieces.len())];
        let (array, array_model) = &mut self.array;
        if range.is_empty() {
            return Ok(());
        }
        let whole = memory.view();
        let source = whole.slice(range.clone())?;
        let origin = [range.start, 0, 0];
        let extent = Extent::new_2d(range.len(), 1);
        if self.dice.below(2) == 0 {
            array.copy_from_device(
                ArrayRegion {
                    origin,
                    extent: [range.len(), 1, 1],
                },
                &source,
            )?;
        } else {
            let rows = source.pitched(extent, Pitch::tight::<u32>(extent))?;
            let batch = CopyBatch::new()
                .copy_to_array(array, origin, rows)
                .and_then(|batch| batch.enqueue(&stream));
            batch?;
        }
        array_model[range.clone()].copy_from_slice(&model[range]);
        Ok(())
    }

    /// Copies from the array.
    pub(super) fn load(&mut self) -> TestResult {
        self.with_piece(|this, memory, model| {
            let stream = this.stream();
            let range = this.dice.range();
            let (array, array_model) = &this.array;
            if range.is_empty() {
                return Ok(());
            }
            let mut whole = memory.view_mut();
            let mut target = whole.slice_mut(range.clone())?;
            let origin = [range.start, 0, 0];
            let extent = Extent::new_2d(range.len(), 1);
            if this.dice.below(2) == 0 {
                let region = ArrayRegion {
                    origin,
                    extent: [range.len(), 1, 1],
                };
                array.copy_to_device(region, &mut target)?;
            } else {
                let rows = target.pitched_mut(extent, Pitch::tight::<u32>(extent))?;
                let batch = CopyBatch::new().copy_from_array(rows, array, origin);
                batch.and_then(|batch| batch.enqueue(&stream))?;
            }
            model[range.clone()].copy_from_slice(&array_model[range]);
            Ok(())
        })
    }
}

//! The progress of one copy, which its threads share.

use std::collections::VecDeque;
use std::ops::Range;

use parking_lot::{Condvar, Mutex};

use super::direction::Direction;

/// The progress of a copy through a staging buffer.
///
/// The slice consists of tiles of equal length, and the staging buffer of as many slots as fit.
/// Tile `i` uses slot `i % slots`. Threads copy tiles between the slice and the slots; the device
/// copies batches of consecutive tiles, which one thread at a time enqueues, in order. In a copy to
/// the device, the threads are ahead of the device; in a copy to the host, the device is ahead of
/// the threads.
pub(super) struct Progress<S> {
    direction: Direction,
    size: Size,
    state: Mutex<State<S>>,
    changed: Condvar,
}

/// The size of a copy and of its staging buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The length of a tile in bytes. The last one may be shorter.
    pub(super) tile: usize,
    /// The number of tiles of the slice.
    pub(super) tiles: usize,
    /// The number of tiles that fit into the staging buffer.
    pub(super) slots: usize,
}

struct State<S> {
    /// The part of the slice that no thread has claimed.
    rest: S,
    /// The number of tiles that threads have claimed.
    claimed: usize,
    /// The number of tiles before the first one that has not been copied by its thread.
    copied: usize,
    /// For each claimed tile from `copied`: `true` if it has been copied.
    ahead: VecDeque<bool>,
    /// The number of tiles that have been enqueued on the device.
    enqueued: usize,
    /// For each slot, the slot of the last tile of its batch, whose event is recorded after the
    /// batch.
    batch_ends: Box<[usize]>,
    is_enqueuing: bool,
    is_stopped: bool,
}

/// A tile that a thread has claimed.
pub(super) struct Tile<S> {
    /// The number of tiles before it.
    pub(super) index: usize,
    /// The tile's part of the slice.
    pub(super) part: S,
    /// The slot whose event completes before the thread may access the tile's slot; `None` if the
    /// slot is unused.
    pub(super) wait_for: Option<usize>,
}

/// A slice that can be split.
pub(super) trait Split {
    /// Splits off the first `bytes` bytes, or all if there are fewer.
    fn split_first(&mut self, bytes: usize) -> Self;
}

/// The maximum number of tiles of a batch, which amortizes the cost of a copy by the device.
const MAX_BATCH_TILES: usize = 16;

impl<S: Split> Progress<S> {
    /// Creates the progress of a copy of `slice` that has not begun.
    pub(super) fn new(direction: Direction, slice: S, size: Size) -> Self {
        let state = State {
            rest: slice,
            claimed: 0,
            copied: 0,
            ahead: VecDeque::new(),
            enqueued: 0,
            batch_ends: vec![0; size.slots].into_boxed_slice(),
            is_enqueuing: false,
            is_stopped: false,
        };
        Self {
            direction,
            size,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Claims the next tile for the calling thread, and waits until its slot may be accessed once
    /// the tile's event has completed. Returns `None` if no tile is left or the copy is stopped.
    pub(super) fn claim(&self) -> Option<Tile<S>> {
        let mut state = self.state.lock();
        while !state.is_stopped
            && state.claimed < self.size.tiles
            && state.claimed >= self.claimable(&state)
        {
            self.changed.wait(&mut state);
        }
        if state.is_stopped || state.claimed == self.size.tiles {
            return None;
        }
        let index = state.claimed;
        state.claimed += 1;
        state.ahead.push_back(false);
        let is_first_use = self.direction == Direction::ToDevice && index < self.size.slots;
        let wait_for = (!is_first_use).then(|| state.batch_ends[index % self.size.slots]);
        Some(Tile {
            index,
            part: state.rest.split_first(self.size.tile),
            wait_for,
        })
    }

    /// Notes that the thread has copied a tile.
    pub(super) fn finish(&self, index: usize) {
        let mut state = self.state.lock();
        let position = index - state.copied;
        state.ahead[position] = true;
        while state.ahead.front() == Some(&true) {
            state.ahead.pop_front();
            state.copied += 1;
        }
    }

    /// Returns the next batch to enqueue, if enough tiles are ready and no other thread is
    /// enqueuing. The caller enqueues it, records the event of its last slot, and calls
    /// [`Progress::enqueued`].
    pub(super) fn next_batch(&self) -> Option<Range<usize>> {
        let mut state = self.state.lock();
        if state.is_enqueuing || state.is_stopped {
            return None;
        }
        let start = state.enqueued;
        let length = self.batch_length(start);
        if length == 0 || start + length > self.ready(&state) {
            return None;
        }
        state.is_enqueuing = true;
        Some(start..start + length)
    }

    /// Notes that a batch has been enqueued, and wakes the threads that wait for it.
    pub(super) fn enqueued(&self, batch: Range<usize>) {
        let mut state = self.state.lock();
        let slots = self.size.slots;
        let last = (batch.end - 1) % slots;
        state.batch_ends[batch.start % slots..=last].fill(last);
        state.enqueued = batch.end;
        state.is_enqueuing = false;
        self.changed.notify_all();
    }

    /// Ends the copy: no more tiles are claimed, and no more batches enqueued.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Returns the number of tiles from the start that may be claimed.
    fn claimable(&self, state: &State<S>) -> usize {
        match self.direction {
            Direction::ToDevice => state.enqueued + self.size.slots,
            Direction::ToHost => state.enqueued,
        }
    }

    /// Returns the number of tiles from the start that may be enqueued.
    fn ready(&self, state: &State<S>) -> usize {
        match self.direction {
            Direction::ToDevice => state.copied,
            Direction::ToHost => state.copied + self.size.slots,
        }
    }

    /// Returns the length of the batch that begins with tile `start`.
    ///
    /// - The first batches are short, so that device and threads both begin early.
    /// - The lengths double, because each copy by the device has a fixed cost of a few
    ///   microseconds.
    /// - The last batches are short again, so that device and threads end at the same time.
    fn batch_length(&self, start: usize) -> usize {
        let Size { tiles, slots, .. } = self.size;
        let longest = MAX_BATCH_TILES.min(slots / 2).max(1);
        let until_wrap = slots - start % slots;
        start
            .clamp(1, longest)
            .min((tiles - start).div_ceil(2))
            .min(until_wrap)
    }
}

impl Split for &[u8] {
    #[inline]
    fn split_first(&mut self, bytes: usize) -> Self {
        self.split_off(..bytes.min(self.len())).unwrap_or_default()
    }
}

impl Split for &mut [std::mem::MaybeUninit<u8>] {
    #[inline]
    fn split_first(&mut self, bytes: usize) -> Self {
        self.split_off_mut(..bytes.min(self.len()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn batches(tiles: usize, slots: usize) -> Vec<usize> {
        let size = Size {
            tile: 1,
            tiles,
            slots,
        };
        let progress = Progress::new(Direction::ToHost, &[][..], size);
        let mut lengths = Vec::new();
        let mut start = 0;
        while progress.batch_length(start) > 0 {
            lengths.push(progress.batch_length(start));
            start += progress.batch_length(start);
        }
        assert_eq!(start, tiles);
        lengths
    }

    #[test]
    fn batches_grow_and_shrink_again() {
        assert_eq!(batches(64, 128), [1, 1, 2, 4, 8, 16, 16, 8, 4, 2, 1, 1]);
        assert_eq!(batches(1, 8), [1]);
        assert_eq!(batches(0, 8), [0; 0]);
    }

    #[test]
    fn batches_end_where_the_staging_buffer_ends() {
        assert_eq!(batches(21, 8), [1, 1, 2, 4, 4, 4, 3, 1, 1]);
        assert_eq!(batches(5, 1), [1; 5]);
        assert_eq!(batches(7, 3), [1; 7]);
    }

    /// Copies on several threads, with an array in place of the device, and one in place of the
    /// staging buffer.
    fn copy_on_threads(direction: Direction, length: usize, size: Size, threads: usize) {
        let source: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8 + 1).collect();
        let device = Mutex::new(if direction == Direction::ToHost {
            source.clone()
        } else {
            vec![0; length]
        });
        let slots: Vec<_> = (0..size.slots)
            .map(|_| Mutex::new(vec![0; size.tile]))
            .collect();
        let progress = Progress::new(direction, &source[..], size);
        let copy_batch = |batch: Range<usize>| {
            for tile in batch {
                let mut slot = slots[tile % size.slots].lock();
                let mut device = device.lock();
                let range = tile * size.tile..((tile + 1) * size.tile).min(length);
                let used = range.len();
                match direction {
                    Direction::ToDevice => device[range].copy_from_slice(&slot[..used]),
                    Direction::ToHost => slot[..used].copy_from_slice(&device[range]),
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        while let Some(batch) = progress.next_batch() {
                            copy_batch(batch.clone());
                            progress.enqueued(batch);
                        }
                        let Some(tile) = progress.claim() else { break };
                        let mut slot = slots[tile.index % size.slots].lock();
                        match direction {
                            Direction::ToDevice => {
                                slot[..tile.part.len()].copy_from_slice(tile.part);
                            }
                            Direction::ToHost => assert_eq!(slot[..tile.part.len()], *tile.part),
                        }
                        drop(slot);
                        progress.finish(tile.index);
                    }
                });
            }
        });
        assert!(
            *device.lock() == source,
            "{direction:?}, {length} bytes, {size:?}, {threads} threads"
        );
    }

    #[test]
    fn every_tile_is_copied_once_in_both_directions() {
        for direction in [Direction::ToDevice, Direction::ToHost] {
            let sizes = [
                (1_usize, 1, 1),
                (100, 3, 8),
                (64, 4, 16),
                (1000, 7, 9),
                (400, 1, 5),
            ];
            for (length, tile, slots) in sizes.into_iter().take(if cfg!(miri) { 3 } else { 5 }) {
                for threads in [1, 2, 5] {
                    let size = Size {
                        tile,
                        tiles: length.div_ceil(tile),
                        slots,
                    };
                    copy_on_threads(direction, length, size, threads);
                }
            }
        }
    }

    /// In a copy to the host, a slot is also waited for before its first use.
    #[test]
    fn slots_are_waited_for_before_reuse() {
        let size = Size {
            tile: 1,
            tiles: 5,
            slots: 2,
        };
        let upload = Progress::new(Direction::ToDevice, &[1, 2, 3, 4, 5][..], size);
        let waits =
            |progress: &Progress<&[u8]>| progress.claim().map(|tile| (tile.part[0], tile.wait_for));
        assert_eq!(
            (waits(&upload), waits(&upload)),
            (Some((1, None)), Some((2, None)))
        );
        upload.finish(1);
        assert!(
            upload.next_batch().is_none(),
            "the first tile has not been copied"
        );
        upload.finish(0);
        let batch = upload.next_batch().expect("both tiles are ready");
        assert!(
            upload.next_batch().is_none(),
            "one thread at a time enqueues"
        );
        assert_eq!(batch, 0..1);
        upload.enqueued(batch);
        assert_eq!(waits(&upload), Some((3, Some(0))));
        let download = Progress::new(Direction::ToHost, &[1, 2, 3, 4, 5][..], size);
        download.enqueued(download.next_batch().expect("the device begins"));
        assert_eq!(waits(&download), Some((1, Some(0))));
    }

    #[test]
    fn stopped_copy_gives_no_more_tiles_and_batches() {
        let progress = Progress::new(
            Direction::ToDevice,
            &[1, 2][..],
            Size {
                tile: 1,
                tiles: 2,
                slots: 1,
            },
        );
        let tile = progress.claim().expect("no tile");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| progress.claim().is_none());
            progress.stop();
            assert!(
                waiting.join().expect("the thread ends"),
                "the waiting thread is woken"
            );
        });
        progress.finish(tile.index);
        assert!(progress.next_batch().is_none());
    }
}

//! Host memory behind device addresses, and the only raw accesses of the executor.
//!
//! Kernels race: that is their right, and it must not be undefined behavior here. So every
//! access, plain loads and stores too, is an atomic of its width with relaxed ordering, which on
//! the hosts we know costs what a plain access costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lane::{HALF, Raw};
use super::launch_shadow::PageCache;
use super::unwritten::WrittenCache;
use super::watch::Watcher;
pub(crate) use super::word::Word;
use super::written::Written;

/// A run of device addresses and the host memory behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First device address.
    pub(crate) base: u64,
    /// Length in bytes.
    pub(crate) size: u64,
    /// The host memory; same residue modulo 16 as `base`.
    pub(crate) host: *mut u8,
    /// `true` if the launch may write to it.
    pub(crate) writable: bool,
}

/// The device memory that a launch can reach.
///
/// # Safety
///
/// For every segment that [`segment`](Self::segment) returns, and until the launch is over:
/// - `host` is valid for reads and writes of `size` bytes from any thread;
/// - `host` and `base` are congruent modulo 16;
/// - other accesses to those bytes are atomic, or ordered before or after the launch.
pub(crate) unsafe trait Memory: Sync {
    /// Returns the allocation that holds `address`, if there is one.
    ///
    /// The executor keeps the answer for the rest of the launch.
    fn segment(&self, address: u64) -> Option<Segment>;

    /// Which bytes of the segment that holds `address` were written; `None` if that is not known.
    ///
    /// Only launches of programs that look for reads of memory that nobody wrote ask.
    fn written(&self, address: u64) -> Option<Arc<Written>> {
        let _ = address;
        None
    }

    /// Who hears of the accesses of one worker of the launch; nobody, unless races between launches are looked for.
    fn watcher(&self) -> Option<Box<dyn Watcher + '_>> {
        None
    }
}

/// The last segments that a worker touched.
#[derive(Debug, Default)]
pub(crate) struct SegmentCache {
    entries: [Segment; 4],
    next: usize,
    /// The same for what was written there.
    pub(crate) written: WrittenCache,
    /// The same for which threads accessed it.
    pub(crate) pages: PageCache,
}

impl Default for Segment {
    fn default() -> Self {
        Self { base: 0, size: 0, host: std::ptr::null_mut(), writable: false }
    }
}

impl Segment {
    /// Returns the host memory of `bytes` bytes at `address`, if all of them are in the segment.
    #[inline(always)]
    pub(crate) fn place(&self, address: u64, bytes: u64) -> Option<HostBytes> {
        let offset = address.wrapping_sub(self.base);
        if offset > self.size || self.size - offset < bytes {
            return None;
        }
        Some(HostBytes { start: self.host.wrapping_add(offset as usize), len: bytes })
    }
}

impl SegmentCache {
    /// Returns the host memory of `bytes` bytes at `address` to read, or to `write`, asking `memory` only if it is news.
    #[inline(always)]
    pub(crate) fn place(&mut self, memory: &dyn Memory, address: u64, bytes: u64, write: bool) -> Option<HostBytes> {
        self.segment(memory, address, write)?.place(address, bytes)
    }

    /// Returns the segment that holds `address` and can be read, or can be written, asking `memory` only if it is news.
    #[inline(always)]
    pub(crate) fn segment(&mut self, memory: &dyn Memory, address: u64, write: bool) -> Option<Segment> {
        for entry in &self.entries {
            if address.wrapping_sub(entry.base) < entry.size && (entry.writable || !write) {
                return Some(*entry);
            }
        }
        self.fetch(memory, address).filter(|segment| segment.writable || !write)
    }

    #[cold]
    fn fetch(&mut self, memory: &dyn Memory, address: u64) -> Option<Segment> {
        let segment = memory.segment(address)?;
        self.entries[self.next] = segment;
        self.next = (self.next + 1) % self.entries.len();
        Some(segment)
    }
}

/// Bytes of a segment that were found to be in bounds.
///
/// Made by [`Segment::place`] only. The segment's provider vouches that the bytes are valid until
/// the launch is over, and no handler keeps one longer than its instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    start: *mut u8,
    len: u64,
}

impl HostBytes {
    /// Reads the `index`-th value of these bytes. The address must be aligned.
    #[inline(always)]
    pub(crate) fn load<T: Word>(self, index: usize) -> T {
        // SAFETY: `word` returned an aligned pointer into bytes that the segment's provider keeps
        // valid, and every access of the launch is atomic.
        unsafe { T::load(self.word::<T>(index)) }
    }

    /// Writes the `index`-th value of these bytes. The address must be aligned.
    #[inline(always)]
    pub(crate) fn store<T: Word>(self, index: usize, value: T) {
        // SAFETY: as for `load`.
        unsafe { T::store(self.word::<T>(index), value) }
    }

    /// Reads a value for each lane of half a warp. The address must be aligned. With `WIDE` the processor has AVX2.
    #[inline(always)]
    pub(crate) fn load_half<T: Word, const WIDE: bool>(self) -> [T; HALF] {
        let from = self.half::<T>();
        // SAFETY: `half` returned an aligned pointer to as many values, in bytes that the segment's provider keeps valid, and
        // every access of the launch is atomic. Only handlers that were chosen for AVX2 ask for it.
        unsafe { T::load_half::<WIDE>(from) }
    }

    /// Writes a value of each lane of half a warp. The address must be aligned. With `WIDE` the processor has AVX2.
    #[inline(always)]
    pub(crate) fn store_half<T: Word, const WIDE: bool>(self, values: &[T; HALF]) {
        let to = self.half::<T>();
        // SAFETY: as for `load_half`.
        unsafe { T::store_half::<WIDE>(to, values) }
    }

    /// Reads a register's value for each lane of half a warp. The address must be aligned. With `WIDE` the processor has AVX2.
    #[inline(always)]
    pub(crate) fn load_half_as<T: Word, R: Raw, const WIDE: bool>(self, register: &mut [R; HALF]) {
        assert!(size_of::<T>() == size_of::<R>(), "the register is as wide as the word");
        let from = self.half::<T>();
        // SAFETY: as for `load_half`; registers have 32 or 64 bits, of which any are a value, and are as wide as the words.
        unsafe { T::copy_half::<WIDE>((&raw mut *register).cast(), from) };
    }

    /// Writes a register's value of each lane of half a warp. The address must be aligned. With `WIDE` the processor has AVX2.
    #[inline(always)]
    pub(crate) fn store_half_as<T: Word, R: Raw, const WIDE: bool>(self, register: &[R; HALF]) {
        assert!(size_of::<T>() == size_of::<R>(), "the register is as wide as the word");
        let to = self.half::<T>();
        // SAFETY: as for `load_half_as`.
        unsafe { T::copy_half::<WIDE>(to, (&raw const *register).cast()) };
    }

    #[inline(always)]
    fn half<T: Word>(self) -> *mut T {
        let pointer = self.start.cast::<T>();
        assert!(
            HALF as u64 * T::SIZE <= self.len && pointer.is_aligned(),
            "an access was not checked before it was made"
        );
        pointer
    }

    /// Reads the value at a byte offset. The address must be aligned.
    #[inline(always)]
    pub(crate) fn load_at<T: Word>(self, offset: u64) -> T {
        // SAFETY: as for `load`.
        unsafe { T::load(self.word_at::<T>(offset)) }
    }

    /// Writes the value at a byte offset. The address must be aligned.
    #[inline(always)]
    pub(crate) fn store_at<T: Word>(self, offset: u64, value: T) {
        // SAFETY: as for `load`.
        unsafe { T::store(self.word_at::<T>(offset), value) }
    }

    #[inline(always)]
    fn word_at<T: Word>(self, offset: u64) -> *mut T {
        let pointer = self.start.wrapping_add(offset as usize).cast::<T>();
        let is_inside = offset <= self.len && self.len - offset >= T::SIZE;
        assert!(is_inside && pointer.is_aligned(), "an access was not checked before it was made");
        pointer
    }

    /// Replaces the first value by `change` of it, atomically, and returns what was there.
    #[inline(always)]
    pub(crate) fn update<T: Word>(self, change: impl Fn(T) -> T) -> T {
        // SAFETY: as for `load`.
        unsafe { T::update(self.word::<T>(0), change) }
    }

    #[inline(always)]
    fn word<T: Word>(self, index: usize) -> *mut T {
        let pointer = self.start.cast::<T>().wrapping_add(index);
        assert!(
            (index as u64 + 1) * T::SIZE <= self.len && pointer.is_aligned(),
            "an access was not checked before it was made"
        );
        pointer
    }
}

/// A block's shared memory.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    lines: Vec<Line>,
    size: u64,
    /// Which bytes were written, if the launch looks for reads of what nobody wrote.
    written: Option<Written>,
}

/// Shared memory's unit of alignment: what `.align` may ask for at most.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; 16]);

impl SharedMemory {
    /// Zeroed shared memory of `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        let lines = size.div_ceil(128) as usize;
        Self { lines: std::iter::repeat_with(Line::default).take(lines).collect(), size, written: None }
    }

    /// The same, which knows what of it was written.
    pub(crate) fn noting_writes(self) -> Self {
        Self { written: Some(Written::new(self.size)), ..self }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Which bytes were written, where that is known.
    pub(crate) fn written(&self) -> Option<&Written> {
        self.written.as_ref()
    }

    /// Clears the memory for the next block.
    pub(crate) fn clear(&self) {
        if let Some(written) = &self.written {
            written.remove(0, self.size);
        }
        for word in self.lines.iter().flat_map(|line| &line.0) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the host memory of `bytes` bytes at `offset`, if they are in bounds.
    #[inline(always)]
    pub(crate) fn place(&self, offset: u64, bytes: u64) -> Option<HostBytes> {
        self.segment(0).place(offset, bytes)
    }

    /// Returns the memory as a segment of addresses that begin at `base`, a multiple of 16.
    #[inline(always)]
    pub(crate) fn segment(&self, base: u64) -> Segment {
        // Atomics may be written through a shared reference, so the cast adds no right.
        let host = self.lines.as_ptr().cast_mut().cast();
        Segment { base, size: self.size, host, writable: true }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::race::{Accessor, LaunchWatch, Marks, NOBODY, Races};

    /// Device memory for tests: one allocation, at a device address of its own.
    #[derive(Debug)]
    pub(crate) struct Arena {
        pub(crate) base: u64,
        words: Vec<Line>,
        size: u64,
        watched: Option<Watched>,
        /// Which bytes were written, where a test wants it known.
        pub(crate) written: Option<Arc<Written>>,
    }

    /// What it takes to look for races between launches.
    #[derive(Debug)]
    struct Watched {
        races: Arc<Races>,
        marks: Arc<Marks>,
        launches: AtomicU64,
        accessor: Mutex<Option<Accessor>>,
    }

    impl Arena {
        /// Zeroed memory of `size` bytes at `base`, which is a multiple of 128.
        pub(crate) fn new(base: u64, size: u64) -> Self {
            let shared = SharedMemory::new(size);
            Self { base, words: shared.lines, size, watched: None, written: None }
        }

        /// Begins a launch, which comes after those before, if races are looked for.
        pub(crate) fn begin_launch(&self) {
            if let Some(watched) = &self.watched {
                watched.launches.fetch_add(1, Ordering::Relaxed);
                let accessor = watched.races.next_launch(watched.launches.load(Ordering::Relaxed));
                *watched.accessor.lock().expect("nobody panics") = Some(accessor);
            }
        }

        /// Looks for races between launches.
        pub(crate) fn watch(&mut self) {
            let marks = Arc::new(Marks::new(self.size, NOBODY));
            self.watched =
                Some(Watched { races: Arc::default(), marks, launches: AtomicU64::new(0), accessor: Mutex::default() });
        }

        pub(crate) fn size(&self) -> u64 {
            self.size
        }

        /// Has it end earlier.
        pub(crate) fn cut(&mut self, size: u64) {
            self.size = size;
        }

        fn all(&self) -> Segment {
            Segment { base: self.base, size: self.size, host: self.words.as_ptr().cast_mut().cast(), writable: true }
        }

        /// Writes values at a byte offset.
        pub(crate) fn write<T: Word>(&self, offset: u64, values: &[T]) {
            let bytes = values.len() as u64 * T::SIZE;
            let place = self.all().place(self.base + offset, bytes).expect("in bounds");
            for (index, &value) in values.iter().enumerate() {
                place.store(index, value);
            }
        }

        /// Reads values at a byte offset.
        pub(crate) fn read<T: Word>(&self, offset: u64, count: usize) -> Vec<T> {
            let bytes = count as u64 * T::SIZE;
            let place = self.all().place(self.base + offset, bytes).expect("in bounds");
            (0..count).map(|index| place.load(index)).collect()
        }
    }

    // SAFETY: the one segment is memory that the arena owns and frees when dropped; it is made of
    // atomics; `base` and the lines are multiples of 16.
    unsafe impl Memory for Arena {
        fn segment(&self, address: u64) -> Option<Segment> {
            let all = self.all();
            all.place(address, 1).map(|_| all)
        }

        fn watcher(&self) -> Option<Box<dyn Watcher + '_>> {
            let Watched { marks, accessor, .. } = self.watched.as_ref()?;
            let accessor = accessor.lock().expect("nobody panics").clone()?;
            Some(Box::new(LaunchWatch::new(accessor, |_| Some((self.base, self.size, Some(Arc::clone(marks)))))))
        }

        fn written(&self, _address: u64) -> Option<Arc<Written>> {
            self.written.clone()
        }
    }

    #[test]
    fn place_rejects_ranges_that_cross_an_end() {
        let arena = Arena::new(0x1000, 16);
        let segment = arena.segment(0x100f).expect("the last byte is inside");
        assert!(segment.place(0x100c, 4).is_some());
        assert!(segment.place(0x100d, 4).is_none());
        assert!(segment.place(0xfff, 1).is_none());
        assert!(segment.place(u64::MAX, 2).is_none());
        assert!(arena.segment(0x1010).is_none());
    }

    #[test]
    #[should_panic(expected = "not checked")]
    fn an_index_past_the_checked_bytes_panics() {
        let shared = SharedMemory::new(64);
        let place = shared.place(0, 8).expect("in bounds");
        let _: u32 = place.load(2);
    }
}

//! Host memory of device addresses, and the only raw accesses of the executor.
//!
//! Kernels may race, so every access is a relaxed atomic of its width. It costs as much as a plain
//! access on x86-64 and ARM.

pub(crate) mod access_pattern;
pub(crate) mod lane_addresses;
mod strided;
pub(crate) mod window;
pub(crate) mod word;
pub(crate) mod written_cache;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::word::Word;
use crate::exec::check::launch_shadow::PageCache;
use crate::exec::check::watch::Watcher;
use crate::exec::check::written::Written;
use crate::exec::memory::written_cache::WrittenCache;
use crate::exec::values::lane::{HALF, Raw};
pub(crate) use strided::StridedMemory;

/// A range of device addresses and its host memory.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First device address.
    pub base: u64,
    /// Length in bytes.
    pub size: u64,
    /// The host memory, congruent to `base` modulo 16.
    pub host: *mut u8,
    /// `true` if the launch may write to the segment.
    pub writable: bool,
}

/// The device memory of a launch.
///
/// # Safety
///
/// For every segment that [`segment`](Self::segment) returns, and until the launch ends:
/// - `host` is valid for reads of `size` bytes from any thread, and for writes if `writable`;
/// - `host` and `base` are congruent modulo 16;
/// - other accesses to those bytes are atomic, or ordered before or after the launch.
pub unsafe trait Memory: Sync {
    /// Returns the allocation that contains `address`, if any.
    ///
    /// The executor caches the segment until the launch ends.
    fn segment(&self, address: u64) -> Option<Segment>;

    /// Returns the record of written bytes of the segment that contains `address`, or `None` if
    /// there is no record.
    ///
    /// Called only if the launch checks for uninitialized reads.
    fn written(&self, address: u64) -> Option<Arc<Written>> {
        let _ = address;
        None
    }

    /// Returns the observer of one worker's accesses, or `None` unless races between launches are
    /// checked.
    fn watcher(&self) -> Option<Box<dyn Watcher + '_>> {
        None
    }
}

/// The segments that a worker accessed last.
#[derive(Debug, Default)]
pub(crate) struct SegmentCache {
    entries: [Segment; 4],
    next: usize,
    /// The records of written bytes of the same segments.
    pub(crate) written: WrittenCache,
    /// The records of accesses to the same segments.
    pub(crate) pages: PageCache,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            base: 0,
            size: 0,
            host: std::ptr::null_mut(),
            writable: false,
        }
    }
}

impl Segment {
    /// Returns the host memory of `bytes` bytes at `address`, if all of them are in the segment.
    #[inline(always)]
    pub(crate) fn host_bytes(&self, address: u64, bytes: u64) -> Option<HostBytes> {
        let offset = address.wrapping_sub(self.base);
        if offset > self.size || self.size - offset < bytes {
            return None;
        }
        Some(HostBytes {
            start: self.host.wrapping_add(offset as usize),
            len: bytes,
        })
    }
}

impl SegmentCache {
    /// Returns the host memory of `bytes` bytes at `address`, for an access in this mode. Queries
    /// `memory` only if it is not cached.
    #[inline(always)]
    pub(crate) fn host_bytes(
        &mut self,
        memory: &dyn Memory,
        address: u64,
        bytes: u64,
        mode: AccessMode,
    ) -> Option<HostBytes> {
        self.segment(memory, address, mode)?
            .host_bytes(address, bytes)
    }

    /// Returns the segment that contains `address`, for an access in this mode. Queries `memory`
    /// only if the segment is not cached.
    #[inline(always)]
    pub(crate) fn segment(
        &mut self,
        memory: &dyn Memory,
        address: u64,
        mode: AccessMode,
    ) -> Option<Segment> {
        for entry in &self.entries {
            if address.wrapping_sub(entry.base) < entry.size
                && (entry.writable || mode == AccessMode::Read)
            {
                return Some(*entry);
            }
        }
        self.fetch(memory, address)
            .filter(|segment| segment.writable || mode == AccessMode::Read)
    }

    #[cold]
    fn fetch(&mut self, memory: &dyn Memory, address: u64) -> Option<Segment> {
        let segment = memory.segment(address)?;
        self.entries[self.next] = segment;
        self.next = (self.next + 1) % self.entries.len();
        Some(segment)
    }
}

/// The panic message of an access without a check of its bounds.
const UNCHECKED: &str = "an access was not checked before it was made";

/// Bytes of a segment that are in bounds.
///
/// Created only by [`Segment::host_bytes`] and [`StridedMemory::at`]. The provider of the segment
/// guarantees that the bytes are valid until the launch ends, and no handler keeps a value beyond
/// its instruction.
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
        // SAFETY: `word` returned an aligned pointer into bytes that the segment's provider keeps
        // valid, and every access of the launch is atomic.
        unsafe { T::store(self.word::<T>(index), value) }
    }

    /// Reads a value for each lane of half a warp. The address must be aligned. `WIDE` requires
    /// AVX2.
    #[inline(always)]
    pub(crate) fn load_half<T: Word, const WIDE: bool>(self) -> [T; HALF] {
        let from = self.half::<T>();
        // SAFETY: `half` returned an aligned pointer to as many values, in bytes that the segment's
        // provider keeps valid, and every access of the launch is atomic. Only handlers selected
        // for AVX2 call it.
        unsafe { T::load_half::<WIDE>(from) }
    }

    /// Writes a value of each lane of half a warp. The address must be aligned. `WIDE` requires
    /// AVX2.
    #[inline(always)]
    pub(crate) fn store_half<T: Word, const WIDE: bool>(self, values: &[T; HALF]) {
        let to = self.half::<T>();
        // SAFETY: `half` returned an aligned pointer to as many values, in bytes that the segment's
        // provider keeps valid, and every access of the launch is atomic. Only handlers selected
        // for AVX2 call it.
        unsafe { T::store_half::<WIDE>(to, values) }
    }

    /// Reads a register's value for each lane of half a warp. The address must be aligned. `WIDE`
    /// requires AVX2.
    #[inline(always)]
    pub(crate) fn load_half_as<T: Word, R: Raw, const WIDE: bool>(self, register: &mut [R; HALF]) {
        assert!(
            size_of::<T>() == size_of::<R>(),
            "the register is as wide as the word"
        );
        let from = self.half::<T>();
        // SAFETY: `half` returned an aligned pointer to as many values, which the segment's
        // provider keeps valid, and every access of the launch is atomic. The register is as wide
        // as the values and valid for every bit pattern. Only handlers selected for AVX2 call it.
        unsafe { T::copy_half::<WIDE>((&raw mut *register).cast(), from) };
    }

    /// Writes a register's value of each lane of half a warp. The address must be aligned. `WIDE`
    /// requires AVX2.
    #[inline(always)]
    pub(crate) fn store_half_as<T: Word, R: Raw, const WIDE: bool>(self, register: &[R; HALF]) {
        assert!(
            size_of::<T>() == size_of::<R>(),
            "the register is as wide as the word"
        );
        let to = self.half::<T>();
        // SAFETY: `half` returned an aligned pointer to as many values, which the segment's
        // provider keeps valid, and every access of the launch is atomic. The register is as wide
        // as the values. Only handlers selected for AVX2 call it.
        unsafe { T::copy_half::<WIDE>(to, (&raw const *register).cast()) };
    }

    #[inline(always)]
    fn half<T: Word>(self) -> *mut T {
        let pointer = self.start.cast::<T>();
        assert!(
            HALF as u64 * T::SIZE <= self.len && pointer.is_aligned(),
            "{UNCHECKED}"
        );
        pointer
    }

    /// Reads the value at a byte offset. The address must be aligned.
    #[inline(always)]
    pub(crate) fn load_at<T: Word>(self, offset: u64) -> T {
        // SAFETY: `word_at` returned an aligned pointer into bytes that the segment's provider
        // keeps valid, and every access of the launch is atomic.
        unsafe { T::load(self.word_at::<T>(offset)) }
    }

    /// Writes the value at a byte offset. The address must be aligned.
    #[inline(always)]
    pub(crate) fn store_at<T: Word>(self, offset: u64, value: T) {
        // SAFETY: `word_at` returned an aligned pointer into bytes that the segment's provider
        // keeps valid, and every access of the launch is atomic.
        unsafe { T::store(self.word_at::<T>(offset), value) }
    }

    #[inline(always)]
    fn word_at<T: Word>(self, offset: u64) -> *mut T {
        let pointer = self.start.wrapping_add(offset as usize).cast::<T>();
        let is_inside = offset <= self.len && self.len - offset >= T::SIZE;
        assert!(is_inside && pointer.is_aligned(), "{UNCHECKED}");
        pointer
    }

    /// Atomically replaces the first value by `change` of it, and returns the old value.
    #[inline(always)]
    pub(crate) fn update<T: Word>(self, change: impl Fn(T) -> T) -> T {
        // SAFETY: `word` returned an aligned pointer into bytes that the segment's provider keeps
        // valid, and every access of the launch is atomic.
        unsafe { T::update(self.word::<T>(0), change) }
    }

    #[inline(always)]
    fn word<T: Word>(self, index: usize) -> *mut T {
        let pointer = self.start.cast::<T>().wrapping_add(index);
        assert!(
            (index as u64 + 1) * T::SIZE <= self.len && pointer.is_aligned(),
            "{UNCHECKED}"
        );
        pointer
    }
}

/// A block's shared memory.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    lines: Vec<Line>,
    size: u64,
    /// The record of written bytes, if the launch checks for uninitialized reads.
    written: Option<Written>,
}

/// The unit of alignment of shared memory, and the maximum of `.align`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; 16]);

impl SharedMemory {
    /// Creates zeroed shared memory of `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        let lines = size.div_ceil(128) as usize;
        Self {
            lines: std::iter::repeat_with(Line::default).take(lines).collect(),
            size,
            written: None,
        }
    }

    /// Adds a record of written bytes.
    pub(crate) fn with_written_record(self) -> Self {
        Self {
            written: Some(Written::new(self.size)),
            ..self
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the record of written bytes, if there is one.
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
    pub(crate) fn host_bytes(&self, offset: u64, bytes: u64) -> Option<HostBytes> {
        self.segment(0).host_bytes(offset, bytes)
    }

    /// Returns the memory as a segment of addresses that begin at `base`, a multiple of 16.
    #[inline(always)]
    pub(crate) fn segment(&self, base: u64) -> Segment {
        // Atomics may be written through a shared reference, so the cast adds no permission.
        let host = self.lines.as_ptr().cast_mut().cast();
        Segment {
            base,
            size: self.size,
            host,
            writable: true,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessMode {
    Read,
    /// A write, or an atomic operation.
    Write,
}

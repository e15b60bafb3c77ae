//! Threads.

use crate::block::ThreadCodeOnly;
use crate::intrinsics as device;

/// A thread of a launch.
///
/// Safe code receives it and cannot create one. It is neither `Send` nor `Sync`, and does not leave
/// the code of its thread.
pub struct Thread {
    x: u32,
    y: u32,
    z: u32,
    index_in_block: u32,
    threads_in_block: u32,
    _not_sync: ThreadCodeOnly,
}

/// Code of a single thread: a [`Thread`] or a [`Lane`](crate::Lane). Operations whose result
/// differs between threads require it.
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "this operation belongs to code of a single thread",
    label = "expected `&Thread` or `&Lane`",
    note = "its result can differ between threads: use it in `block.threads(|t| …)`, `warp.lanes(|lane| …)` or an element-wise kernel"
)]
pub trait SingleThread: sealed::Sealed {}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Thread {}
impl SingleThread for Thread {}

impl<T: SingleThread> sealed::Sealed for &T {}
impl<T: SingleThread> SingleThread for &T {}

impl Thread {
    /// Returns the running thread.
    ///
    /// # Safety
    ///
    /// The code that receives it runs once in each thread, of a launch with blocks of these
    /// dimensions.
    #[inline(always)]
    pub(crate) unsafe fn new<const X: u32, const Y: u32, const Z: u32>() -> Self {
        // SAFETY: the caller guarantees the dimensions.
        let [x, y, z] = unsafe { coordinates::<X, Y, Z>() };
        Self {
            x,
            y,
            z,
            index_in_block: linear::<X, Y>(x, y, z),
            threads_in_block: X * Y * Z,
            _not_sync: ThreadCodeOnly::NEW,
        }
    }

    /// Returns the index of the thread in the grid. The same as [`Thread::index_in_grid`].
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index_in_grid()
    }

    /// Returns the index of the thread in a grid along x:
    /// `blockIdx.x * threads_in_block + index_in_block`.
    #[inline(always)]
    #[must_use]
    pub fn index_in_grid(&self) -> usize {
        block_index() * self.threads_in_block as usize + self.index_in_block as usize
    }

    /// Returns the number of threads in a grid along x.
    #[inline(always)]
    #[must_use]
    pub fn threads_in_grid(&self) -> usize {
        // SAFETY: reads a special register.
        let blocks = unsafe { device::nctaid_x() } as usize;
        blocks * self.threads_in_block as usize
    }

    /// Returns the index of the thread in its block.
    #[inline(always)]
    #[must_use]
    pub fn index_in_block(&self) -> usize {
        self.index_in_block as usize
    }

    /// Returns the number of threads in the block.
    #[inline(always)]
    #[must_use]
    pub fn threads_in_block(&self) -> usize {
        self.threads_in_block as usize
    }

    /// Returns `threadIdx.x`.
    #[doc(alias = "threadIdx")]
    #[inline(always)]
    #[must_use]
    pub fn x(&self) -> usize {
        self.x as usize
    }

    /// Returns `threadIdx.y`.
    #[inline(always)]
    #[must_use]
    pub fn y(&self) -> usize {
        self.y as usize
    }

    /// Returns `threadIdx.z`.
    #[inline(always)]
    #[must_use]
    pub fn z(&self) -> usize {
        self.z as usize
    }

    /// Returns the indices below `len` of this thread in its block: `index_in_block`, and further
    /// ones at a distance of `threads_in_block`.
    #[inline(always)]
    pub fn block_stride(&self, len: usize) -> impl Iterator<Item = usize> + use<> {
        Stride {
            next: self.index_in_block(),
            step: self.threads_in_block(),
            len,
        }
    }

    /// Returns the indices below `len` of this thread in a grid along x: `index_in_grid`, and
    /// further ones at a distance of `threads_in_grid`. A grid-stride loop.
    #[inline(always)]
    pub fn grid_stride(&self, len: usize) -> impl Iterator<Item = usize> + use<> {
        Stride {
            next: self.index_in_grid(),
            step: self.threads_in_grid(),
            len,
        }
    }

    /// Returns the clock of the multiprocessor in cycles (`clock64()`).
    #[doc(alias = "clock64")]
    #[inline(always)]
    #[must_use]
    pub fn clock(&self) -> u64 {
        // SAFETY: reads a special register.
        unsafe { device::clock64() }
    }

    /// Returns the time of the device in nanoseconds (`%globaltimer`).
    #[doc(alias = "globaltimer")]
    #[inline(always)]
    #[must_use]
    pub fn global_time(&self) -> u64 {
        // SAFETY: reads a special register.
        unsafe { device::globaltimer() }
    }

    /// Returns the number of the multiprocessor that runs the thread (`%smid`).
    #[doc(alias = "smid")]
    #[inline(always)]
    #[must_use]
    pub fn multiprocessor(&self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { device::smid() }
    }

    /// Suspends the thread for about that many nanoseconds, at most 2 ms (`nanosleep`). Needs
    /// compute capability 7.0.
    #[doc(alias = "__nanosleep")]
    #[inline(always)]
    pub fn sleep(&self, nanoseconds: u32) {
        // SAFETY: the instruction has no effect but time.
        unsafe { device::nanosleep(nanoseconds) };
    }
}

/// The indices `next`, `next + step`, … below `len`.
///
/// The sum does not overflow: a block index and a number of threads are below 2⁴², and `len` is the
/// length of a slice.
struct Stride {
    next: usize,
    step: usize,
    len: usize,
}

impl Iterator for Stride {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let index = self.next;
        if index >= self.len {
            return None;
        }
        self.next = index.wrapping_add(self.step);
        Some(index)
    }
}

/// Returns `blockIdx.x`.
#[inline(always)]
pub(crate) fn block_index() -> usize {
    // SAFETY: reads a special register.
    unsafe { device::ctaid_x() as usize }
}

/// Returns `blockIdx.y`.
#[inline(always)]
pub(crate) fn block_index_y() -> usize {
    // SAFETY: reads a special register.
    unsafe { device::ctaid_y() as usize }
}

/// Returns the index in a block of the thread with these coordinates.
#[inline(always)]
fn linear<const X: u32, const Y: u32>(x: u32, y: u32, z: u32) -> u32 {
    (z * Y + y) * X + x
}

/// Returns `threadIdx`, with limits that the compiler uses.
///
/// # Safety
///
/// The kernel is launched with blocks of these dimensions.
#[inline(always)]
pub(crate) unsafe fn coordinates<const X: u32, const Y: u32, const Z: u32>() -> [u32; 3] {
    // The register of a dimension of 1 is not read.
    let mut coordinates = [0; 3];
    if X > 1 {
        // SAFETY: reads a special register.
        coordinates[0] = unsafe { device::tid_x() };
    }
    if Y > 1 {
        // SAFETY: reads a special register.
        coordinates[1] = unsafe { device::tid_y() };
    }
    if Z > 1 {
        // SAFETY: reads a special register.
        coordinates[2] = unsafe { device::tid_z() };
    }
    let [x, y, z] = coordinates;
    // SAFETY: the caller guarantees the dimensions.
    unsafe { core::hint::assert_unchecked(x < X && y < Y && z < Z) };
    coordinates
}

/// Returns the index of the thread in a block of these dimensions.
///
/// # Safety
///
/// The kernel is launched with blocks of these dimensions.
#[inline(always)]
pub(crate) unsafe fn index_in_block<const X: u32, const Y: u32, const Z: u32>() -> usize {
    // SAFETY: the caller guarantees that the blocks have these dimensions.
    let [x, y, z] = unsafe { coordinates::<X, Y, Z>() };
    linear::<X, Y>(x, y, z) as usize
}

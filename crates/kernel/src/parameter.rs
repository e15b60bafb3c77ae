//! Parameters of kernels.

use bytemuck::AnyBitPattern;

use crate::atomic::{Atomic, AtomicNumber, GridScope};
use crate::by_value::ByValue;
use crate::launch::Launch;

/// A parameter of a kernel, which is passed as up to three words.
///
/// # Safety
///
/// [`Parameter::from_words`] is sound for the words that the launcher passes for a parameter of
/// this kind, in every thread of a launch whose grid satisfies the rule of the kind. `DESCRIPTION`
/// states the assumptions that hold for the words.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    label = "not a parameter type",
    note = "inputs: `ByValue` types such as `f32`, slices `&[T]` and `Matrix<T>` of types that are `AnyBitPattern`",
    note = "textures: `Texture1D<T>`, `Texture2D<T>`, `Texture3D<T>`, `Texture1DArray<T>`, `Texture2DArray<T>`, `TextureCube<T>`, and `Surface2D<T>`",
    note = "outputs: `PerThread<T>`, `PerThreadChunk<T, N>`, `PerBlock<T>`, `PerBlockRow<T>`, `PerBlockTile<T, ROWS, COLUMNS>`, `PerWarpTile<T, ROWS, COLUMNS>`, `&[Atomic<T>]`, `GridShared<T>` in a cooperative grid",
    note = "shared memory: `Shared<T>`, `Counters<N>`, `Scratch<T>` under these names, or `DynamicShared<T>`"
)]
#[doc(hidden)]
pub unsafe trait Parameter {
    /// The parameter, for the lifetime of a launch.
    type In<'k>;
    /// The first word; `()` is not passed.
    type First: Copy;
    /// The second word.
    type Second: Copy;
    /// The third word.
    type Third: Copy;

    /// The words and the memory behind them.
    const DESCRIPTION: Description;

    /// Creates the parameter.
    ///
    /// # Safety
    ///
    /// The launcher passed these words, and this is called once in each thread.
    unsafe fn from_words<'k>(
        launch: &'k Launch,
        first: Self::First,
        second: Self::Second,
        third: Self::Third,
    ) -> Self::In<'k>;
}

/// The kind of a parameter. Host and device must agree on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum Kind {
    Value,
    Slice,
    Atomics,
    Matrix,
    PerThread,
    PerThreadChunk,
    PerBlock,
    PerBlockRow,
    PerBlockTile,
    PerWarpTile,
    DynamicShared,
    Texture,
    Surface,
    PerBlockChunk,
    PerWarpChunk,
    PerWarpPlaneTile,
    GridShared,
    GridPerBlock,
    TensorMap,
    PerBlockTensor,
    PerWarpGroupTile,
    TmaRing,
}

/// The grids for which a parameter divides its memory correctly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum GridRule {
    /// Any grid.
    Any,
    /// A grid along x.
    Line,
    /// A grid along x and y.
    Plane,
}

/// A word of a parameter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Word {
    flag: u32,
    size: u32,
    align: u32,
}

impl Word {
    /// A word that is not passed.
    pub(crate) const ABSENT: Self = Self {
        flag: b'_' as u32,
        size: 0,
        align: 0,
    };

    const fn with_flag<T>(flag: u8) -> Self {
        Self {
            flag: flag as u32,
            size: size_of::<T>() as u32,
            align: align_of::<T>() as u32,
        }
    }

    /// A value.
    pub(crate) const fn value<T>() -> Self {
        Self::with_flag::<T>(b'v')
    }

    /// A value that the host passes by value and the kernel receives by its address.
    pub(crate) const fn grid_constant<T>() -> Self {
        Self::with_flag::<T>(b'g')
    }

    /// A pointer to memory that other threads may write.
    pub(crate) const fn pointer<T>() -> Self {
        Self::with_flag::<*const T>(b'p')
    }

    /// A pointer to memory that nobody writes during the launch.
    pub(crate) const fn read_only<T>() -> Self {
        Self::with_flag::<*const T>(b'r')
    }

    /// A pointer to memory of which no thread accesses what another thread accesses.
    pub(crate) const fn exclusive<T>() -> Self {
        Self::with_flag::<*const T>(b'w')
    }

    #[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
    pub(crate) const fn is_absent(&self) -> bool {
        self.flag == b'_' as u32
    }
}

/// The words of a parameter, and the memory behind them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub(crate) words: [Word; 3],
    pub(crate) kind: Kind,
    pub(crate) grid: GridRule,
    /// The size of an element in bytes.
    pub(crate) size: u32,
    /// The alignment of an element in bytes.
    pub(crate) align: u32,
    /// The constants of the type, such as the rows and columns of a tile, or a number for the
    /// fields of a value.
    pub(crate) sizes: [u32; 3],
}

impl Description {
    /// Describes a parameter with elements of type `T`.
    pub(crate) const fn new<T>(kind: Kind, words: [Word; 3]) -> Self {
        assert!(
            size_of::<T>() as u64 <= u32::MAX as u64,
            "an element of a parameter is larger than 4 GiB"
        );
        Self {
            words,
            kind,
            grid: GridRule::Any,
            size: size_of::<T>() as u32,
            align: align_of::<T>() as u32,
            sizes: [0; 3],
        }
    }

    pub(crate) const fn on(mut self, grid: GridRule) -> Self {
        self.grid = grid;
        self
    }

    pub(crate) const fn with_sizes(mut self, sizes: [u32; 3]) -> Self {
        self.sizes = sizes;
        self
    }

    pub(crate) const fn is_dynamic_shared(&self) -> bool {
        matches!(self.kind, Kind::DynamicShared | Kind::TmaRing)
    }

    pub(crate) const fn extents(&self) -> [u32; 6] {
        [
            self.grid as u32,
            self.size,
            self.align,
            self.sizes[0],
            self.sizes[1],
            self.sizes[2],
        ]
    }
}

// SAFETY: every value of the type may be passed.
unsafe impl<T: ByValue> Parameter for T {
    type In<'k> = T;
    type First = T;
    type Second = ();
    type Third = ();

    const DESCRIPTION: Description = {
        // Evaluates the check for padding.
        let _ = T::SIZE;
        assert!(
            size_of::<T>() > 0,
            "a value without a size cannot be passed to a kernel"
        );
        Description::new::<T>(
            Kind::Value,
            [Word::value::<T>(), Word::ABSENT, Word::ABSENT],
        )
        .with_sizes([T::FORM as u32, (T::FORM >> 32) as u32, 0])
    };

    #[inline(always)]
    unsafe fn from_words(_: &Launch, value: T, (): (), (): ()) -> T {
        value
    }
}

// SAFETY: the launcher passes memory of that many elements, which is borrowed, so that nobody
// writes it during the launch.
unsafe impl<T: AnyBitPattern> Parameter for &[T] {
    type In<'k> = &'k [T];
    type First = *const T;
    type Second = usize;
    type Third = ();

    const DESCRIPTION: Description = Description::new::<T>(
        Kind::Slice,
        [Word::read_only::<T>(), Word::value::<usize>(), Word::ABSENT],
    );

    #[inline(always)]
    unsafe fn from_words(_: &Launch, start: *const T, len: usize, (): ()) -> &[T] {
        // SAFETY: the words are those of the launcher, which borrows the elements during the
        // launch; any bytes are a `T`.
        unsafe { core::slice::from_raw_parts(start, len) }
    }
}

// SAFETY: the launcher passes memory of that many elements, which is borrowed mutably, so that only
// this launch accesses it. The scope includes all threads of the launch.
unsafe impl<T: AtomicNumber, S: GridScope> Parameter for &[Atomic<T, S>] {
    type In<'k> = &'k [Atomic<T, S>];
    type First = *const Atomic<T, S>;
    type Second = usize;
    type Third = ();

    const DESCRIPTION: Description = Description::new::<T>(
        Kind::Atomics,
        [Word::pointer::<T>(), Word::value::<usize>(), Word::ABSENT],
    )
    .with_sizes([S::NUMBER, 0, 0]);

    #[inline(always)]
    unsafe fn from_words(
        _: &Launch,
        start: *const Atomic<T, S>,
        len: usize,
        (): (),
    ) -> &[Atomic<T, S>] {
        // SAFETY: the words are those of the launcher, which borrows the numbers during the launch;
        // any bytes are a number.
        unsafe { core::slice::from_raw_parts(start, len) }
    }
}

//! A lowered module: the code, and the facts that a launch needs.

use std::collections::HashMap;

use super::loops::Loop;
use super::op::Op;
use super::runtime_use::RuntimeUse;
use super::superinstruction::Superinstruction;
use crate::exec::check::source::SourceMap;
use crate::exec::check::undefined::Flow;
use crate::exec::check::variable::{Shape, SharedVariable};
use crate::exec::frame::Layout;
use crate::exec::image::{SurfaceAccess, TextureAccess};
use crate::exec::matrix::multiply::ProductKind;
use crate::exec::matrix::sparsity::Sparsity;
use crate::exec::matrix::{Fragment, FragmentLayout};
use crate::exec::memory::window::FUNCTION_WINDOW;
use crate::exec::operands::bulk::BulkReduction;
use crate::exec::operands::tensor::TensorAccess;
use crate::exec::operands::tensor_memory::{TensorProduct, TensorTransfer};
use crate::exec::operands::video::Video;
use crate::exec::operands::warpgroup::WarpgroupProduct;

/// The distance between the addresses of functions, in bytes.
const FUNCTION_STRIDE: u64 = 16;

/// A module that can be executed.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) by_name: HashMap<String, usize>,
    pub(crate) globals: Vec<Global>,
    pub(crate) functions: Vec<Function>,
    /// The checks in its code.
    pub(crate) checking: Checking,
    /// The source lines of its instructions.
    pub(crate) source: SourceMap,
}

/// Optional checks beyond those of hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checking {
    /// Races of a block's warps for shared memory.
    pub(crate) races: bool,
    /// Reads of uninitialized memory.
    pub(crate) uninitialized: bool,
}

impl Checking {
    /// Creates the set without checks.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            races: false,
            uninitialized: false,
        }
    }

    /// Sets the check of races.
    #[must_use]
    pub const fn with_races(self, races: bool) -> Self {
        Self { races, ..self }
    }

    /// Sets the check of uninitialized reads.
    #[must_use]
    pub const fn with_uninitialized(self, uninitialized: bool) -> Self {
        Self {
            uninitialized,
            ..self
        }
    }
}

impl Program {
    /// Limits the number of registers that kernels report.
    pub fn limit_registers(&mut self, max: u32) {
        for kernel in &mut self.kernels {
            kernel.registers = kernel.registers.min(max);
        }
    }

    /// Returns the kernels, in the order of the source.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Returns the kernel with a name.
    #[must_use]
    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.by_name.get(name).map(|&index| &self.kernels[index])
    }

    /// Returns the variables that need device memory, in the order of
    /// [`Launch::globals`](crate::exec::Launch::globals).
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Returns the function at an address, and its index.
    pub(crate) fn function_at(&self, address: u64) -> Option<(u32, &Function)> {
        let offset = address.checked_sub(FUNCTION_WINDOW)?;
        let index = u32::try_from(offset / FUNCTION_STRIDE).ok()?;
        let function = self.functions.get(index as usize)?;
        (offset % FUNCTION_STRIDE == 0).then_some((index, function))
    }
}

/// A kernel: its interface and its resources.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Kernel {
    /// The name.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// The number of bytes of all parameters.
    pub param_size: usize,
    /// The number of bytes of static shared memory.
    pub static_shared: u32,
    /// The number of bytes of local memory per thread, without those of called functions.
    pub local_size: u32,
    /// The number of 32-bit registers that the source declares; hardware allocates fewer.
    pub registers: u32,
    /// The maximum number of threads per block; `None` without a limit.
    pub max_threads_per_block: Option<u32>,
    /// The required block dimensions.
    pub required_block: Option<[u32; 3]>,
    /// The required cluster dimensions.
    pub required_cluster: Option<[u32; 3]>,
    /// Index of the kernel's function.
    pub(crate) function: u32,
    /// The variables in shared memory.
    pub(crate) shared_variables: Vec<SharedVariable>,
    /// The device runtime functions that the kernel calls, directly or indirectly.
    pub runtime: RuntimeUse,
}

impl Kernel {
    /// Returns the start of dynamic shared memory: after static shared memory, aligned as on
    /// hardware.
    pub(crate) fn dynamic_shared_start(&self) -> u32 {
        self.static_shared.next_multiple_of(16)
    }
}

/// A kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Offset in the parameter buffer, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub(crate) align: usize,
}

/// A variable in `.global` or `.const` memory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Global {
    /// The name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Initial contents; as long as `size`.
    pub init: Vec<u8>,
    /// Addresses to add to the initial contents once they are known.
    pub relocations: Vec<Relocation>,
    /// Its elements.
    pub(crate) shape: Shape,
    /// `true` if kernels cannot write to it.
    pub constant: bool,
    /// `true` if host and device share it.
    pub managed: bool,
}

/// An address inside the initial contents of a [`Global`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The position of the address, in bytes from the start of the variable.
    pub offset: u64,
    /// The number of bytes of the address: 4 or 8.
    pub size: u8,
    /// The target of the address.
    pub target: Address,
}

/// An address that is resolved when the program has been placed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A variable, by its index in [`Program::globals`], plus bytes.
    Global(usize, i64),
    /// Masked bits of a variable's address, shifted down to bit 0: the variable's index, an offset
    /// in bytes, and the mask.
    Bits(usize, i64, u64),
    /// A number.
    Absolute(u64),
}

impl Address {
    /// Returns the address, from the addresses of [`Program::globals`].
    ///
    /// # Panics
    ///
    /// Panics if `globals` lacks the variable.
    #[must_use]
    pub fn resolve(self, globals: &[u64]) -> u64 {
        match self {
            Self::Global(index, offset) => globals[index].wrapping_add_signed(offset),
            Self::Bits(index, offset, mask) => {
                bits(globals[index].wrapping_add_signed(offset), mask)
            }
            Self::Absolute(address) => address,
        }
    }
}

/// Returns the bits of a mask, shifted down to bit 0.
pub(crate) fn bits(value: u64, mask: u64) -> u64 {
    (value & mask)
        .checked_shr(mask.trailing_zeros())
        .unwrap_or(0)
}

/// Returns the address of the function with an index.
pub(crate) fn function_address(index: u32) -> u64 {
    FUNCTION_WINDOW + u64::from(index) * FUNCTION_STRIDE
}

/// The code of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub name: String,
    pub(crate) code: Vec<Op>,
    /// The propagation of undefined bytes for each instruction, ordered by the index of the op, if
    /// the program checks for uninitialized reads.
    pub(crate) flows: Vec<(u32, Flow)>,
    /// Register files. Constants that hold addresses are zero until the launch.
    pub(crate) layout: Layout,
    /// Constants that the launch sets.
    pub(crate) patches: Vec<Patch>,
    /// Bytes of local memory of an activation, a multiple of 16.
    pub(crate) local_size: u64,
    /// The alignment of its local variables; 0 without variables.
    pub(crate) local_align: u64,
    pub(crate) calls: Vec<CallSite>,
    /// The device runtime functions that it calls directly.
    pub(crate) runtime: RuntimeUse,
    pub(crate) branch_tables: Vec<Vec<u32>>,
    pub(crate) loops: Vec<Loop>,
    /// The parameters of video instructions.
    pub(crate) videos: Vec<Video>,
    /// The matrix products of warps, and of warpgroups.
    pub(crate) products: Vec<Product>,
    pub(crate) warpgroup_products: Vec<WarpgroupProduct>,
    /// The matrices that are loaded and stored.
    pub(crate) matrices: Vec<MovedMatrix>,
    pub(crate) textures: Vec<TextureAccess>,
    pub(crate) surfaces: Vec<SurfaceAccess>,
    pub(crate) tensors: Vec<TensorAccess>,
    /// The products, loads and stores of tensor memory.
    pub(crate) tensor_products: Vec<TensorProduct>,
    pub(crate) tensor_transfers: Vec<TensorTransfer>,
    /// The bulk reductions.
    pub(crate) reductions: Vec<BulkReduction>,
    /// Rows of instructions with more operands than an `Op` holds.
    pub(crate) row_lists: Vec<Vec<u32>>,
    pub(crate) superinstructions: Vec<Superinstruction>,
    /// Offsets and sizes of the parameters in local memory.
    pub(crate) params: Vec<(u64, u64)>,
    /// Offsets and sizes of the results in local memory.
    pub(crate) returns: Vec<(u64, u64)>,
}

/// A product of matrices with an addend.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// The result, the factors, and the addend.
    pub(crate) fragments: [FragmentLayout; 4],
    /// The list of the rows of all four fragments.
    pub(crate) rows: u32,
    pub(crate) kind: ProductKind,
    /// The metadata of A, if A is sparse.
    pub(crate) sparsity: Option<Sparsity>,
}

impl Product {
    /// Returns the rows of each fragment, from the list of all.
    pub(crate) fn split<'r>(&self, mut rows: &'r [u32]) -> [&'r [u32]; 4] {
        self.fragments.each_ref().map(|placed| {
            let (fragment, remaining) = rows.split_at(placed.fragment.registers as usize);
            rows = remaining;
            fragment
        })
    }
}

/// A matrix that is loaded or stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedMatrix {
    pub(crate) fragment: Fragment,
    /// The list of the rows of its registers.
    pub(crate) rows: u32,
    /// `true` if the matrix is column-major in memory.
    pub(crate) by_columns: bool,
}

/// A constant that the launch sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// The row, in the 64-bit file.
    pub(crate) row: u32,
    pub(crate) value: Late,
}

/// An address that the launch determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Late {
    /// A variable, by its index among the globals, plus bytes.
    Global(usize, i64),
    /// Dynamic shared memory, plus bytes.
    DynamicShared(i64),
}

/// A call site: the callee and the copied arguments and results. Offsets are in the caller's local
/// memory.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<u64>,
    pub(crate) results: Vec<u64>,
}

/// The callee of a call site.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    /// A function.
    Direct(u32),
    /// The function whose address is in a 64-bit register.
    Indirect(u32),
}

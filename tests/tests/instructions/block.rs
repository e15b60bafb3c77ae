//! Instruction forms that depend on the location of their operands, or on several threads: each is
//! a kernel of one or a few blocks whose threads each write 32 bytes, which are compared with a
//! definition over the operands of all threads.

mod accepted;
mod address;
mod asynchronous;
mod atomic;
mod barrier;
mod call;
mod cluster;
mod edges;
mod flow;
mod held;
mod image;
mod matrix;
mod memory;
mod partition;
mod pattern;
mod permute;
mod runner;
mod sparse;
mod surface;
mod tensor;
mod tensor_core;
mod texture;
mod warp;
mod warpgroup;
mod wmma;

use std::any::Any;
use std::fmt::{Display, Write as _};

use curium_driver::{Result, Stream};

use crate::form::Sources;

/// Threads of a block: two warps.
pub(crate) const THREADS: usize = 64;

/// The result of a thread.
pub(crate) type Output = [u64; 4];

/// Returns the output of a thread that writes these bytes.
pub(crate) fn output_from_bytes(byte: impl Fn(usize) -> u8) -> Output {
    std::array::from_fn(|word| {
        u64::from_le_bytes(std::array::from_fn(|index| byte(8 * word + index)))
    })
}

/// Returns a vector of registers with consecutive numbers: `{%r8, %r9}`.
pub(crate) fn register_vector(class: impl Display, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count)
        .map(|number| format!("%{class}{number}"))
        .collect();
    format!("{{{}}}", names.join(", "))
}

/// The results of all threads as a function of the operands of all threads.
type Expected = Box<dyn Fn(&[Sources]) -> Vec<Output>>;

/// The content of the kernel parameter `table`, and the objects that must outlive the kernel.
pub(crate) struct Prepared {
    table: [u64; 4],
    _kept: Box<dyn Any>,
}

type Prepare = Box<dyn Fn(&Stream) -> Result<Prepared>>;

/// The grid of a launch, and its cluster size, if any.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) grid: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    /// The threads per block; a grid of several blocks has [`THREADS`].
    pub(crate) block: usize,
}

impl Extent {
    /// Threads of all blocks.
    pub(crate) fn threads(self) -> usize {
        self.grid.iter().product::<u32>() as usize * self.block
    }
}

/// An instruction form, in a kernel of its own.
pub(crate) struct BlockForm {
    /// The unique name: the instruction as written, and after a space a suffix if several forms
    /// have that spelling.
    pub(crate) name: String,
    /// PTX that uses the declarations of the preamble.
    pub(crate) code: String,
    /// Declarations before the kernel. `FN` is replaced by a prefix unique to this form, here and
    /// in the code.
    declared: String,
    /// The minimum compute capability.
    pub(crate) architecture: u32,
    /// `true` if only that architecture supports it, such as `sm_90a`.
    is_specific: bool,
    extent: Extent,
    prepare: Option<Prepare>,
    /// The allowed error of a result: if it is not zero, the words are single-precision numbers.
    tolerance: f32,
    /// The reason why it does not run on this machine's driver.
    left_out: Option<&'static str>,
    pub(crate) expected: Expected,
}

impl BlockForm {
    /// Creates a form whose result in each thread is a function of the operands of all threads and
    /// the thread's number.
    pub(crate) fn new(
        name: impl Into<String>,
        code: impl Into<String>,
        expected: impl Fn(&[Sources], usize) -> Output + 'static,
    ) -> Self {
        Self::for_all_threads(name, code, move |all| {
            (0..all.len()).map(|thread| expected(all, thread)).collect()
        })
    }

    /// Creates a form whose results in all threads are a function of the operands of all threads.
    pub(crate) fn for_all_threads(
        name: impl Into<String>,
        code: impl Into<String>,
        expected: impl Fn(&[Sources]) -> Vec<Output> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            code: code.into(),
            declared: String::new(),
            architecture: 75,
            extent: Extent {
                grid: [1; 3],
                cluster: None,
                block: THREADS,
            },
            is_specific: false,
            prepare: None,
            tolerance: 0.0,
            left_out: None,
            expected: Box::new(expected),
        }
    }

    /// Sets the minimum compute capability.
    pub(crate) fn needs(mut self, architecture: u32) -> Self {
        self.architecture = architecture;
        self
    }

    /// Sets the only architecture that supports the form.
    pub(crate) fn needs_only(mut self, architecture: u32) -> Self {
        (self.architecture, self.is_specific) = (architecture, true);
        self
    }

    /// Runs the form in one block of `threads` threads.
    pub(crate) fn in_block(mut self, threads: usize) -> Self {
        self.extent.block = threads;
        self
    }

    /// Adds declarations before the kernel: functions and variables whose names begin with `FN`.
    pub(crate) fn declaring(mut self, declared: impl Into<String>) -> Self {
        self.declared = declared.into();
        self
    }

    /// Runs the form in clusters; the results are those of all blocks in order.
    pub(crate) fn in_clusters(mut self, grid: [u32; 3], cluster: [u32; 3]) -> Self {
        self.extent = Extent {
            grid,
            cluster: Some(cluster),
            ..self.extent
        };
        self
    }

    /// Passes the prepared value in the kernel parameter `table`.
    pub(crate) fn with(mut self, prepare: impl Fn(&Stream) -> Result<Prepared> + 'static) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// Allows an error in single-precision results.
    pub(crate) fn within(mut self, tolerance: f32) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Runs the form only on simulators, for the given reason.
    pub(crate) fn left_out(mut self, reason: &'static str) -> Self {
        self.left_out = Some(reason);
        self
    }

    /// Returns the instruction as it is written.
    pub(crate) fn spelling(&self) -> &str {
        self.name.split(' ').next().unwrap_or(&self.name)
    }
}

/// A function that creates the forms of a family.
type Family = fn() -> Vec<BlockForm>;

/// The families of this folder, by file name.
pub(crate) const FAMILIES: [(&str, Family); 21] = [
    ("memory", memory::forms),
    ("atomic", atomic::forms),
    ("warp", warp::forms),
    ("partition", partition::forms),
    ("barrier", barrier::forms),
    ("address", address::forms),
    ("asynchronous", asynchronous::forms),
    ("matrix", matrix::forms),
    ("wmma", wmma::forms),
    ("permute", permute::forms),
    ("call", call::forms),
    ("flow", flow::forms),
    ("cluster", cluster::forms),
    ("texture", texture::forms),
    ("surface", surface::forms),
    ("edges", edges::forms),
    ("tensor", tensor::forms),
    ("tensor_store", tensor::store::forms),
    ("tensor_reduction", tensor::reduction::forms),
    ("sparse", sparse::forms),
    ("warpgroup", warpgroup::forms),
];

/// Returns all forms of the families in this folder.
pub(crate) fn forms() -> Vec<BlockForm> {
    FAMILIES.iter().flat_map(|(_, forms)| forms()).collect()
}

/// The preamble of all kernels: `%l0` to `%l3` are the operands, `%r0` to `%r3` and `%h0` to `%h3`
/// their low bits; `%thread` is the thread in its block, and each thread has 64 bytes at `%work` in
/// global memory, at `%shared` in shared memory (at `%generic` as generic addresses) and at
/// `%local` in local memory. The result is written to `%out`.
const PREAMBLE: &str = "    .reg .pred %p<8>;
    .reg .b16 %h<32>;
    .reg .b32 %r<32>, %thread, %shared, %position;
    .reg .b64 %l<32>, %in, %out, %work, %generic, %local;
    .reg .b128 %q<4>;
    .shared .align 128 .b8 block[4096];
    .local .align 64 .b8 own[64];
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u64 %work, [work];
    mov.u32 %position, %ctaid.z;
    mov.u32 %r0, %nctaid.y;
    mov.u32 %r1, %ctaid.y;
    mad.lo.u32 %position, %position, %r0, %r1;
    mov.u32 %r0, %nctaid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %position, %position, %r0, %r1;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %position, %position, 64, %thread;
    mad.wide.u32 %in, %position, 32, %in;
    mad.wide.u32 %out, %position, 32, %out;
    mad.wide.u32 %work, %position, 64, %work;
    mov.u32 %shared, block;
    mad.lo.u32 %shared, %thread, 64, %shared;
    cvt.u64.u32 %generic, %shared;
    cvta.shared.u64 %generic, %generic;
    mov.u64 %local, own;
    ld.global.b64 %l0, [%in];
    ld.global.b64 %l1, [%in+8];
    ld.global.b64 %l2, [%in+16];
    ld.global.b64 %l3, [%in+24];
    cvt.u32.u64 %r0, %l0;
    cvt.u32.u64 %r1, %l1;
    cvt.u32.u64 %r2, %l2;
    cvt.u32.u64 %r3, %l3;
    cvt.u16.u64 %h0, %l0;
    cvt.u16.u64 %h1, %l1;
    cvt.u16.u64 %h2, %l2;
    cvt.u16.u64 %h3, %l3;
";

/// The words of the kernel parameter `table` and of the constant memory `words`, which all threads
/// read.
pub(crate) const TABLE: [u64; 4] = [
    0x8081_8283_8485_8687,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    0x7ff0_1122_3344_55ff,
];

/// Returns a module with a kernel `f0`, `f1` … for each form.
pub(crate) fn module(forms: &[&BlockForm]) -> String {
    let architecture = forms
        .iter()
        .map(|form| form.architecture)
        .max()
        .unwrap_or_default();
    let suffix = if forms.iter().any(|form| form.is_specific) {
        "a"
    } else {
        ""
    };
    let mut text = format!(".version 8.8\n.target sm_{architecture}{suffix}\n.address_size 64\n");
    let words = TABLE.map(|word| word.to_string()).join(", ");
    writeln!(text, ".const .align 32 .b64 words[4] = {{{words}}};")
        .expect("writing a string failed");
    for (index, form) in forms.iter().enumerate() {
        let replace_prefix = |text: &str| text.replace("FN", &format!("f{index}_"));
        write!(
            text,
            "// {}
{}
.visible .entry f{index}(.param .align 32 .b8 table[32], .param .u64 in, .param .u64 out, .param .u64 work)
{{
{PREAMBLE}    {}
    ret;
}}
",
            form.name,
            replace_prefix(&form.declared),
            replace_prefix(&form.code)
        )
        .expect("writing a string failed");
    }
    text
}

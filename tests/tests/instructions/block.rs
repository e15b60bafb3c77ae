//! Forms that are about where operands lie, or about more than one thread: each is a kernel of one block, which leaves 32 bytes of each
//! thread, beside what its definition gives for the operands of all threads.

mod accepted;
mod address;
mod asynchronous;
mod atomic;
mod barrier;
mod matrix;
mod memory;
mod pattern;
mod warp;
mod wmma;

use std::fmt::Write as _;

use curium_driver::{LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, DeviceModel};
use curium_tests::{TestDriver, on_driver, on_simulator};

use crate::form::Sources;
use crate::operands::words;
use crate::program::architecture;

/// Threads of the block: two warps.
pub(crate) const THREADS: usize = 64;
/// Kernels of a module.
const PER_MODULE: usize = 100;

/// What a thread leaves.
pub(crate) type Left = [u64; 4];

/// What all threads leave, by the operands of all.
type Expected = Box<dyn Fn(&[Sources]) -> Vec<Left>>;

/// A form, in a kernel of its own.
pub(crate) struct BlockForm {
    /// Unique: the instruction as it is written, and behind a blank what tells it from others with that spelling.
    pub(crate) name: String,
    /// PTX, with what the preamble declares.
    pub(crate) code: String,
    /// The least compute capability that has it.
    pub(crate) architecture: u32,
    pub(crate) expected: Expected,
}

impl BlockForm {
    /// A form whose result in each thread is a function of the operands of all and of the thread's number.
    pub(crate) fn new(
        name: impl Into<String>,
        code: impl Into<String>,
        expected: impl Fn(&[Sources], usize) -> Left + 'static,
    ) -> Self {
        let expected = move |all: &[Sources]| (0..all.len()).map(|thread| expected(all, thread)).collect();
        Self { name: name.into(), code: code.into(), architecture: 75, expected: Box::new(expected) }
    }

    /// The least compute capability that has it.
    pub(crate) fn needs(mut self, architecture: u32) -> Self {
        self.architecture = architecture;
        self
    }

    /// The instruction as it is written.
    pub(crate) fn spelling(&self) -> &str {
        self.name.split(' ').next().unwrap_or(&self.name)
    }
}

/// All forms of the families in this folder.
pub(crate) fn forms() -> Vec<BlockForm> {
    [
        memory::forms(),
        atomic::forms(),
        warp::forms(),
        barrier::forms(),
        address::forms(),
        asynchronous::forms(),
        matrix::forms(),
        wmma::forms(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What kernels find before their code: `%l0` to `%l3` are the operands, `%r0` to `%r3` and `%h0` to `%h3` their low bits; `%thread` is
/// the thread, and the thread has 64 bytes at `%work` on the device, at `%shared` in shared memory (at `%generic` for generic
/// addresses) and at `%local` in its own memory. It leaves what it writes to `%out`.
const PREAMBLE: &str = "    .reg .pred %p<8>;
    .reg .b16 %h<32>;
    .reg .b32 %r<32>, %thread, %shared;
    .reg .b64 %l<32>, %in, %out, %work, %generic, %local;
    .reg .b128 %q<4>;
    .shared .align 128 .b8 block[4096];
    .local .align 64 .b8 own[64];
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u64 %work, [work];
    mov.u32 %thread, %tid.x;
    mad.wide.u32 %in, %thread, 32, %in;
    mad.wide.u32 %out, %thread, 32, %out;
    mad.wide.u32 %work, %thread, 64, %work;
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

/// The words of the kernels' parameter `table` and of the constant memory `words`, which all threads read.
pub(crate) const TABLE: [u64; 4] =
    [0x8081_8283_8485_8687, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 0x7ff0_1122_3344_55ff];

/// A module with a kernel `f0`, `f1` … for each form.
fn module(forms: &[&BlockForm]) -> String {
    let architecture = forms.iter().map(|form| form.architecture).max().unwrap_or_default();
    let mut text = format!(".version 8.8\n.target sm_{architecture}\n.address_size 64\n");
    let words = TABLE.map(|word| word.to_string()).join(", ");
    writeln!(text, ".const .align 32 .b64 words[4] = {{{words}}};").expect("a text takes all");
    for (index, form) in forms.iter().enumerate() {
        write!(
            text,
            "// {}
.visible .entry f{index}(.param .align 32 .b8 table[32], .param .u64 in, .param .u64 out, .param .u64 work)
{{
{PREAMBLE}    {}
    ret;
}}
",
            form.name, form.code
        )
        .expect("a text takes all");
    }
    text
}

fn results(stream: &Stream, library: &Library, index: usize, sources: &[Sources]) -> curium_driver::Result<Vec<Left>> {
    let flat = |words: &[Sources]| words.iter().flatten().copied().collect::<Vec<u64>>();
    let sources = DeviceBuffer::from_slice(stream, &flat(sources))?;
    let mut left = DeviceBuffer::<u64>::zeroed(stream, 4 * THREADS)?;
    let mut work = DeviceBuffer::<u64>::zeroed(stream, 8 * THREADS)?;
    let kernel = library.kernel::<([u64; 4], &[u64], &mut [u64], &mut [u64])>(&format!("f{index}"))?;
    let config = LaunchConfig::new(1, THREADS as u32);
    // SAFETY: each thread of one block reads its own operands, and writes its own places in the other two buffers.
    unsafe { kernel.launch(stream, config, (TABLE, &sources, &mut left, &mut work)) }?;
    Ok(left.to_vec()?.chunks_exact(4).map(|left| [left[0], left[1], left[2], left[3]]).collect())
}

/// What is wrong with what a form left, if anything.
fn judge(form: &BlockForm, sources: &[Sources], found: &[Left]) -> String {
    let expected = (form.expected)(sources);
    let wrong = expected.iter().zip(found).enumerate().find(|(_, (expected, found))| expected != found);
    wrong.map_or_else(String::new, |(thread, (expected, found))| {
        format!("{}: thread {thread} of {:x?} left {found:x?}, not {expected:x?}\n", form.name, sources[thread])
    })
}

/// Runs the forms of a range of compute capabilities; says what is wrong, and how many ran.
fn run(test: &TestDriver, wanted: impl Fn(u32) -> bool) -> (String, usize) {
    let (stream, all) = (test.stream(), forms());
    let forms: Vec<&BlockForm> = all.iter().filter(|form| wanted(form.architecture)).collect();
    let mut wrong = String::new();
    for forms in forms.chunks(PER_MODULE) {
        let together = Library::from_ptx(&stream, &module(forms));
        for (index, form) in forms.iter().enumerate() {
            let sources = words(&form.name, THREADS);
            let alone = together.is_err().then(|| Library::from_ptx(&stream, &module(&[form])));
            let found = match (&together, alone) {
                (Ok(library), _) => results(&stream, library, index, &sources),
                (_, Some(Ok(library))) => results(&stream, &library, 0, &sources),
                (_, Some(Err(error))) => Err(error),
                (Err(_), None) => unreachable!("a module that is refused is loaded kernel by kernel"),
            };
            match found {
                Ok(found) => wrong += &judge(form, &sources, &found),
                // What fails ends the context, and all that would come.
                Err(error) if error.is_sticky() => return (format!("{wrong}{}: {error}\n", form.name), forms.len()),
                Err(error) => wrong += &format!("{}: {error}\n", form.name),
            }
        }
    }
    (wrong, forms.len())
}

#[test]
fn every_form_of_a_block_gives_what_its_definition_says() {
    on_driver(|test| {
        let least = architecture(&test.device());
        let (wrong, ran) = run(test, |needs| needs <= least);
        assert!(wrong.is_empty(), "{wrong}");
        assert!(ran > 1000, "only {ran} forms ran");
    });
}

#[test]
fn every_form_of_a_block_of_newer_devices_gives_what_its_definition_says() {
    on_simulator(Config::new().with_device_model(DeviceModel::B200), |test, _| {
        let (wrong, ran) = run(test, |needs| needs > 90);
        assert!(wrong.is_empty(), "{wrong}");
        assert!(ran > 10, "only {ran} forms ran");
    });
}

#[test]
fn modules_of_blocks_are_written_for_the_assembler() {
    let Some(folder) = std::env::var_os("CURIUM_INSTRUCTION_PTX").map(std::path::PathBuf::from) else { return };
    for form in &forms() {
        let name: String = form.name.chars().map(|it| if it.is_alphanumeric() { it } else { '_' }).collect();
        let path = folder.join(format!("block-{name}")).with_extension("ptx");
        std::fs::write(path, module(&[form])).expect("the folder is writable");
    }
}

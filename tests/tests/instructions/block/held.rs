//! Kernels whose operands the host places in registers and shared memory, and that write a digest
//! of their result registers.

use curium_memory::DeviceBuffer;

use super::{BlockForm, Output, Prepared};

/// The multiplier of the digest.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The operands of an instruction: an image of shared memory at `%tile`, and registers by number
/// and thread.
pub(super) struct Held {
    pub(super) image: Vec<u8>,
    pub(super) inputs: Vec<Vec<u32>>,
    /// The initial values of the result registers.
    pub(super) before: Vec<Vec<u32>>,
    /// Their expected values.
    pub(super) after: Vec<Vec<u32>>,
}

/// The sizes of the operands, for which the kernel is generated.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) threads: usize,
    pub(super) image: usize,
    pub(super) inputs: usize,
    pub(super) results: usize,
}

impl Sizes {
    fn image_words(self) -> usize {
        (self.image / 4).next_multiple_of(self.threads)
    }

    /// Returns a form by its name and its code: inputs are in `%i0`, `%i1` …, results in `%o0` …
    pub(super) fn form(
        self,
        name: impl Into<String>,
        code: &str,
        held: impl Fn() -> Held + Clone + 'static,
    ) -> BlockForm {
        let Self {
            threads,
            inputs,
            results,
            ..
        } = self;
        let words = self.image_words();
        let tile = if self.image == 0 {
            String::new()
        } else {
            self.copy()
        };
        let offset = |register: usize| 4 * (words + threads * register);
        let load = |class: char, first: usize, count: usize| -> String {
            (0..count)
                .map(|at: usize| {
                    format!(
                        "ld.global.b32 %{class}{at}, [%x+{}];\n    ",
                        offset(first + at)
                    )
                })
                .collect()
        };
        let digests: String = (0..results)
            .map(|at: usize| {
                format!(
                    "cvt.u64.u32 %x, %o{at}; mad.lo.u64 %d{0}, %d{0}, {FACTOR:#x}, %x;\n    ",
                    at % 4
                )
            })
            .collect();
        let text = format!(
            "{{
    .reg .pred %true, %false, %again;
    .reg .b32 %i<{inputs}>, %o<{results}>, %tile, %at, %value;
    .reg .b64 %x, %from, %d<4>, %a, %b;
    ld.param.u64 %from, [table];
    {tile}setp.eq.u32 %true, 0, 0;
    setp.ne.u32 %false, 0, 0;
    mad.wide.u32 %x, %thread, 4, %from;
    {}{}{code}
    mov.b64 %d0, 0; mov.b64 %d1, 0; mov.b64 %d2, 0; mov.b64 %d3, 0;
    {digests}st.global.v2.b64 [%out], {{%d0, %d1}};
    st.global.v2.b64 [%out+16], {{%d2, %d3}};
    }}",
            load('i', 0, inputs),
            load('o', inputs, results)
        );
        let expected = held.clone();
        let form = BlockForm::for_all_threads(name, text, move |_| {
            thread_digests(&expected().after, threads)
        });
        form.in_block(threads).with(move |stream| {
            let held = held();
            let mut all: Vec<u32> = held
                .image
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| u32::from_le_bytes(*word))
                .collect();
            all.resize(words, 0);
            all.extend(held.inputs.iter().chain(&held.before).flatten());
            let buffer = DeviceBuffer::from_slice(stream, &all)?;
            stream.synchronize()?;
            Ok(Prepared {
                table: [buffer.as_pointer().as_raw(), 0, 0, 0],
                _kept: Box::new(buffer),
            })
        })
    }

    /// Returns code that copies the image to shared memory.
    fn copy(self) -> String {
        let threads = self.threads;
        let bytes = 4 * self.image_words();
        format!(
            ".shared .align 1024 .b8 held[{bytes}];
    mov.u32 %tile, held;
    shl.b32 %at, %thread, 2;
COPY:
    cvt.u64.u32 %x, %at;
    add.u64 %x, %x, %from;
    ld.global.b32 %value, [%x];
    add.u32 %tile, %tile, %at;
    st.shared.b32 [%tile], %value;
    mov.u32 %tile, held;
    add.u32 %at, %at, {step};
    setp.lt.u32 %again, %at, {bytes};
    @%again bra COPY;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    ",
            step = 4 * threads
        )
    }
}

fn thread_digests(registers: &[Vec<u32>], threads: usize) -> Vec<Output> {
    (0..threads)
        .map(|thread: usize| {
            let mut output = [0_u64; 4];
            for (at, register) in registers.iter().enumerate() {
                let word = &mut output[at % 4];
                *word = word
                    .wrapping_mul(FACTOR)
                    .wrapping_add(u64::from(register[thread]));
            }
            output
        })
        .collect()
}

/// Registers per thread, in which elements are stored.
pub(super) struct Registers(pub(super) Vec<Vec<u32>>);

impl Registers {
    pub(super) fn new(count: usize, threads: usize) -> Self {
        Self(vec![vec![0; threads]; count])
    }

    /// Stores an element in a thread's registers at a slot, in units of `bits` bits.
    pub(super) fn put(&mut self, thread: usize, slot: usize, bits: u32, element: u64) {
        let each = (32 / bits) as usize;
        self.0[slot / each][thread] |= (element as u32) << ((slot % each) as u32 * bits);
    }
}

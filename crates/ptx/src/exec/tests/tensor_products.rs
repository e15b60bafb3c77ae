//! `tcgen05.mma` and `tcgen05.cp`: products and copies in every layout of the matrices, compared
//! with integer arithmetic.
//!
//! The layouts of the matrices in shared memory are CuTe's canonical layouts, computed here from
//! their definitions.

use super::{Bench, TestResult, kernel};
use crate::exec::{Report, ReportKind};

/// The number of bytes of shared memory that a kernel loads.
const IMAGE: usize = 32768;
/// The offset of B in shared memory.
const B: usize = 16384;
/// The offset of tensor memory in device memory, and its number of cells.
const CELLS_AT: u64 = IMAGE as u64;
const CELLS: usize = 128 * 512;
/// The offset of the arguments: the descriptors of A and B, the instruction descriptor, and the
/// mask of disabled lanes.
const ARGUMENTS_AT: u64 = CELLS_AT + 4 * CELLS as u64;
/// The size of device memory.
const BYTES: u64 = ARGUMENTS_AT + 128;

/// Loads shared and tensor memory, executes an instruction in one thread, waits for its completion,
/// and stores tensor memory.
fn bench(instruction: &str) -> Bench {
    let body = format!(
        "
    .shared .align 1024 .b8 image[{IMAGE}];
    .shared .align 8 .b64 barrier;
    .shared .align 4 .b32 address;
    mov.u32 %r2, image;
    mov.u32 %r3, 0;
COPY:
    mad.lo.u32 %r4, %r3, 128, %t;
    shl.b32 %r4, %r4, 4;
    cvt.u64.u32 %d2, %r4;
    add.u64 %d2, %d2, %p;
    ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d2];
    add.u32 %r4, %r4, %r2;
    st.shared.v4.b32 [%r4], {{%r5, %r6, %r7, %r8}};
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 16;
    @%p1 bra COPY;
    setp.lt.u32 %p2, %t, 32;
    setp.eq.u32 %p3, %t, 0;
    @%p3 mbarrier.init.shared::cta.b64 [barrier], 1;
    @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
    bar.sync 0;
    ld.shared.b32 %r10, [address];
    shr.u32 %r11, %t, 5;
    shl.b32 %r11, %r11, 21;
    add.u32 %r11, %r11, %r10;
    mul.wide.u32 %d3, %t, 2048;
    add.u64 %d3, %d3, %p;
    add.u64 %d3, %d3, {CELLS_AT};
    mov.u64 %d4, %d3;
    mov.u32 %r12, %r11;
    mov.u32 %r3, 0;
FILL:
    ld.global.v4.b32 {{%r13, %r14, %r15, %r16}}, [%d4];
    tcgen05.st.sync.aligned.32x32b.x4.b32 [%r12], {{%r13, %r14, %r15, %r16}};
    add.u64 %d4, %d4, 16;
    add.u32 %r12, %r12, 4;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 128;
    @%p1 bra FILL;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.global.b64 %d10, [%p+{ARGUMENTS_AT}];
    ld.global.b64 %d11, [%p+{ARGUMENTS_AT}+8];
    ld.global.b32 %r20, [%p+{ARGUMENTS_AT}+16];
    ld.global.v4.b32 {{%r21, %r22, %r23, %r24}}, [%p+{ARGUMENTS_AT}+32];
    shr.u32 %r2, %r2, 4;
    cvt.u64.u32 %d12, %r2;
    add.u64 %d10, %d10, %d12;
    add.u64 %d11, %d11, %d12;
    @%p3 {instruction}
    @%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [barrier];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [barrier], 0;
    @!%p4 bra WAIT;
    tcgen05.fence::after_thread_sync;
    mov.u32 %r3, 0;
SAVE:
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r13, %r14, %r15, %r16}}, [%r11];
    tcgen05.wait::ld.sync.aligned;
    st.global.v4.b32 [%d3], {{%r13, %r14, %r15, %r16}};
    add.u64 %d3, %d3, 16;
    add.u32 %r11, %r11, 4;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 128;
    @%p1 bra SAVE;
    bar.sync 0;
    @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;"
    );
    Bench::for_target("sm_100a", &kernel(&body), BYTES)
}

/// A format of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Float { exponent: u32, fraction: u32 },
    Integer { bits: u32 },
}

const F16: Format = Format::Float {
    exponent: 5,
    fraction: 10,
};
const BF16: Format = Format::Float {
    exponent: 8,
    fraction: 7,
};
const F32: Format = Format::Float {
    exponent: 8,
    fraction: 23,
};
const E4M3: Format = Format::Float {
    exponent: 4,
    fraction: 3,
};
const E5M2: Format = Format::Float {
    exponent: 5,
    fraction: 2,
};
const I8: Format = Format::Integer { bits: 8 };
const S32: Format = Format::Integer { bits: 32 };

impl Format {
    /// Returns the bits of a small integer that is a number of the format.
    fn encode(self, value: i32) -> u32 {
        match self {
            Self::Integer { bits } => value.cast_unsigned() & u32::MAX >> (32 - bits),
            Self::Float { .. } if value == 0 => 0,
            Self::Float { exponent, fraction } => {
                let sign = u32::from(value < 0) << (exponent + fraction);
                let size = value.unsigned_abs();
                let power = size.ilog2();
                let bias = (1 << (exponent - 1)) - 1;
                let tail = (size - (1 << power)) << (fraction - power.min(fraction));
                sign | (power + bias) << fraction | tail >> (power - power.min(fraction))
            }
        }
    }

    /// Returns the number of bytes of a number.
    fn bytes(self) -> usize {
        match self {
            Self::Integer { bits } => bits as usize / 8,
            Self::Float { exponent, fraction } => (1 + exponent + fraction) as usize / 8,
        }
    }
}

/// A matrix in shared memory, with the number of rows in the extent M or N, by its canonical
/// layout.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// The swizzling mode of the descriptor.
    mode: u64,
    /// `true` if neighboring elements in memory are neighbors in M or N.
    is_transposed: bool,
    format: Format,
    rows: usize,
}

impl Placed {
    /// Returns the width of a swizzled row, in units of 16 bytes.
    fn width(self) -> usize {
        match self.mode {
            0 => 1,
            1 | 2 => 8,
            4 => 4,
            _ => 2,
        }
    }

    /// Returns the number of rows of an atom.
    fn atom_rows(self) -> usize {
        if self.mode == 1 { 4 } else { 8 }
    }

    /// Returns the number of units of an atom. Atoms are contiguous.
    fn atom(self) -> usize {
        self.width() * self.atom_rows()
    }

    /// Returns the number of atoms of a row in M or N.
    fn atoms_across(self) -> usize {
        (self.rows * self.format.bytes()).div_ceil(16 * self.width())
    }

    /// Returns the leading offset, in units of 16 bytes.
    fn leading(self) -> usize {
        match (self.is_transposed, self.mode) {
            (true, 0) => self.atom() * self.atoms_across(),
            (true, _) => self.atom(),
            (false, 0) => self.atom() * self.rows.div_ceil(8),
            (false, _) => 1,
        }
    }

    /// Returns the stride offset, in units of 16 bytes.
    fn stride(self) -> usize {
        if self.is_transposed && self.mode != 0 {
            self.atom() * self.atoms_across()
        } else {
            self.atom()
        }
    }

    /// Returns the offset of a byte of an element, from its layout and its swizzle.
    fn offset(self, row: usize, inner: usize, byte: usize) -> usize {
        let width = self.width();
        let atom_rows = self.atom_rows();
        let leading = self.leading();
        let stride = self.stride();
        let bytes = self.format.bytes();
        let contiguous = if self.is_transposed { row } else { inner } * bytes + byte;
        let line = if self.is_transposed { inner } else { row };
        let piece = contiguous / 16;
        let unit = match (self.is_transposed, self.mode) {
            // ((8,n),2):((W,SBO),LBO)
            (false, _) => line % 8 * width + line / 8 * stride + piece * leading,
            // ((1,n),(8,k)):((X,SBO),(1,LBO))
            (true, 0) => piece * stride + line % 8 + line / 8 * leading,
            // ((W,n),(R,k)):((1,LBO),(W,SBO))
            (true, _) => {
                piece % width
                    + piece / width * leading
                    + line % atom_rows * width
                    + line / atom_rows * stride
            }
        };
        let linear = unit * 16 + contiguous % 16;
        // Swizzle<B, M, S>
        let (bits, base, shift) = match self.mode {
            0 => (0, 4, 3),
            1 => (2, 5, 2),
            2 => (3, 4, 3),
            4 => (2, 4, 3),
            _ => (1, 4, 3),
        };
        linear ^ (linear >> shift & ((1 << bits) - 1) << base)
    }

    fn descriptor(self, start: usize) -> u64 {
        (start / 16) as u64
            | (self.leading() as u64) << 16
            | (self.stride() as u64) << 32
            | 1 << 46
            | self.mode << 61
    }

    /// Writes the elements into an image of shared memory.
    fn write(self, image: &mut [u8], start: usize, element: impl Fn(usize, usize) -> i32) {
        for row in 0..self.rows {
            for inner in 0..32 / self.format.bytes() {
                let bits = self.format.encode(element(row, inner)).to_le_bytes();
                for byte in 0..self.format.bytes() {
                    image[start + self.offset(row, inner, byte)] = bits[byte];
                }
            }
        }
    }
}

/// A product.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    factors: [Format; 2],
    /// The numbers of the formats of A, B and D in the instruction descriptor.
    numbers: [u32; 3],
    result: Format,
    m: usize,
    n: usize,
    modes: [u64; 2],
    are_transposed: [bool; 2],
    are_negative: [bool; 2],
    /// `true` if A is in tensor memory, from column 256 on.
    is_left_in_tensor_memory: bool,
    /// The lane at which D begins.
    lane: u32,
    accumulates: bool,
    scale: u32,
    disabled: u128,
}

const CASE: Case = Case {
    kind: "f16",
    factors: [F16, F16],
    numbers: [0, 0, 1],
    result: F32,
    m: 128,
    n: 64,
    modes: [2, 2],
    are_transposed: [false, false],
    are_negative: [false, false],
    is_left_in_tensor_memory: false,
    lane: 0,
    accumulates: true,
    scale: 0,
    disabled: 0,
};

impl Case {
    fn element(self, side: usize, row: usize, inner: usize) -> i32 {
        let value = (row * 7 + inner * 5 + side * 3 + row / 16 * inner) % 9;
        // Unsigned integers are not negative.
        let is_unsigned = self.kind == "i8" && self.numbers[side] == 0;
        if is_unsigned {
            value as i32 + 200
        } else {
            value as i32 - 4
        }
    }

    fn inner(self) -> usize {
        32 / self.factors[0].bytes()
    }

    /// Returns the lane of a row of A or D.
    fn row_lane(self, row: usize, first: u32) -> usize {
        let lane = if self.m == 64 {
            row / 16 * 32 + row % 16
        } else {
            row
        };
        lane + first as usize
    }

    fn instruction(self) -> String {
        let left = if self.is_left_in_tensor_memory {
            "[%r10+256]"
        } else {
            "%d10"
        };
        let mask = if self.disabled == 0 {
            ""
        } else {
            "{%r21, %r22, %r23, %r24}, "
        };
        let scale = if self.scale == 0 {
            String::new()
        } else {
            format!(", {}", self.scale)
        };
        format!(
            "tcgen05.mma.cta_group::1.kind::{} [%r10+{}], {left}, %d11, %r20, {mask}{}{scale};",
            self.kind,
            self.lane << 16,
            u32::from(self.accumulates),
        )
    }

    fn instruction_descriptor(self) -> u32 {
        let flags = [
            (13, self.are_negative[0]),
            (14, self.are_negative[1]),
            (15, self.are_transposed[0]),
            (16, self.are_transposed[1]),
        ];
        let flags = flags
            .into_iter()
            .fold(0, |bits, (bit, flag)| bits | u32::from(flag) << bit);
        let [a, b, d] = self.numbers;
        flags | d << 4 | a << 7 | b << 10 | (self.n as u32 / 8) << 17 | (self.m as u32 / 16) << 24
    }

    /// Runs the product and compares tensor memory with the expected contents.
    fn check(self) -> TestResult {
        let bench = bench(&self.instruction());
        let mut image = vec![0; IMAGE];
        let sides = [self.m, self.n];
        let places: [Placed; 2] = std::array::from_fn(|side| Placed {
            mode: self.modes[side],
            is_transposed: self.are_transposed[side],
            format: self.factors[side],
            rows: sides[side],
        });
        for (side, start) in [(0, 0), (1, B)] {
            places[side].write(&mut image, start, |row, inner| {
                self.element(side, row, inner)
            });
        }
        let mut cells: Vec<u32> = (0..CELLS as u32).map(|index| 0xdead_0000 | index).collect();
        for row in 0..self.m {
            for column in 0..self.n {
                let cell = self.row_lane(row, self.lane) * 512 + column;
                cells[cell] = self.result.encode(initial_sum(row, column));
            }
            if self.is_left_in_tensor_memory {
                for column in 0..8 {
                    let mut word = 0;
                    let bytes = self.factors[0].bytes();
                    for part in 0..4 / bytes {
                        let inner = column * 4 / bytes + part;
                        word |= self.factors[0].encode(self.element(0, row, inner))
                            << (8 * bytes * part);
                    }
                    cells[self.row_lane(row, 0) * 512 + 256 + column] = word;
                }
            }
        }
        bench.memory.write(0, &image);
        bench.memory.write(CELLS_AT, &cells);
        bench.memory.write(
            ARGUMENTS_AT,
            &[places[0].descriptor(0), places[1].descriptor(B)],
        );
        bench
            .memory
            .write(ARGUMENTS_AT + 16, &[self.instruction_descriptor()]);
        let mask: [u32; 4] = std::array::from_fn(|word| (self.disabled >> (32 * word)) as u32);
        bench.memory.write(ARGUMENTS_AT + 32, &mask);
        bench.launch(1, 128)?;
        let results = bench.memory.read::<u32>(CELLS_AT, CELLS);
        let sign = if self.are_negative[0] == self.are_negative[1] {
            1
        } else {
            -1
        };
        let half = self.result == F16;
        for row in 0..self.m {
            let lane = self.row_lane(row, self.lane);
            for column in 0..self.n {
                let products = (0..self.inner())
                    .map(|inner| self.element(0, row, inner) * self.element(1, column, inner));
                let mut sum = sign * products.sum::<i32>();
                if self.accumulates {
                    sum += initial_sum(row, column) >> self.scale;
                }
                if self.disabled >> lane & 1 == 0 {
                    cells[lane * 512 + column] = self.result.encode(sum);
                }
            }
        }
        for (index, (&result, &expected)) in results.iter().zip(&cells).enumerate() {
            let mask = if half && index % 512 < self.n {
                0xffff
            } else {
                u32::MAX
            };
            if result & mask != expected & mask {
                return Err(format!(
                    "lane {}, column {}: {result:#x}, not {expected:#x}: {self:?}",
                    index / 512,
                    index % 512
                )
                .into());
            }
        }
        Ok(())
    }
}

/// Returns the number in D before the product.
fn initial_sum(row: usize, column: usize) -> i32 {
    ((row + 2 * column) % 8) as i32 * 16
}

/// The kinds with their factors, the numbers of the formats, and the results.
const KINDS: [Case; 9] = [
    CASE,
    Case {
        result: F16,
        numbers: [0, 0, 0],
        ..CASE
    },
    Case {
        factors: [BF16, BF16],
        numbers: [1, 1, 1],
        ..CASE
    },
    Case {
        kind: "tf32",
        factors: [F32, F32],
        numbers: [2, 2, 1],
        ..CASE
    },
    Case {
        kind: "f8f6f4",
        factors: [E4M3, E4M3],
        ..CASE
    },
    Case {
        kind: "f8f6f4",
        factors: [E5M2, E4M3],
        numbers: [1, 0, 1],
        ..CASE
    },
    Case {
        kind: "f8f6f4",
        factors: [E4M3, E5M2],
        numbers: [0, 1, 0],
        result: F16,
        ..CASE
    },
    Case {
        kind: "i8",
        factors: [I8, I8],
        numbers: [1, 1, 2],
        result: S32,
        ..CASE
    },
    Case {
        kind: "i8",
        factors: [I8, I8],
        numbers: [0, 1, 2],
        result: S32,
        ..CASE
    },
];

#[test]
fn products_of_every_kind() -> TestResult {
    for case in KINDS {
        for (m, n) in [(128, 64), (128, 16), (128, 8), (64, 64), (64, 8), (64, 24)] {
            Case { m, n, ..case }.check()?;
        }
    }
    Ok(())
}

#[test]
fn factors_in_every_layout() -> TestResult {
    for case in [KINDS[0], KINDS[3], KINDS[4], KINDS[7]] {
        for mode in [0, 1, 2, 4, 6] {
            for turned in [false, true] {
                if mode == 1 && !turned {
                    continue;
                }
                let other = if mode == 2 { 0 } else { 2 };
                Case {
                    modes: [mode, other],
                    are_transposed: [turned, false],
                    ..case
                }
                .check()?;
                Case {
                    modes: [other, mode],
                    are_transposed: [!turned, turned],
                    ..case
                }
                .check()?;
            }
        }
    }
    Ok(())
}

#[test]
fn left_factor_in_tensor_memory() -> TestResult {
    for case in KINDS {
        for m in [64, 128] {
            Case {
                m,
                is_left_in_tensor_memory: true,
                ..case
            }
            .check()?;
        }
    }
    Ok(())
}

#[test]
fn factors_are_negated() -> TestResult {
    for are_negative in [[false, true], [true, false], [true, true]] {
        for is_left_in_tensor_memory in [false, true] {
            Case {
                are_negative,
                is_left_in_tensor_memory,
                ..CASE
            }
            .check()?;
        }
    }
    Ok(())
}

#[test]
fn addend_is_scaled_or_discarded() -> TestResult {
    for case in &KINDS[..4] {
        Case {
            accumulates: false,
            ..*case
        }
        .check()?;
        Case { scale: 3, ..*case }.check()?;
    }
    Ok(())
}

#[test]
fn disabled_lanes_keep_their_values() -> TestResult {
    for m in [64, 128] {
        Case {
            m,
            disabled: 0x8000_0001_0000_ffff_1234_5678_0f0f_00ff,
            ..CASE
        }
        .check()?;
    }
    Ok(())
}

/// Matrices of 64 rows can be in the second half of each warp's lanes.
#[test]
fn results_in_upper_lanes() -> TestResult {
    Case {
        m: 64,
        lane: 16,
        ..CASE
    }
    .check()
}

/// Runs a product with other bits of its descriptors, and returns the fault.
fn fault(case: Case, change: impl Fn(&mut [u64; 2], &mut u32)) -> Result<Box<Report>, String> {
    let bench = bench(&case.instruction());
    let mut descriptors = [1 << 46 | 2 << 61; 2];
    let mut instruction = case.instruction_descriptor();
    change(&mut descriptors, &mut instruction);
    bench.memory.write(ARGUMENTS_AT, &descriptors);
    bench.memory.write(ARGUMENTS_AT + 16, &[instruction]);
    bench
        .launch(1, 128)
        .err()
        .ok_or_else(|| "no fault".to_owned())
}

#[test]
fn invalid_products_are_reported() -> TestResult {
    let upper = Case { lane: 16, ..CASE };
    let turned = Case {
        is_left_in_tensor_memory: true,
        are_transposed: [true, false],
        ..CASE
    };
    let faults = [
        (fault(upper, |_, _| {})?, "begins at lane 0"),
        (fault(turned, |_, _| {})?, "cannot be transposed"),
        (fault(CASE, |_, bits| *bits |= 1 << 2)?, "requires .sp"),
        (fault(CASE, |_, bits| *bits ^= 9 << 24)?, "M of"),
        (
            fault(CASE, |descriptors, _| descriptors[1] |= 1 << 61)?,
            "swizzling mode",
        ),
        (
            fault(CASE, |descriptors, _| descriptors[0] ^= 3 << 61)?,
            "requires a transposed matrix",
        ),
        (
            fault(CASE, |descriptors, _| descriptors[0] |= 1 << 52)?,
            "absolute leading",
        ),
    ];
    for (fault, part) in faults {
        let is_expected =
            matches!(fault.kind, ReportKind::IllegalInstruction(reason) if reason.contains(part));
        assert!(is_expected, "{fault}: {part}");
    }
    Ok(())
}

/// Copies distribute the rows of shared memory over the lanes as CuTe's traits of UTCCP describe.
#[test]
fn copies_distribute_rows() -> TestResult {
    for (shape, rows, columns) in [
        ("128x256b", 128, 8),
        ("128x128b", 128, 4),
        ("64x128b.warpx2::02_13", 64, 4),
        ("64x128b.warpx2::01_23", 64, 4),
        ("32x128b.warpx4", 32, 4),
    ] {
        let bench = bench(&format!("tcgen05.cp.cta_group::1.{shape} [%r10+32], %d10;"));
        let placed = Placed {
            mode: 0,
            is_transposed: false,
            format: F32,
            rows,
        };
        let mut image = vec![0; IMAGE];
        for row in 0..rows {
            for column in 0..columns {
                let word = (row * 100 + column + 1) as u32;
                for (byte, value) in word.to_le_bytes().into_iter().enumerate() {
                    image[placed.offset(row, column, byte)] = value;
                }
            }
        }
        bench.memory.write(0, &image);
        bench.memory.write(ARGUMENTS_AT, &[placed.descriptor(0), 0]);
        bench.launch(1, 128)?;
        let results = bench.memory.read::<u32>(CELLS_AT, CELLS);
        for lane in 0..128 {
            let row = match shape {
                "64x128b.warpx2::02_13" => lane % 64,
                "64x128b.warpx2::01_23" => lane % 32 + lane / 64 * 32,
                "32x128b.warpx4" => lane % 32,
                _ => lane,
            };
            for column in 0..columns + 1 {
                let expected = if column < columns {
                    (row * 100 + column + 1) as u32
                } else {
                    0
                };
                let result = results[lane * 512 + 32 + column];
                assert_eq!(result, expected, "{shape}: lane {lane}, column {column}");
            }
        }
    }
    Ok(())
}

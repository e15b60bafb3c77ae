//! Superinstructions: they compute and report the same as their instructions do one by one.

use super::Bench;
use crate::exec::Checking;
use crate::exec::ops::handler::{wide_vectors, with_baseline_handlers};

/// The bytes of shared memory, and of the inputs in device memory, which end where the results
/// begin.
const BYTES: u32 = 1024;
/// The number of registers that the programs use.
const REGISTERS: u32 = 16;

/// Copies the inputs to shared memory `s`. `%d1` and `%r2` are its address, `%d2` and `%r3` that of
/// the lane's word, and `%d3` that of the lane's 16 bytes. `%p1` holds in the first warp, and `%p2`
/// in some lanes of each.
const BEFORE: &str = "
    .shared .align 16 .b8 s[1024];
    and.b32 %r4, %t, 31;
    mov.u32 %r2, s; mad.lo.u32 %r3, %r4, 4, %r2;
    mov.u64 %d1, s; mad.wide.u32 %d2, %r4, 4, %d1; mad.wide.u32 %d3, %r4, 16, %d1;
    mad.wide.u32 %d4, %r4, 4, %p; mad.wide.u32 %d5, %t, 4, %p;
    setp.lt.u32 %p1, %t, 32; and.b32 %r5, %t, 5; setp.eq.u32 %p2, %r5, 1;
";

/// Pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    fn register(&mut self) -> String {
        format!("%f{}", self.below(REGISTERS))
    }

    /// Returns a load from shared memory, in which most lanes' addresses are in bounds.
    fn load(&mut self) -> String {
        let words = self.below(16);
        let first = self.below(REGISTERS / 4) * 4;
        match self.below(8) {
            0 => format!(
                "ld.shared.v4.f32 {{%f{first}, %f{}, %f{}, %f{}}}, [%d3+{}];",
                first + 1,
                first + 2,
                first + 3,
                words * 32
            ),
            1 => format!(
                "ld.shared.v2.f32 {{%f{first}, %f{}}}, [%d1+{}];",
                first + 1,
                words * 8
            ),
            2 => format!("ld.shared.f32 {}, [%r2+{}];", self.register(), words * 4),
            3 => format!("ld.shared.f32 {}, [%r3+{}];", self.register(), words * 56),
            4 | 5 => format!("ld.shared.f32 {}, [%d1+{}];", self.register(), words * 4),
            _ => format!("ld.shared.f32 {}, [%d2+{}];", self.register(), words * 56),
        }
    }

    fn arithmetic(&mut self) -> String {
        let [d, a, b, c] = std::array::from_fn(|_| self.register());
        match self.below(6) {
            0 => format!("add.f32 {d}, {a}, {b};"),
            1 => format!("sub.f32 {d}, {a}, {b};"),
            2 => format!("mul.f32 {d}, {a}, {b};"),
            _ => format!("fma.rn.f32 {d}, {a}, {b}, {c};"),
        }
    }

    /// Returns instructions that end superinstructions, or are no part of them.
    fn other(&mut self, number: u32) -> String {
        let a = self.register();
        let b = self.register();
        match self.below(5) {
            0 => format!("st.shared.f32 [%d2+{}], {a};", self.below(8) * 128),
            1 => format!("@%p2 add.f32 {a}, {b}, {a};"),
            2 => format!("neg.f32 {a}, {b};"),
            3 => format!("@%p1 bra L{number}; {} L{number}:", self.arithmetic()),
            _ => format!(
                "@%p2 bra L{number}; {} {} L{number}: bar.sync 0;",
                self.load(),
                self.arithmetic()
            ),
        }
    }

    /// Returns a program, with mistakes if `errs`.
    fn program(&mut self, errs: bool) -> String {
        let mut text = BEFORE.to_owned();
        for number in 0..BYTES / 128 {
            // If both warps store, they race.
            let guard = if !errs {
                ""
            } else if self.below(20) == 0 {
                "@%p2"
            } else {
                "@%p1"
            };
            text += &format!(
                "ld.global.f32 %f0, [%d4+{0}]; {guard} st.shared.f32 [%d2+{0}], %f0;\n",
                number * 128
            );
        }
        for number in 0..REGISTERS {
            text += &format!("ld.global.f32 %f{number}, [%d4+{}];\n", number % 8 * 128);
        }
        text += if errs && self.below(8) == 0 {
            ""
        } else {
            "bar.sync 0;"
        };
        for number in 0..60 {
            text += &match self.below(if errs { 24 } else { 16 }) {
                0 => self.other(number),
                1..8 => self.load(),
                23 if self.below(40) == 0 => "ld.shared.f32 %f3, [%d2+900];".into(),
                23 if self.below(40) == 0 => "ld.shared.f32 %f3, [%d1+6];".into(),
                _ => self.arithmetic(),
            };
            text += "\n";
        }
        for number in 0..REGISTERS {
            text += &format!(
                "st.global.f32 [%d5+{}], %f{number};\n",
                BYTES + number * 512
            );
        }
        text
    }
}

fn bench(text: &str, checking: Checking) -> Bench {
    let bench = Bench::body(text, u64::from(BYTES + REGISTERS * 512))
        .with_checks(checking, 0..BYTES.into());
    let specials = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        -0.0,
        1e-42,
        f32::MAX,
        -1.5,
        0.37,
    ];
    let input = |index: u32| {
        if index % 11 == 3 {
            specials[index as usize % 8]
        } else {
            index as f32 * 0.83 - 99.0
        }
    };
    let inputs: Vec<u32> = (0..BYTES / 4).map(|index| input(index).to_bits()).collect();
    bench.memory.write(0, &inputs);
    bench
}

/// The results of a launch in memory, or its report.
type Outcome = Result<Vec<u32>, String>;

/// Launches a program with superinstructions, and with its instructions one by one. Returns `true`
/// if there are superinstructions, and both outcomes.
fn both(text: &str, threads: u32, checking: Checking) -> (bool, [Outcome; 2]) {
    let fused = bench(text, checking);
    let plain = with_baseline_handlers(|| bench(text, checking));
    assert!(
        superinstruction_count(&plain) == 0 || !cfg!(target_arch = "x86_64"),
        "the baseline has none"
    );
    let is_fused = superinstruction_count(&fused) > 0 || !wide_vectors();
    let outcomes = [fused, plain].map(|bench| match bench.launch(1, threads) {
        Ok(_) => Ok(bench.memory.read(BYTES.into(), (REGISTERS * 128) as usize)),
        Err(fault) => Err(format!("{fault:?}")),
    });
    (is_fused, outcomes)
}

/// Returns the number of superinstructions of a kernel.
fn superinstruction_count(bench: &Bench) -> usize {
    bench.program.functions[0].superinstructions.len()
}

/// The same for a program that has superinstructions.
fn fused_checks(text: &str, threads: u32) -> [Outcome; 2] {
    let (is_fused, outcomes) = both(text, threads, ALL);
    assert!(is_fused, "{text}");
    outcomes
}

const ALL: Checking = Checking::nothing()
    .with_races(true)
    .with_uninitialized(true);

#[test]
fn superinstruction_results() {
    let mut count = 0;
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let text = numbers.program(false);
        let threads = numbers.pick(&[32, 32, 64, 50]);
        let checking = numbers.pick(&[
            Checking::nothing(),
            Checking::nothing().with_uninitialized(true),
        ]);
        let (is_fused, [fused, plain]) = both(&text, threads, checking);
        assert!(plain.is_ok(), "{plain:?}\n{text}");
        assert_eq!(fused, plain, "{seed}\n{text}");
        count += u32::from(is_fused);
    }
    assert!(count > 200, "{count} have superinstructions");
}

#[test]
fn superinstruction_reports() {
    const KINDS: [&str; 4] = [
        "Race",
        "Uninitialized",
        "IllegalAddress",
        "MisalignedAddress",
    ];
    let mut counts = [0; KINDS.len()];
    let mut without = 0;
    for seed in 0..400 {
        let mut numbers = Numbers(seed);
        let text = numbers.program(true);
        let threads = numbers.pick(&[32, 64, 64, 128]);
        let (_, [fused, plain]) = both(&text, threads, ALL);
        assert_eq!(fused, plain, "{seed}\n{text}");
        match &plain {
            Ok(_) => without += 1,
            Err(report) => {
                (0..KINDS.len())
                    .filter(|kind| report.contains(KINDS[*kind]))
                    .for_each(|kind| counts[kind] += 1);
            }
        }
    }
    assert!(
        without > 50 && counts.iter().all(|count| *count > 5),
        "{counts:?} and {without} without a report"
    );
}

/// Loads and multiply-adds, with `access` in the middle.
fn around(access: &str) -> String {
    format!(
        "mov.f32 %f9, 0f00000000; mov.f32 %f10, %f9;
        ld.shared.f32 %f0, [%d1]; ld.shared.f32 %f1, [%d2]; fma.rn.f32 %f9, %f0, %f1, %f9;
        ld.shared.f32 %f0, [%d1+4]; ld.shared.f32 %f1, [%d2+128]; fma.rn.f32 %f9, %f0, %f1, %f9;
        {access} fma.rn.f32 %f10, %f1, %f1, %f9;
        ld.shared.f32 %f0, [%d1+8]; ld.shared.f32 %f1, [%d2]; fma.rn.f32 %f9, %f0, %f1, %f9;
        st.global.f32 [%d5+1024], %f9; st.global.f32 [%d5+1536], %f10;"
    )
}

/// Stores to the first 256 bytes of shared memory by the first warp.
const STORES: &str =
    "@%p1 st.shared.f32 [%d2], 0f3F800000; @%p1 st.shared.f32 [%d2+128], 0f40000000; bar.sync 0;";

/// Access in the middle of a superinstruction is reported as alone.
#[test]
fn superinstruction_access() {
    for (access, kind) in [
        ("ld.shared.f32 %f1, [%d2+1020];", "IllegalAddress"),
        ("ld.shared.f32 %f1, [%d1+1024];", "IllegalAddress"),
        ("ld.shared.f32 %f1, [%d2+-4];", "IllegalAddress"),
        ("ld.shared.f32 %f1, [%r3+-2147483648];", "IllegalAddress"),
        ("ld.shared.f32 %f1, [%d2+2];", "MisalignedAddress"),
        ("ld.shared.v2.f32 {%f1, %f2}, [%d1+4];", "MisalignedAddress"),
        (
            "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%d1+1016];",
            "MisalignedAddress",
        ),
        ("ld.shared.f32 %f1, [%d1+256];", "Uninitialized"),
        ("ld.shared.f32 %f1, [%d2+256];", "Uninitialized"),
        ("ld.shared.f32 %f1, [%d2+132];", "Uninitialized"),
    ] {
        let [fused, plain] = fused_checks(&format!("{BEFORE} {STORES} {}", around(access)), 32);
        assert!(
            plain.as_ref().is_err_and(|report| report.contains(kind)),
            "{access}: {plain:?}"
        );
        assert_eq!(fused, plain, "{access}");
    }
}

/// Races with a superinstruction are reported before and after it.
#[test]
fn superinstruction_races() {
    let load = around("ld.shared.f32 %f1, [%d2+128];");
    // The first warp runs first: it stores before the other one loads, or loads before the other
    // one stores.
    for (guard, offset, races) in [
        ("@%p1", 128, true),
        ("@!%p1", 128, true),
        ("@%p1", 4, true),
        ("@!%p1", 4, true),
        ("@%p1", 512, false),
    ] {
        let store = format!("st.shared.f32 [%d2+{offset}], 0f3F800000;");
        let text =
            format!("{BEFORE} {STORES} {guard} bra STORE; {load} bra END; STORE: {store} END:");
        let [fused, plain] = fused_checks(&text, 64);
        assert_eq!(
            plain.as_ref().is_err_and(|report| report.contains("Race")),
            races,
            "{plain:?} {text}"
        );
        assert_eq!(fused, plain, "{text}");
    }
}

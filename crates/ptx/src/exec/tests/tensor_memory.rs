//! Tensor memory: allocation, loads and stores, and the checks of both.

use super::{Bench, TestResult, kernel};
use crate::exec::{Checking, Report, ReportKind};

/// Returns a kernel for sm_100a. `%r2` is the address of the variable `address` in shared memory.
fn bench(body: &str, bytes: u64) -> Bench {
    let body = format!(
        "
    .shared .align 4 .b32 address;
    mov.u32 %r2, address;
{body}"
    );
    Bench::for_target("sm_100a", &kernel(&body), bytes)
}

const ALLOCATE: &str = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2],";
const DEALLOCATE: &str = "tcgen05.dealloc.cta_group::1.sync.aligned.b32";

/// Allocates all columns in the first warp. All warps get the address of their lanes in `%r3`.
const PREPARE: &str = "
    setp.lt.u32 %p1, %t, 32;
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 512;
    bar.sync 0;
    ld.shared.b32 %r3, [%r2];
    shr.u32 %r4, %t, 5;
    shl.b32 %r4, %r4, 21;
    add.u32 %r3, %r3, %r4;
";

/// Deallocates the columns.
const END: &str = "
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 512;
";

/// Returns the reason of an illegal instruction.
fn reason(fault: &Report) -> &'static str {
    match fault.kind {
        ReportKind::IllegalInstruction(reason) => reason,
        _ => "",
    }
}

#[test]
fn allocation_writes_its_address() -> TestResult {
    let body = format!(
        "{ALLOCATE} 64; ld.shared.b32 %r10, [%r2];
         {ALLOCATE} 128; ld.shared.b32 %r11, [%r2];
         {DEALLOCATE} %r10, 64;
         mov.u32 %r12, 32;
         {ALLOCATE} %r12; ld.shared.b32 %r13, [%r2];
         {DEALLOCATE} %r13, %r12;
         {DEALLOCATE} %r11, 128;
         st.global.v2.b32 [%p], {{%r10, %r11}}; st.global.b32 [%p+8], %r13;"
    );
    let bench = bench(&body, 4096);
    bench.launch(1, 32)?;
    assert_eq!(bench.memory.read::<u32>(0, 3), [0, 64, 0]);
    Ok(())
}

/// The second warp allocates while the first has all columns, and continues after the deallocation.
#[test]
fn allocation_waits_for_columns() -> TestResult {
    let body = format!(
        "shr.u32 %r4, %t, 5;
         mad.lo.u32 %r5, %r4, 100, 1;
         setp.ge.u32 %p1, %t, 32;
         @%p1 bar.sync 1, 64;
         {ALLOCATE} 512;
         @!%p1 bar.sync 1, 64;
         mov.u32 %r10, 0;
DELAY:
         add.u32 %r10, %r10, 1;
         setp.lt.u32 %p2, %r10, 500;
         @%p2 bra DELAY;
         ld.global.b32 %r6, [%p];
         mad.lo.u32 %r6, %r6, 3, %r5;
         st.global.b32 [%p], %r6;
         {DEALLOCATE} 0, 512;"
    );
    let bench = bench(&body, 4096);
    bench.launch(1, 64)?;
    assert_eq!(bench.memory.read::<u32>(0, 1), [3 + 101]);
    Ok(())
}

#[test]
fn allocation_that_cannot_end_is_a_deadlock() {
    let body = format!("{ALLOCATE} 512; {ALLOCATE} 32; {DEALLOCATE} 0, 512;");
    let fault = bench(&body, 4096).launch(1, 32).expect_err("a deadlock");
    assert_eq!(fault.kind, ReportKind::Deadlock);
}

#[test]
fn misuse_of_allocations_is_reported() {
    let relinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;";
    for (body, part) in [
        (format!("{ALLOCATE} 32;"), "the block ends"),
        (format!("{DEALLOCATE} 0, 32;"), "no allocation"),
        (
            format!("{ALLOCATE} 64; {DEALLOCATE} 0, 32;"),
            "no allocation",
        ),
        (
            format!("{ALLOCATE} 64; {DEALLOCATE} 32, 64;"),
            "no allocation",
        ),
        (
            format!("{ALLOCATE} 64; {DEALLOCATE} 0, 64; {DEALLOCATE} 0, 64;"),
            "no allocation",
        ),
        (format!("{relinquish} {ALLOCATE} 32;"), "relinquished"),
        (
            format!("mov.u32 %r5, 48; {ALLOCATE} %r5;"),
            "power of two from 32",
        ),
        (
            format!("mov.u32 %r5, 1024; {ALLOCATE} %r5;"),
            "power of two from 32",
        ),
    ] {
        let fault = bench(&body, 4096)
            .launch(1, 32)
            .expect_err("the misuse is reported");
        assert!(reason(&fault).contains(part), "{body}: {fault}");
    }
}

/// The end of a block is reported at the allocation.
#[test]
fn leak_names_the_allocation() {
    let body = format!(
        "\n\n{ALLOCATE} 32;\n\n{relinquish}",
        relinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    );
    let fault = bench(&body, 4096).launch(1, 64).expect_err("a leak");
    let second = bench(&format!("\n{body}"), 4096)
        .launch(1, 64)
        .expect_err("a leak");
    assert_eq!(fault.location.line + 1, second.location.line);
}

/// Returns vector operand text with registers from `%r16` on.
fn registers(count: u32) -> String {
    let names: Vec<String> = (16..16 + count)
        .map(|number| format!("%r{number}"))
        .collect();
    format!("{{{}}}", names.join(", "))
}

/// Returns instructions that store the registers from `%r16` on, `count` for each thread, to device
/// memory.
fn save(count: u32) -> String {
    let mut text = format!("mul.lo.u32 %r10, %t, {};\n", 4 * count);
    text += "cvt.u64.u32 %d10, %r10; add.u64 %d10, %d10, %p;\n";
    for index in 0..count {
        text += &format!("st.global.b32 [%d10+{}], %r{};\n", 4 * index, 16 + index);
    }
    text
}

/// Writes `lane * 65536 + column` to the first columns of each lane.
fn fill(columns: u32) -> String {
    let mut text = String::from("shl.b32 %r11, %t, 16;\n");
    for column in 0..columns {
        text += &format!(
            "add.u32 %r12, %r11, {column};
             tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3+{column}], {{%r12}};\n"
        );
    }
    text + "tcgen05.wait::st.sync.aligned;\n"
}

/// A layout of CuTe: extents with their strides, the first fastest.
struct Layout(&'static [(u32, u32)]);

impl Layout {
    /// Returns the offset of an element.
    fn offset(&self, mut index: u32) -> u32 {
        let mut offset = 0;
        for (extent, stride) in self.0 {
            offset += index % extent * stride;
            index /= extent;
        }
        offset
    }
}

/// The position in a row-major block of lanes of a thread and of one of its registers, as CuTe's
/// copy traits give them in words.
struct Traits {
    shape: &'static str,
    repetitions: u32,
    /// The number of words of a lane.
    words: u32,
    registers: u32,
    threads: Layout,
    values: Layout,
}

const TRAITS: [Traits; 8] = [
    Traits {
        shape: "32x32b",
        repetitions: 2,
        words: 2,
        registers: 2,
        threads: Layout(&[(32, 2)]),
        values: Layout(&[(2, 1)]),
    },
    Traits {
        shape: "32x32b",
        repetitions: 8,
        words: 8,
        registers: 8,
        threads: Layout(&[(32, 8)]),
        values: Layout(&[(8, 1)]),
    },
    Traits {
        shape: "16x64b",
        repetitions: 1,
        words: 2,
        registers: 1,
        threads: Layout(&[(2, 16), (2, 1), (8, 2)]),
        values: Layout(&[(1, 1)]),
    },
    Traits {
        shape: "16x64b",
        repetitions: 2,
        words: 4,
        registers: 2,
        threads: Layout(&[(2, 32), (2, 1), (8, 4)]),
        values: Layout(&[(2, 2)]),
    },
    Traits {
        shape: "16x128b",
        repetitions: 1,
        words: 4,
        registers: 2,
        threads: Layout(&[(4, 1), (8, 4)]),
        values: Layout(&[(2, 32)]),
    },
    Traits {
        shape: "16x128b",
        repetitions: 2,
        words: 8,
        registers: 4,
        threads: Layout(&[(4, 1), (8, 8)]),
        values: Layout(&[(2, 64), (2, 4)]),
    },
    Traits {
        shape: "16x256b",
        repetitions: 1,
        words: 8,
        registers: 4,
        threads: Layout(&[(4, 2), (8, 8)]),
        values: Layout(&[(2, 1), (2, 64)]),
    },
    Traits {
        shape: "16x256b",
        repetitions: 2,
        words: 16,
        registers: 8,
        threads: Layout(&[(4, 2), (8, 16)]),
        values: Layout(&[(2, 1), (2, 128), (2, 8)]),
    },
];

/// Loads distribute the lanes as CuTe's copy traits describe.
#[test]
fn loads_have_the_published_layouts() -> TestResult {
    for traits in &TRAITS {
        let Traits {
            shape,
            repetitions,
            words,
            registers: count,
            threads,
            values,
        } = traits;
        for first in [0, 16] {
            if *shape == "32x32b" && first != 0 {
                continue;
            }
            let body = format!(
                "{PREPARE}{}
                 tcgen05.ld.sync.aligned.{shape}.x{repetitions}.b32 {}, [%r3+{}];
                 tcgen05.wait::ld.sync.aligned;
                 {}{END}",
                fill(24),
                registers(*count),
                (first << 16) + 4,
                save(*count),
            );
            let bench = bench(&body, 16384);
            bench.launch(1, 128)?;
            let results = bench.memory.read::<u32>(0, 128 * *count as usize);
            for thread in 0..128 {
                for register in 0..*count {
                    let position = threads.offset(thread % 32) + values.offset(register);
                    let lane = thread / 32 * 32 + first + position / words;
                    let expected = lane << 16 | (4 + position % words);
                    let result = results[(thread * count + register) as usize];
                    assert_eq!(
                        result, expected,
                        "{shape}.x{repetitions}, lane {first}, thread {thread}, register {register}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Stores are the inverse of loads: what each shape stores, it loads again, also next to other
/// columns.
#[test]
fn stores_are_inverse_to_loads() -> TestResult {
    for traits in &TRAITS {
        let Traits {
            shape,
            repetitions,
            words,
            registers: count,
            threads,
            values,
        } = traits;
        let mut set = String::new();
        for register in 0..*count {
            set += &format!(
                "mad.lo.u32 %r{}, %t, {count}, {};\n",
                16 + register,
                register + 1000
            );
        }
        let body = format!(
            "{PREPARE}{}{set}
             tcgen05.st.sync.aligned.{shape}.x{repetitions}.b32 [%r3], {};
             tcgen05.wait::st.sync.aligned;
             tcgen05.ld.sync.aligned.32x32b.x16.b32 {}, [%r3];
             tcgen05.wait::ld.sync.aligned;
             {}{END}",
            fill(16),
            registers(*count),
            registers(16),
            save(16),
        );
        let bench = bench(&body, 16384);
        bench.launch(1, 128)?;
        let mut expected: Vec<u32> = (0..128 * 16)
            .map(|index| ((index / 16) << 16) | (index % 16))
            .collect();
        for thread in 0..128 {
            for register in 0..*count {
                let position = threads.offset(thread % 32) + values.offset(register);
                let lane = thread / 32 * 32 + position / words;
                expected[(lane * 16 + position % words) as usize] =
                    thread * count + register + 1000;
            }
        }
        let results = bench.memory.read::<u32>(0, 128 * 16);
        assert_eq!(results, expected, "{shape}.x{repetitions}");
    }
    Ok(())
}

/// The halves of a warp access columns at a distance, in the same 16 lanes.
#[test]
fn half_warps_access_distant_columns() -> TestResult {
    let body = format!(
        "{PREPARE}{}
         tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {{%r16, %r17}}, [%r3+1], 7;
         tcgen05.wait::ld.sync.aligned;
         add.u32 %r16, %r16, 100; add.u32 %r17, %r17, 100;
         tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r3+1], 3, {{%r16, %r17}};
         tcgen05.wait::st.sync.aligned;
         tcgen05.ld.sync.aligned.32x32b.x16.b32 {}, [%r3];
         tcgen05.wait::ld.sync.aligned;
         {}{END}",
        fill(16),
        registers(16),
        save(16),
    );
    let bench = bench(&body, 16384);
    bench.launch(1, 128)?;
    let results = bench.memory.read::<u32>(0, 128 * 16);
    for lane in 0..128 {
        for column in 0..16 {
            let value = match column {
                1 | 2 if lane % 32 < 16 => column + 100,
                // The upper half loaded the columns from 8 on, and stored them from 4 on.
                4 | 5 if lane % 32 < 16 => column + 4 + 100,
                _ => column,
            };
            let result = results[(lane * 16 + column) as usize];
            assert_eq!(result, lane << 16 | value, "lane {lane}, column {column}");
        }
    }
    Ok(())
}

/// Packing joins the lower halves of neighboring cells, and unpacking separates them.
#[test]
fn halves_are_packed_and_unpacked() -> TestResult {
    let body = format!(
        "{PREPARE}{}
         tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {{%r16, %r17}}, [%r3+2];
         tcgen05.wait::ld.sync.aligned;
         tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r3+9], {{%r16, %r17}};
         tcgen05.wait::st.sync.aligned;
         tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r18, %r19, %r20, %r21}}, [%r3+9];
         tcgen05.ld.sync.aligned.16x64b.x1.pack::16b.b32 {{%r22}}, [%r3];
         tcgen05.wait::ld.sync.aligned;
         {}{END}",
        fill(16),
        save(7),
    );
    let bench = bench(&body, 16384);
    bench.launch(1, 128)?;
    let results = bench.memory.read::<u32>(0, 128 * 7);
    for (thread, registers) in results.as_chunks::<7>().0.iter().enumerate() {
        let column = thread as u32 / 2 % 2 * 2;
        let packed = column | (column + 1) << 16;
        let expected = [2 | 3 << 16, 4 | 5 << 16, 2, 3, 4, 5, packed];
        assert_eq!(*registers, expected, "thread {thread}");
    }
    Ok(())
}

#[test]
fn warps_access_only_their_lanes() {
    for address in ["%r3+2097152", "%r3+1048576"] {
        let body = format!(
            "{PREPARE}
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r16}}, [{address}];{END}"
        );
        let fault = bench(&body, 4096).launch(1, 64).expect_err("other lanes");
        assert!(reason(&fault).contains("only 32 lanes"), "{fault}");
    }
}

#[test]
fn unallocated_columns_cannot_be_accessed() {
    let body = format!(
        "{ALLOCATE} 64;
         mov.u32 %r16, 1;
         tcgen05.st.sync.aligned.32x32b.x1.b32 [%r16+62], {{%r16}};
         tcgen05.st.sync.aligned.32x32b.x1.b32 [%r16+63], {{%r16}};
         {DEALLOCATE} 0, 64;"
    );
    let fault = bench(&body, 4096).launch(1, 32).expect_err("out of bounds");
    assert_eq!(fault.kind, ReportKind::IllegalAddress);
    assert_eq!(
        fault.access.map(|access| (access.address, access.write)),
        Some((64, true))
    );
}

/// An uninitialized cell is reported where its value is used, with the line of the load. An
/// undefined register that is stored stays undefined.
#[test]
fn undefined_bytes_pass_through_tensor_memory() -> TestResult {
    let unwritten = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r16}, [%r3];";
    let through = "
        ld.shared.b32 %r17, [%r2+4];
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r17};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r16}, [%r3];";
    let written = "
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%t};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r16}, [%r3];";
    let discarded = "
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r16}, [%r3];
        tcgen05.wait::ld.sync.aligned;
        mov.u32 %r16, 0;";
    for (body, is_reported) in [
        (unwritten, true),
        (through, true),
        (written, false),
        (discarded, false),
    ] {
        let body = format!(
            ".shared .align 4 .b32 other[2];
             {PREPARE}{body}
             tcgen05.wait::ld.sync.aligned;
             st.global.b32 [%at4], %r16;{END}"
        );
        let bench = bench(&body, 4096).with_uninitialized_checks(0..4096);
        let kind = bench.launch(1, 128).map_err(|fault| fault.kind).err();
        let expected = is_reported.then_some(ReportKind::Uninitialized);
        assert_eq!(kind, expected, "{body}");
    }
    Ok(())
}

/// Unpacked halves leave the upper halves of their cells undefined.
#[test]
fn unpacked_cells_are_half_defined() -> TestResult {
    for (load, is_reported) in [("x1.b32 {%r16}", true), ("x1.pack::16b.b32 {%r16}", false)] {
        let body = format!(
            "{PREPARE}
             tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r3], {{%t}};
             tcgen05.wait::st.sync.aligned;
             tcgen05.ld.sync.aligned.32x32b.{load}, [%r3];
             tcgen05.wait::ld.sync.aligned;
             st.global.b32 [%at4], %r16;{END}"
        );
        let bench = bench(&body, 4096).with_uninitialized_checks(0..4096);
        let kind = bench.launch(1, 128).map_err(|fault| fault.kind).err();
        let expected = is_reported.then_some(ReportKind::Uninitialized);
        assert_eq!(kind, expected, "{load}");
    }
    Ok(())
}

/// The column that a product writes is read before, or after, the wait for its commit.
#[test]
fn load_before_completion_is_a_race() -> TestResult {
    let product = "
    .shared .align 8 .b64 barrier;
    .shared .align 1024 .b8 image[4096];
    setp.eq.u32 %p2, %t, 0;
    @%p2 mbarrier.init.shared::cta.b64 [barrier], 1;
    bar.sync 0;
    mov.u32 %r20, image; shr.u32 %r20, %r20, 4; cvt.u64.u32 %d20, %r20;
    or.b64 %d20, %d20, 0x4000400800080000;
    // M 128, N 16, f16 in f32.
    mov.u32 %r21, 0x08040010;
    @%p2 tcgen05.mma.cta_group::1.kind::f16 [%r3], %d20, %d20, %r21, 0;
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [barrier];
";
    let wait = "
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [barrier], 0;
    @!%p3 bra WAIT;
    tcgen05.fence::after_thread_sync;
";
    let other_column = "add.u32 %r3, %r3, 16;";
    for (between, is_reported) in [(wait, false), ("bar.sync 0;", true), (other_column, false)] {
        let body = format!(
            "{PREPARE}{product}{between}
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r16}}, [%r3];
             tcgen05.wait::ld.sync.aligned;{END}"
        );
        let bench = bench(&body, 4096).with_checks(Checking::nothing().with_races(true), 0..4096);
        let kind = bench.launch(1, 128).map_err(|fault| fault.kind).err();
        let expected = is_reported.then_some(ReportKind::Race {
            block: [0; 3],
            thread: [0; 3],
            wrote: true,
            same_value: false,
        });
        assert_eq!(kind, expected, "{between}");
    }
    Ok(())
}

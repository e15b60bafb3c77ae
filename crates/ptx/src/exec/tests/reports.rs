//! Source lines, variables and calls in reports.

use std::fs;

use super::{BASE, Bench, TestResult};
use crate::exec::{Checking, Report};

/// A kernel that writes a tile, and reads what other threads wrote. `BARRIER` is between the two.
/// The function that reads is inlined.
const TILE: &str = ".file 1 \"FILE\"
.visible .entry _Z4tilePf(.param .u64 p)
{
    .reg .pred %q;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .shared .align 4 .f32 tile[4][16];
    .loc 1 2 5
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 4, %r2;
    .loc 1 3 9
    st.shared.u32 [%r3], %r1;
    BARRIER
    .loc 1 5 3
    xor.b32 %r4, %r1, 32;
    mad.lo.u32 %r3, %r4, 4, %r2;
    .loc 1 1 40, function_name $L__info_string0, inlined_at 1 5 3
    ld.shared.u32 %r5, [%r3];
    .loc 1 6 0
    ld.param.u64 %d1, [p];
    mad.wide.u32 %d1, %r1, 4, %d1;
    st.global.u32 [%d1], %r5;
    ret;
}
.section .debug_str
{
$L__info_string0:
.b8 95,90,52,114,101,97,100,80,102
.b8 0
}";

/// The source of [`TILE`].
const SOURCE: &str = "__device__ float read(float *p) { return *p; }
__global__ void tile(float *out) {
    tile[0][threadIdx.x] = threadIdx.x;
    // A barrier is missing.
    float x = read(&tile[0][threadIdx.x ^ 32]);
    out[threadIdx.x] = x;
}
";

fn checked(text: &str) -> Bench {
    let checking = Checking::nothing().with_races(true);
    Bench::new(text, 4096).with_checks(checking, 0..4096)
}

/// Runs two warps of a kernel that fails.
fn report(text: &str) -> TestResult<Box<Report>> {
    let outcome = checked(text).launch(1, 64);
    Ok(outcome.err().ok_or("the kernel succeeded")?)
}

/// A race names both accesses with their lines, the inlined function, the variable and the names in
/// C++.
#[test]
fn race_has_both_source_lines() -> TestResult {
    let folder = std::env::temp_dir().join(format!("curium-reports-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let path = folder.join("tile.cu");
    fs::write(&path, SOURCE)?;
    let file = path.display().to_string();
    let race = report(&TILE.replace("FILE", &file).replace("BARRIER", ""))?;
    let text = format!("{race:#}").replace(&file, "tile.cu");
    fs::remove_dir_all(&folder)?;
    assert_eq!(
        text,
        "kernel `tile(float*)`: race with block (0, 0, 0), thread (0, 0, 0): 4-byte write at 0x80 in `tile[2][0]`, \
         block (0, 0, 0), thread (32, 0, 0), tile.cu:3:9, PTX line 16
        3 | tile[0][threadIdx.x] = threadIdx.x;
  the other thread read at tile.cu:1:40 in `read(float*)`, PTX line 22
        1 | __device__ float read(float *p) { return *p; }
    inlined at tile.cu:5:3
        5 | float x = read(&tile[0][threadIdx.x ^ 32]);
  hint: make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp"
    );
    let correct = TILE.replace("BARRIER", "bar.sync 0;");
    checked(&correct).launch(1, 64)?;
    Ok(())
}

/// Without the source file, the text is that of the instruction. The short form has one line.
#[test]
fn report_without_source_has_the_instruction() -> TestResult {
    let race = report(&TILE.replace("BARRIER", ""))?;
    let first = "kernel `tile(float*)`: race with block (0, 0, 0), thread (0, 0, 0): 4-byte write at 0x80 in `tile[2][0]`, \
         block (0, 0, 0), thread (32, 0, 0), FILE:3:9, PTX line 16";
    assert_eq!(
        race.to_string(),
        format!("{first}; the other thread read at FILE:1:40 in `read(float*)`, PTX line 22")
    );
    assert_eq!(
        format!("{race:#}"),
        format!(
            "{first}
    PTX 16 | st.shared.u32 [%r3], %r1;
  the other thread read at FILE:1:40 in `read(float*)`, PTX line 22
    inlined at FILE:5:3
    PTX 22 | ld.shared.u32 %r5, [%r3];
  hint: make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp"
        )
    );
    Ok(())
}

/// A fault in a function that was not inlined names the calls.
#[test]
fn calls_are_reported() -> TestResult {
    let text = ".file 1 \"calls.cu\"
.func store(.param .u64 p)
{
    .reg .b64 %d1;
    .loc 1 2 3
    ld.param.u64 %d1, [p];
    st.global.u32 [%d1+4096], 1;
    ret;
}
.visible .entry main(.param .u64 p)
{
    .reg .b64 %d1;
    .loc 1 9 3
    ld.param.u64 %d1, [p];
    { .param .b64 a; st.param.b64 [a], %d1;
    .loc 1 10 3
    call.uni store,
    (
    a
    ); }
    ret;
}";
    let fault = Bench::new(text, 4096).launch(1, 1).err();
    let text = format!("{:#}", fault.ok_or("no fault")?);
    let address = format!("{:#x}", BASE + 4096);
    assert_eq!(
        text.replace(&address, "P"),
        "kernel `main`: illegal address: 4-byte write at P, block (0, 0, 0), thread (0, 0, 0), calls.cu:2:3, PTX line 10 in function `store`
    PTX 10 | st.global.u32 [%d1+4096], 1;
  called from calls.cu:10:3, PTX line 20
    PTX 20 | call.uni store, ( a ); }"
    );
    Ok(())
}

/// An address in the shared memory of another block is named as such.
#[test]
fn cluster_address_names_the_block() -> TestResult {
    for (offset, rank, expected) in [
        (
            64,
            1,
            ", just past the end of the 64 bytes of shared memory of block 1 of the cluster,",
        ),
        (0, 5, ", in block 5 of a cluster of 2 blocks,"),
    ] {
        let body = format!(
            ".shared .align 4 .b8 box[64]; mov.u32 %r2, box; mapa.shared::cluster.u32 %r3, %r2, {rank};
            st.shared::cluster.u32 [%r3+{offset}], 1;"
        );
        let mut bench = Bench::body(&body, 4096);
        bench.cluster = [2, 1, 1];
        let outcome = bench.launch_with([2, 1, 1], [1, 1, 1], &BASE.to_le_bytes());
        let text = outcome.err().ok_or("no fault")?.to_string();
        assert!(text.contains(expected), "{text}");
    }
    Ok(())
}

/// A variable of the module is named with its element.
#[test]
fn module_variable_is_named() -> TestResult {
    let text = ".global .align 4 .u32 counters[4][2];
.visible .entry main(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    mov.u32 %r1, %tid.x;
    mov.u64 %d1, counters;
    st.global.u32 [%d1+20], %r1;
    ret;
}";
    let report = checked(text).launch(1, 2).err().ok_or("no race reported")?;
    let access = format!("4-byte write at {:#x} in `counters[2][1]`", BASE + 4116);
    assert!(report.to_string().contains(&access), "{report}");
    Ok(())
}

/// The first line names the program's own line, also if a function of a library fails that was
/// inlined or called.
#[test]
fn library_lines_follow_those_of_the_program() -> TestResult {
    let folder = std::env::temp_dir().join(format!("curium-library-{}", std::process::id()));
    fs::create_dir_all(folder.join("cub"))?;
    let lines = "line 1\nline 2\nline 3\n";
    fs::write(folder.join("cub/block.cuh"), lines)?;
    fs::write(folder.join("user.cu"), lines)?;
    let folder = folder.display().to_string();
    let text = format!(
        ".file 1 \"{folder}/cub/block.cuh\"
.file 2 \"{folder}/user.cu\"
.func store(.param .u64 p)
{{
    .reg .b64 %d1;
    .loc 1 1 3
    ld.param.u64 %d1, [p];
    st.global.u32 [%d1+4096], 1;
    ret;
}}
.visible .entry main(.param .u64 p)
{{
    .reg .b64 %d1;
    ld.param.u64 %d1, [p];
    .loc 2 3 5
    CODE
    ret;
}}"
    );
    let inlined = ".loc 1 2 7, function_name $none, inlined_at 2 3 5
    st.global.u32 [%d1+4096], 1;";
    let called = "{ .param .b64 a; st.param.b64 [a], %d1; call.uni store, (a); }";
    for (code, expected) in [
        (
            inlined,
            "user.cu:3:5, PTX line 20
    at cub/block.cuh:2:7
        2 | line 2
    inlined at user.cu:3:5
        3 | line 3",
        ),
        (
            called,
            "user.cu:3:5, PTX line 11 in function `store`
    at cub/block.cuh:1:3
        1 | line 1
  called from user.cu:3:5, PTX line 19
        3 | line 3",
        ),
    ] {
        let fault = Bench::new(&text.replace("CODE", code), 4096).launch(1, 1);
        let report = format!("{:#}", fault.err().ok_or("no fault")?);
        let report = report.replace(&format!("{folder}/"), "");
        let (_, position) = report.split_once("thread (0, 0, 0), ").ok_or("no thread")?;
        assert_eq!(position, expected);
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The lanes that fail, and those that do not, are described by their addresses.
#[test]
fn accesses_of_all_lanes_are_described() -> TestResult {
    for (code, expected) in [
        (
            "mad.wide.u32 %d1, %t, 136, %p; st.global.u32 [%d1], 1;",
            "lane 31 of the warp fails at P+4216; lanes 0-30 succeed at P+0 to P+4080 (stride 136)",
        ),
        (
            "shr.u32 %r2, %t, 1; mad.wide.u32 %d1, %r2, 2, %p; ld.global.u32 %r3, [%d1];",
            "lanes 2-3,6-7,10-11,14-15,18-19,22-23,26-27,30-31 of the warp fail at P+2 to P+30; \
             lanes 0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29 succeed at P+0 to P+28",
        ),
        (
            "atom.global.add.u32 %r3, [%p+2], 1;",
            "lanes 0-31 of the warp fail at the same address",
        ),
    ] {
        let fault = Bench::body(code, 4096).launch(1, 32).err();
        let fault = fault.ok_or("no fault")?;
        let [fact] = &fault.facts[..] else {
            return Err(format!("one fact: {fault:#}").into());
        };
        let mut text = fact.to_string();
        for offset in (0..5000).rev() {
            text = text.replace(&format!("{:#x}", BASE + offset), &format!("P+{offset}"));
        }
        assert_eq!(text, expected);
    }
    let row = Bench::body("st.global.u32 [%at4+4096], 1;", 4096).launch(1, 32);
    assert_eq!(row.err().ok_or("no fault")?.facts, []);
    Ok(())
}

/// A read of uninitialized shared memory names the unwritten elements, the stores that wrote
/// others, and the threads that ended.
#[test]
fn uninitialized_elements_are_named_with_the_writers() -> TestResult {
    let text = ".visible .entry main(.param .u64 p)
{
    .reg .pred %q;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .shared .align 4 .u32 tile[64];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %q, %r1, 40;
    @%q ret;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r4, %r1, 32;
    mad.lo.u32 %r3, %r4, 4, %r2;
    ld.shared.u32 %r5, [%r3];
    ld.param.u64 %d1, [p];
    mad.wide.u32 %d1, %r1, 4, %d1;
    st.global.u32 [%d1], %r5;
    ret;
}";
    let bench = Bench::new(text, 4096).with_uninitialized_checks(0..4096);
    let fault = bench.launch(1, 64).err().ok_or("no fault")?;
    let facts: Vec<String> = fault.facts.iter().map(ToString::to_string).collect();
    assert_eq!(
        facts,
        [
            "`tile[40]` to `tile[63]` are not written",
            "other bytes of it were written by threads (0, 0, 0) to (39, 0, 0) at PTX line 15\n    \
             PTX 15 | st.shared.u32 [%r3], %r1;",
            "threads (40, 0, 0) to (63, 0, 0) have ended",
        ]
    );
    let written_later = text.replace("st.shared.u32 [%r3], %r1;", "ld.shared.u32 %r6, [%r3];");
    let written_later = written_later.replace(
        "bar.sync 0;",
        "st.shared.u32 [%r3], %r1; st.global.u32 [%d0], %r6;",
    );
    let bench = Bench::new(&written_later, 4096).with_uninitialized_checks(0..4096);
    let fault = bench.launch(1, 1).err().ok_or("no fault")?;
    let first = fault.facts.first().map(ToString::to_string);
    assert_eq!(
        first.as_deref(),
        Some("the bytes were written after the load")
    );
    Ok(())
}

/// A read of uninitialized device memory names the unwritten bytes of the allocation.
#[test]
fn uninitialized_bytes_of_an_allocation_are_named() -> TestResult {
    for (written, expected) in [
        (0..0, "no byte of the allocation is written"),
        (
            0..64,
            "bytes 64 to 4095 of the 4096 of the allocation are not written",
        ),
    ] {
        let body = "ld.global.u32 %r2, [%at4+64]; st.global.u32 [%at4], %r2;";
        let bench = Bench::body(body, 4096).with_uninitialized_checks(written);
        let fault = bench.launch(1, 16).err().ok_or("no fault")?;
        let facts: Vec<String> = fault.facts.iter().map(ToString::to_string).collect();
        assert_eq!(facts, [expected]);
    }
    Ok(())
}

/// A value that was shuffled from a lane without a thread, or whose thread has ended.
#[test]
fn missing_source_of_a_shuffle_is_explained() -> TestResult {
    let shuffle = "shfl.sync.idx.b32 %r2, %t, 20, 31, -1; st.global.u32 [%at4], %r2;";
    for (body, threads, expected) in [
        (
            shuffle.to_owned(),
            16,
            "lane 20 has no thread: the block has 16",
        ),
        (
            format!("setp.ge.u32 %p2, %t, 18; @%p2 ret; {shuffle}"),
            64,
            "thread (20, 0, 0) has ended",
        ),
    ] {
        let bench = Bench::body(&body, 4096).with_uninitialized_checks(0..0);
        let fault = bench.launch(1, threads).err().ok_or("no fault")?;
        let facts: Vec<String> = fault.facts.iter().map(ToString::to_string).collect();
        assert_eq!(facts, [expected]);
    }
    Ok(())
}

/// A launch that exceeds its budget names the conditions of the innermost loop, with the values in
/// two iterations.
#[test]
fn conditions_of_an_endless_loop_have_values() -> TestResult {
    let counting = "mov.u32 %r2, 0;
L:
add.s32 %r2, %r2, -3;
setp.eq.s32 %p1, %r2, 1;
@%p1 bra E;
bra L;
E:";
    let two = "mov.u32 %r2, 0;
ld.global.u32 %r3, [%p];
L:
ld.volatile.global.u32 %r4, [%p+4];
add.s32 %r2, %r2, 1;
setp.eq.u32 %p1, %r4, 7;
setp.lt.u32 %p2, %r2, %r3;
or.pred %p3, %p1, %p2;
@!%p3 bra L;";
    let invariant = "ld.global.u32 %r3, [%p];
setp.eq.u32 %p1, %r3, 0;
L:
add.s32 %r2, %r2, 1;
@%p1 bra L;";
    let called = "mov.f32 %f1, 0f3F800000;
L:
mul.f32 %f1, %f1, 0f3F800000;
call.uni nothing;
setp.gt.f32 %p1, %f1, 0f00000000;
@%p1 bra L;";
    let endless = "L:
add.s32 %r2, %r2, 1;
bra L;";
    for (body, expected) in [
        (
            counting,
            &["`setp.eq.s32 %p1, %r2, 1` with %r2 = N, N+3 one iteration before"][..],
        ),
        (
            two,
            &[
                "`setp.lt.u32 %p2, %r2, %r3` with %r2 = N, N-1 one iteration before, %r3 = 0, as one iteration before",
                "`setp.eq.u32 %p1, %r4, 7` with %r4 = 0, as one iteration before",
            ],
        ),
        (
            invariant,
            &["`setp.eq.u32 %p1, %r3, 0`, which is computed before the loop"],
        ),
        (
            called,
            &["`setp.gt.f32 %p1, %f1, 0f00000000` with %f1 = 1.0, as one iteration before"],
        ),
        (endless, &["no instruction leaves the loop"]),
    ] {
        let text = format!(".func nothing() {{ ret; }}\n{}", super::kernel(body));
        let mut bench = Bench::new(&text, 4096);
        bench.limits.instructions = Some(10_000);
        let fault = bench.launch(1, 32).err().ok_or("no fault")?;
        let facts: Vec<String> = fault.facts.iter().map(ToString::to_string).collect();
        let facts: Vec<String> = facts.iter().map(|fact| condition(fact)).collect();
        assert_eq!(facts, expected, "{fault:#}");
    }
    Ok(())
}

/// Returns a condition without its position, and with its first number relative to the second.
fn condition(fact: &str) -> String {
    let condition = match fact.split_once(": ") {
        Some((_, condition)) => condition,
        None => fact,
    };
    let numbers = condition
        .split_once(" = ")
        .and_then(|(_, numbers)| numbers.split_once(" one iteration before"))
        .and_then(|(numbers, _)| numbers.split_once(", "))
        .and_then(|(value, previous)| {
            Some((value.parse::<i64>().ok()?, previous.parse::<i64>().ok()?))
        });
    match numbers {
        Some((value, previous)) => condition.replacen(
            &format!("{value}, {previous}"),
            &format!("N, N{:+}", previous - value),
            1,
        ),
        None => condition.to_owned(),
    }
}

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

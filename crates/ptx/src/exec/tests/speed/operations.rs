//! The cost of single operations and of a tiled product, each next to its yardstick in the same
//! run.

use std::process::Command;
use std::sync::Arc;
use std::{env, fs, iter, process};

use super::super::kernels::Run;
use super::super::{BASE, Bench, kernels};
use super::processor_time;
use crate::exec::tests::TestResult;
use crate::exec::{AddressMode, Channel, Checking, Element, Image, Surface, Texture};

/// The number of iterations of a kernel's loop.
const ITERATIONS: u64 = 256;
/// The number of threads of a launch: 16 warps in two blocks.
const THREADS: u64 = 512;
/// The width and height of the image for textures and surfaces.
const EXTENT: u32 = 64;

/// A measured operation.
struct Work {
    name: &'static str,
    /// The code before the loop.
    before: String,
    /// The body of the loop.
    body: String,
    /// The operations of a thread in one iteration.
    operations: f64,
    is_linear: bool,
}

/// Repeats one instruction sixteen times in a loop, after `before`.
fn repeated(name: &'static str, before: &str, instruction: &str) -> Work {
    let body = [instruction; 16].join("\n");
    Work {
        name,
        before: before.into(),
        body,
        operations: 16.0,
        is_linear: false,
    }
}

/// Repeats texture or surface reads, consecutive ones with different coordinates.
fn sampled(name: &'static str, instruction: &str, is_linear: bool) -> Work {
    let before = "mov.u64 %d1, 0; and.b32 %r2, %t, 63; shr.u32 %r3, %t, 5;
        cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3; add.f32 %f1, %f1, 0f3EA00000; add.f32 %f2, %f2, 0f3F200000;
        shl.b32 %r2, %r2, 2;";
    let instruction = format!("{instruction}\nadd.f32 %f1, %f1, 0f3DCCCCCD;");
    Work {
        is_linear,
        ..repeated(name, before, &instruction)
    }
}

/// Repeats a matrix product eight times in a loop. An operation is a multiply-add.
fn product(name: &'static str, shape: [u32; 3], registers: [usize; 3], text: &str) -> Work {
    let list = |first: usize, count: usize| {
        let names: Vec<String> = (first..first + count)
            .map(|number| format!("%r{number}"))
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let [of_a, of_b, of_c] = registers;
    let a = list(10, of_a);
    let b = list(20, of_b);
    let c = list(30, of_c);
    let d = list(40, of_c);
    // f16 and f32 between one and two.
    let factors = (10..10 + of_a).chain(20..20 + of_b);
    let factors =
        factors.map(|number| format!("mad.lo.u32 %r{number}, %r2, {number}, 0x3f803d00;\n"));
    let before = iter::once("and.b32 %r2, %t, 7;\n".to_owned())
        .chain(factors)
        .collect();
    let instruction = format!("{text} {d}, {a}, {b}, {c};");
    let operations = 8.0 * f64::from(shape.iter().product::<u32>()) / 32.0;
    Work {
        name,
        before,
        body: [instruction.as_str(); 8].join("\n"),
        operations,
        is_linear: false,
    }
}

fn works() -> Vec<Work> {
    let halves =
        "mov.b16 %h1, 0x3c01; mov.b16 %h2, 0x1234; mov.b16 %h3, 0x2345; mov.b16 %h4, 0x2345;";
    let pairs = "mad.lo.u32 %r2, %t, 77, 0x3c013c11; mov.b32 %r3, 0x12343456; mov.b32 %r4, 0x2345;";
    let doubles =
        "cvt.rn.f64.u32 %e1, %t; mov.f64 %e2, 0d3FE1234500000000; mov.f64 %e3, 0d3FE1234500000000;";
    let shared = ".shared .align 8 .b8 s[4096]; mov.u32 %r2, s; and.b32 %r3, %t, 255; mad.lo.u32 %r3, %r3, 4, %r2;";
    vec![
        repeated(
            "f32 add",
            "mov.f32 %f1, 0f3F800001; mov.f32 %f2, 0f12345678;",
            "add.f32 %f1, %f1, %f2;",
        ),
        repeated("f16 add", halves, "add.f16 %h1, %h1, %h2;"),
        repeated("f16 fma", halves, "fma.rn.f16 %h4, %h1, %h2, %h4;"),
        repeated("f16x2 fma", pairs, "fma.rn.f16x2 %r4, %r2, %r3, %r4;"),
        repeated("bf16 mul", halves, "mul.rn.bf16 %h3, %h1, %h2;"),
        repeated("bf16 fma", halves, "fma.rn.bf16 %h4, %h1, %h2, %h4;"),
        repeated("bf16x2 add", pairs, "add.rn.bf16x2 %r4, %r2, %r4;"),
        repeated("bf16x2 fma", pairs, "fma.rn.bf16x2 %r4, %r2, %r3, %r4;"),
        repeated("f64 fma", doubles, "fma.rn.f64 %e3, %e1, %e2, %e3;"),
        repeated(
            "shuffle",
            "mov.u32 %r2, %t;",
            "shfl.sync.bfly.b32 %r2, %r2, 5, 31, -1;",
        ),
        repeated(
            "shared atomic",
            shared,
            "atom.shared.add.u32 %r4, [%r3], 1;",
        ),
        repeated(
            "shared atomic, one place",
            shared,
            "atom.shared.add.u32 %r4, [%r2], 1;",
        ),
        sampled(
            "texture, point",
            "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%d1, {%f1, %f2}];",
            false,
        ),
        sampled(
            "texture, linear",
            "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%d1, {%f1, %f2}];",
            true,
        ),
        sampled(
            "surface read",
            "suld.b.2d.b32.trap %r4, [%d1, {%r2, %r3}];",
            false,
        ),
        product(
            "mma f16",
            [16, 8, 16],
            [4, 2, 4],
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ),
        product(
            "mma f16 to f16",
            [16, 8, 16],
            [4, 2, 2],
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        ),
        product(
            "mma bf16",
            [16, 8, 16],
            [4, 2, 4],
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        ),
        product(
            "mma tf32",
            [16, 8, 8],
            [4, 2, 4],
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        ),
        product(
            "wmma f16",
            [16, 16, 16],
            [8, 8, 8],
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
        ),
    ]
}

/// Returns an image of f32 after the memory of the kernels.
fn texture(is_linear: bool) -> Texture {
    Texture {
        levels: vec![Image {
            base: BASE + 256,
            width: EXTENT,
            height: EXTENT,
            depth: 1,
            pitch: 4 * u64::from(EXTENT),
        }],
        element: Element {
            channel: Channel::F32,
            channels: 1,
        },
        address_modes: [AddressMode::Clamp; 3],
        is_linear,
        is_linear_in_levels: false,
        has_normalized_coordinates: false,
        reads_integers: false,
        is_srgb: false,
        is_buffer: false,
        level_bias: 0.0,
        level_range: [0.0; 2],
        border: [0.0; 4],
        tiles: Vec::new(),
    }
}

impl Work {
    fn bench(&self) -> Bench {
        let Self {
            before,
            body,
            is_linear,
            ..
        } = self;
        let text = format!(
            "{before}\nmov.u32 %r60, {ITERATIONS};\nLOOP:\n{body}\nsub.u32 %r60, %r60, 1; setp.ne.u32 %p1, %r60, 0; @%p1 bra LOOP;"
        );
        let mut bench = Bench::body(&text, 256 + u64::from(EXTENT * EXTENT) * 4);
        let numbers: Vec<u32> = (0..EXTENT * EXTENT)
            .map(|number| (number as f32 * 0.25).to_bits())
            .collect();
        bench.memory.write(256, &numbers);
        let texture = texture(*is_linear);
        let surface = Surface {
            image: texture.levels[0],
            element: texture.element,
        };
        bench.host.textures.push(Arc::new(texture));
        bench.host.surfaces.push(Arc::new(surface));
        bench
    }
}

/// Returns the processor time of a launch in nanoseconds.
fn nanoseconds(launch: impl FnOnce()) -> f64 {
    let begin = processor_time();
    launch();
    (processor_time() - begin).as_secs_f64() * 1e9
}

/// Prints the best cost of each operation. The operations alternate, so other load affects all of
/// them.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn operation_cost() {
    let works = works();
    let benches: Vec<Bench> = works.iter().map(Work::bench).collect();
    let mut best = vec![f64::INFINITY; works.len()];
    for _ in 0..7 {
        for (bench, best) in benches.iter().zip(&mut best) {
            *best = best.min(nanoseconds(|| {
                assert!(bench.launch(2, THREADS as u32 / 2).is_ok(), "no fault");
            }));
        }
    }
    let each =
        |(work, time): (&Work, &f64)| time / (work.operations * (ITERATIONS * THREADS) as f64);
    let times: Vec<f64> = works.iter().zip(&best).map(each).collect();
    for (work, time) in works.iter().zip(&times) {
        eprintln!(
            "{:<25} {time:7.3} ns, {:6.2} times an addition of f32",
            work.name,
            time / times[0]
        );
    }
}

/// Returns the nanoseconds per multiply-add of the same product in C, compiled with `-O2`: the best
/// of several.
fn product_in_c(extent: u32) -> TestResult<f64> {
    let folder = env::temp_dir().join(format!("curium-sim-speed-{}", process::id()));
    fs::create_dir_all(&folder)?;
    let source = folder.join("product.c");
    let program = folder.join("product");
    fs::write(&source, include_str!("product.c"))?;
    let compiler = Command::new("cc")
        .arg("-O2")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status();
    assert!(
        compiler.is_ok_and(|status| status.success()),
        "there is a C compiler"
    );
    let output = Command::new(&program).arg(extent.to_string()).output()?;
    fs::remove_dir_all(&folder)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

/// Prints the cost of a launch that multiplies matrices, next to that of C.
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn product_beside_c(name: &str, make: impl Fn(u32) -> Run) -> TestResult {
    const EXTENT: u32 = 256;
    let run = make(EXTENT);
    let mut simulated = f64::INFINITY;
    let native = product_in_c(EXTENT)?;
    for _ in 0..7 {
        simulated = simulated.min(
            nanoseconds(|| assert!(run.launch().blocks > 0, "it ran")) / f64::from(EXTENT).powi(3),
        );
    }
    let times = simulated / native;
    eprintln!(
        "product of {EXTENT} x {EXTENT}{name}: {simulated:.3} ns for a multiply-add, {times:.1} times C's {native:.3}"
    );
    Ok(())
}

#[test]
#[ignore = "a measurement"]
fn tiled_product_beside_c() -> TestResult {
    product_beside_c("", kernels::matmul)?;
    Ok(())
}

#[test]
#[ignore = "a measurement"]
fn checked_product_beside_c() -> TestResult {
    let all = Checking::nothing()
        .with_races(true)
        .with_uninitialized(true);
    product_beside_c(" with all checks", |extent| {
        kernels::matmul(extent).with_checks(all)
    })?;
    Ok(())
}

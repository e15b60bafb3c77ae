//! Every form that the simulator accepts has a test: valid and invalid spellings are loaded one by
//! one.

use std::collections::BTreeSet;

use curium_driver::{Library, Stream};
use curium_sim::{Config, DeviceModel};
use curium_tests::{TestResult, on_simulator};

use super::matrix::Product;
use super::pattern::expand;
use super::{BlockForm, forms, module};

/// Types, including some that no load, store or atomic supports.
const TYPES: &str =
    "{pred,b8,u8,s8,b16,u16,s16,f16,bf16,b32,u32,s32,f32,f16x2,bf16x2,tf32,b64,u64,s64,f64,b128}";

/// Spellings with their operands: `D` and `S` are registers of the type, and `A` is an address in
/// the spelled state space.
const CANDIDATES: [(&str, &str); 11] = [
    (
        "ld{,.global,.shared,.local,.const,.param,.shared::cta,.shared::cluster}{,.v2,.v4,.v8}.TYPES",
        "D, [A]",
    ),
    (
        "ld{.weak,.relaxed,.acquire,.release,.acq_rel,.sc,.volatile,.mmio,.mmio.relaxed}{,.cta,.gpu,.sys}\
         {,.global,.shared,.local,.const}.{u8,b32,b64,v2.b32}",
        "D, [A]",
    ),
    (
        "ld{,.global,.shared,.const}{.ca,.cg,.cs,.lu,.cv,.wb,.wt,.nc,.ca.nc}.{u8,b32,v2.b32}",
        "D, [A]",
    ),
    (
        "st{,.global,.shared,.local,.const,.param,.shared::cta,.shared::cluster}{,.v2,.v4,.v8}.TYPES",
        "[A], D",
    ),
    (
        "st{.weak,.relaxed,.acquire,.release,.acq_rel,.sc,.volatile,.mmio,.mmio.relaxed}{,.cta,.gpu,.sys}\
         {,.global,.shared,.local}.{u8,b32,b64,v2.b32}",
        "[A], D",
    ),
    (
        "st{,.global,.shared}{.ca,.cg,.cs,.lu,.cv,.wb,.wt,.nc}.{u8,b32,v2.b32}",
        "[A], D",
    ),
    (
        "atom{,.global,.shared,.local,.const}.{and,or,xor,exch,add,min,max,inc,dec}{,.noftz}{,.v2,.v4,.v8}.TYPES",
        "D, [A], S",
    ),
    ("atom{,.global,.shared}.cas.TYPES", "D, [A], S, S"),
    (
        "red{,.global,.shared,.local,.const}.{and,or,xor,exch,add,min,max,inc,dec}{,.noftz}{,.v2,.v4,.v8}.TYPES",
        "[A], S",
    ),
    ("redux.sync.{add,min,max,and,or,xor,inc}.TYPES", "D, S, -1"),
    (
        "{shfl.sync.{up,down,bfly,idx},match.{any,all,uni}.sync}.TYPES",
        "D, S, 1, 31, -1",
    ),
];

/// Returns the operands for a spelling.
fn operands(spelling: &str, template: &str) -> String {
    let words: Vec<&str> = spelling.split('.').collect();
    let kind = words[words.len() - 1];
    let class = match kind.trim_start_matches(|it: char| it.is_alphabetic()) {
        "" => "p",
        "8" | "16" => "h",
        "64" => "l",
        "128" => "q",
        _ => "r",
    };
    let count: usize = words
        .iter()
        .find_map(|word| word.strip_prefix('v')?.parse().ok())
        .unwrap_or(1);
    let registers = |first: usize| {
        // There are four 128-bit registers.
        let names: Vec<String> = (0..count)
            .map(|index| {
                format!(
                    "%{class}{}",
                    if class == "q" {
                        index % 2
                    } else {
                        first + index
                    }
                )
            })
            .collect();
        if count == 1 {
            names.concat()
        } else {
            format!("{{{}}}", names.join(", "))
        }
    };
    let space = match words.iter().find(|word| {
        ["shared", "local", "const", "param"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    }) {
        Some(word) if word.starts_with("shared") => "%shared",
        Some(&"local") => "%local",
        Some(&"const") => "words",
        Some(_) => "table",
        None => "%work",
    };
    // `match` has only two operands.
    let template = if words[0] == "match" {
        "D, S, -1"
    } else {
        template
    };
    let first = if class == "p" { 0 } else { 8 };
    template
        .replace('D', &registers(first))
        .replace('S', &registers(if class == "p" { 0 } else { 16 }))
        .replace('A', space)
}

fn is_accepted(stream: &Stream, spelling: &str, operands: &str) -> bool {
    let code = format!("{spelling} {operands};");
    let form = BlockForm::new(spelling, code, |_, _| [0; 4]).needs(100);
    Library::from_ptx(stream, &module(&[&form])).is_ok()
}

/// Returns the operands of a texture or surface access with the spelled geometry, vector and type.
fn image_operands(spelling: &str) -> String {
    let words: Vec<&str> = spelling.split('.').collect();
    let has = |word: &str| words.contains(&word);
    let tensor = match words.iter().find(|word| GEOMETRIES.contains(word)) {
        Some(&"1d") => "[%l20, {%r16}]",
        Some(&"2d") => "[%l20, {%r16, %r17}]",
        Some(&"a1d") => "[%l20, {%r20, %r16}]",
        Some(&"a2d" | &"acube") => "[%l20, {%r20, %r16, %r17, %r18}]",
        Some(_) => "[%l20, {%r16, %r17, %r18, %r18}]",
        None => "[%l20]",
    };
    if words[0].ends_with('q') {
        return format!("%r8, {tensor}{}", if has("level") { ", %r9" } else { "" });
    }
    let count = words
        .iter()
        .find_map(|word| word.strip_prefix('v')?.parse().ok())
        .unwrap_or(1);
    // The first type is that of the registers.
    let bits = words[2..].iter().find_map(|word| {
        ["8", "16", "64"]
            .into_iter()
            .find(|bits| word.trim_start_matches(char::is_alphabetic) == *bits)
    });
    let class = match bits {
        Some("64") => 'l',
        Some(_) => 'h',
        None => 'r',
    };
    let names: Vec<String> = (0..count)
        .map(|index| format!("%{class}{}", 8 + index))
        .collect();
    let registers = if count == 1 {
        names.concat()
    } else {
        format!("{{{}}}", names.join(", "))
    };
    let steps = match words.iter().find(|word| GEOMETRIES.contains(word)) {
        Some(&"1d" | &"a1d") => "{%r22}",
        Some(&"2d" | &"a2d") => "{%r22, %r22}",
        _ => "{%r22, %r22, %r22, %r22}",
    };
    match words[0] {
        "sust" | "sured" => format!("{tensor}, {registers}"),
        _ if has("level") => format!("{registers}, {tensor}, %r21"),
        _ if has("grad") => format!("{registers}, {tensor}, {steps}, {steps}"),
        _ => format!("{registers}, {tensor}"),
    }
}

const GEOMETRIES: [&str; 7] = ["1d", "2d", "3d", "a1d", "a2d", "cube", "acube"];

/// Spellings of texture and surface accesses; `GEOMETRY` is replaced by each geometry.
const IMAGES: [&str; 8] = [
    "tex{,.base,.level,.grad}.GEOMETRY{,.v2,.v4}.{u32,s32,f32,f16,f16x2,b32,u64}.{s32,f32,u32}",
    "tld4.{r,g,b,a}.GEOMETRY{,.v4}.{u32,s32,f32,f16}.{s32,f32}",
    "txq{,.level}.{width,height,depth,array_size,num_mipmap_levels,normalized_coords,channel_data_type,channel_order,\
     num_samples,filter_mode,addr_mode_0}.b32",
    "suq.{width,height,depth,array_size,channel_data_type,channel_order,memory_layout}.b32",
    "suld.{b,p}.GEOMETRY{,.v2,.v4,.v8}.{b8,b16,b32,b64,u32,b128}.{trap,clamp,zero}",
    "sust.{b,p}.GEOMETRY{,.v2,.v4,.v8}.{b8,b16,b32,b64,u32,b128}.{trap,clamp,zero}",
    "sured.b.{add,min,max,and,or,xor}.GEOMETRY.{u32,s32,b32,u64,s64,b64}.{trap,clamp,zero}",
    "sured.p.{add,min,max,and,or}.GEOMETRY.{b32,u32,b64}.{trap,clamp,zero}",
];

/// Asserts that each accepted spelling is tested, and that there are at least this many.
fn assert_tested(
    stream: &Stream,
    least: usize,
    candidates: impl Iterator<Item = (String, String)>,
) {
    let forms = forms();
    let tested: BTreeSet<&str> = forms.iter().map(BlockForm::spelling).collect();
    let accepted: Vec<String> = candidates
        .filter(|(spelling, operands)| is_accepted(stream, spelling, operands))
        .map(|(spelling, _)| spelling)
        .collect();
    let untested: Vec<&String> = accepted
        .iter()
        .filter(|spelling| !tested.contains(spelling.as_str()))
        .collect();
    assert!(
        untested.is_empty(),
        "{} of {} have no test: {untested:#?}",
        untested.len(),
        accepted.len()
    );
    assert!(
        accepted.len() > least,
        "only {} are accepted",
        accepted.len()
    );
}

#[test]
fn memory_accesses_have_tests() {
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| {
            let candidates = CANDIDATES.iter().flat_map(|(pattern, template)| {
                let spellings = expand(&pattern.replace("TYPES", TYPES));
                spellings.into_iter().map(|spelling| {
                    let operands = operands(&spelling, template);
                    (spelling, operands)
                })
            });
            assert_tested(&test.stream(), 500, candidates);
        },
    );
}

#[test]
fn image_accesses_have_tests() {
    let geometries = format!("{{{}}}", GEOMETRIES.join(","));
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| {
            let spellings = IMAGES
                .iter()
                .flat_map(|pattern| expand(&pattern.replace("GEOMETRY", &geometries)));
            let candidates = spellings.map(|spelling| {
                let operands = image_operands(&spelling);
                (spelling, operands)
            });
            assert_tested(&test.stream(), 300, candidates);
        },
    );
}

/// Spellings of matrix products: the types of A and B, of the result and of the addend.
const SHAPES: &str = "{m8n8k4,m8n8k16,m8n8k32,m8n8k128,m16n8k4,m16n8k8,m16n8k16,m16n8k32,m16n8k64,m16n8k128,m16n8k256}";
const FACTORS: &str = "{f16.f16,bf16.bf16,tf32.tf32,f64.f64,{e4m3,e5m2}.{e4m3,e5m2},{s8,u8}.{s8,u8},{s4,u4}.{s4,u4},b1.b1,f16.bf16,s8.s4}";

#[test]
fn products_have_tests() -> TestResult {
    on_simulator(
        Config::new().with_device_model(DeviceModel::B200),
        |test, _| {
            let mut candidates = Vec::new();
            for ends in [
                "f16 f16", "f32 f32", "f32 f16", "f16 f32", "f64 f64", "s32 s32",
            ] {
                let (result, addend) = ends.split_once(' ').ok_or("no second operand")?;
                for how in ["{,.satfinite}", ".{xor,and}.popc"] {
                    let (before, behind) = if how.contains("popc") {
                        ("", how)
                    } else {
                        (how, "")
                    };
                    let pattern = format!(
                        "mma.sync.aligned.{SHAPES}.row.col{before}.{result}.{FACTORS}.{addend}{behind}"
                    );
                    candidates.extend(expand(&pattern));
                }
            }
            let candidates = candidates.into_iter().map(|spelling| {
                let operands = Product::parse(&spelling).operands();
                (spelling, operands)
            });
            assert_tested(&test.stream(), 60, candidates);
            Ok(())
        },
    )
}

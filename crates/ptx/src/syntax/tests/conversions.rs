//! Every spelling of a conversion between two single numbers, and of sums, products and extremes:
//! exactly those that the assembler of CUDA 13.0 accepts for sm_100.

use super::super::parse;
use super::TestResult;

/// Conversions, and the possible roundings for each set of flags; `_` is none.
const CONVERSIONS: &[(&str, &str)] = &[
    (
        "f16.f32",
        "_:rm,rn,rp,rz ftz:rm,rn,rp,rz ftz.sat:rm,rn,rp,rz sat:rm,rn,rp,rz relu:rn,rz satfinite:rn,rz relu.satfinite:rn,rz",
    ),
    (
        "f16.f64 f16.u8 f16.s8 f16.u16 f16.s16 f16.u32 f16.s32 f16.u64 f16.s64 f64.u8 f64.s8 f64.u16 f64.s16 f64.u32 f64.s32 f64.u64 \
         f64.s64",
        "_:rm,rn,rp,rz sat:rm,rn,rp,rz",
    ),
    (
        "bf16.f32",
        "_:rm,rn,rp,rz ftz:rm,rn,rp,rz relu:rn,rz satfinite:rn,rz relu.satfinite:rn,rz",
    ),
    (
        "bf16.f64 bf16.u8 bf16.s8 bf16.u16 bf16.s16 bf16.u32 bf16.s32 bf16.u64 bf16.s64",
        "_:rm,rn,rp,rz",
    ),
    (
        "f32.f64 f32.u8 f32.s8 f32.u16 f32.s16 f32.u32 f32.s32 f32.u64 f32.s64",
        "_:rm,rn,rp,rz sat:rm,rn,rp,rz ftz:rm,rn,rp,rz ftz.sat:rm,rn,rp,rz",
    ),
    (
        "tf32.f32",
        "_:rn,rna,rz relu:rn,rz satfinite:rn,rna,rz relu.satfinite:rn,rz",
    ),
    (
        "u8.f16 u8.f64 s8.f16 s8.f64 u16.f16 u16.f64 s16.f16 s16.f64 u32.f16 u32.f64 s32.f16 s32.f64 u64.f16 u64.f64 s64.f16 s64.f64",
        "_:rmi,rni,rpi,rzi sat:rmi,rni,rpi,rzi",
    ),
    (
        "u8.f32 s8.f32 u16.f32 s16.f32 u32.f32 s32.f32 u64.f32 s64.f32",
        "_:rmi,rni,rpi,rzi sat:rmi,rni,rpi,rzi ftz:rmi,rni,rpi,rzi ftz.sat:rmi,rni,rpi,rzi",
    ),
    (
        "u8.bf16 s8.bf16 u16.bf16 s16.bf16 u32.bf16 s32.bf16 u64.bf16 s64.bf16",
        "_:rmi,rni,rpi,rzi",
    ),
    ("f16.bf16 bf16.f16 f64.bf16", "_:_,rm,rn,rp,rz"),
    ("bf16.bf16", "_:_,rmi,rni,rpi,rzi"),
    ("f32.bf16", "_:_,rm,rn,rp,rz ftz:_,rm,rn,rp,rz"),
    (
        "u8.u8 s8.s8 u16.u8 u16.u16 s16.u8 s16.s8 s16.s16 u32.u8 u32.u16 u32.u32 s32.u8 s32.s8 s32.u16 s32.s16 s32.s32 u64.u8 \
         u64.u16 u64.u32 u64.u64 s64.u8 s64.s8 s64.u16 s64.s16 s64.u32 s64.s32 s64.s64",
        "_:_",
    ),
    (
        "f16.f16 f64.f64",
        "_:_,rmi,rni,rpi,rzi sat:_,rmi,rni,rpi,rzi",
    ),
    (
        "f64.f16 u8.s8 u8.u16 u8.s16 u8.u32 u8.s32 u8.u64 u8.s64 s8.u8 s8.u16 s8.s16 s8.u32 s8.s32 s8.u64 s8.s64 u16.s8 u16.s16 \
         u16.u32 u16.s32 u16.u64 u16.s64 s16.u16 s16.u32 s16.s32 s16.u64 s16.s64 u32.s8 u32.s16 u32.s32 u32.u64 u32.s64 s32.u32 \
         s32.u64 s32.s64 u64.s8 u64.s16 u64.s32 u64.s64 s64.u64",
        "_:_ sat:_",
    ),
    ("f32.f16 f64.f32", "_:_ ftz:_ sat:_ ftz.sat:_"),
    (
        "f32.f32",
        "_:_,rmi,rni,rpi,rzi ftz:_,rmi,rni,rpi,rzi sat:_,rmi,rni,rpi,rzi ftz.sat:_,rmi,rni,rpi,rzi",
    ),
];

const TYPES: [&str; 13] = [
    "f16", "bf16", "f32", "f64", "tf32", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64",
];
const ROUNDINGS: [&str; 10] = [
    "_", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi",
];
const FLAGS: [&str; 8] = [
    "_",
    "ftz",
    "sat",
    "ftz.sat",
    "relu",
    "satfinite",
    "relu.satfinite",
    "relu.sat",
];

/// Returns `true` if a table has an entry with these flags and this rounding.
fn has(table: &[(&str, &str)], entry: &str, flags: &str, rounding: &str) -> bool {
    let definition = table
        .iter()
        .find(|(names, _)| names.split_whitespace().any(|name| name == entry));
    let rows = definition.map_or("", |(_, rows)| rows).split_whitespace();
    let row = rows
        .filter_map(|row| row.split_once(':'))
        .find(|(name, _)| *name == flags);
    row.is_some_and(|(_, roundings)| roundings.split(',').any(|name| name == rounding))
}

fn dotted(part: &str) -> String {
    if part == "_" {
        String::new()
    } else {
        format!(".{part}")
    }
}

fn register(scalar: &str, number: u32) -> String {
    let class = match scalar {
        "f32" => "f",
        "f64" => "e",
        "u64" | "s64" | "f32x2" => "d",
        "u32" | "s32" | "tf32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" => "r",
        "u8" | "s8" => "c",
        _ => "h",
    };
    format!("%{class}{number}")
}

fn is_accepted(instruction: &str) -> bool {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.func f() {{ .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; \
         .reg .f32 %f<9>; .reg .f64 %e<9>; {instruction} }}"
    );
    parse(&text).is_ok()
}

#[test]
fn conversions_match_the_assembler() {
    let mut accepted = 0;
    for (to, from) in TYPES
        .into_iter()
        .flat_map(|to| TYPES.map(|from| (to, from)))
    {
        for (rounding, flags) in ROUNDINGS
            .into_iter()
            .flat_map(|rounding| FLAGS.map(|flags| (rounding, flags)))
        {
            let name = format!("cvt{}{}.{to}.{from}", dotted(rounding), dotted(flags));
            let instruction = format!("{name} {}, {};", register(to, 1), register(from, 2));
            let expected = has(CONVERSIONS, &format!("{to}.{from}"), flags, rounding);
            assert_eq!(is_accepted(&instruction), expected, "{instruction}");
            accepted += usize::from(expected);
        }
    }
    assert!(accepted > 500, "{accepted}");
}

#[test]
fn bf16_conversions_have_widths() {
    let integers = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
    let registers = [("%c", 8), ("%h", 16), ("%r", 32), ("%d", 64)];
    for scalar in integers {
        for (register, bits) in registers {
            let is_exact = scalar[1..] == bits.to_string();
            for text in [
                format!("cvt.rzi.{scalar}.bf16 {register}1, %h2;"),
                format!("cvt.rn.bf16.{scalar} %h1, {register}2;"),
            ] {
                assert_eq!(is_accepted(&text), is_exact, "{text}");
            }
        }
    }
    for (register, bits) in registers {
        for text in [
            format!("cvt.rn.f16.bf16 %h1, {register}2;"),
            format!("cvt.rn.bf16.f16 {register}1, %h2;"),
        ] {
            assert_eq!(is_accepted(&text), bits == 16, "{text}");
        }
    }
    // Other types are converted from and to wider registers.
    for text in [
        "cvt.rzi.s8.f16 %r1, %d2;",
        "cvt.rn.f16.u8 %d1, %h2;",
        "cvt.u8.s8 %c1, %d2;",
    ] {
        assert!(is_accepted(text), "{text}");
    }
}

/// Sums and products. The number after `/` is the number of operands.
const ARITHMETIC: &[(&str, &str)] = &[
    (
        "add.f32/3 sub.f32/3 mul.f32/3",
        "_:_,rn,rz,rm,rp ftz:_,rn,rz,rm,rp sat:_,rn,rz,rm,rp ftz.sat:_,rn,rz,rm,rp",
    ),
    ("add.f64/3 sub.f64/3 mul.f64/3", "_:_,rn,rz,rm,rp"),
    (
        "add.f16/3 sub.f16/3 mul.f16/3 add.f16x2/3 sub.f16x2/3 mul.f16x2/3",
        "_:_,rn ftz:_,rn sat:_,rn ftz.sat:_,rn",
    ),
    (
        "add.bf16/3 sub.bf16/3 mul.bf16/3 add.bf16x2/3 sub.bf16x2/3 mul.bf16x2/3",
        "_:_,rn",
    ),
    (
        "add.f32x2/3 sub.f32x2/3 mul.f32x2/3",
        "_:_,rn,rz,rm,rp ftz:_,rn,rz,rm,rp",
    ),
    ("add.s32/3 sub.s32/3", "_:_ sat:_"),
    ("add.u16x2/3 add.s16x2/3", "_:_"),
    (
        "fma.f32/4",
        "_:rn,rz,rm,rp ftz:rn,rz,rm,rp sat:rn,rz,rm,rp ftz.sat:rn,rz,rm,rp",
    ),
    ("fma.f64/4", "_:rn,rz,rm,rp"),
    (
        "fma.f16/4 fma.f16x2/4",
        "_:rn ftz:rn sat:rn ftz.sat:rn relu:rn ftz.relu:rn oob:rn oob.relu:rn",
    ),
    (
        "fma.bf16/4 fma.bf16x2/4",
        "_:rn,rz,rm,rp relu:rn,rz,rm,rp oob:rn,rz,rm,rp oob.relu:rn,rz,rm,rp",
    ),
    ("fma.f32x2/4", "_:rn,rz,rm,rp ftz:rn,rz,rm,rp"),
    (
        "min.f32/3 max.f32/3 min.f16/3 max.f16/3 min.f16x2/3 max.f16x2/3",
        "_:_ ftz:_ NaN:_ ftz.NaN:_ xorsign.abs:_ ftz.xorsign.abs:_ NaN.xorsign.abs:_ ftz.NaN.xorsign.abs:_",
    ),
    (
        "min.bf16/3 max.bf16/3 min.bf16x2/3 max.bf16x2/3",
        "_:_ NaN:_ xorsign.abs:_ NaN.xorsign.abs:_",
    ),
    (
        "min.f32/4 max.f32/4",
        "_:_ ftz:_ NaN:_ ftz.NaN:_ abs:_ ftz.abs:_ NaN.abs:_ ftz.NaN.abs:_",
    ),
    (
        "min.f64/3 max.f64/3 min.u64/3 max.u64/3 min.s64/3 max.s64/3 min.u32/3 max.u32/3 min.u16x2/3 max.u16x2/3",
        "_:_",
    ),
    ("min.s32/3 max.s32/3 min.s16x2/3 max.s16x2/3", "_:_ relu:_"),
];

const ARITHMETIC_FLAGS: [&str; 20] = [
    "_",
    "ftz",
    "sat",
    "ftz.sat",
    "relu",
    "ftz.relu",
    "relu.sat",
    "oob",
    "oob.relu",
    "ftz.oob",
    "NaN",
    "ftz.NaN",
    "abs",
    "ftz.abs",
    "NaN.abs",
    "ftz.NaN.abs",
    "xorsign.abs",
    "ftz.xorsign.abs",
    "NaN.xorsign.abs",
    "ftz.NaN.xorsign.abs",
];

#[test]
fn arithmetic_suffixes() -> TestResult {
    let names = ARITHMETIC
        .iter()
        .flat_map(|(names, _)| names.split_whitespace());
    for name in names {
        let (form, count) = name.split_once('/').ok_or("no operand count")?;
        let (opcode, scalar) = form.split_once('.').ok_or("no type suffix")?;
        let of_integers = scalar.starts_with(['s', 'u']) && opcode != "sub" && opcode != "add";
        for (rounding, flags) in ROUNDINGS[..5]
            .iter()
            .flat_map(|rounding| ARITHMETIC_FLAGS.map(|flags| (*rounding, flags)))
        {
            // The assembler was not queried for integers, sums and products with the flags of
            // others.
            let is_foreign = scalar.starts_with(['s', 'u'])
                && (rounding != "_" || flags.contains("sat") && of_integers)
                || !["min", "max"].contains(&opcode)
                    && (flags.contains("NaN") || flags.contains("abs"))
                || ["min", "max"].contains(&opcode)
                    && (rounding != "_" || flags.contains("sat") || flags.contains("oob"))
                || ["add", "sub"].contains(&opcode) && scalar.starts_with(['s', 'u']);
            if is_foreign {
                continue;
            }
            let registers: Vec<String> = (1..=count.parse()?)
                .map(|number| register(scalar, number))
                .collect();
            let text = format!(
                "{opcode}{}{}.{scalar} {};",
                dotted(rounding),
                dotted(flags),
                registers.join(", ")
            );
            assert_eq!(
                is_accepted(&text),
                has(ARITHMETIC, name, flags, rounding),
                "{text}"
            );
        }
    }
    Ok(())
}

/// Packed conversions require rounding and saturation.
#[test]
fn packed_conversions() {
    for text in [
        "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
        "cvt.rn.relu.satfinite.e5m2x2.f16x2 %h1, %r1;",
        "cvt.rn.relu.f16x2.e4m3x2 %r1, %h1;",
        "cvt.rz.relu.satfinite.bf16x2.f32 %r1, %f1, %f2;",
        "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;",
        "cvt.rs.relu.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f3, %f4}, %r2;",
        "cvt.rp.ue8m0x2.f32 %h1, %f1, %f2;",
        "cvt.rz.satfinite.ue8m0x2.bf16x2 %h1, %r1;",
        "cvt.rn.bf16x2.ue8m0x2 %r1, %h1;",
        "cvt.pack.sat.u16.s32 %r1, %r2, %r3;",
        "cvt.pack.sat.s4.s32.b32 %r1, %r2, %r3, 0;",
    ] {
        assert!(is_accepted(text), "{text}");
    }
    for text in [
        "cvt.rn.e4m3x2.f32 %h1, %f1, %f2;",
        "cvt.rz.satfinite.e4m3x2.f32 %h1, %f1, %f2;",
        "cvt.rn.satfinite.e4m3x2.bf16x2 %h1, %r1;",
        "cvt.rn.satfinite.f16x2.e4m3x2 %r1, %h1;",
        "cvt.rn.bf16x2.e4m3x2 %r1, %h1;",
        "cvt.rm.f16x2.f32 %r1, %f1, %f2;",
        "cvt.rs.f16x2.f32 %r1, %f1, %f2;",
        "cvt.rs.f16.f32 %h1, %f1;",
        "cvt.rs.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
        "cvt.rn.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
        "cvt.rs.satfinite.e4m3x4.f32 %r1, %f1, %r2;",
        "cvt.rn.ue8m0x2.f32 %h1, %f1, %f2;",
        "cvt.rp.relu.ue8m0x2.f32 %h1, %f1, %f2;",
        "cvt.pack.u16.s32 %r1, %r2, %r3;",
        "cvt.pack.sat.u16.s32.b32 %r1, %r2, %r3, %r4;",
        "cvt.pack.sat.u8.s32 %r1, %r2, %r3;",
    ] {
        assert!(!is_accepted(text), "{text}");
    }
}

//! The NaN that an instruction returns for NaN operands, as a table: PTX does not specify it, but
//! programs can observe it.
//!
//! A result is one letter: `A`, `B`, `C` for the quieted NaN of the first, second or third operand,
//! in lower case if its sign is inverted; `1`, `2`, `3` for the unchanged operand; `+` and `-` for
//! the NaN with only the quiet bit, `F` for all ones, `.` for a number, and otherwise the bits in
//! brackets. With `CURIUM_TEST_DRIVER=cuda` and `CURIUM_NAN_RECORD=FILE` the table of this
//! machine's GPU is written to `FILE`; copy it to `nan.txt` to compare the simulator with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use curium_driver::{LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{TestResult, on_driver, uses_cuda};

use crate::form::{Form, Operand};
use crate::program;
use crate::reference::real::{BF16, F16, F32, F64, Format};

/// The number of operand words of a thread.
const SOURCES: usize = 4;

/// The instructions, with the formats of the result and of the operands.
fn instructions() -> Vec<(String, Format, Vec<Format>)> {
    let mut all = Vec::new();
    let mut add = |name: String, result: Format, sources: &[Format]| {
        all.push((name, result, sources.to_vec()));
    };
    for rounding in ["rn", "rz", "rm", "rp"] {
        for operation in ["add", "sub", "mul", "div"] {
            add(format!("{operation}.{rounding}.f64"), F64, &[F64, F64]);
        }
        add(format!("fma.{rounding}.f64"), F64, &[F64, F64, F64]);
        for operation in ["sqrt", "rcp"] {
            add(format!("{operation}.{rounding}.f64"), F64, &[F64]);
        }
        add(format!("cvt.{rounding}i.f64.f64"), F64, &[F64]);
        add(format!("cvt.{rounding}.f32.f64"), F32, &[F64]);
        add(format!("cvt.{rounding}.f16.f64"), F16, &[F64]);
        add(format!("cvt.{rounding}.f16.f32"), F16, &[F32]);
        add(format!("cvt.{rounding}i.f32.f32"), F32, &[F32]);
    }
    for operation in ["min", "max", "copysign"] {
        add(format!("{operation}.f64"), F64, &[F64, F64]);
    }
    for operation in [
        "abs",
        "neg",
        "rcp.approx.ftz",
        "rsqrt.approx.ftz",
        "rsqrt.approx",
    ] {
        add(format!("{operation}.f64"), F64, &[F64]);
    }
    add("cvt.f64.f32".into(), F64, &[F32]);
    add("cvt.f64.f16".into(), F64, &[F16]);
    add("cvt.f32.f16".into(), F32, &[F16]);
    add("cvt.f32.bf16".into(), F32, &[BF16]);
    add("cvt.sat.f64.f64".into(), F64, &[F64]);
    all
}

/// Distinct NaNs, and numbers.
fn operands(format: Format) -> Vec<u64> {
    let sign = format.sign();
    let infinity = format.infinity();
    let quiet = 1 << (format.precision - 2);
    // Payloads that fit into narrower formats.
    let unit = 1_u64 << (format.precision - 8);
    let nans = [
        quiet | (5 * unit),
        9 * unit,
        sign | quiet | (3 * unit),
        sign | (6 * unit),
        quiet,
    ]
    .map(|bits| infinity | bits);
    let numbers = [(infinity >> 1) & !(quiet - 1), 0, infinity, sign | infinity];
    nans.into_iter().chain(numbers).collect()
}

/// Returns the letter of a result.
fn letter(result: u64, format: Format, sources: &[(u64, Format)]) -> String {
    let sign = format.sign();
    let infinity = format.infinity();
    let quiet = 1_u64 << (format.precision - 2);
    if !format.is_nan(result) {
        return ".".into();
    }
    for ((source, of), name) in sources.iter().zip(["A", "B", "C"]) {
        if !of.is_nan(*source) {
            continue;
        }
        // The payload is stored in the upper bits of the fraction in every format.
        let fraction = source & (of.infinity() & of.infinity().wrapping_neg()).wrapping_sub(1);
        let from = of.precision - 1;
        let to = format.precision - 1;
        let moved = if from > to {
            fraction >> (from - to)
        } else {
            fraction << (to - from)
        };
        let is_negative = source & of.sign() != 0;
        let nan = |negative: bool| if negative { sign } else { 0 } | infinity | moved | quiet;
        if result == nan(is_negative) && moved != quiet {
            return if *of == format && result == *source {
                digit(name)
            } else {
                name.into()
            };
        }
        if *of == format && result == *source {
            return digit(name);
        }
        if result == nan(!is_negative) && moved != quiet {
            return name.to_lowercase();
        }
    }
    match result {
        _ if result == infinity | quiet => "+".into(),
        _ if result == sign | infinity | quiet => "-".into(),
        _ if result == sign - 1 => "F".into(),
        _ => format!("[{result:x}]"),
    }
}

/// Returns the digit of an unchanged operand; for a quiet operand it cannot be distinguished from
/// the letter.
fn digit(name: &str) -> String {
    match name {
        "A" => "1".into(),
        "B" => "2".into(),
        _ => "3".into(),
    }
}

/// Returns all tuples of operands.
fn tuples(sources: &[Format]) -> Vec<Vec<u64>> {
    let mut tuples = vec![Vec::new()];
    for format in sources {
        let values = operands(*format);
        tuples = tuples
            .into_iter()
            .flat_map(|tuple: Vec<u64>| {
                values
                    .iter()
                    .map(move |value| [&tuple[..], &[*value]].concat())
            })
            .collect();
    }
    tuples
}

/// Returns the results of an instruction on the device, one letter for each tuple.
fn line(stream: &Stream, name: &str, result: Format, sources: &[Format]) -> TestResult<String> {
    let formats: [Operand; 3] =
        std::array::from_fn(|index| Operand::Float(*sources.get(index).unwrap_or(&F64)));
    let form = match sources.len() {
        1 => Form::new(name, Operand::Float(result), [formats[0]], |_| 0),
        2 => Form::new(
            name,
            Operand::Float(result),
            [formats[0], formats[1]],
            |_| 0,
        ),
        _ => Form::new(name, Operand::Float(result), formats, |_| 0),
    };
    let tuples = tuples(sources);
    let library = match Library::from_ptx(stream, &program::module(&[&form.needs(90)])) {
        Ok(library) => library,
        Err(error) => panic!("{name}: {error}"),
    };
    let threads = tuples.len().next_multiple_of(32);
    let mut words = vec![0_u64; threads * SOURCES];
    for (slot, tuple) in words.chunks_mut(SOURCES).zip(&tuples) {
        slot[..tuple.len()].copy_from_slice(tuple);
    }
    let words = DeviceBuffer::from_slice(stream, &words)?;
    let mut results = DeviceBuffer::<u64>::zeroed(stream, threads)?;
    let kernel = library.kernel::<(&[u64], &mut [u64])>("f0")?;
    // SAFETY: the launch has one thread per result, each of which reads its own operands and writes
    // its own result.
    unsafe {
        kernel.launch(
            stream,
            LaunchConfig::new(threads as u32 / 32, 32),
            (&words, &mut results),
        )
    }
    .unwrap_or_else(|error| panic!("{name}: {error}"));
    let results = results.to_vec()?;
    let mask = result.sign() | (result.sign() - 1);
    let cases = tuples.iter().zip(results);
    Ok(cases
        .map(|(tuple, found)| {
            let sources: Vec<(u64, Format)> =
                tuple.iter().copied().zip(sources.iter().copied()).collect();
            letter(found & mask, result, &sources)
        })
        .collect())
}

#[test]
fn nans_match_the_gpu() -> TestResult {
    let recorded: BTreeMap<&str, &str> = include_str!("nan.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    on_driver(|test| {
        let stream = test.stream();
        let mut table = String::new();
        let mut wrong = String::new();
        for (name, result, sources) in instructions() {
            let actual = line(&stream, &name, result, &sources)?;
            writeln!(table, "{name}\t{actual}")?;
            if let Some(expected) = recorded
                .get(&name[..])
                .filter(|expected| **expected != actual)
            {
                writeln!(wrong, "{name}\n  {actual}\n  {expected} on a GPU")?;
            }
        }
        if let Some(path) = std::env::var_os("CURIUM_NAN_RECORD").map(PathBuf::from) {
            std::fs::write(path, &table)?;
        }
        assert!(wrong.is_empty() || uses_cuda(), "{wrong}");
        Ok(())
    })
}

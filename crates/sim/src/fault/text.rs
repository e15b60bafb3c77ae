//! Faults as text, for the environment: `cuMemAlloc_v2@2=OUT_OF_MEMORY`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use curium_sys::{CUresult, Function};
use thiserror::Error;

use super::{Fault, FaultPlan};
use crate::error_code::code_named;

/// A text is not a valid fault.
#[derive(Clone, Eq, Error, PartialEq)]
#[error("invalid fault `{text}`: {reason}")]
#[non_exhaustive]
pub struct FaultSyntaxError {
    /// The text.
    pub text: String,
    /// The reason why it is invalid.
    pub reason: &'static str,
}

impl fmt::Debug for FaultSyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Fault {
    type Err = FaultSyntaxError;

    /// Parses `FUNCTION[@CALLS][%PERCENT[:SEED]]=EFFECT`.
    ///
    /// `CALLS` is a number `3`, or `3+` for that call and all later ones. Without it, the fault
    /// applies to every call. `PERCENT` is the probability with which each of them fails. `EFFECT`
    /// is the name of a code with or without `CUDA_ERROR_`, its number, a delay such as `20ms` (or
    /// `us`, `s`), `lost` for the loss of all devices, or `null` for a call that creates nothing
    /// and returns success.
    fn from_str(text: &str) -> Result<Self, FaultSyntaxError> {
        let error = |reason| FaultSyntaxError {
            text: text.to_owned(),
            reason,
        };
        let (which, effect) = text.split_once('=').ok_or(error("no `=`"))?;
        let (which, chance) = split(which, '%');
        let (name, calls) = split(which, '@');
        let function = name
            .trim()
            .parse::<Function>()
            .map_err(|_| error("unknown driver function"))?;
        let fault = calls.map_or(Some(Self::on(function).always()), |calls| {
            chosen(Self::on(function), calls.trim())
        });
        let fault = fault.ok_or(error("invalid call number; write `@3` or `@3+`"))?;
        let fault = chance.map_or(Some(fault), |chance| with_chance(fault, chance.trim()));
        let fault = fault.ok_or(error("invalid probability; write `%5` or `%5:42`"))?;
        with_effect(fault, effect.trim()).ok_or(error(
            "invalid effect; write a code, a delay, `lost` or `null`",
        ))
    }
}

impl FromStr for FaultPlan {
    type Err = FaultSyntaxError;

    /// Reads faults separated by commas.
    fn from_str(text: &str) -> Result<Self, FaultSyntaxError> {
        let mut faults = text
            .split(',')
            .map(str::trim)
            .filter(|fault| !fault.is_empty());
        faults.try_fold(Self::new(), |plan, fault| Ok(plan.with(fault.parse()?)))
    }
}

/// Splits `text` at `sign`, if it occurs.
fn split(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign)
        .map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn call_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|call| *call > 0)
}

fn chosen(fault: Fault, calls: &str) -> Option<Fault> {
    match calls.strip_suffix('+') {
        Some(first) => call_number(first).map(|first| fault.from_call(first)),
        None => call_number(calls).map(|call| fault.call(call)),
    }
}

fn with_chance(fault: Fault, chance: &str) -> Option<Fault> {
    let (percent, seed) = split(chance, ':');
    let percent = percent
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))?;
    Some(fault.with_probability(
        percent / 100.0,
        seed.map_or(Some(0), |seed| seed.parse().ok())?,
    ))
}

fn with_effect(fault: Fault, effect: &str) -> Option<Fault> {
    if effect == "null" {
        return Some(fault.creates_nothing());
    }
    if effect == "lost" {
        return Some(fault.loses_devices());
    }
    if let Some(delay) = duration(effect) {
        return Some(fault.delays(delay));
    }
    let code = effect
        .parse()
        .map(CUresult)
        .ok()
        .or_else(|| code_named(effect));
    code.filter(|code| *code != CUresult::CUDA_SUCCESS)
        .map(|code| fault.returns(code))
}

fn duration(text: &str) -> Option<Duration> {
    [("us", 1), ("ms", 1_000), ("s", 1_000_000)]
        .into_iter()
        .find_map(|(unit, micros)| {
            text.strip_suffix(unit)?
                .parse::<u64>()
                .ok()?
                .checked_mul(micros)
        })
        .map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: Function = Function::cuMemAlloc_v2;

    #[test]
    fn text_and_builder_give_the_same_fault() {
        let memory = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        for (text, fault) in [
            (
                "cuMemAlloc_v2=2",
                Fault::on(FUNCTION).always().returns(memory),
            ),
            (
                "cuMemAlloc_v2@3=OUT_OF_MEMORY",
                Fault::on(FUNCTION).call(3).returns(memory),
            ),
            (
                " cuMemAlloc_v2 @ 3+ = CUDA_ERROR_OUT_OF_MEMORY ",
                Fault::on(FUNCTION).from_call(3).returns(memory),
            ),
            (
                "cuMemAlloc_v2%50:9=2",
                Fault::on(FUNCTION)
                    .always()
                    .with_probability(0.5, 9)
                    .returns(memory),
            ),
            (
                "cuMemAlloc_v2@2+%0.5=lost",
                Fault::on(FUNCTION)
                    .from_call(2)
                    .with_probability(0.005, 0)
                    .loses_devices(),
            ),
            (
                "cuMemAlloc_v2@1=20ms",
                Fault::on(FUNCTION)
                    .call(1)
                    .delays(Duration::from_millis(20)),
            ),
            (
                "cuMemAlloc_v2=5us",
                Fault::on(FUNCTION)
                    .always()
                    .delays(Duration::from_micros(5)),
            ),
            (
                "cuMemAlloc_v2=1s",
                Fault::on(FUNCTION).always().delays(Duration::from_secs(1)),
            ),
        ] {
            assert_eq!(text.parse(), Ok(fault), "{text}");
        }
    }

    #[test]
    fn invalid_text_is_an_error_that_names_the_part() {
        for (text, part) in [
            ("cuInit", "no `=`"),
            ("cuNothing=1", "unknown driver function"),
            ("cuInit@0=1", "call number"),
            ("cuInit@x=1", "call number"),
            ("cuInit%101=1", "probability"),
            ("cuInit%nan=1", "probability"),
            ("cuInit%5:x=1", "probability"),
            ("cuInit=0", "invalid effect"),
            ("cuInit=NONSENSE", "invalid effect"),
            ("cuInit=5 ms", "invalid effect"),
        ] {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn plan_is_faults_with_commas_between_them() {
        let plan = "cuInit@2=1, ,cuMemAlloc_v2=2"
            .parse::<FaultPlan>()
            .expect("both are faults");
        assert_eq!(plan.faults.len(), 2);
        "cuInit@2=1,x"
            .parse::<FaultPlan>()
            .expect_err("the second is invalid");
    }
}

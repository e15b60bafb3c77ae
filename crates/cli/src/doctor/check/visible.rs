//! `CUDA_VISIBLE_DEVICES`, which hides devices from CUDA.

use crate::doctor::environment::{Environment, Start};
use crate::doctor::finding::Finding;

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// Reports that the variable hides every device.
pub(super) fn hides_all(environment: &Environment) -> Option<Finding> {
    let value = environment.variable(VARIABLE)?;
    let gpus = environment.module_gpus();
    let reason = reason(value, gpus)?;
    let fixes = [
        &format!("`unset {VARIABLE}`"),
        "or list devices that exist: numbers from 0 as CUDA counts them, or names that `nvidia-smi -L` shows",
    ];
    Some(Finding::failure(
        "visible-devices",
        format!("{VARIABLE} is {value:?} and hides every GPU: {reason}"),
        fixes.map(|fix| fix as &str),
    ))
}

/// Reports that the variable is set.
pub(super) fn note(environment: &Environment) -> Option<Finding> {
    let value = environment.variable(VARIABLE)?;
    let Some(Start::Devices(count @ 1..)) = environment.start else {
        return None;
    };
    let of = match environment.module_gpus() {
        0 => String::new(),
        gpus => format!(" of {gpus}"),
    };
    Some(Finding::note(
        "visible-devices",
        format!("{VARIABLE} is {value:?}: this process sees {count}{of}"),
    ))
}

/// Explains why `value` hides all of `gpus` GPUs, if it does. CUDA ignores the list from the first
/// invalid entry on.
fn reason(value: &str, gpus: usize) -> Option<String> {
    let first = value.split(',').next().unwrap_or_default().trim();
    if value.trim().is_empty() {
        return Some("the list is empty".to_owned());
    }
    if first.starts_with("GPU-") || first.starts_with("MIG-") {
        return Some(format!(
            "no accessible GPU or MIG instance is called {first}"
        ));
    }
    match first.parse::<i64>() {
        Ok(number) if number < 0 => Some(format!(
            "{first} names no device, and CUDA ignores the rest"
        )),
        Ok(number) if gpus > 0 && usize::try_from(number).is_ok_and(|number| number >= gpus) => {
            Some(format!(
                "there are {gpus} GPUs, numbered from 0, so {first} names none, and CUDA ignores the rest"
            ))
        }
        Ok(_) => None,
        Err(_) => Some(format!(
            "{first:?} names no device, and CUDA ignores the rest"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_begin_with_no_device_hide_all() {
        for value in ["", " ", "-1", "NoDevFiles", "4", "GPU-0", "MIG-1,0", "-1,0"] {
            assert!(reason(value, 4).is_some(), "{value:?}");
        }
    }

    #[test]
    fn lists_that_begin_with_a_device_do_not() {
        for value in ["0", "3", " 1 ,2", "0,9", "0,-1"] {
            assert_eq!(reason(value, 4), None, "{value:?}");
        }
        assert_eq!(reason("7", 0), None, "how many there are is not known");
    }
}

//! The functions of nvJitLink.

use curium_driver::sys::declare_api;
use curium_driver::sys::load::MissingFunction;

use crate::error::{CallError, Error, Result};
use crate::generated::nvjitlink::functions::for_each_nvjitlink_function;
pub(crate) use crate::generated::nvjitlink::types::*;

for_each_nvjitlink_function!(declare_api);

/// The names of the results, each at the index of its code.
const RESULTS: [&str; 19] = [
    "NVJITLINK_SUCCESS",
    "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
    "NVJITLINK_ERROR_MISSING_ARCH",
    "NVJITLINK_ERROR_INVALID_INPUT",
    "NVJITLINK_ERROR_PTX_COMPILE",
    "NVJITLINK_ERROR_NVVM_COMPILE",
    "NVJITLINK_ERROR_INTERNAL",
    "NVJITLINK_ERROR_THREADPOOL",
    "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
    "NVJITLINK_ERROR_FINALIZE",
    "NVJITLINK_ERROR_NULL_INPUT",
    "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS",
    "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE",
    "NVJITLINK_ERROR_ARCH_MISMATCH",
    "NVJITLINK_ERROR_OUTDATED_LIBRARY",
    "NVJITLINK_ERROR_MISSING_FATBIN",
    "NVJITLINK_ERROR_UNRECOGNIZED_ARCH",
    "NVJITLINK_ERROR_UNSUPPORTED_ARCH",
    "NVJITLINK_ERROR_LTO_NOT_ENABLED",
];

impl Api {
    /// Converts the code that `function` returned into a result.
    pub(crate) fn check(&self, function: &'static str, code: nvJitLinkResult) -> Result<()> {
        if code == nvJitLinkResult::NVJITLINK_SUCCESS {
            return Ok(());
        }
        let name = RESULTS
            .get(code.0 as usize)
            .copied()
            .unwrap_or("an unknown code");
        Err(Error::Call(CallError {
            function,
            code: code.0,
            name: name.into(),
        }))
    }

    #[cold]
    pub(crate) fn missing(&self, function: &'static str) -> Error {
        Error::Missing(MissingFunction::new::<Self>("nvJitLink", function))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_names_match_the_header() {
        let generated = include_str!("../generated/nvjitlink/types.rs");
        let mut count = 0;
        for line in generated
            .lines()
            .filter(|line| line.contains(": nvJitLinkResult = "))
        {
            let (name, code) = line
                .trim()
                .split_once(": nvJitLinkResult = nvJitLinkResult(")
                .expect("it is a constant");
            let code: usize = code.trim_end_matches(");").parse().expect("it is a number");
            assert_eq!(RESULTS[code], name.trim_start_matches("pub const "));
            count += 1;
        }
        assert_eq!(count, RESULTS.len());
    }
}

//! A check of PTX without a driver.

use std::fmt;

use thiserror::Error;

use curium_ptx::{exec, syntax};

/// Checks that the simulator loads a PTX module: that it is valid, and that every instruction is
/// supported.
///
/// This is the front end of `cuModuleLoadData`, for the newest version of the ISA and for every
/// target. It requires no [`Simulator`](crate::Simulator).
///
/// ```
/// let ptx = ".version 8.0 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";
/// curium_sim::check_ptx(ptx)?;
///
/// let error = curium_sim::check_ptx(&ptx.replace("ret", "return")).expect_err("there is no such instruction");
/// assert_eq!(error.to_string(), "line 1, column 73: expected an instruction, found 'return'");
/// # Ok::<(), curium_sim::PtxError>(())
/// ```
///
/// # Errors
///
/// Returns the first error of the text, or the first instruction that is not supported.
pub fn check_ptx(text: &str) -> Result<(), PtxError> {
    let module = syntax::parse(text).map_err(|error| PtxError {
        text: error.to_string(),
        line: error.line(),
    })?;
    match exec::lower(&module) {
        Ok(_) => Ok(()),
        Err(error) => Err(PtxError {
            text: error.to_string(),
            line: error.line,
        }),
    }
}

/// A PTX module is invalid, or the simulator does not support it. The text of the error names the
/// line, the column and the cause.
#[derive(Clone, Eq, Error, PartialEq)]
#[error("{text}")]
pub struct PtxError {
    text: String,
    line: u32,
}

impl PtxError {
    /// Returns the line of the error, from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Debug for PtxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

//! `Debug` of C's enums.

use core::fmt;

/// Writes the name of the value of an enum, or the type and the number of a value without a name.
///
/// The generated `Debug` of every enum calls this function.
///
/// # Errors
///
/// An error returned by `formatter`.
#[doc(hidden)]
pub fn write_enumerator(
    formatter: &mut fmt::Formatter<'_>,
    ty: &str,
    value: i64,
    names: &[(i64, &str)],
) -> fmt::Result {
    match names.iter().find(|(named, _)| *named == value) {
        Some((_, name)) => formatter.write_str(name),
        None => write!(formatter, "{ty}({value})"),
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use crate::{CUctx_flags, CUresult};

    #[test]
    fn value_is_its_name_or_its_number() {
        assert_eq!(
            format!("{:?}", CUresult::CUDA_ERROR_INVALID_VALUE),
            "CUDA_ERROR_INVALID_VALUE"
        );
        assert_eq!(format!("{:?}", CUresult(4711)), "CUresult(4711)");
    }

    #[test]
    fn first_name_is_written() {
        assert_eq!(
            CUctx_flags::CU_CTX_BLOCKING_SYNC,
            CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC
        );
        assert_eq!(
            format!("{:?}", CUctx_flags::CU_CTX_BLOCKING_SYNC),
            "CU_CTX_SCHED_BLOCKING_SYNC"
        );
    }
}

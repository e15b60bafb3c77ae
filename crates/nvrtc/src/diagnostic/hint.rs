//! Hints for errors that a missing header causes.

/// Says how to get CUDA's headers.
const CUDA_HEADERS: &str = "`CompileOptions::with_cuda_headers` adds the folders of CUDA's headers, which are part of \
    the toolkit and of the Python packages `nvidia-cuda-runtime` and `nvidia-cuda-cccl` (CUDA 12: `-cu12`)";

/// Headers of the C and C++ standard libraries that libcu++ of every CUDA version since 12.8 has,
/// below `cuda/std`.
const STANDARD_HEADERS: [&str; 31] = [
    "array",
    "atomic",
    "barrier",
    "bit",
    "bitset",
    "cassert",
    "cfloat",
    "chrono",
    "climits",
    "cmath",
    "complex",
    "concepts",
    "cstddef",
    "cstdint",
    "cstdlib",
    "ctime",
    "functional",
    "initializer_list",
    "iterator",
    "latch",
    "limits",
    "numeric",
    "optional",
    "ratio",
    "semaphore",
    "span",
    "tuple",
    "type_traits",
    "utility",
    "variant",
    "version",
];

/// Headers of the host's standard library that no device code can use.
const HOST_HEADERS: [&str; 14] = [
    "cstdio",
    "deque",
    "fstream",
    "iomanip",
    "iostream",
    "list",
    "map",
    "set",
    "sstream",
    "stdexcept",
    "string",
    "thread",
    "unordered_map",
    "vector",
];

/// Identifiers that NVRTC does not define without a header, and the header.
const IDENTIFIERS: [(&[&str], &str); 6] = [
    (&["INFINITY", "NAN"], "cuda/std/cmath"),
    (
        &[
            "CHAR_BIT",
            "INT_MAX",
            "INT_MIN",
            "LLONG_MAX",
            "LLONG_MIN",
            "LONG_MAX",
            "UINT_MAX",
            "ULLONG_MAX",
        ],
        "cuda/std/climits",
    ),
    (
        &[
            "int8_t",
            "int16_t",
            "int32_t",
            "int64_t",
            "intptr_t",
            "uint8_t",
            "uint16_t",
            "uint32_t",
            "uint64_t",
            "uintptr_t",
        ],
        "cuda/std/cstdint",
    ),
    (&["half", "half2", "__half", "__half2"], "cuda_fp16.h"),
    (
        &[
            "nv_bfloat16",
            "nv_bfloat162",
            "__nv_bfloat16",
            "__nv_bfloat162",
        ],
        "cuda_bf16.h",
    ),
    (
        &["CUDART_INF_F", "CUDART_NAN_F", "CUDART_PI_F"],
        "math_constants.h",
    ),
];

/// Returns the remedy for the error `message`; `None` if it is not known.
pub(super) fn hint(message: &str) -> Option<String> {
    if let Some((_, header)) = message.split_once("open source file \"") {
        return Some(for_header(header.split_once('"')?.0));
    }
    let name = message.strip_prefix("identifier \"")?;
    for_identifier(name.strip_suffix("\" is undefined")?)
}

fn for_header(header: &str) -> String {
    if ["cuda_runtime.h", "device_launch_parameters.h"].contains(&header) {
        return format!(
            "NVRTC declares CUDA's functions and variables for device code without `#include <{header}>`: omit it"
        );
    }
    if header.starts_with("curand") {
        return "`CompileOptions::with_cuda_headers` finds it in a toolkit and in the Python package `nvidia-curand` \
            (CUDA 12: `nvidia-curand-cu12`)"
            .to_owned();
    }
    if header.starts_with("crt/") {
        return "`CompileOptions::with_cuda_headers` finds it in a toolkit and in the Python package `nvidia-cuda-crt` \
            (CUDA 12: `nvidia-cuda-nvcc-cu12`)"
            .to_owned();
    }
    if is_cuda(header) {
        return CUDA_HEADERS.to_owned();
    }
    let name = standard_name(header);
    if STANDARD_HEADERS.contains(&name.as_str()) {
        return format!(
            "NVRTC has no C++ standard library; libcu++ has `#include <cuda/std/{name}>`, with its names in \
             `cuda::std`: {CUDA_HEADERS}"
        );
    }
    if HOST_HEADERS.contains(&name.as_str()) {
        return "NVRTC has no C++ standard library, and device code cannot use this header of the host: omit it, for \
            example with `#ifndef __CUDACC_RTC__`"
            .to_owned();
    }
    format!(
        "a source that is compiled from a text has no folder: add the header with `Program::with_header(\"{header}\", \
         text)` (in `kernels!`: `headers {{ \"{header}\" = \"file\" }}`), or its folder with \
         `CompileOptions::with_include_path`"
    )
}

/// Returns `true` for a header of CUDA or of its C++ libraries.
fn is_cuda(header: &str) -> bool {
    let folders = ["cooperative_groups/", "cub/", "cuda/", "nv/", "thrust/"];
    let files = [
        "cooperative_groups.h",
        "cuComplex.h",
        "cuda.h",
        "device_functions.h",
        "math_constants.h",
        "mma.h",
        "vector_functions.h",
        "vector_types.h",
    ];
    folders.iter().any(|folder| header.starts_with(folder))
        || files.contains(&header)
        || header.starts_with("cuda_")
}

/// Returns the name of a header in C++: `cmath` for `math.h`.
fn standard_name(header: &str) -> String {
    match header.strip_suffix(".h") {
        Some(name) => format!("c{name}"),
        None => header.to_owned(),
    }
}

fn for_identifier(identifier: &str) -> Option<String> {
    let (_, header) = IDENTIFIERS
        .iter()
        .find(|(identifiers, _)| identifiers.contains(&identifier))?;
    let mut hint = format!("`#include <{header}>` defines it: {CUDA_HEADERS}");
    if let Some(value) = value_without_header(identifier) {
        hint.push_str(&format!(
            "; without headers, use `CompileOptions::with_macro_value(\"{identifier}\", \"{value}\")`"
        ));
    }
    Some(hint)
}

/// Returns an expression for a macro of the C standard library that needs no header.
fn value_without_header(identifier: &str) -> Option<&'static str> {
    match identifier {
        "INFINITY" => Some("__int_as_float(0x7f800000)"),
        "NAN" => Some("__int_as_float(0x7fffffff)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_hint(message: &str, expected: &str) {
        let hint = hint(message).unwrap_or_default();
        assert!(hint.contains(expected), "{message}: {hint}");
    }

    fn missing_header(header: &str) -> String {
        format!("cannot open source file \"{header}\"")
    }

    fn undefined(name: &str) -> String {
        format!("identifier \"{name}\" is undefined")
    }

    /// The messages are those of NVRTC of CUDA 11.8 to 13.5, with and without include folders.
    #[test]
    fn missing_headers_have_the_remedy() {
        for header in [
            "cuda_fp16.h",
            "cub/block/block_reduce.cuh",
            "nv/target",
            "mma.h",
        ] {
            let message =
                format!("could not open source file \"{header}\" (no directories in search list)");
            assert_hint(&message, "`CompileOptions::with_cuda_headers`");
            assert_hint(&missing_header(header), "`nvidia-cuda-cccl`");
        }
        assert_hint(&missing_header("stdint.h"), "#include <cuda/std/cstdint>");
        assert_hint(
            &missing_header("type_traits"),
            "#include <cuda/std/type_traits>",
        );
        assert_hint(&missing_header("vector"), "__CUDACC_RTC__");
        assert_hint(&missing_header("stdio.h"), "__CUDACC_RTC__");
        assert_hint(&missing_header("cuda_runtime.h"), "omit it");
        assert_hint(&missing_header("crt/mma.h"), "`nvidia-cuda-crt`");
        assert_hint(&missing_header("curand_kernel.h"), "`nvidia-curand`");
        assert_hint(
            &missing_header("common.h"),
            "`Program::with_header(\"common.h\", text)`",
        );
        assert_hint(
            &missing_header("common.h"),
            "headers { \"common.h\" = \"file\" }",
        );
    }

    #[test]
    fn undefined_identifiers_have_the_header() {
        assert_hint(&undefined("INFINITY"), "with_macro_value(\"INFINITY\"");
        assert_hint(&undefined("NAN"), "#include <cuda/std/cmath>");
        assert_hint(&undefined("uint32_t"), "#include <cuda/std/cstdint>");
        assert_hint(&undefined("__half"), "#include <cuda_fp16.h>");
        assert_eq!(hint(&undefined("nonsense")), None);
        assert_eq!(hint("expected a \";\""), None);
    }
}

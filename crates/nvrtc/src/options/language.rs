//! Options for the language, macros and headers.

use std::path::Path;

use super::CompileOptions;

/// A version of C++.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LanguageStandard {
    /// C++03.
    Cxx03,
    /// C++11.
    Cxx11,
    /// C++14.
    Cxx14,
    /// C++17.
    Cxx17,
    /// C++20. Requires NVRTC of CUDA 12.0.
    Cxx20,
    /// C++23. Requires a newer NVRTC.
    Cxx23,
}

impl CompileOptions {
    /// Sets the version of C++. The default depends on the NVRTC: C++17 since CUDA 12.
    ///
    /// NVRTC: `--std`.
    #[doc(alias = "std")]
    #[must_use]
    pub fn with_standard(self, standard: LanguageStandard) -> Self {
        self.set("--std", standard.as_str())
    }

    /// Defines the macro `name` as `1`.
    ///
    /// NVRTC: `--define-macro`.
    #[doc(alias = "define-macro")]
    #[must_use]
    pub fn with_macro(self, name: &str) -> Self {
        self.add("--define-macro", name)
    }

    /// Defines the macro `name` as `value`.
    ///
    /// NVRTC: `--define-macro`.
    #[doc(alias = "define-macro")]
    #[must_use]
    pub fn with_macro_value(self, name: &str, value: &str) -> Self {
        self.add("--define-macro", &format!("{name}={value}"))
    }

    /// Undefines the macro `name`.
    ///
    /// NVRTC: `--undefine-macro`.
    #[doc(alias = "undefine-macro")]
    #[must_use]
    pub fn without_macro(self, name: &str) -> Self {
        self.add("--undefine-macro", name)
    }

    /// Searches `folder` for headers, after the headers that were added to the program.
    ///
    /// NVRTC: `--include-path`.
    #[doc(alias = "include-path")]
    #[must_use]
    pub fn with_include_path(self, folder: impl AsRef<Path>) -> Self {
        self.add("--include-path", &folder.as_ref().display().to_string())
    }

    /// Searches `folder` for headers, after installing NVRTC's bundled headers into it if they are
    /// missing.
    ///
    /// NVRTC: `--use-bundled-headers`, since 13.3.
    #[doc(alias = "use-bundled-headers")]
    #[must_use]
    pub fn with_bundled_headers(self, folder: impl AsRef<Path>) -> Self {
        self.set(
            "--use-bundled-headers",
            &folder.as_ref().display().to_string(),
        )
    }

    /// Includes `header` before the source.
    ///
    /// NVRTC: `--pre-include`.
    #[doc(alias = "pre-include")]
    #[must_use]
    pub fn with_pre_include(self, header: &str) -> Self {
        self.add("--pre-include", header)
    }

    /// Does not search the folder of the source for headers.
    ///
    /// NVRTC: `--no-source-include`.
    #[doc(alias = "no-source-include")]
    #[must_use]
    pub fn without_source_include(self) -> Self {
        self.flag("--no-source-include")
    }

    /// Enables the built-in `std::move` and `std::forward`. Default: `true`.
    ///
    /// NVRTC: `--builtin-move-forward`.
    #[doc(alias = "builtin-move-forward")]
    #[must_use]
    pub fn with_builtin_move_forward(self, enabled: bool) -> Self {
        self.set(
            "--builtin-move-forward",
            if enabled { "true" } else { "false" },
        )
    }

    /// Enables the built-in `std::initializer_list`. Default: `true`.
    ///
    /// NVRTC: `--builtin-initializer-list`.
    #[doc(alias = "builtin-initializer-list")]
    #[must_use]
    pub fn with_builtin_initializer_list(self, enabled: bool) -> Self {
        self.set(
            "--builtin-initializer-list",
            if enabled { "true" } else { "false" },
        )
    }

    /// Treats all pointer parameters of kernels as `__restrict__` pointers.
    ///
    /// NVRTC: `--restrict`.
    #[doc(alias = "restrict")]
    #[must_use]
    pub fn with_restrict(self) -> Self {
        self.flag("--restrict")
    }

    /// Treats functions and variables without an annotation as `__device__`.
    ///
    /// NVRTC: `--device-as-default-execution-space`.
    #[doc(alias = "device-as-default-execution-space")]
    #[must_use]
    pub fn with_default_device(self) -> Self {
        self.flag("--device-as-default-execution-space")
    }

    /// Allows `__int128`.
    ///
    /// NVRTC: `--device-int128`.
    #[doc(alias = "device-int128")]
    #[must_use]
    pub fn with_int128(self) -> Self {
        self.flag("--device-int128")
    }

    /// Allows `__float128`.
    ///
    /// NVRTC: `--device-float128`, since 12.8.
    #[doc(alias = "device-float128")]
    #[must_use]
    pub fn with_float128(self) -> Self {
        self.flag("--device-float128")
    }

    /// Omits texture and surface functions, the functions and types of the CUDA runtime, and
    /// dynamic parallelism, to compile small programs faster.
    ///
    /// NVRTC: `--minimal`, since 12.4.
    #[doc(alias = "minimal")]
    #[must_use]
    pub fn with_minimal(self) -> Self {
        self.flag("--minimal")
    }

    /// Treats the source as UTF-8 on Windows. On other systems, NVRTC rejects the option.
    ///
    /// NVRTC: `--utf-8`, since 13.4.
    #[doc(alias = "utf-8")]
    #[must_use]
    pub fn with_utf8(self) -> Self {
        self.flag("--utf-8")
    }
}

impl LanguageStandard {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Cxx03 => "c++03",
            Self::Cxx11 => "c++11",
            Self::Cxx14 => "c++14",
            Self::Cxx17 => "c++17",
            Self::Cxx20 => "c++20",
            Self::Cxx23 => "c++23",
        }
    }
}

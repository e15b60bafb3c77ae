//! Options for diagnostics.

use std::num::NonZero;
use std::path::Path;

use super::CompileOptions;

/// Kinds of warnings that can become errors.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WarningKind {
    /// All warnings.
    All,
    /// Members that are initialized in another order than declared.
    Reorder,
    /// Uses of deprecated items.
    Deprecated,
    /// Conversions that may change the value. Requires NVRTC of CUDA 13.4.
    Conversion,
}

impl CompileOptions {
    /// Disables warnings.
    ///
    /// NVRTC: `--disable-warnings`.
    #[doc(alias = "disable-warnings")]
    #[must_use]
    pub fn without_warnings(self) -> Self {
        self.flag("--disable-warnings")
    }

    /// Warns about members that are initialized in another order than declared.
    ///
    /// NVRTC: `--Wreorder`, since 13.1.
    #[doc(alias = "Wreorder")]
    #[must_use]
    pub fn with_reorder_warnings(self) -> Self {
        self.flag("--Wreorder")
    }

    /// Warns about conversions that may change the value.
    ///
    /// NVRTC: `--Wconversion`, since 13.4.
    #[doc(alias = "Wconversion")]
    #[must_use]
    pub fn with_conversion_warnings(self) -> Self {
        self.flag("--Wconversion")
    }

    /// Treats all warnings of a kind as errors.
    ///
    /// NVRTC: `--warning-as-error`, since 13.1.
    #[doc(alias = "warning-as-error")]
    #[must_use]
    pub fn with_warning_as_error(self, kind: WarningKind) -> Self {
        self.add("--warning-as-error", kind.as_str())
    }

    /// Stops after `errors` errors.
    ///
    /// NVRTC: `--fmax-errors`, since 13.4.
    #[doc(alias = "fmax-errors")]
    #[must_use]
    pub fn with_max_errors(self, errors: NonZero<u32>) -> Self {
        self.set("--fmax-errors", &errors.to_string())
    }

    /// Reports inlining decisions.
    ///
    /// NVRTC: `--optimization-info`.
    #[doc(alias = "optimization-info")]
    #[must_use]
    pub fn with_inlining_remarks(self) -> Self {
        self.set("--optimization-info", "inline")
    }

    /// Omits the numbers of diagnostics.
    ///
    /// NVRTC: `--no-display-error-number`.
    #[doc(alias = "no-display-error-number")]
    #[must_use]
    pub fn without_warning_numbers(self) -> Self {
        self.flag("--no-display-error-number")
    }

    /// Treats the warning `number` as an error: 177 for `177-D`.
    ///
    /// NVRTC: `--diag-error`.
    #[doc(alias = "diag-error")]
    #[must_use]
    pub fn with_diagnostic_as_error(self, number: u32) -> Self {
        self.add("--diag-error", &number.to_string())
    }

    /// Treats the diagnostic `number` as a warning.
    ///
    /// NVRTC: `--diag-warn`.
    #[doc(alias = "diag-warn")]
    #[must_use]
    pub fn with_diagnostic_as_warning(self, number: u32) -> Self {
        self.add("--diag-warn", &number.to_string())
    }

    /// Disables the warning `number`.
    ///
    /// NVRTC: `--diag-suppress`.
    #[doc(alias = "diag-suppress")]
    #[must_use]
    pub fn without_diagnostic(self, number: u32) -> Self {
        self.add("--diag-suppress", &number.to_string())
    }

    /// Omits source lines and columns from the log. Diagnostics then have no column.
    ///
    /// NVRTC: `--brief-diagnostics`, since 12.1.
    #[doc(alias = "brief-diagnostics")]
    #[must_use]
    pub fn with_brief_diagnostics(self, enabled: bool) -> Self {
        self.set(
            "--brief-diagnostics",
            if enabled { "true" } else { "false" },
        )
    }

    /// Appends a line with the times of the compiler's phases to `file`, as comma-separated values.
    ///
    /// NVRTC: `--time`, since 12.1.
    #[doc(alias = "time")]
    #[must_use]
    pub fn with_times(self, file: impl AsRef<Path>) -> Self {
        self.set("--time", &file.as_ref().display().to_string())
    }

    /// Writes a time trace of the compiler to `file`, for trace viewers. Since CUDA 13, the
    /// compiler appends `.json` to the name.
    ///
    /// NVRTC: `--fdevice-time-trace`, since 12.8.
    #[doc(alias = "fdevice-time-trace")]
    #[must_use]
    pub fn with_time_trace(self, file: impl AsRef<Path>) -> Self {
        self.set("--fdevice-time-trace", &file.as_ref().display().to_string())
    }
}

impl WarningKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all-warnings",
            Self::Reorder => "reorder",
            Self::Deprecated => "deprecated-declarations",
            Self::Conversion => "conversion",
        }
    }
}

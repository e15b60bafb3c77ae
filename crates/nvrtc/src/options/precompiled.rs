//! Precompiled headers: what was understood of headers once is used again.

use std::path::Path;

use super::CompileOptions;

impl CompileOptions {
    /// Makes a precompiled header, or uses one that fits, as the compiler sees fit.
    ///
    /// NVRTC: `--pch`, since 12.8.
    #[doc(alias = "pch")]
    #[must_use]
    pub fn with_automatic_precompiled_header(self) -> Self {
        self.flag("--pch")
    }

    /// Makes a precompiled header, called `file`, of what the source includes first.
    ///
    /// NVRTC: `--create-pch`, since 12.8.
    #[doc(alias = "create-pch")]
    #[must_use]
    pub fn with_created_precompiled_header(self, file: impl AsRef<Path>) -> Self {
        self.set("--create-pch", &file.as_ref().display().to_string())
    }

    /// Uses the precompiled header called `file`.
    ///
    /// NVRTC: `--use-pch`, since 12.8.
    #[doc(alias = "use-pch")]
    #[must_use]
    pub fn with_used_precompiled_header(self, file: impl AsRef<Path>) -> Self {
        self.set("--use-pch", &file.as_ref().display().to_string())
    }

    /// The folder of precompiled headers.
    ///
    /// NVRTC: `--pch-dir`, since 12.8.
    #[doc(alias = "pch-dir")]
    #[must_use]
    pub fn with_precompiled_header_folder(self, folder: impl AsRef<Path>) -> Self {
        self.set("--pch-dir", &folder.as_ref().display().to_string())
    }

    /// Whether the log says why a precompiled header was not used. Default: yes.
    ///
    /// NVRTC: `--pch-verbose`, since 12.8.
    #[doc(alias = "pch-verbose")]
    #[must_use]
    pub fn with_precompiled_header_reasons(self, enabled: bool) -> Self {
        self.set("--pch-verbose", if enabled { "true" } else { "false" })
    }

    /// Whether the log says which precompiled header was made or used. Default: yes.
    ///
    /// NVRTC: `--pch-messages`, since 12.8.
    #[doc(alias = "pch-messages")]
    #[must_use]
    pub fn with_precompiled_header_messages(self, enabled: bool) -> Self {
        self.set("--pch-messages", if enabled { "true" } else { "false" })
    }

    /// Whether templates are instantiated before the precompiled header is made. Default: yes.
    ///
    /// NVRTC: `--instantiate-templates-in-pch`, since 12.8.
    #[doc(alias = "instantiate-templates-in-pch")]
    #[must_use]
    pub fn with_precompiled_templates(self, enabled: bool) -> Self {
        self.set("--instantiate-templates-in-pch", if enabled { "true" } else { "false" })
    }
}

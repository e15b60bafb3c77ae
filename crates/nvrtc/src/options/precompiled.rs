//! Options for precompiled headers.

use std::path::Path;

use super::CompileOptions;

impl CompileOptions {
    /// Creates or uses precompiled headers automatically.
    ///
    /// NVRTC: `--pch`, since 12.8.
    #[doc(alias = "pch")]
    #[must_use]
    pub fn with_automatic_precompiled_header(self) -> Self {
        self.flag("--pch")
    }

    /// Creates the precompiled header `file` from the leading includes of the source.
    ///
    /// NVRTC: `--create-pch`, since 12.8.
    #[doc(alias = "create-pch")]
    #[must_use]
    pub fn with_created_precompiled_header(self, file: impl AsRef<Path>) -> Self {
        self.set("--create-pch", &file.as_ref().display().to_string())
    }

    /// Uses the precompiled header `file`.
    ///
    /// NVRTC: `--use-pch`, since 12.8.
    #[doc(alias = "use-pch")]
    #[must_use]
    pub fn with_used_precompiled_header(self, file: impl AsRef<Path>) -> Self {
        self.set("--use-pch", &file.as_ref().display().to_string())
    }

    /// Sets the folder of precompiled headers.
    ///
    /// NVRTC: `--pch-dir`, since 12.8.
    #[doc(alias = "pch-dir")]
    #[must_use]
    pub fn with_precompiled_header_folder(self, folder: impl AsRef<Path>) -> Self {
        self.set("--pch-dir", &folder.as_ref().display().to_string())
    }

    /// Logs why a precompiled header was not used. Default: `true`.
    ///
    /// NVRTC: `--pch-verbose`, since 12.8.
    #[doc(alias = "pch-verbose")]
    #[must_use]
    pub fn with_precompiled_header_reasons(self, enabled: bool) -> Self {
        self.set("--pch-verbose", if enabled { "true" } else { "false" })
    }

    /// Logs which precompiled header was created or used. Default: `true`.
    ///
    /// NVRTC: `--pch-messages`, since 12.8.
    #[doc(alias = "pch-messages")]
    #[must_use]
    pub fn with_precompiled_header_messages(self, enabled: bool) -> Self {
        self.set("--pch-messages", if enabled { "true" } else { "false" })
    }

    /// Instantiates templates before the precompiled header is created. Default: `true`.
    ///
    /// NVRTC: `--instantiate-templates-in-pch`, since 12.8.
    #[doc(alias = "instantiate-templates-in-pch")]
    #[must_use]
    pub fn with_precompiled_templates(self, enabled: bool) -> Self {
        self.set(
            "--instantiate-templates-in-pch",
            if enabled { "true" } else { "false" },
        )
    }
}

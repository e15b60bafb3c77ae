//! Options for code generation.

use super::CompileOptions;

/// The trade-off between compile time and the speed of the code.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FastCompile {
    /// All optimizations.
    Off,
    /// Omits a few expensive optimizations.
    Min,
    /// Omits the expensive optimizations.
    Mid,
    /// Omits many optimizations.
    Max,
}

/// The output for a source with Tile code.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TileMode {
    /// Tile IR for the Tile code, and PTX for the rest.
    Both,
    /// Tile IR only.
    TileOnly,
    /// PTX only.
    SimtOnly,
}

impl CompileOptions {
    /// Generates relocatable code, which can be linked with other code.
    ///
    /// NVRTC: `--relocatable-device-code`.
    #[doc(alias = "relocatable-device-code")]
    #[must_use]
    pub fn with_relocatable_code(self, enabled: bool) -> Self {
        self.set(
            "--relocatable-device-code",
            if enabled { "true" } else { "false" },
        )
    }

    /// Generates extensible whole programs, to which other code can be linked.
    ///
    /// NVRTC: `--extensible-whole-program`.
    #[doc(alias = "extensible-whole-program")]
    #[must_use]
    pub fn with_extensible_whole_program(self) -> Self {
        self.flag("--extensible-whole-program")
    }

    /// Generates debug information. Disables optimization unless
    /// [`CompileOptions::with_device_optimization`] is set.
    ///
    /// NVRTC: `--device-debug`.
    #[doc(alias = "device-debug")]
    #[must_use]
    pub fn with_device_debug(self) -> Self {
        self.flag("--device-debug")
    }

    /// Generates line numbers for profilers and debuggers.
    ///
    /// NVRTC: `--generate-line-info`.
    #[doc(alias = "generate-line-info")]
    #[must_use]
    pub fn with_line_info(self) -> Self {
        self.flag("--generate-line-info")
    }

    /// Optimizes, even with debug information.
    ///
    /// NVRTC: `--dopt`.
    #[doc(alias = "dopt")]
    #[must_use]
    pub fn with_device_optimization(self) -> Self {
        self.set("--dopt", "on")
    }

    /// Compiles faster at the expense of the speed of the code.
    ///
    /// NVRTC: `--Ofast-compile`, since 12.9.
    #[doc(alias = "Ofast-compile")]
    #[must_use]
    pub fn with_fast_compile(self, level: FastCompile) -> Self {
        self.set("--Ofast-compile", level.as_str())
    }

    /// Adds an option for the assembler, such as `--verbose`.
    ///
    /// NVRTC: `--ptxas-options`.
    #[doc(alias = "ptxas-options")]
    #[must_use]
    pub fn with_ptxas_option(self, option: &str) -> Self {
        self.add("--ptxas-options", option)
    }

    /// Limits the number of registers per thread.
    ///
    /// NVRTC: `--maxrregcount`.
    #[doc(alias = "maxrregcount")]
    #[must_use]
    pub fn with_max_registers(self, registers: u32) -> Self {
        self.set("--maxrregcount", &registers.to_string())
    }

    /// Flushes single-precision denormal values to zero.
    ///
    /// NVRTC: `--ftz`.
    #[doc(alias = "ftz")]
    #[must_use]
    pub fn with_flush_to_zero(self, enabled: bool) -> Self {
        self.set("--ftz", if enabled { "true" } else { "false" })
    }

    /// Rounds single-precision square roots correctly (IEEE 754). Default: `true`.
    ///
    /// NVRTC: `--prec-sqrt`.
    #[doc(alias = "prec-sqrt")]
    #[must_use]
    pub fn with_precise_square_root(self, enabled: bool) -> Self {
        self.set("--prec-sqrt", if enabled { "true" } else { "false" })
    }

    /// Rounds single-precision divisions correctly (IEEE 754). Default: `true`.
    ///
    /// NVRTC: `--prec-div`.
    #[doc(alias = "prec-div")]
    #[must_use]
    pub fn with_precise_division(self, enabled: bool) -> Self {
        self.set("--prec-div", if enabled { "true" } else { "false" })
    }

    /// Contracts multiplications and additions to fused multiply-adds. Default: `true`.
    ///
    /// NVRTC: `--fmad`.
    #[doc(alias = "fmad")]
    #[must_use]
    pub fn with_fused_multiply_add(self, enabled: bool) -> Self {
        self.set("--fmad", if enabled { "true" } else { "false" })
    }

    /// Enables fast math: flushes to zero, contracts, and approximates divisions and square roots.
    ///
    /// NVRTC: `--use_fast_math`.
    #[doc(alias = "use_fast_math")]
    #[must_use]
    pub fn with_fast_math(self) -> Self {
        self.flag("--use_fast_math")
    }

    /// Allows the optimizer to ignore the sign of zero.
    ///
    /// NVRTC: `--fno-signed-zeros`, since 13.4.
    #[doc(alias = "fno-signed-zeros")]
    #[must_use]
    pub fn with_no_signed_zeros(self) -> Self {
        self.flag("--fno-signed-zeros")
    }

    /// Allows the optimizer to assume finite values.
    ///
    /// NVRTC: `--ffinite-math-only`, since 13.4.
    #[doc(alias = "ffinite-math-only")]
    #[must_use]
    pub fn with_finite_math_only(self) -> Self {
        self.flag("--ffinite-math-only")
    }

    /// Vectorizes more aggressively.
    ///
    /// NVRTC: `--extra-device-vectorization`.
    #[doc(alias = "extra-device-vectorization")]
    #[must_use]
    pub fn with_extra_vectorization(self) -> Self {
        self.flag("--extra-device-vectorization")
    }

    /// Allows the compiler to raise the stack limit of the process while it runs (Linux). Default:
    /// `true`.
    ///
    /// NVRTC: `--modify-stack-limit`.
    #[doc(alias = "modify-stack-limit")]
    #[must_use]
    pub fn with_raised_stack_limit(self, enabled: bool) -> Self {
        self.set(
            "--modify-stack-limit",
            if enabled { "true" } else { "false" },
        )
    }

    /// Generates LTO IR for [`Linker`](crate::Linker) instead of PTX.
    ///
    /// NVRTC: `--dlink-time-opt`.
    #[doc(alias = "dlink-time-opt")]
    #[must_use]
    pub fn with_link_time_optimization(self) -> Self {
        self.flag("--dlink-time-opt")
    }

    /// Optimizes before the LTO IR is generated.
    ///
    /// NVRTC: `--gen-opt-lto`, since 12.0.
    #[doc(alias = "gen-opt-lto")]
    #[must_use]
    pub fn with_optimized_lto_ir(self) -> Self {
        self.flag("--gen-opt-lto")
    }

    /// Generates OptiX IR instead of PTX.
    ///
    /// NVRTC: `--optix-ir`, since 12.0.
    #[doc(alias = "optix-ir")]
    #[must_use]
    pub fn with_optix_ir(self) -> Self {
        self.flag("--optix-ir")
    }

    /// Sets the density of `switch` cases, from 0 to 101 percent, above which the compiler
    /// generates a jump table.
    ///
    /// NVRTC: `--jump-table-density`, since 12.3.
    #[doc(alias = "jump-table-density")]
    #[must_use]
    pub fn with_jump_table_density(self, percent: u32) -> Self {
        self.set("--jump-table-density", &percent.to_string())
    }

    /// Generates stack canaries.
    ///
    /// NVRTC: `--device-stack-protector`, since 12.6.
    #[doc(alias = "device-stack-protector")]
    #[must_use]
    pub fn with_stack_protector(self, enabled: bool) -> Self {
        self.set(
            "--device-stack-protector",
            if enabled { "true" } else { "false" },
        )
    }

    /// Optimizes with `threads` threads; 0 means one per CPU core.
    ///
    /// NVRTC: `--split-compile`, since 12.2.
    #[doc(alias = "split-compile")]
    #[must_use]
    pub fn with_split_compile(self, threads: u32) -> Self {
        self.set("--split-compile", &threads.to_string())
    }

    /// Makes generated names depend on `seed` only, so that equal programs produce equal code.
    ///
    /// NVRTC: `--frandom-seed`, since 12.9.
    #[doc(alias = "frandom-seed")]
    #[must_use]
    pub fn with_random_seed(self, seed: &str) -> Self {
        self.set("--frandom-seed", seed)
    }

    /// Checks the syntax only, and generates no code.
    ///
    /// NVRTC: `--fdevice-syntax-only`, since 12.4.
    #[doc(alias = "fdevice-syntax-only")]
    #[must_use]
    pub fn with_syntax_check_only(self) -> Self {
        self.flag("--fdevice-syntax-only")
    }

    /// Disables the compiler's own cache.
    ///
    /// NVRTC: `--no-cache`, since 12.9.
    #[doc(alias = "no-cache")]
    #[must_use]
    pub fn without_compiler_cache(self) -> Self {
        self.flag("--no-cache")
    }

    /// Enables Tile code, and selects its output.
    ///
    /// NVRTC: `--enable-tile`, since 13.3.
    #[doc(alias = "enable-tile")]
    #[must_use]
    pub fn with_tile(self, mode: TileMode) -> Self {
        self.flag(mode.as_str())
    }

    /// Treats functions and variables without an annotation as Tile code.
    ///
    /// NVRTC: `--default-tile`, since 13.3.
    #[doc(alias = "default-tile")]
    #[must_use]
    pub fn with_default_tile(self) -> Self {
        self.flag("--default-tile")
    }

    /// Reports variables that cannot be Tile code.
    ///
    /// NVRTC: `--diagnose-implicit-tile-var`, since 13.3.
    #[doc(alias = "diagnose-implicit-tile-var")]
    #[must_use]
    pub fn with_tile_diagnostics(self) -> Self {
        self.flag("--diagnose-implicit-tile-var")
    }

    /// Enables preview features of Tile code together with SIMT code.
    ///
    /// NVRTC: `--tile-preview`, since 13.5.
    #[doc(alias = "tile-preview")]
    #[must_use]
    pub fn with_tile_preview(self) -> Self {
        self.set("--tile-preview", "SIMT")
    }
}

impl FastCompile {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "0",
            Self::Min => "min",
            Self::Mid => "mid",
            Self::Max => "max",
        }
    }
}

impl TileMode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Both => "--enable-tile",
            Self::TileOnly => "--tile-only",
            Self::SimtOnly => "--simt-only",
        }
    }
}

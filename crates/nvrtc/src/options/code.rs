//! How code is made: for what, how fast, and how exact.

use super::CompileOptions;

/// How much the compiler gives up to be fast itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FastCompile {
    /// Nothing.
    Off,
    /// A few expensive optimisations.
    Min,
    /// The expensive optimisations.
    Mid,
    /// Many optimisations.
    Max,
}

/// What is made of a source with Tile code.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TileMode {
    /// Tile IR of the Tile code, and PTX of the rest.
    Both,
    /// Tile IR alone.
    TileOnly,
    /// PTX alone.
    SimtOnly,
}

impl CompileOptions {
    /// Whether the code can be linked with other code.
    ///
    /// NVRTC: `--relocatable-device-code`.
    #[doc(alias = "relocatable-device-code")]
    #[must_use]
    pub fn with_relocatable_code(self, enabled: bool) -> Self {
        self.set("--relocatable-device-code", if enabled { "true" } else { "false" })
    }

    /// Makes whole programs that other code may be linked to.
    ///
    /// NVRTC: `--extensible-whole-program`.
    #[doc(alias = "extensible-whole-program")]
    #[must_use]
    pub fn with_extensible_whole_program(self) -> Self {
        self.flag("--extensible-whole-program")
    }

    /// Makes debug information, and optimises nothing unless [`CompileOptions::with_device_optimization`] is used too.
    ///
    /// NVRTC: `--device-debug`.
    #[doc(alias = "device-debug")]
    #[must_use]
    pub fn with_device_debug(self) -> Self {
        self.flag("--device-debug")
    }

    /// Notes which instruction comes from which line, for profilers and debuggers.
    ///
    /// NVRTC: `--generate-line-info`.
    #[doc(alias = "generate-line-info")]
    #[must_use]
    pub fn with_line_info(self) -> Self {
        self.flag("--generate-line-info")
    }

    /// Optimises, even with debug information.
    ///
    /// NVRTC: `--dopt`.
    #[doc(alias = "dopt")]
    #[must_use]
    pub fn with_device_optimization(self) -> Self {
        self.set("--dopt", "on")
    }

    /// Trades the speed of the code for that of the compiler.
    ///
    /// NVRTC: `--Ofast-compile`, since 12.9.
    #[doc(alias = "Ofast-compile")]
    #[must_use]
    pub fn with_fast_compile(self, level: FastCompile) -> Self {
        self.set("--Ofast-compile", level.as_str())
    }

    /// One more option of the assembler, such as `--verbose`.
    ///
    /// NVRTC: `--ptxas-options`.
    #[doc(alias = "ptxas-options")]
    #[must_use]
    pub fn with_ptxas_option(self, option: &str) -> Self {
        self.add("--ptxas-options", option)
    }

    /// The most registers that a thread may use.
    ///
    /// NVRTC: `--maxrregcount`.
    #[doc(alias = "maxrregcount")]
    #[must_use]
    pub fn with_max_registers(self, registers: u32) -> Self {
        self.set("--maxrregcount", &registers.to_string())
    }

    /// Whether single-precision values too small for a normal number become zero.
    ///
    /// NVRTC: `--ftz`.
    #[doc(alias = "ftz")]
    #[must_use]
    pub fn with_flush_to_zero(self, enabled: bool) -> Self {
        self.set("--ftz", if enabled { "true" } else { "false" })
    }

    /// Whether single-precision square roots are rounded exactly. Default: yes.
    ///
    /// NVRTC: `--prec-sqrt`.
    #[doc(alias = "prec-sqrt")]
    #[must_use]
    pub fn with_precise_square_root(self, enabled: bool) -> Self {
        self.set("--prec-sqrt", if enabled { "true" } else { "false" })
    }

    /// Whether single-precision quotients are rounded exactly. Default: yes.
    ///
    /// NVRTC: `--prec-div`.
    #[doc(alias = "prec-div")]
    #[must_use]
    pub fn with_precise_division(self, enabled: bool) -> Self {
        self.set("--prec-div", if enabled { "true" } else { "false" })
    }

    /// Whether a product and a sum may become one operation, rounded once. Default: yes.
    ///
    /// NVRTC: `--fmad`.
    #[doc(alias = "fmad")]
    #[must_use]
    pub fn with_fused_multiply_add(self, enabled: bool) -> Self {
        self.set("--fmad", if enabled { "true" } else { "false" })
    }

    /// Fast and inexact: flushes to zero, fuses, and neither divides nor takes roots exactly.
    ///
    /// NVRTC: `--use_fast_math`.
    #[doc(alias = "use_fast_math")]
    #[must_use]
    pub fn with_fast_math(self) -> Self {
        self.flag("--use_fast_math")
    }

    /// Lets the optimiser take -0 for +0.
    ///
    /// NVRTC: `--fno-signed-zeros`, since 13.4.
    #[doc(alias = "fno-signed-zeros")]
    #[must_use]
    pub fn with_no_signed_zeros(self) -> Self {
        self.flag("--fno-signed-zeros")
    }

    /// Lets the optimiser take every value for a finite number.
    ///
    /// NVRTC: `--ffinite-math-only`, since 13.4.
    #[doc(alias = "ffinite-math-only")]
    #[must_use]
    pub fn with_finite_math_only(self) -> Self {
        self.flag("--ffinite-math-only")
    }

    /// Vectorises more.
    ///
    /// NVRTC: `--extra-device-vectorization`.
    #[doc(alias = "extra-device-vectorization")]
    #[must_use]
    pub fn with_extra_vectorization(self) -> Self {
        self.flag("--extra-device-vectorization")
    }

    /// Whether the compiler may raise the stack limit of the whole process while it runs (Linux). Default: yes.
    ///
    /// NVRTC: `--modify-stack-limit`.
    #[doc(alias = "modify-stack-limit")]
    #[must_use]
    pub fn with_raised_stack_limit(self, enabled: bool) -> Self {
        self.set("--modify-stack-limit", if enabled { "true" } else { "false" })
    }

    /// Makes LTO IR, for [`Linker`](crate::Linker), in place of PTX.
    ///
    /// NVRTC: `--dlink-time-opt`.
    #[doc(alias = "dlink-time-opt")]
    #[must_use]
    pub fn with_link_time_optimization(self) -> Self {
        self.flag("--dlink-time-opt")
    }

    /// Optimises before the LTO IR is made.
    ///
    /// NVRTC: `--gen-opt-lto`, since 12.0.
    #[doc(alias = "gen-opt-lto")]
    #[must_use]
    pub fn with_optimized_lto_ir(self) -> Self {
        self.flag("--gen-opt-lto")
    }

    /// Makes OptiX IR in place of PTX.
    ///
    /// NVRTC: `--optix-ir`, since 12.0.
    #[doc(alias = "optix-ir")]
    #[must_use]
    pub fn with_optix_ir(self) -> Self {
        self.flag("--optix-ir")
    }

    /// How densely the cases of a `switch` must lie for a jump table, from 0 to 101 per cent.
    ///
    /// NVRTC: `--jump-table-density`, since 12.3.
    #[doc(alias = "jump-table-density")]
    #[must_use]
    pub fn with_jump_table_density(self, percent: u32) -> Self {
        self.set("--jump-table-density", &percent.to_string())
    }

    /// Whether functions check that nothing wrote beyond their variables.
    ///
    /// NVRTC: `--device-stack-protector`, since 12.6.
    #[doc(alias = "device-stack-protector")]
    #[must_use]
    pub fn with_stack_protector(self, enabled: bool) -> Self {
        self.set("--device-stack-protector", if enabled { "true" } else { "false" })
    }

    /// Optimises with so many threads; 0 is as many as there are.
    ///
    /// NVRTC: `--split-compile`, since 12.2.
    #[doc(alias = "split-compile")]
    #[must_use]
    pub fn with_split_compile(self, threads: u32) -> Self {
        self.set("--split-compile", &threads.to_string())
    }

    /// Makes generated names depend on `seed` alone, so that equal programs give equal code.
    ///
    /// NVRTC: `--frandom-seed`, since 12.9.
    #[doc(alias = "frandom-seed")]
    #[must_use]
    pub fn with_random_seed(self, seed: &str) -> Self {
        self.set("--frandom-seed", seed)
    }

    /// Makes no code.
    ///
    /// NVRTC: `--fdevice-syntax-only`, since 12.4.
    #[doc(alias = "fdevice-syntax-only")]
    #[must_use]
    pub fn with_syntax_check_only(self) -> Self {
        self.flag("--fdevice-syntax-only")
    }

    /// Keeps the compiler from using its own cache.
    ///
    /// NVRTC: `--no-cache`, since 12.9.
    #[doc(alias = "no-cache")]
    #[must_use]
    pub fn without_compiler_cache(self) -> Self {
        self.flag("--no-cache")
    }

    /// Understands Tile code, and makes what `mode` says.
    ///
    /// NVRTC: `--enable-tile`, since 13.3.
    #[doc(alias = "enable-tile")]
    #[must_use]
    pub fn with_tile(self, mode: TileMode) -> Self {
        self.flag(mode.as_str())
    }

    /// Takes functions and variables without an annotation for Tile code.
    ///
    /// NVRTC: `--default-tile`, since 13.3.
    #[doc(alias = "default-tile")]
    #[must_use]
    pub fn with_default_tile(self) -> Self {
        self.flag("--default-tile")
    }

    /// Tells of variables that cannot be Tile code.
    ///
    /// NVRTC: `--diagnose-implicit-tile-var`, since 13.3.
    #[doc(alias = "diagnose-implicit-tile-var")]
    #[must_use]
    pub fn with_tile_diagnostics(self) -> Self {
        self.flag("--diagnose-implicit-tile-var")
    }

    /// Understands what is new in Tile code, together with ordinary code.
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

//! Options of the driver's JIT compiler and linker.

use curium_sys::{CUjit_cacheMode, CUjit_fallback, CUjit_option, CUjit_target};

use super::{HostSymbol, LtoOptions};
use crate::ComputeCapability;

/// Options of the JIT compiler, linker and loader. The default leaves every choice to the driver.
///
/// Loading fails if the driver is too old for an option. A directive in the PTX, such as
/// `.maxntid`, takes precedence over the corresponding option unless
/// [`JitOptions::with_override_directives`] is set.
///
/// ```
/// use curium_driver::JitOptions;
///
/// let options = JitOptions::new().with_optimization_level(3).with_line_info(true);
/// assert_eq!(options.optimization_level, Some(3));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JitOptions<'a> {
    /// The maximum number of registers per thread.
    pub max_registers: Option<u32>,
    /// The minimum number of threads per block to compile for.
    pub threads_per_block: Option<u32>,
    /// The optimization level, from 0 (fast compilation) to 4 (the driver's default).
    pub optimization_level: Option<u32>,
    /// The target architecture; `None` selects the architecture of the context
    /// (`CU_JIT_TARGET_FROM_CUCONTEXT`).
    pub target: Option<JitTarget>,
    /// The fallback if an image contains no exactly matching machine code.
    pub fallback: Option<JitFallback>,
    /// `true` to generate debug information.
    pub debug_info: bool,
    /// `true` to generate line number information.
    pub line_info: bool,
    /// `true` for a verbose log, which includes the registers of each kernel.
    pub verbose: bool,
    /// `true` to measure the compile time.
    pub measure_time: bool,
    /// The caching of loads from global memory.
    pub cache_mode: Option<JitCacheMode>,
    /// `true` to generate position-independent code.
    pub position_independent_code: Option<bool>,
    /// The minimum number of blocks per multiprocessor. Since 12.3.
    pub min_blocks_per_multiprocessor: Option<u32>,
    /// The maximum number of threads per block. Since 12.3.
    pub max_threads_per_block: Option<u32>,
    /// `true` if options take precedence over PTX directives. Since 12.3.
    pub override_directives: Option<bool>,
    /// The number of compiler threads: 0 for one per CPU core, 1 to compile without splitting.
    /// Since 12.4.
    pub split_compile: Option<u32>,
    /// The number of loader threads: 0 for one per CPU core. Since 12.8.
    pub loader_threads: Option<u32>,
    /// Addresses of external symbols.
    pub symbols: &'a [HostSymbol<'a>],
    /// Options for LTO IR of CUDA 11, which newer compilers ignore or reject.
    pub lto: Option<LtoOptions<'a>>,
}

/// A target architecture.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JitTarget(CUjit_target);

/// The fallback if an image contains no machine code that matches the device exactly.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum JitFallback {
    /// Compiles PTX.
    PreferPtx,
    /// Uses compatible machine code for another architecture if available, otherwise compiles PTX.
    PreferBinary,
}

/// The default caching of loads from global memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum JitCacheMode {
    /// The compiler's default.
    Default,
    /// In the L2 cache only.
    L2,
    /// In the L1 and L2 caches.
    L1AndL2,
}

impl<'a> JitOptions<'a> {
    /// Returns options that leave every choice to the driver.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            max_registers: None,
            threads_per_block: None,
            optimization_level: None,
            target: None,
            fallback: None,
            debug_info: false,
            line_info: false,
            verbose: false,
            measure_time: false,
            cache_mode: None,
            position_independent_code: None,
            min_blocks_per_multiprocessor: None,
            max_threads_per_block: None,
            override_directives: None,
            split_compile: None,
            loader_threads: None,
            symbols: &[],
            lto: None,
        }
    }

    /// Sets the maximum number of registers per thread.
    #[must_use]
    pub const fn with_max_registers(mut self, registers: u32) -> Self {
        self.max_registers = Some(registers);
        self
    }

    /// Sets the minimum number of threads per block to compile for.
    #[must_use]
    pub const fn with_threads_per_block(mut self, threads: u32) -> Self {
        self.threads_per_block = Some(threads);
        self
    }

    /// Sets the optimization level, from 0 to 4.
    #[must_use]
    pub const fn with_optimization_level(mut self, level: u32) -> Self {
        self.optimization_level = Some(level);
        self
    }

    /// Sets the target architecture.
    #[must_use]
    pub const fn with_target(mut self, target: JitTarget) -> Self {
        self.target = Some(target);
        self
    }

    /// Sets the fallback for images without exactly matching machine code.
    #[must_use]
    pub const fn with_fallback(mut self, fallback: JitFallback) -> Self {
        self.fallback = Some(fallback);
        self
    }

    /// Enables or disables debug information.
    #[must_use]
    pub const fn with_debug_info(mut self, debug_info: bool) -> Self {
        self.debug_info = debug_info;
        self
    }

    /// Enables or disables line numbers.
    #[must_use]
    pub const fn with_line_info(mut self, line_info: bool) -> Self {
        self.line_info = line_info;
        self
    }

    /// Enables or disables a verbose log.
    #[must_use]
    pub const fn with_verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Enables or disables the measurement of compile time.
    #[must_use]
    pub const fn with_measure_time(mut self, measure_time: bool) -> Self {
        self.measure_time = measure_time;
        self
    }

    /// Sets the default caching of loads.
    #[must_use]
    pub const fn with_cache_mode(mut self, cache_mode: JitCacheMode) -> Self {
        self.cache_mode = Some(cache_mode);
        self
    }

    /// Enables or disables position-independent code.
    #[must_use]
    pub const fn with_position_independent_code(mut self, position_independent_code: bool) -> Self {
        self.position_independent_code = Some(position_independent_code);
        self
    }

    /// Sets the minimum number of blocks per multiprocessor. Since 12.3.
    #[must_use]
    pub const fn with_min_blocks_per_multiprocessor(mut self, blocks: u32) -> Self {
        self.min_blocks_per_multiprocessor = Some(blocks);
        self
    }

    /// Sets the maximum number of threads per block. Since 12.3.
    #[must_use]
    pub const fn with_max_threads_per_block(mut self, threads: u32) -> Self {
        self.max_threads_per_block = Some(threads);
        self
    }

    /// Enables or disables the precedence of options over PTX directives. Since 12.3.
    #[must_use]
    pub const fn with_override_directives(mut self, override_directives: bool) -> Self {
        self.override_directives = Some(override_directives);
        self
    }

    /// Sets the number of compiler threads; 0 for one per CPU core. Since 12.4.
    #[must_use]
    pub const fn with_split_compile(mut self, threads: u32) -> Self {
        self.split_compile = Some(threads);
        self
    }

    /// Sets the number of loader threads; 0 for one per CPU core. Since 12.8.
    #[must_use]
    pub const fn with_loader_threads(mut self, threads: u32) -> Self {
        self.loader_threads = Some(threads);
        self
    }

    /// Sets the addresses of external symbols.
    #[must_use]
    pub const fn with_symbols(mut self, symbols: &'a [HostSymbol<'a>]) -> Self {
        self.symbols = symbols;
        self
    }

    /// Sets the options for LTO IR of CUDA 11.
    #[must_use]
    pub const fn with_lto(mut self, lto: LtoOptions<'a>) -> Self {
        self.lto = Some(lto);
        self
    }

    /// Returns `true` if the options borrow names or symbols.
    pub(crate) fn borrows(&self) -> bool {
        let lto = self.lto.unwrap_or_default();
        !(self.symbols.is_empty()
            && lto.referenced_kernels.is_empty()
            && lto.referenced_variables.is_empty())
    }

    /// Returns the options without a lifetime, or `None` if they borrow names or symbols.
    pub(crate) fn to_static(self) -> Option<JitOptions<'static>> {
        if self.borrows() {
            return None;
        }
        Some(JitOptions {
            max_registers: self.max_registers,
            threads_per_block: self.threads_per_block,
            optimization_level: self.optimization_level,
            target: self.target,
            fallback: self.fallback,
            debug_info: self.debug_info,
            line_info: self.line_info,
            verbose: self.verbose,
            measure_time: self.measure_time,
            cache_mode: self.cache_mode,
            position_independent_code: self.position_independent_code,
            min_blocks_per_multiprocessor: self.min_blocks_per_multiprocessor,
            max_threads_per_block: self.max_threads_per_block,
            override_directives: self.override_directives,
            split_compile: self.split_compile,
            loader_threads: self.loader_threads,
            symbols: &[],
            lto: self.lto.map(|lto| LtoOptions {
                flush_to_zero: lto.flush_to_zero,
                precise_division: lto.precise_division,
                precise_square_root: lto.precise_square_root,
                fused_multiply_add: lto.fused_multiply_add,
                referenced_kernels: &[],
                referenced_variables: &[],
                remove_unused_variables: lto.remove_unused_variables,
            }),
        })
    }

    /// Returns the options that are set and have an integer value.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (CUjit_option, u32)> {
        let lto = self.lto.unwrap_or_default();
        [
            (CUjit_option::CU_JIT_MAX_REGISTERS, self.max_registers),
            (
                CUjit_option::CU_JIT_THREADS_PER_BLOCK,
                self.threads_per_block,
            ),
            (
                CUjit_option::CU_JIT_OPTIMIZATION_LEVEL,
                self.optimization_level,
            ),
            (
                CUjit_option::CU_JIT_TARGET,
                self.target.map(|target| target.0.0),
            ),
            (
                CUjit_option::CU_JIT_FALLBACK_STRATEGY,
                self.fallback.map(JitFallback::raw),
            ),
            (
                CUjit_option::CU_JIT_GENERATE_DEBUG_INFO,
                self.debug_info.then_some(1),
            ),
            (
                CUjit_option::CU_JIT_GENERATE_LINE_INFO,
                self.line_info.then_some(1),
            ),
            (CUjit_option::CU_JIT_LOG_VERBOSE, self.verbose.then_some(1)),
            (
                CUjit_option::CU_JIT_CACHE_MODE,
                self.cache_mode.map(JitCacheMode::raw),
            ),
            (
                CUjit_option::CU_JIT_POSITION_INDEPENDENT_CODE,
                self.position_independent_code.map(u32::from),
            ),
            (
                CUjit_option::CU_JIT_MIN_CTA_PER_SM,
                self.min_blocks_per_multiprocessor,
            ),
            (
                CUjit_option::CU_JIT_MAX_THREADS_PER_BLOCK,
                self.max_threads_per_block,
            ),
            (
                CUjit_option::CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
                self.override_directives.map(u32::from),
            ),
            (CUjit_option::CU_JIT_SPLIT_COMPILE, self.split_compile),
            (
                CUjit_option::CU_JIT_BINARY_LOADER_THREAD_COUNT,
                self.loader_threads,
            ),
            (CUjit_option::CU_JIT_LTO, self.lto.map(|_| 1)),
            (CUjit_option::CU_JIT_FTZ, lto.flush_to_zero.map(u32::from)),
            (
                CUjit_option::CU_JIT_PREC_DIV,
                lto.precise_division.map(u32::from),
            ),
            (
                CUjit_option::CU_JIT_PREC_SQRT,
                lto.precise_square_root.map(u32::from),
            ),
            (
                CUjit_option::CU_JIT_FMA,
                lto.fused_multiply_add.map(u32::from),
            ),
            (
                CUjit_option::CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
                lto.remove_unused_variables.then_some(1),
            ),
        ]
        .into_iter()
        .filter_map(|(option, value)| Some((option, value?)))
    }
}

impl JitTarget {
    /// Returns the target of a compute capability, such as `sm_90` for 9.0.
    #[must_use]
    pub const fn new(capability: ComputeCapability) -> Self {
        // An invalid version becomes a target that the driver rejects.
        Self(CUjit_target(
            capability
                .major
                .saturating_mul(10)
                .saturating_add(capability.minor),
        ))
    }

    /// Enables architecture-specific features, such as `sm_90a`.
    #[must_use]
    pub const fn architecture_specific(self) -> Self {
        self.with_suffix(CUjit_target::CU_TARGET_COMPUTE_90A)
    }

    /// Enables family-specific features, such as `sm_100f`.
    #[must_use]
    pub const fn family_specific(self) -> Self {
        self.with_suffix(CUjit_target::CU_TARGET_COMPUTE_100F)
    }

    /// Sets the suffix of a target, which is encoded above its architecture number.
    const fn with_suffix(self, other: CUjit_target) -> Self {
        const NUMBER: u32 = 0xffff;
        Self(CUjit_target(self.0.0 & NUMBER | other.0 & !NUMBER))
    }

    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn as_raw(self) -> CUjit_target {
        self.0
    }
}

impl JitFallback {
    fn raw(self) -> u32 {
        match self {
            Self::PreferPtx => CUjit_fallback::CU_PREFER_PTX.0,
            Self::PreferBinary => CUjit_fallback::CU_PREFER_BINARY.0,
        }
    }
}

impl JitCacheMode {
    fn raw(self) -> u32 {
        match self {
            Self::Default => CUjit_cacheMode::CU_JIT_CACHE_OPTION_NONE.0,
            Self::L2 => CUjit_cacheMode::CU_JIT_CACHE_OPTION_CG.0,
            Self::L1AndL2 => CUjit_cacheMode::CU_JIT_CACHE_OPTION_CA.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_the_drivers_numbers() {
        fn target(major: u32, minor: u32) -> JitTarget {
            JitTarget::new(ComputeCapability { major, minor })
        }
        assert_eq!(target(7, 5).as_raw(), CUjit_target::CU_TARGET_COMPUTE_75);
        assert_eq!(
            target(9, 0).architecture_specific().as_raw(),
            CUjit_target::CU_TARGET_COMPUTE_90A
        );
        assert_eq!(
            target(12, 1).family_specific().as_raw(),
            CUjit_target::CU_TARGET_COMPUTE_121F
        );
    }

    #[test]
    fn last_suffix_counts() {
        let target = JitTarget::new(ComputeCapability {
            major: 10,
            minor: 0,
        });
        let last = target.architecture_specific().family_specific();
        assert_eq!(last.as_raw(), CUjit_target::CU_TARGET_COMPUTE_100F);
        assert_eq!(
            last.architecture_specific().as_raw(),
            CUjit_target::CU_TARGET_COMPUTE_100A
        );
    }

    #[test]
    fn unknown_architecture_is_no_target() {
        let target = JitTarget::new(ComputeCapability {
            major: u32::MAX,
            minor: 1,
        });
        assert_eq!(target.as_raw().0, u32::MAX);
    }

    #[test]
    fn only_options_that_were_set_are_passed() {
        assert_eq!(JitOptions::new().numbers().count(), 0);
        let options = JitOptions::new()
            .with_max_registers(32)
            .with_override_directives(false)
            .with_debug_info(true);
        let passed: Vec<_> = options.numbers().collect();
        assert_eq!(
            passed,
            [
                (CUjit_option::CU_JIT_MAX_REGISTERS, 32),
                (CUjit_option::CU_JIT_GENERATE_DEBUG_INFO, 1),
                (CUjit_option::CU_JIT_OVERRIDE_DIRECTIVE_VALUES, 0),
            ]
        );
    }
}

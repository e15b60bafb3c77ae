//! Options of links.

use crate::{Architecture, FastCompile};

/// Options of a link. If nvJitLink is too old for an option,
/// [`NvJitLink::linker`](crate::NvJitLink::linker) returns an error.
///
/// ```
/// use curium_nvrtc::{Architecture, LinkOptions};
///
/// let options = LinkOptions::new(Architecture::new(9, 0).real()).with_link_time_optimization().with_kernel("squares");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkOptions {
    arguments: Vec<String>,
}

impl LinkOptions {
    /// Returns options for `architecture`: a real one, or a virtual one if the output is PTX only.
    ///
    /// nvJitLink: `-arch`.
    #[must_use]
    pub fn new(architecture: impl Into<Architecture>) -> Self {
        Self {
            arguments: vec![format!("-arch={}", architecture.into())],
        }
    }

    /// Optimizes across all LTO IR inputs.
    ///
    /// nvJitLink: `-lto`.
    #[must_use]
    pub fn with_link_time_optimization(self) -> Self {
        self.with_option("-lto")
    }

    /// Generates PTX instead of a cubin. Requires link-time optimization.
    ///
    /// nvJitLink: `-ptx`.
    #[must_use]
    pub fn with_ptx(self) -> Self {
        self.with_option("-ptx")
    }

    /// Generates a relocatable object instead of a whole program. Requires nvJitLink of CUDA 13.1.
    ///
    /// nvJitLink: `-r`.
    #[must_use]
    pub fn with_relocatable_output(self) -> Self {
        self.with_option("-r")
    }

    /// Limits the number of registers per thread.
    ///
    /// nvJitLink: `-maxrregcount`.
    #[must_use]
    pub fn with_max_registers(self, registers: u32) -> Self {
        self.with_option(format!("-maxrregcount={registers}"))
    }

    /// Optimizes the code. Default: `true`.
    ///
    /// nvJitLink: `-O0` or `-O3`.
    #[must_use]
    pub fn with_optimization(self, enabled: bool) -> Self {
        self.with_option(if enabled { "-O3" } else { "-O0" })
    }

    /// Links faster at the expense of the speed of the code. Requires nvJitLink of CUDA 13.5.
    ///
    /// nvJitLink: `-Ofc`.
    #[must_use]
    pub fn with_fast_compile(self, level: FastCompile) -> Self {
        match level {
            FastCompile::Off => self,
            level => self.with_option(format!("-Ofc={}", level.as_str())),
        }
    }

    /// Generates debug information.
    ///
    /// nvJitLink: `-g`.
    #[must_use]
    pub fn with_debug(self) -> Self {
        self.with_option("-g")
    }

    /// Generates line numbers.
    ///
    /// nvJitLink: `-lineinfo`.
    #[must_use]
    pub fn with_line_info(self) -> Self {
        self.with_option("-lineinfo")
    }

    /// Flushes single-precision denormal values to zero.
    ///
    /// nvJitLink: `-ftz`.
    #[must_use]
    pub fn with_flush_to_zero(self, enabled: bool) -> Self {
        self.with_option(format!("-ftz={}", u8::from(enabled)))
    }

    /// Rounds single-precision divisions correctly (IEEE 754).
    ///
    /// nvJitLink: `-prec-div`.
    #[must_use]
    pub fn with_precise_division(self, enabled: bool) -> Self {
        self.with_option(format!("-prec-div={}", u8::from(enabled)))
    }

    /// Rounds single-precision square roots correctly (IEEE 754).
    ///
    /// nvJitLink: `-prec-sqrt`.
    #[must_use]
    pub fn with_precise_square_root(self, enabled: bool) -> Self {
        self.with_option(format!("-prec-sqrt={}", u8::from(enabled)))
    }

    /// Contracts multiplications and additions to fused multiply-adds.
    ///
    /// nvJitLink: `-fma`.
    #[must_use]
    pub fn with_fused_multiply_add(self, enabled: bool) -> Self {
        self.with_option(format!("-fma={}", u8::from(enabled)))
    }

    /// Keeps the kernel `name`. Kernels that are not named may be removed.
    ///
    /// nvJitLink: `-kernels-used`.
    #[must_use]
    pub fn with_kernel(self, name: &str) -> Self {
        self.with_option(format!("-kernels-used={name}"))
    }

    /// Keeps the variable `name`. Variables that are not named may be removed.
    ///
    /// nvJitLink: `-variables-used`.
    #[must_use]
    pub fn with_variable(self, name: &str) -> Self {
        self.with_option(format!("-variables-used={name}"))
    }

    /// Removes variables that no device code uses.
    ///
    /// nvJitLink: `-optimize-unused-variables`.
    #[must_use]
    pub fn with_optimized_unused_variables(self) -> Self {
        self.with_option("-optimize-unused-variables")
    }

    /// Adds an option for the assembler.
    ///
    /// nvJitLink: `-Xptxas`.
    #[must_use]
    pub fn with_ptxas_option(self, option: &str) -> Self {
        self.with_option(format!("-Xptxas={option}"))
    }

    /// Uses the newest code generator for every architecture. Requires nvJitLink of CUDA 13.5.
    ///
    /// nvJitLink: `-nvvm-latest`.
    #[must_use]
    pub fn with_latest_nvvm(self) -> Self {
        self.with_option("-nvvm-latest")
    }

    /// Compiles with `threads` threads; 0 means one per CPU core. Requires nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-split-compile`.
    #[must_use]
    pub fn with_split_compile(self, threads: u32) -> Self {
        self.with_option(format!("-split-compile={threads}"))
    }

    /// Compiles with `threads` threads and more parallelism, at the expense of the speed of the
    /// code. Requires nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-split-compile-extended`.
    #[must_use]
    pub fn with_extended_split_compile(self, threads: u32) -> Self {
        self.with_option(format!("-split-compile-extended={threads}"))
    }

    /// Sets the minimum density of `switch` cases, from 0 to 101 percent, for which a jump table is
    /// generated. Requires nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-jump-table-density`.
    #[must_use]
    pub fn with_jump_table_density(self, percent: u32) -> Self {
        self.with_option(format!("-jump-table-density={percent}"))
    }

    /// Generates stack canaries. Requires nvJitLink of CUDA 12.6.
    ///
    /// nvJitLink: `-device-stack-protector`.
    #[must_use]
    pub fn with_stack_protector(self) -> Self {
        self.with_option("-device-stack-protector")
    }

    /// Disables the linker's own cache. Requires nvJitLink of CUDA 12.5.
    ///
    /// nvJitLink: `-no-cache`.
    #[must_use]
    pub fn without_cache(self) -> Self {
        self.with_option("-no-cache")
    }

    /// Logs the times of the linker's phases.
    ///
    /// nvJitLink: `-time`.
    #[must_use]
    pub fn with_times(self) -> Self {
        self.with_option("-time")
    }

    /// Logs the linker's actions.
    ///
    /// nvJitLink: `-verbose`.
    #[must_use]
    pub fn with_verbose(self) -> Self {
        self.with_option("-verbose")
    }

    /// Adds an option in nvJitLink's spelling.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.arguments.push(option.into());
        self
    }

    /// Returns all options in nvJitLink's spelling.
    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(super) fn has_link_time_optimization(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "-lto")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_the_linker_takes_them() {
        let options = LinkOptions::new(Architecture::new(8, 0).real())
            .with_fused_multiply_add(false)
            .with_kernel("k");
        assert_eq!(
            options.arguments(),
            ["-arch=sm_80", "-fma=0", "-kernels-used=k"]
        );
        assert!(!options.has_link_time_optimization());
        let options = options.with_link_time_optimization();
        assert!(options.has_link_time_optimization());
    }
}

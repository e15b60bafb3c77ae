//! How inputs are linked.

use crate::{Architecture, FastCompile};

/// How inputs are linked. An nvJitLink that is too old for an option says so when the link begins.
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
    /// Links for `architecture`: a real one, or a virtual one if the result is PTX alone.
    ///
    /// nvJitLink: `-arch`.
    #[must_use]
    pub fn new(architecture: impl Into<Architecture>) -> Self {
        Self { arguments: vec![format!("-arch={}", architecture.into())] }
    }

    /// Optimises across all inputs that are LTO IR.
    ///
    /// nvJitLink: `-lto`.
    #[must_use]
    pub fn with_link_time_optimization(self) -> Self {
        self.with_option("-lto")
    }

    /// Makes PTX in place of a cubin, with link-time optimisation only.
    ///
    /// nvJitLink: `-ptx`.
    #[must_use]
    pub fn with_ptx(self) -> Self {
        self.with_option("-ptx")
    }

    /// Makes an object that can be linked further, in place of a whole program. Needs nvJitLink of CUDA 13.1.
    ///
    /// nvJitLink: `-r`.
    #[must_use]
    pub fn with_relocatable_output(self) -> Self {
        self.with_option("-r")
    }

    /// The most registers that a thread may use.
    ///
    /// nvJitLink: `-maxrregcount`.
    #[must_use]
    pub fn with_max_registers(self, registers: u32) -> Self {
        self.with_option(format!("-maxrregcount={registers}"))
    }

    /// Whether the code is optimised. Default: yes.
    ///
    /// nvJitLink: `-O0` or `-O3`.
    #[must_use]
    pub fn with_optimization(self, enabled: bool) -> Self {
        self.with_option(if enabled { "-O3" } else { "-O0" })
    }

    /// Trades the speed of the code for that of the linker. Needs nvJitLink of CUDA 13.5.
    ///
    /// nvJitLink: `-Ofc`.
    #[must_use]
    pub fn with_fast_compile(self, level: FastCompile) -> Self {
        match level {
            FastCompile::Off => self,
            level => self.with_option(format!("-Ofc={}", level.as_str())),
        }
    }

    /// Makes debug information.
    ///
    /// nvJitLink: `-g`.
    #[must_use]
    pub fn with_debug(self) -> Self {
        self.with_option("-g")
    }

    /// Notes which instruction comes from which line.
    ///
    /// nvJitLink: `-lineinfo`.
    #[must_use]
    pub fn with_line_info(self) -> Self {
        self.with_option("-lineinfo")
    }

    /// Whether single-precision values too small for a normal number become zero.
    ///
    /// nvJitLink: `-ftz`.
    #[must_use]
    pub fn with_flush_to_zero(self, enabled: bool) -> Self {
        self.with_option(format!("-ftz={}", u8::from(enabled)))
    }

    /// Whether single-precision quotients are rounded exactly.
    ///
    /// nvJitLink: `-prec-div`.
    #[must_use]
    pub fn with_precise_division(self, enabled: bool) -> Self {
        self.with_option(format!("-prec-div={}", u8::from(enabled)))
    }

    /// Whether single-precision square roots are rounded exactly.
    ///
    /// nvJitLink: `-prec-sqrt`.
    #[must_use]
    pub fn with_precise_square_root(self, enabled: bool) -> Self {
        self.with_option(format!("-prec-sqrt={}", u8::from(enabled)))
    }

    /// Whether a product and a sum may become one operation, rounded once.
    ///
    /// nvJitLink: `-fma`.
    #[must_use]
    pub fn with_fused_multiply_add(self, enabled: bool) -> Self {
        self.with_option(format!("-fma={}", u8::from(enabled)))
    }

    /// Keeps this kernel too; others than those named may be left out.
    ///
    /// nvJitLink: `-kernels-used`.
    #[must_use]
    pub fn with_kernel(self, name: &str) -> Self {
        self.with_option(format!("-kernels-used={name}"))
    }

    /// Keeps this variable too; others than those named may be left out.
    ///
    /// nvJitLink: `-variables-used`.
    #[must_use]
    pub fn with_variable(self, name: &str) -> Self {
        self.with_option(format!("-variables-used={name}"))
    }

    /// Leaves out variables that no code for devices uses.
    ///
    /// nvJitLink: `-optimize-unused-variables`.
    #[must_use]
    pub fn with_optimized_unused_variables(self) -> Self {
        self.with_option("-optimize-unused-variables")
    }

    /// One more option of the assembler.
    ///
    /// nvJitLink: `-Xptxas`.
    #[must_use]
    pub fn with_ptxas_option(self, option: &str) -> Self {
        self.with_option(format!("-Xptxas={option}"))
    }

    /// Uses the newest code generator for every architecture. Needs nvJitLink of CUDA 13.5.
    ///
    /// nvJitLink: `-nvvm-latest`.
    #[must_use]
    pub fn with_latest_nvvm(self) -> Self {
        self.with_option("-nvvm-latest")
    }

    /// Compiles with so many threads; 0 is as many as there are. Needs nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-split-compile`.
    #[must_use]
    pub fn with_split_compile(self, threads: u32) -> Self {
        self.with_option(format!("-split-compile={threads}"))
    }

    /// Compiles with so many threads, and more in parallel at the cost of the code. Needs nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-split-compile-extended`.
    #[must_use]
    pub fn with_extended_split_compile(self, threads: u32) -> Self {
        self.with_option(format!("-split-compile-extended={threads}"))
    }

    /// How densely the cases of a `switch` must lie for a jump table, from 0 to 101 per cent. Needs nvJitLink of CUDA 12.3.
    ///
    /// nvJitLink: `-jump-table-density`.
    #[must_use]
    pub fn with_jump_table_density(self, percent: u32) -> Self {
        self.with_option(format!("-jump-table-density={percent}"))
    }

    /// Has functions check that nothing wrote beyond their variables. Needs nvJitLink of CUDA 12.6.
    ///
    /// nvJitLink: `-device-stack-protector`.
    #[must_use]
    pub fn with_stack_protector(self) -> Self {
        self.with_option("-device-stack-protector")
    }

    /// Keeps the linker from using its own cache. Needs nvJitLink of CUDA 12.5.
    ///
    /// nvJitLink: `-no-cache`.
    #[must_use]
    pub fn without_cache(self) -> Self {
        self.with_option("-no-cache")
    }

    /// Writes the times of its steps to the log.
    ///
    /// nvJitLink: `-time`.
    #[must_use]
    pub fn with_times(self) -> Self {
        self.with_option("-time")
    }

    /// Writes what it does to the log.
    ///
    /// nvJitLink: `-verbose`.
    #[must_use]
    pub fn with_verbose(self) -> Self {
        self.with_option("-verbose")
    }

    /// The same with one more option as nvJitLink takes it.
    #[must_use]
    pub fn with_option(mut self, option: impl Into<String>) -> Self {
        self.arguments.push(option.into());
        self
    }

    /// All options as nvJitLink takes them.
    pub(super) fn to_arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(super) fn is_optimizing(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "-lto")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_the_linker_takes_them() {
        let options = LinkOptions::new(Architecture::new(8, 0).real()).with_fused_multiply_add(false).with_kernel("k");
        assert_eq!(options.to_arguments(), ["-arch=sm_80", "-fma=0", "-kernels-used=k"]);
        assert!(!options.is_optimizing() && options.with_link_time_optimization().is_optimizing());
    }
}

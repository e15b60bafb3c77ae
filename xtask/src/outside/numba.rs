//! The tests that the package of numba-cuda carries.

use anyhow::{Context as _, Result};

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python};

pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let package = crate::package::find(&python::environment(folder), |name| {
        name == "_numba_cuda_redirector.py"
    });
    let package = package.context("the environment holds no numba-cuda")?;
    let suite = Suite {
        root: package
            .with_file_name("numba_cuda")
            .join("numba/cuda/tests"),
        files: &[],
        plugin: Some("numba_tests"),
        options: &["-o", "consider_namespace_packages=true"],
        python: python::simulated_interpreter,
    };
    pytest::test(folder, expected, &suite)
}

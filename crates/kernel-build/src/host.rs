//! The Rust source that `include_kernels!` includes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::Kernels;
use crate::rewrite::Kernel;
use crate::source::{Root, Source};
use crate::target::Target;

/// Returns an invocation of the macro of the device crate that declares `Kernels`. Without tables,
/// the kernels are those of the source.
pub(crate) fn render(
    options: &Kernels,
    root: Option<&Root>,
    images: &[(Target, PathBuf)],
    kernels: &[Kernel],
) -> String {
    let module = match &options.source {
        Source::Module { name, .. } => name,
        Source::Package => "crate",
    };
    let declared_kernels = root.map(|root| &*root.kernels).unwrap_or_default();
    let mut text =
        format!("::curium_kernel::__kernels! {{\n    unsafe module: {module},\n    images: [\n");
    for (target, path) in images {
        let (major, minor) = target.compute_capability();
        let _ = writeln!(
            text,
            "        {{ target: \"{target}\", major: {major}, minor: {minor}, suffix: {:?}, ptx: {:?} }},",
            target.suffix(),
            path.display().to_string()
        );
    }
    text += "    ],\n    kernels: [\n";
    if kernels.is_empty() {
        for path in declared_kernels {
            let name = path.rsplit("::").next().unwrap_or(path);
            let _ = writeln!(
                text,
                "        {{ name: {name}, path: [{path}], table: [] }},"
            );
        }
    }
    for kernel in kernels {
        let name = &kernel.name;
        let declared = declared_kernels
            .iter()
            .find(|path| path.rsplit("::").next() == Some(name));
        let path = match (declared, &options.source) {
            (Some(path), _) => path.clone(),
            // A macro of the module declares it.
            (None, Source::Module { name: module, .. }) => format!("{module}::{name}"),
            (None, Source::Package) => name.clone(),
        };
        let bytes: Vec<String> = kernel.table.iter().map(u8::to_string).collect();
        let _ = writeln!(
            text,
            "        {{ name: {name}, path: [{path}], table: [{}] }},",
            bytes.join(", ")
        );
    }
    text + "    ],\n}\n"
}

/// Returns an item that fails to compile with a message.
pub(crate) fn error(message: &str) -> String {
    format!("::core::compile_error!({message:?});\n")
}

/// Returns the file of an image in the folder of the build.
pub(crate) fn image_path(out: &Path, name: &str, target: &Target) -> PathBuf {
    out.join(format!("{name}.{target}.ptx"))
}

//! Compilation of the CUDA C++ sources.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use curium_driver::{ComputeCapability, Device, Image, JitOptions, Library};
use curium_nvrtc::{Architecture, CompileOptions, Nvrtc, Program};

use crate::{Result, entries};

/// The code of a compiler for all sources.
pub(crate) struct Compiler {
    /// `nvcc` or `NVRTC`.
    pub(crate) name: &'static str,
    pub(crate) version: String,
    /// By the name of the source.
    units: HashMap<&'static str, Unit>,
}

struct Unit {
    library: Library,
    ptx: String,
}

impl Compiler {
    /// Returns the code of a source.
    pub(crate) fn library(&self, source: &str) -> Result<&Library> {
        let unit = self.units.get(source);
        Ok(&unit.ok_or(format!("there is no source {source}"))?.library)
    }

    /// Returns the size of a kernel's PTX in bytes.
    pub(crate) fn ptx_bytes(&self, source: &str, kernel: &str) -> Option<usize> {
        ptx_bytes(&self.units.get(source)?.ptx, kernel)
    }
}

/// Returns the size of the PTX of an entry function in bytes.
pub(crate) fn ptx_bytes(ptx: &str, kernel: &str) -> Option<usize> {
    let start = ptx.find(&format!(".entry {kernel}("))?;
    let length = ptx[start..].find("\n}\n")?;
    Some(length + 3)
}

/// The compilers of this machine.
pub(crate) struct Twins {
    pub(crate) compilers: Vec<Compiler>,
}

impl Twins {
    pub(crate) fn none() -> Self {
        Self {
            compilers: Vec::new(),
        }
    }

    /// Compiles the sources by each compiler of this machine. The simulator runs PTX only, which
    /// NVRTC generates.
    pub(crate) fn compile(device: &Device, is_simulator: bool) -> Result<Self> {
        let capability = device.compute_capability()?;
        let mut compilers = Vec::new();
        if let Some(nvcc) = find_nvcc().filter(|_| !is_simulator) {
            compilers.push(with_nvcc(&nvcc, device, capability)?);
        }
        if let Ok(nvrtc) = Nvrtc::load() {
            compilers.push(with_nvrtc(&nvrtc, device, capability, is_simulator)?);
        }
        if compilers.is_empty() {
            return Err("neither nvcc nor NVRTC was found; pass --no-cuda to run without".into());
        }
        Ok(Self { compilers })
    }
}

/// The architecture of the device, with its specific instructions.
fn architecture(capability: ComputeCapability) -> Architecture {
    let architecture = Architecture::from(capability);
    if capability.major >= 9 {
        architecture.specific()
    } else {
        architecture
    }
}

fn find_nvcc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut toolkits: Vec<PathBuf> = std::fs::read_dir("/usr/local")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.display().to_string().starts_with("/usr/local/cuda"))
        .collect();
    // The newest first.
    toolkits.sort();
    folders.extend(toolkits.iter().rev().map(|toolkit| toolkit.join("bin")));
    folders
        .into_iter()
        .map(|folder| folder.join("nvcc"))
        .find(|path| path.is_file())
}

fn with_nvcc(nvcc: &Path, device: &Device, capability: ComputeCapability) -> Result<Compiler> {
    let folder = std::env::temp_dir().join(format!("curium-beside-cuda-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut units = HashMap::new();
    for (name, text) in entries::SOURCES {
        let source = folder.join(name);
        std::fs::write(&source, text)?;
        let compile = |kind: &str, output: &Path| -> Result<Vec<u8>> {
            let mut command = Command::new(nvcc);
            command
                .args(["-O3", "-std=c++17", kind, "-arch"])
                .arg(architecture(capability).real().to_string())
                .arg(&source)
                .arg("-o")
                .arg(output);
            let result = command.output()?;
            if !result.status.success() {
                let log = String::from_utf8_lossy(&result.stderr);
                return Err(format!("nvcc failed on {name}:\n{log}").into());
            }
            Ok(std::fs::read(output)?)
        };
        let cubin = compile("-cubin", &source.with_extension("cubin"))?;
        let ptx = String::from_utf8(compile("-ptx", &source.with_extension("ptx"))?)?;
        // SAFETY: the image is the output of nvcc.
        let image = unsafe { Image::from_bytes(&cubin) }?;
        let library = Library::from_image(device, &image, &JitOptions::new())?;
        units.insert(*name, Unit { library, ptx });
    }
    std::fs::remove_dir_all(&folder)?;
    let version = Command::new(nvcc).arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout);
    let release = version.split("release ").nth(1).unwrap_or_default();
    Ok(Compiler {
        name: "nvcc",
        version: release.split(',').next().unwrap_or_default().to_owned(),
        units,
    })
}

fn with_nvrtc(
    nvrtc: &Nvrtc,
    device: &Device,
    capability: ComputeCapability,
    is_simulator: bool,
) -> Result<Compiler> {
    let mut units = HashMap::new();
    for (name, text) in entries::SOURCES {
        let program = Program::new(*name, *text);
        let compile = |architecture: Architecture| {
            let options = CompileOptions::new()
                .with_architecture(architecture)
                .with_option("--std=c++17");
            // Without the headers of a toolkit, sources that include some are an error.
            let options = options.clone().with_cuda_headers().unwrap_or(options);
            nvrtc.compile(&program, &options)
        };
        let ptx = compile(architecture(capability))?;
        let library = if is_simulator {
            ptx.library(device, &JitOptions::new())?
        } else {
            compile(architecture(capability).real())?.library(device, &JitOptions::new())?
        };
        let ptx = ptx.ptx()?.to_owned();
        units.insert(*name, Unit { library, ptx });
    }
    Ok(Compiler {
        name: "NVRTC",
        version: nvrtc.version().to_string(),
        units,
    })
}

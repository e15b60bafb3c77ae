//! The scan for headers against the real NVRTC: a program whose header changes is never taken from
//! the cache.

use std::fs;
use std::path::{Path, PathBuf};

use curium_driver::DiskCache;
use curium_nvrtc::{CompileOptions, Nvrtc, Program};

use crate::library::{TestResult, nvrtc};

/// A way to include `value.h`.
struct Case {
    /// The file, relative to the folder of the case, in which the header is written.
    header: &'static str,
    /// The source below the includes is the same for all.
    source: &'static str,
    /// The program's own headers.
    own_headers: &'static [(&'static str, &'static str)],
    /// Other files: path and text.
    files: &'static [(&'static str, &'static str)],
}

const KERNEL: &str = "\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }\n";

/// A case with the header in the folder of the source.
const fn quoted(source: &'static str) -> Case {
    Case {
        header: "src/value.h",
        source,
        own_headers: &[],
        files: &[],
    }
}

const CASES: [Case; 14] = [
    quoted("#include \"value.h\""),
    quoted("# /* a */ include /* b */ \"value.h\" // c"),
    quoted("/* # */ #include \"value.h\""),
    quoted("#inc\\\nlude \\\n\"value.h\""),
    quoted("%:include \"value.h\""),
    quoted("#if __has_include(\"value.h\")\n#include \"value.h\"\n#endif"),
    quoted("#define HEADER \"value.h\"\n#include HEADER"),
    Case {
        header: "include/value.h",
        ..quoted("#include <value.h>")
    },
    Case {
        header: "include/value.h",
        ..quoted("#include \"value.h\"")
    },
    Case {
        header: "include/deep/value.h",
        files: &[("include/deep/a.h", "#include \"value.h\"")],
        ..quoted("#include <deep/a.h>")
    },
    Case {
        header: "include/deep/value.h",
        files: &[(
            "include/deep/a.h",
            "#define NAME(x) <deep/x>\n#include NAME(value.h)",
        )],
        ..quoted("#include <deep/a.h>")
    },
    Case {
        header: "include/value.h",
        own_headers: &[("own/a.h", "#include <value.h>")],
        ..quoted("#include \"own/a.h\"")
    },
    Case {
        header: "second/value.h",
        files: &[
            ("include/next.h", "#include_next <next.h>"),
            ("second/next.h", "#include \"value.h\""),
        ],
        ..quoted("#include <next.h>")
    },
    Case {
        header: "include/value.h",
        ..quoted(
            "#if __has_include(<absent.h>)\n#include <absent.h>\n#else\n#include <value.h>\n#endif",
        )
    },
];

/// Writes a file with its folders.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn options(folder: &Path) -> CompileOptions {
    CompileOptions::new()
        .with_include_path(folder.join("include"))
        .with_include_path(folder.join("second"))
}

/// Compiles `program` before and after the header at `path` changes. Both results must contain the
/// value of the header.
fn check(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions, path: &Path) -> TestResult {
    for value in [7_654_321, 1_234_567] {
        write(path, &format!("#define VALUE {value}\n"))?;
        for _ in 0..2 {
            let compiled = nvrtc.compile(program, options)?;
            assert!(
                compiled.ptx()?.contains(&value.to_string()),
                "stale: {}",
                program.source()
            );
        }
    }
    Ok(())
}

#[test]
fn changed_header_is_recompiled() -> TestResult {
    let Some(nvrtc) = nvrtc("changed_header_is_recompiled") else {
        return Ok(());
    };
    for case in CASES {
        let folder = tempfile::tempdir()?;
        let cache = DiskCache::open(folder.path().join("cache"))?;
        for (file, text) in case.files {
            write(&folder.path().join(file), text)?;
        }
        let name = folder.path().join("src/k.cu").display().to_string();
        let mut program = Program::new(name, format!("{}{KERNEL}", case.source));
        for (header, text) in case.own_headers {
            program = program.with_header(*header, *text);
        }
        let nvrtc = nvrtc.clone().with_cache(cache);
        let path = folder.path().join(case.header);
        check(&nvrtc, &program, &options(folder.path()), &path)?;
    }
    Ok(())
}

/// A header in an earlier folder replaces the one that was included before.
#[test]
fn first_header_wins() -> TestResult {
    let Some(nvrtc) = nvrtc("first_header_wins") else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let nvrtc = nvrtc.with_cache(DiskCache::open(folder.path().join("cache"))?);
    let name = folder.path().join("src/k.cu").display().to_string();
    let program = Program::new(name, format!("#include \"value.h\"{KERNEL}"));
    for file in ["second/value.h", "include/value.h", "src/value.h"] {
        let options = options(folder.path());
        check(&nvrtc, &program, &options, &folder.path().join(file))?;
    }
    Ok(())
}

/// NVRTC looks for such a header in the current directory, and for the headers of a header of the
/// program in the folder of its name.
#[test]
fn relative_headers() -> TestResult {
    let Some(nvrtc) = nvrtc("relative_headers") else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let nvrtc = nvrtc.with_cache(DiskCache::open(folder.path().join("cache"))?);
    let current = std::env::current_dir()?;
    let up: PathBuf = current.components().skip(1).map(|_| "..").collect();
    let relative = up.join(folder.path().strip_prefix("/")?);
    let program = Program::new("/src/k.cu", KERNEL);
    let header = relative.join("first.h").display().to_string();
    let options = CompileOptions::new().with_pre_include(&header);
    check(&nvrtc, &program, &options, &folder.path().join("first.h"))?;
    let program_header = relative.join("own.h").display().to_string();
    let program = Program::new(
        "/src/k.cu",
        format!("#include \"{program_header}\"{KERNEL}"),
    )
    .with_header(program_header, "#include \"value.h\"");
    check(
        &nvrtc,
        &program,
        &CompileOptions::new(),
        &folder.path().join("value.h"),
    )
}

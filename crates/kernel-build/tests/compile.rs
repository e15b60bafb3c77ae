//! The whole way from Rust to PTX, with a small device crate.
//!
//! These tests need the toolchain's parts for kernels. Without them they do nothing, except if
//! `CURIUM_KERNELS` is `check` or `build`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use curium_kernel_build::{Error, Kernels, Output, Panics, Target};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A package with a module `kernels` in `src/main.rs`.
struct Package {
    folder: tempfile::TempDir,
    /// Builds of all packages share a folder, in which dependencies are built once.
    out: PathBuf,
}

impl Package {
    fn new(name: &str, module: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device");
        let manifest = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ncurium-kernel = {{ path = {:?}, features = [\"host\"] }}\n\n[workspace]\n",
            device.display().to_string()
        );
        fs::create_dir(folder.path().join("src"))?;
        fs::write(folder.path().join("Cargo.toml"), manifest)?;
        let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("build")
            .join(name)
            .join("out");
        let package = Self { folder, out };
        package.write(module)?;
        Ok(package)
    }

    /// Changes the folder of the build.
    fn with_out(mut self, name: &str) -> Self {
        self.out = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("build")
            .join(name)
            .join("out");
        self
    }

    fn write(&self, module: &str) -> TestResult {
        let text = format!(
            "mod kernels {{\n#![allow(unused)]\nuse curium_kernel::*;\n{module}\n}}\nfn main() {{}}\n"
        );
        fs::write(self.folder.path().join("src/main.rs"), text)?;
        Ok(())
    }

    fn build_with(&self, options: &Kernels) -> Result<Output, Error> {
        options.build(self.folder.path(), &self.out)
    }

    fn build(&self) -> Result<Output, Error> {
        self.build_with(&options())
    }
}

fn options() -> Kernels {
    Kernels::module("src/main.rs", "kernels")
}

/// Returns `true` if the toolchain lacks a part, and nobody asks for these tests.
fn is_skipped<T>(result: &Result<T, Error>) -> bool {
    let is_required =
        env::var("CURIUM_KERNELS").is_ok_and(|mode| mode == "check" || mode == "build");
    !is_required && matches!(result, Err(Error::Toolchain(_)))
}

/// Compiles a module, and returns its PTX; `None` without the toolchain's parts.
fn compile(name: &str, module: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let result = Package::new(name, module)?.build();
    if is_skipped(&result) {
        return Ok(None);
    }
    let image = result?.images.into_iter().next().ok_or("no image")?;
    Ok(Some(image.ptx))
}

/// Compiles a module that is refused, and tests the message for each of the texts.
fn refuse(name: &str, module: &str, texts: &[&str]) -> TestResult {
    let result = Package::new(name, module)?.build();
    if is_skipped(&result) {
        return Ok(());
    }
    let message = match result {
        Ok(output) => return Err(format!("compiled: {}", output.images[0].ptx).into()),
        Err(error) => error.to_string(),
    };
    for text in texts {
        assert!(message.contains(text), "`{text}` is missing in: {message}");
    }
    Ok(())
}

fn count(ptx: &str, text: &str) -> usize {
    ptx.matches(text).count()
}

const SAXPY: &str = r#"
kernel!(0 saxpy = "curium.kernel.saxpy" "curium.meta.saxpy" (x x_length, y y_length) {
    let index = unsafe { tid_x() } as usize;
    y[index] += 3 * x[index];
});
"#;

#[test]
fn kernels_are_entries() -> TestResult {
    let Some(ptx) = compile("entries", SAXPY)? else {
        return Ok(());
    };
    assert!(ptx.contains(".visible .entry saxpy("), "{ptx}");
    assert!(
        ptx.contains(".reqntid 64, 1, 1") || ptx.contains(".reqntid 64"),
        "{ptx}"
    );
    assert!(
        ptx.contains(".target sm_80") && ptx.contains(".version 7.8"),
        "{ptx}"
    );
    assert!(
        ptx.contains("index out of bounds") || ptx.contains("__assertfail"),
        "{ptx}"
    );
    assert!(ptx.contains("src/main.rs") && ptx.contains(".loc"), "{ptx}");
    Ok(())
}

/// Outside of a build script, the device code has the default features of the package.
#[test]
fn kernels_have_package_features() -> TestResult {
    let module = r#"
        kernel!(0 factor = "curium.kernel.factor" "curium.meta.factor" (x x_length) {
            x[0] = if cfg!(all(feature = "by-seven", not(feature = "other"))) { 7777 } else { 1111 };
        });
    "#;
    let package = Package::new("features", module)?;
    let manifest = package.folder.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?
        + "\n[features]\ndefault = [\"fast\"]\nfast = [\"by-seven\"]\nby-seven = []\nother = []\n";
    fs::write(manifest, text)?;
    let result = package.build();
    if is_skipped(&result) {
        return Ok(());
    }
    let output = result?;
    let ptx = &output.images[0].ptx;
    assert!(ptx.contains("7777") && !ptx.contains("1111"), "{ptx}");
    Ok(())
}

/// A block reaches a barrier through a function pointer, between two branches on the number of the
/// thread. Duplicating the call into the branches would separate the threads of the block.
#[test]
fn barriers_are_not_duplicated() -> TestResult {
    let module = r#"
        #[inline(never)] fn wait() { unsafe { barrier(0) } }
        #[inline(never)] fn skip() {}
        fn between(f: fn(), y: &mut [u32]) {
            let is_first = unsafe { tid_x() } < 5;
            if is_first { unsafe { store(&raw mut y[0], 1) } }
            f();
            if is_first { unsafe { store(&raw mut y[1], 2) } }
        }
        kernel!(1 pointer = "curium.kernel.pointer" "curium.meta.pointer" (y y_length) {
            let functions: [fn(); 2] = [wait, skip];
            between(functions[y.len() % 2], y);
        });
        kernel!(1 direct = "curium.kernel.direct" "curium.meta.direct" (y y_length) {
            let is_first = unsafe { tid_x() } < 5;
            if is_first { y[0] = 1 }
            unsafe { barrier(0) };
            if is_first { y[1] = 2 }
        });
    "#;
    let Some(ptx) = compile("convergence", module)? else {
        return Ok(());
    };
    assert_eq!(
        count(&ptx, "bar.sync") + count(&ptx, "barrier.sync"),
        2,
        "{ptx}"
    );
    // A call through a pointer names a prototype.
    assert_eq!(count(&ptx, ".callprototype"), 1, "{ptx}");
    Ok(())
}

#[test]
fn instructions_are_generated() -> TestResult {
    let module = r#"
        kernel!(0 k = "curium.kernel.k" "curium.meta.k" (y y_length) {
            unsafe {
                let place = y.as_mut_ptr();
                atomic_add(place, 1);
                exchange(place, 1, 2);
                store(place, load(place) + 1);
                fence();
                let (mut low, mut high) = (0, 0);
                split(&mut low, &mut high, y.len() as u64);
                y[0] = clock() + low + high;
            }
        });
    "#;
    let Some(ptx) = compile("instructions", module)? else {
        return Ok(());
    };
    for text in [
        "atom.",
        ".cas",
        "ld.acquire.gpu",
        "st.release.sys",
        "fence.",
        "mov.b64 {",
        "%clock",
    ] {
        assert!(ptx.contains(text), "{text}: {ptx}");
    }
    Ok(())
}

#[test]
fn reserved_names_are_refused() -> TestResult {
    let module = format!(
        r#"#[unsafe(export_name = "curium.llvm.nvvm.read.ptx.sreg.tid.y")] extern "C" fn evil() -> u32 {{ 7 }}
        unsafe extern "C" {{ #[link_name = "curium.llvm.nvvm.read.ptx.sreg.tid.y"] fn tid_y() -> u32; }}
        {SAXPY}"#
    );
    refuse(
        "reserved",
        &module,
        &["curium.llvm.nvvm.read.ptx.sreg.tid.y", "reserved"],
    )?;
    let module = format!(r#"#[unsafe(no_mangle)] extern "C" fn vprintf() {{}} {SAXPY}"#);
    refuse(
        "runtime",
        &module,
        &["function `vprintf`", "reserved for the device's runtime"],
    )?;
    let module = r#"#[unsafe(export_name = "curium.kernel.evil")] extern "C" fn evil() {}"#;
    refuse("forged-kernel", module, &["kernel `evil`", "#[kernel]"])?;
    refuse("empty", "", &["no kernels"])
}

#[test]
fn atomics_of_core_are_refused() -> TestResult {
    let module = r#"
        use core::sync::atomic::*;
        fn count(n: &AtomicU32) -> u32 { n.fetch_add(1, Ordering::Relaxed) }
        kernel!(1 k = "curium.kernel.k" "curium.meta.k" (y y_length) {
            let n = AtomicU32::new(0);
            y[0] = count(&n);
        });
    "#;
    // The line of the user's code, and not that of `core`.
    refuse(
        "core-atomics",
        module,
        &[
            "uses an atomic of `core`",
            "curium_kernel",
            ", at src/main.rs:6)",
        ],
    )?;
    let module = r#"
        use core::sync::atomic::*;
        kernel!(1 k = "curium.kernel.k" "curium.meta.k" (y y_length) { core::sync::atomic::fence(Ordering::SeqCst); y[0] = 1 });
    "#;
    refuse("core-fence", module, &["uses an atomic of `core`"])
}

#[test]
fn mutable_statics_are_refused() -> TestResult {
    let module = r#"
        static COUNTER: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
        static UNUSED: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
        kernel!(1 k = "curium.kernel.k" "curium.meta.k" (y y_length) { y[0] = COUNTER.as_ptr() as usize as u32 });
    "#;
    refuse(
        "statics",
        module,
        &["static `kernels::COUNTER`", "can change"],
    )
}

#[test]
fn foreign_functions_are_refused() -> TestResult {
    let module = r#"
        unsafe extern "C" { fn cudaDeviceReset() -> u32; }
        kernel!(1 k = "curium.kernel.k" "curium.meta.k" (y y_length) { y[0] = unsafe { cudaDeviceReset() } });
    "#;
    refuse(
        "foreign",
        module,
        &["function `cudaDeviceReset`", "no definition"],
    )
}

/// Code of a block does not allocate, also behind a vtable; element-wise code does.
#[test]
fn blocks_do_not_allocate() -> TestResult {
    let module = |scope: u32| {
        format!(
            r#"
            trait Source {{ fn get(&self) -> u32; }}
            struct Heap;
            impl Source for Heap {{ fn get(&self) -> u32 {{ unsafe {{ malloc(8) as usize as u32 }} }} }}
            struct Plain;
            impl Source for Plain {{ fn get(&self) -> u32 {{ 1 }} }}
            kernel!({scope} k = "curium.kernel.k" "curium.meta.k" (y y_length) {{
                let source: &dyn Source = if y.len() == 3 {{ &Heap }} else {{ &Plain }};
                y[0] = source.get();
            }});
        "#
        )
    };
    refuse(
        "block-allocates",
        &module(1),
        &[
            "kernel `k` allocates memory",
            "Heap as kernels::Source>::get",
            "element-wise",
        ],
    )?;
    let Some(ptx) = compile("thread-allocates", &module(0))? else {
        return Ok(());
    };
    assert!(ptx.contains("malloc"), "{ptx}");
    Ok(())
}

/// The same through the crate `alloc` and an allocator of the user.
#[test]
fn blocks_do_not_use_allocators() -> TestResult {
    let module = |scope: u32| {
        format!(
            r#"
            extern crate alloc;
            struct Heap;
            unsafe impl ::core::alloc::GlobalAlloc for Heap {{
                unsafe fn alloc(&self, layout: ::core::alloc::Layout) -> *mut u8 {{ unsafe {{ malloc(layout.size() as u64) }} }}
                unsafe fn dealloc(&self, _: *mut u8, _: ::core::alloc::Layout) {{}}
            }}
            #[global_allocator]
            static HEAP: Heap = Heap;
            kernel!({scope} k = "curium.kernel.k" "curium.meta.k" (y y_length) {{
                let mut list = alloc::vec![y[0]];
                list.push(y[1]);
                y[2] = u32::from(list.try_reserve_exact(1000).is_ok());
            }});
        "#
        )
    };
    refuse(
        "block-uses-alloc",
        &module(1),
        &["kernel `k` allocates memory", "alloc"],
    )?;
    let Some(ptx) = compile("thread-uses-alloc", &module(0))? else {
        return Ok(());
    };
    assert!(ptx.contains("malloc"), "{ptx}");
    Ok(())
}

/// The simulator reads the index and the length of a panic from its parameters, also if the length
/// is the same constant in all calls.
#[test]
fn panics_have_index_and_length() -> TestResult {
    let module = r#"
        kernel!(0 k = "curium.kernel.k" "curium.meta.k" (y y_length) {
            let table = [3, 1, 4, 1];
            let first = table[unsafe { tid_x() } as usize];
            y[0] = first;
        });
    "#;
    for module in [
        module,
        &module.replace("y[0] = first", "unsafe { *y.as_mut_ptr() = first }"),
    ] {
        let Some(ptx) = compile("index", module)? else {
            return Ok(());
        };
        let declaration = "panic_with_index(\n\t.param .b64 panic_with_index_param_0,\n\t.param .b64 panic_with_index_param_1,";
        assert!(ptx.contains(declaration), "{ptx}");
        let call = ptx
            .find("call.uni panic_with_index, (param0, param1,")
            .ok_or("no call")?;
        let arguments = &ptx[ptx[..call].rfind("callseq").ok_or("no sequence")?..call];
        for argument in ["[param0], %rd", "[param1], 4"] {
            let text = format!("st.param.b64 \t{argument}");
            assert!(
                arguments.contains(&text),
                "`{text}` is missing in {arguments}"
            );
        }
    }
    Ok(())
}

/// A module of the user that is called `core` is no core.
#[test]
fn panics_match_core() -> TestResult {
    let module = r#"
        mod core { pub mod panicking { #[inline(never)] pub fn panic(y: &mut [u32], n: usize) { y[0] = n as u32 } } }
        kernel!(0 k = "curium.kernel.k" "curium.meta.k" (y y_length) {
            let n = y.len();
            core::panicking::panic(y, n);
            assert!(n != 7, "seven is wrong");
            y[1] = y[2].checked_add(1).expect("too large");
            y[3..8].copy_from_slice(&[1, 2, 3, 4, 5]);
            y[8..].sort_unstable();
        });
    "#;
    let package = Package::new("panics", module)?;
    let result = package.build();
    if is_skipped(&result) {
        return Ok(());
    }
    let ptx = &result?.images[0].ptx;
    // Messages are lists of bytes in PTX.
    let bytes = |text: &str| {
        text.bytes()
            .map(|byte| byte.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    // A message of `core` needs its line tables, but no other debug information.
    assert!(!ptx.contains(", debug"), "{ptx}");
    for text in ["seven is wrong", "too large", "src/main.rs"] {
        assert!(ptx.contains(&bytes(text)), "{text}: {ptx}");
    }
    assert!(ptx.contains("kernels_core_panicking_panic"), "{ptx}");
    let ptx = &package.build_with(&options().panics(Panics::Trap))?.images[0].ptx;
    assert!(
        !ptx.contains("__assertfail") && ptx.contains("trap;"),
        "{ptx}"
    );
    Ok(())
}

/// The PTX of the same source does not depend on the folder.
#[test]
fn ptx_is_reproducible() -> TestResult {
    let module = format!(
        "#[inline(never)] fn helper<T: Into<u64>>(x: T, y: &mut [u32]) {{ y[3] = x.into() as u32 }}\n{SAXPY}\nkernel!(0 k = \"curium.kernel.k\" \"curium.meta.k\" (y y_length) {{ let n = y[4]; helper(n, y); helper(n as u16, y); assert!(n != 5) }});"
    );
    let options = options().debug_lines(false).targets(["sm_90a", "sm_70"]);
    let mut texts = Vec::new();
    for name in ["reproducible-a", "reproducible-b"] {
        let result = Package::new(name, &module)?.build_with(&options);
        if is_skipped(&result) {
            return Ok(());
        }
        let output = result?;
        let targets: Vec<String> = output
            .images
            .iter()
            .map(|image| image.target.to_string())
            .collect();
        assert_eq!(targets, ["sm_70", "sm_90a"]);
        assert_eq!(output.kernels, ["k", "saxpy"]);
        texts.push(
            output
                .images
                .into_iter()
                .map(|image| image.ptx)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(texts[0], texts[1]);
    let home = env::var("HOME").unwrap_or_else(|_| "/home".to_owned());
    for text in &texts[0] {
        assert!(!text.contains(".loc") && !text.contains(&home), "{text}");
    }
    Ok(())
}

#[test]
fn errors_have_their_line() -> TestResult {
    let package = Package::new(
        "errors",
        &format!("{SAXPY}\nfn wrong() -> u32 {{ \"text\" }}"),
    )?;
    let result = package.build();
    if is_skipped(&result) {
        return Ok(());
    }
    let Err(Error::Compile(diagnostics)) = result else {
        return Err("an error of rustc".into());
    };
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].file, "src/main.rs");
    let text = fs::read_to_string(package.folder.path().join("src/main.rs"))?;
    let line = text
        .lines()
        .position(|line| line.contains("fn wrong"))
        .ok_or("no line `fn wrong`")?
        + 1;
    assert_eq!(diagnostics[0].line, line as u64);
    assert!(
        diagnostics[0]
            .rendered
            .contains(&format!("src/main.rs:{line}:")),
        "{}",
        diagnostics[0].rendered
    );
    Ok(())
}

/// A module in a file of its own, with a module in another file. Messages name the files as the
/// host does.
#[test]
fn modules_in_files() -> TestResult {
    let package = Package::new("files", "")?;
    let source = package.folder.path().join("src");
    fs::write(source.join("main.rs"), "mod kernels;\nfn main() {}\n")?;
    let module = "#![allow(unused)]\nuse curium_kernel::*;\nmod linear;\nfn check(n: usize) { assert!(n != 7) }\n";
    fs::write(source.join("kernels.rs"), module)?;
    fs::create_dir(source.join("kernels"))?;
    let kernel = SAXPY.replace("3 *", "{ super::check(x.len()); 3 } *");
    fs::write(
        source.join("kernels/linear.rs"),
        format!("use curium_kernel::*;\n{kernel}"),
    )?;
    let result = package.build();
    if is_skipped(&result) {
        return Ok(());
    }
    let ptx = &result?.images[0].ptx;
    assert!(ptx.contains(".visible .entry saxpy("), "{ptx}");
    for file in ["src/kernels.rs", "src/kernels/linear.rs"] {
        assert!(ptx.contains(file), "{file}: {ptx}");
    }
    fs::write(
        source.join("kernels.rs"),
        format!("{module}fn wrong() -> u32 {{ \"text\" }}\n"),
    )?;
    let Err(Error::Compile(diagnostics)) = package.build() else {
        return Err("an error of rustc".into());
    };
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].file, "src/kernels.rs");
    assert_eq!(diagnostics[0].line, 5);
    Ok(())
}

#[test]
fn constant_assertions() -> TestResult {
    let module = r#"
        struct Assert<const N: usize>;
        impl<const N: usize> Assert<N> { const OK: () = assert!(N < 5, "N is less than five"); }
        fn check<const N: usize>() { Assert::<N>::OK }
        kernel!(0 k = "curium.kernel.k" "curium.meta.k" (y y_length) { check::<9>(); y[0] = 1 });
    "#;
    refuse(
        "const-assert",
        module,
        &["N is less than five", "src/main.rs:"],
    )
}

/// Unknown targets and dependencies are errors.
#[test]
fn unknown_targets_are_errors() -> TestResult {
    let package = Package::new("unknown", SAXPY)?;
    let result = package.build_with(&options().targets(["sm_61"]));
    if is_skipped(&result) {
        return Ok(());
    }
    assert!(result.is_err_and(|error| error.to_string().contains("sm_61")));
    let result = package.build_with(&options().dependencies(["libm"]));
    assert!(result.is_err_and(|error| {
        error
            .to_string()
            .contains("`libm` is not among its [dependencies]")
    }));
    let target = Target::new("sm_90")?.with_ptx_version(8, 5)?;
    let ptx = &package
        .build_with(&options().targets([]).target(target))?
        .images[0]
        .ptx;
    assert!(
        ptx.contains(".version 8.5") && ptx.contains(".target sm_90"),
        "{ptx}"
    );
    Ok(())
}

/// The second build of an unchanged package compiles nothing with rustc; a deleted intermediate
/// file is compiled again.
#[test]
fn unchanged_builds_are_fast() -> TestResult {
    let package = Package::new("unchanged", SAXPY)?;
    let first = package.build();
    if is_skipped(&first) {
        return Ok(());
    }
    let first = first?;
    let start = Instant::now();
    let second = package.build()?;
    let time = start.elapsed();
    assert_eq!(first.images[0].ptx, second.images[0].ptx);
    assert!(time < Duration::from_secs(20), "{time:?}");
    fs::remove_file(package.out.join("kernels-device/kernels.bc"))?;
    let third = package.build()?;
    assert_eq!(first.images[0].ptx, third.images[0].ptx);
    package.write(&SAXPY.replace("3 *", "5 *"))?;
    assert_ne!(first.images[0].ptx, package.build()?.images[0].ptx);
    let shown: Vec<_> = first
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    assert!(
        shown.iter().any(|file| file.contains("tests/device/src")),
        "{shown:?}"
    );
    assert!(
        shown.iter().any(|file| file.ends_with("src/main.rs")),
        "{shown:?}"
    );
    Ok(())
}

/// One process of [`builds_share_one_core`].
#[test]
#[ignore = "started by another test"]
fn one_of_parallel_builds() -> TestResult {
    let name = format!("parallel-{}", std::process::id());
    let package = Package::new(&name, SAXPY)?.with_out(&name);
    let output = package.build()?;
    assert!(output.images[0].ptx.contains(".entry saxpy"));
    fs::remove_dir_all(package.out.parent().ok_or("no parent folder")?)?;
    Ok(())
}

/// Fifty processes start with an empty cache: one builds `core`, the others wait, and all succeed.
#[test]
#[ignore = "takes minutes; needs a toolchain without the target nvptx64-nvidia-cuda"]
fn builds_share_one_core() -> TestResult {
    let cache = tempfile::tempdir()?;
    let mut processes = Vec::new();
    for _ in 0..50 {
        let process = std::process::Command::new(env::current_exe()?)
            .args(["--exact", "one_of_parallel_builds", "--ignored"])
            .env("CURIUM_KERNELS_CACHE", cache.path())
            .spawn()?;
        processes.push(process);
    }
    let mut failures = 0;
    for mut process in processes {
        failures += u32::from(!process.wait()?.success());
    }
    assert_eq!(failures, 0);
    let mut names = Vec::new();
    for entry in fs::read_dir(cache.path())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    // `core`, and its lock; nothing that was left behind.
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[1] == format!("{}.lock", names[0]), "{names:?}");
    Ok(())
}

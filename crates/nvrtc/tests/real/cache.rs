//! The disk cache with a real NVRTC.

use crate::library::TestResult;
use std::fs;

use crate::library::{compiled, program, with_nvrtc};
use curium_driver::DiskCache;
use curium_nvrtc::CompileOptions;

fn entries(cache: &DiskCache) -> TestResult<u64> {
    Ok(cache.usage()?.entries)
}

#[test]
fn program_is_cached() -> TestResult {
    with_nvrtc("program_is_cached", |nvrtc| {
        let folder = tempfile::tempdir()?;
        let cache = DiskCache::open(folder.path().join("cache"))?;
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let source = "template<class T> __global__ void k(T* x) { int unused; *x = 1; }";
        let program = program(source).with_name_expression("k<float>");
        let first = compiled(&nvrtc, &program, &CompileOptions::new());
        assert_eq!(entries(&cache)?, 1);
        let second = compiled(&nvrtc, &program, &CompileOptions::new());
        assert_eq!((second, entries(&cache)?), (first.clone(), 1));
        assert!(!first.diagnostics().is_empty() && first.lowered_name("k<float>").is_ok());
        compiled(&nvrtc, &program, &CompileOptions::new().with_line_info());
        assert_eq!(entries(&cache)?, 2, "other options are another program");
        Ok(())
    })
}

/// A hit renews the entry's time; a damaged entry is compiled again.
#[test]
fn damaged_entry_is_recompiled() -> TestResult {
    with_nvrtc("damaged_entry_is_recompiled", |nvrtc| {
        let folder = tempfile::tempdir()?;
        let cache = DiskCache::open(folder.path().join("cache"))?;
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let program = program("__global__ void k() {}");
        compiled(&nvrtc, &program, &CompileOptions::new());
        let file = fs::read_dir(folder.path().join("cache"))?
            .next()
            .ok_or("no cache entry")?;
        let path = file?.path();
        let modified = fs::metadata(&path)?.modified()?;
        std::thread::sleep(std::time::Duration::from_millis(20));
        compiled(&nvrtc, &program, &CompileOptions::new());
        let used = fs::metadata(&path)?.modified()?;
        assert!(used > modified, "a use is noted");
        fs::write(&path, "damaged")?;
        let ptx = compiled(&nvrtc, &program, &CompileOptions::new());
        assert!(
            ptx.ptx()?.contains(".entry"),
            "a damaged entry is compiled again"
        );
        assert_ne!(fs::read(&path)?, b"damaged");
        Ok(())
    })
}

#[test]
fn changed_header_is_recompiled() -> TestResult {
    with_nvrtc("changed_header_is_recompiled", |nvrtc| {
        let folder = tempfile::tempdir()?;
        let cache = DiskCache::open(folder.path().join("cache"))?;
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let header = folder.path().join("value.h");
        let options = CompileOptions::new().with_include_path(folder.path());
        let program =
            program("#include \"value.h\"\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }");
        fs::write(&header, "#define VALUE 1234567\n")?;
        let first = compiled(&nvrtc, &program, &options);
        assert!(first.ptx()?.contains("1234567"));
        fs::write(&header, "#define VALUE nonsense\n")?;
        for _ in 0..2 {
            assert!(nvrtc.compile(&program, &options).is_err());
        }
        fs::write(&header, "#define VALUE 7654321\n")?;
        let last = compiled(&nvrtc, &program, &options);
        assert!(last.ptx()?.contains("7654321"));
        assert_eq!(cache.usage()?.entries, 2);
        Ok(())
    })
}

#[test]
fn other_outputs_are_not_cached() -> TestResult {
    with_nvrtc("other_outputs_are_not_cached", |nvrtc| {
        let folder = tempfile::tempdir()?;
        let cache = DiskCache::open(folder.path().join("cache"))?;
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let options = CompileOptions::new().with_option("--time=-");
        if nvrtc
            .compile(&program("__global__ void k() {}"), &options)
            .is_ok()
        {
            assert_eq!(cache.usage()?.entries, 0);
        }
        Ok(())
    })
}

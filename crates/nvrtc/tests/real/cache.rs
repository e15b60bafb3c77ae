//! The disk cache with a real NVRTC.

use std::fs;

use crate::library::{compiled, program, with_nvrtc};
use curium_driver::DiskCache;
use curium_nvrtc::CompileOptions;

fn entries(cache: &DiskCache) -> u64 {
    cache.usage().expect("the folder is readable").entries
}

#[test]
fn compiled_program_is_read_from_the_cache() {
    with_nvrtc("compiled_program_is_read_from_the_cache", |nvrtc| {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let cache = DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let source = "template<class T> __global__ void k(T* x) { int unused; *x = 1; }";
        let program = program(source).with_name_expression("k<float>");
        let first = compiled(&nvrtc, &program, &CompileOptions::new());
        assert_eq!(entries(&cache), 1);
        let second = compiled(&nvrtc, &program, &CompileOptions::new());
        assert_eq!((second, entries(&cache)), (first.clone(), 1));
        assert!(!first.diagnostics().is_empty() && first.lowered_name("k<float>").is_ok());
        compiled(&nvrtc, &program, &CompileOptions::new().with_line_info());
        assert_eq!(entries(&cache), 2, "other options are another program");
    });
}

#[test]
fn use_is_noted_and_a_damaged_entry_is_compiled_again() {
    with_nvrtc(
        "use_is_noted_and_a_damaged_entry_is_compiled_again",
        |nvrtc| {
            let folder = tempfile::tempdir().expect("a folder can be created");
            let cache =
                DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
            let nvrtc = nvrtc.clone().with_cache(cache.clone());
            let program = program("__global__ void k() {}");
            compiled(&nvrtc, &program, &CompileOptions::new());
            let file = fs::read_dir(folder.path().join("cache"))
                .expect("it is there")
                .next()
                .expect("an entry");
            let path = file.expect("it is readable").path();
            let modified = fs::metadata(&path)
                .expect("it is there")
                .modified()
                .expect("it has a time");
            std::thread::sleep(std::time::Duration::from_millis(20));
            compiled(&nvrtc, &program, &CompileOptions::new());
            let used = fs::metadata(&path)
                .expect("it is there")
                .modified()
                .expect("it has a time");
            assert!(used > modified, "a use is noted");
            fs::write(&path, "damaged").expect("it is ours");
            let ptx = compiled(&nvrtc, &program, &CompileOptions::new());
            assert!(
                ptx.ptx().expect("PTX is there").contains(".entry"),
                "a damaged entry is compiled again"
            );
            assert_ne!(fs::read(&path).expect("it was written again"), b"damaged");
        },
    );
}

#[test]
fn changed_header_is_compiled_again() {
    with_nvrtc("changed_header_is_compiled_again", |nvrtc| {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let cache = DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let header = folder.path().join("value.h");
        let options = CompileOptions::new().with_include_path(folder.path());
        let program =
            program("#include \"value.h\"\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }");
        fs::write(&header, "#define VALUE 1234567\n").expect("the folder is writable");
        let first = compiled(&nvrtc, &program, &options);
        assert!(first.ptx().expect("PTX is there").contains("1234567"));
        fs::write(&header, "#define VALUE nonsense\n").expect("the folder is writable");
        for _ in 0..2 {
            assert!(nvrtc.compile(&program, &options).is_err());
        }
        fs::write(&header, "#define VALUE 7654321\n").expect("the folder is writable");
        let last = compiled(&nvrtc, &program, &options);
        assert!(last.ptx().expect("PTX is there").contains("7654321"));
        assert_eq!(cache.usage().expect("the folder is readable").entries, 2);
    });
}

#[test]
fn program_with_other_outputs_is_not_cached() {
    with_nvrtc("program_with_other_outputs_is_not_cached", |nvrtc| {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let cache = DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
        let nvrtc = nvrtc.clone().with_cache(cache.clone());
        let options = CompileOptions::new().with_option("--time=-");
        if nvrtc
            .compile(&program("__global__ void k() {}"), &options)
            .is_ok()
        {
            assert_eq!(cache.usage().expect("the folder is readable").entries, 0);
        }
    });
}

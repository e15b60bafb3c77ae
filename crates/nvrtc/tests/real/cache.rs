//! The disk cache with a real NVRTC.

use std::fs;

use crate::library::{program, with_nvrtc};
use curium_driver::DiskCache;
use curium_nvrtc::CompileOptions;

#[test]
fn program_that_was_compiled_once_is_read_with_everything_that_it_had() {
    with_nvrtc(
        "program_that_was_compiled_once_is_read_with_everything_that_it_had",
        |nvrtc| {
            let folder = tempfile::tempdir().expect("a folder can be created");
            let cache =
                DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
            let nvrtc = nvrtc.clone().with_cache(cache.clone());
            let source = "template<class T> __global__ void k(T* x) { int unused; *x = 1; }";
            let program = program(source).with_name_expression("k<float>");
            let compile = |options: &CompileOptions| {
                nvrtc
                    .compile(&program, options)
                    .expect("the source is valid")
            };
            let entries = || cache.usage().expect("the folder is readable").entries;
            let first = compile(&CompileOptions::new());
            assert_eq!(entries(), 1);
            let second = compile(&CompileOptions::new());
            assert_eq!((second, entries()), (first.clone(), 1));
            assert!(!first.diagnostics().is_empty() && first.lowered_name("k<float>").is_ok());
            compile(&CompileOptions::new().with_line_info());
            assert_eq!(entries(), 2, "other options are another program");
        },
    );
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
            let compile = |text: &str| nvrtc.compile(&program(text), &CompileOptions::new());
            compile("__global__ void k() {}").expect("the source is valid");
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
            compile("__global__ void k() {}").expect("the source is valid");
            let used = fs::metadata(&path)
                .expect("it is there")
                .modified()
                .expect("it has a time");
            assert!(used > modified, "a use is noted");
            fs::write(&path, "damaged").expect("it is ours");
            let ptx = compile("__global__ void k() {}").expect("the source is valid");
            assert!(
                ptx.ptx().expect("PTX is there").contains(".entry"),
                "a damaged entry is compiled again"
            );
            assert_ne!(fs::read(&path).expect("it was written again"), b"damaged");
        },
    );
}

#[test]
fn changed_header_on_disk_is_compiled_again_and_errors_are_not_kept() {
    with_nvrtc(
        "changed_header_on_disk_is_compiled_again_and_errors_are_not_kept",
        |nvrtc| {
            let folder = tempfile::tempdir().expect("a folder can be created");
            let cache =
                DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
            let nvrtc = nvrtc.clone().with_cache(cache.clone());
            let header = folder.path().join("value.h");
            let options = CompileOptions::new().with_include_path(folder.path());
            let program = program(
                "#include \"value.h\"\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }",
            );
            let ptx = || {
                Some(
                    nvrtc
                        .compile(&program, &options)
                        .ok()?
                        .ptx()
                        .expect("PTX is there")
                        .to_owned(),
                )
            };
            fs::write(&header, "#define VALUE 1234567\n").expect("the folder is writable");
            assert!(ptx().expect("the header is right").contains("1234567"));
            fs::write(&header, "#define VALUE nonsense\n").expect("the folder is writable");
            assert_eq!((ptx(), ptx()), (None, None));
            fs::write(&header, "#define VALUE 7654321\n").expect("the folder is writable");
            assert!(ptx().expect("the header is right").contains("7654321"));
            assert_eq!(cache.usage().expect("the folder is readable").entries, 2);
        },
    );
}

#[test]
fn program_that_makes_other_files_is_compiled_each_time() {
    with_nvrtc(
        "program_that_makes_other_files_is_compiled_each_time",
        |nvrtc| {
            let folder = tempfile::tempdir().expect("a folder can be created");
            let cache =
                DiskCache::open(folder.path().join("cache")).expect("the folder is writable");
            let nvrtc = nvrtc.clone().with_cache(cache.clone());
            let options = CompileOptions::new().with_option("--time=-");
            if nvrtc
                .compile(&program("__global__ void k() {}"), &options)
                .is_ok()
            {
                assert_eq!(cache.usage().expect("the folder is readable").entries, 0);
            }
        },
    );
}

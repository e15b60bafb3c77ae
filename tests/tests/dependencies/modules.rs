//! The direction of imports between the modules of each crate.
//!
//! A room is a top-level module with everything below it, or a folder within another folder. The
//! rooms beside each other import in one direction, so they form layers: no room imports a room
//! that imports it, directly or through others. Circles that are left are listed. The list can only
//! shrink: a circle that is gone, or smaller, fails the test until the list says so.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs};

use curium_tests::{TestResult, skip, uses_cuda};

use self::imports::{Modules, circles};

/// A circle of rooms that is left.
struct Circle {
    /// The folder of the crate below `crates`.
    package: &'static str,
    /// The folder of the rooms below `src`; empty for top-level modules.
    folder: &'static str,
    rooms: &'static [&'static str],
    /// The reason, for the reader.
    #[expect(dead_code, reason = "documentation")]
    reason: &'static str,
}

/// The circles of rooms that are left.
const CIRCLES: &[Circle] = &[
    Circle {
        package: "blas",
        folder: "",
        rooms: &["element", "routines"],
        reason: "the trait of an element type names the routines for it, which are sealed for the same types",
    },
    Circle {
        package: "cudart",
        folder: "",
        rooms: &["array", "copy_3d", "memory", "texture"],
        reason: "copies of arrays and of linear memory check their operands with each other's functions",
    },
    Circle {
        package: "driver",
        folder: "",
        rooms: &["hazard", "stream"],
        reason: "a stream refers to the capture that it was created for, whose log contains streams, and all work on a stream is an operation of hazard tracking",
    },
    Circle {
        package: "driver",
        folder: "",
        rooms: &["global", "kernel", "library", "module"],
        reason: "a kernel keeps its module or library loaded, and both look up kernels and variables",
    },
    Circle {
        package: "format",
        folder: "",
        rooms: &["elf", "error", "fat_binary", "tile_ir"],
        reason: "the error of a format names the sizes of its header",
    },
    Circle {
        package: "format",
        folder: "",
        rooms: &["generated", "target", "version"],
        reason: "the generated tables are made of the types that query them",
    },
    Circle {
        package: "kernel",
        folder: "",
        rooms: &[
            "atomic",
            "block",
            "elements",
            "matrix",
            "operand",
            "parameter",
            "reduce",
            "shared",
            "synced",
            "thread",
            "tile",
            "warp",
        ],
        reason: "not yet in layers: threads, warps, blocks and shared memory name each other",
    },
    Circle {
        package: "kernel",
        folder: "",
        rooms: &["mbarrier", "tma"],
        reason: "a barrier counts the bytes of copies, and a copy arrives at a barrier",
    },
    Circle {
        package: "kernel-build",
        folder: "",
        rooms: &["artifact", "toolchain"],
        reason: "an artifact names the device that the toolchain compiles for, and the toolchain returns artifacts",
    },
    Circle {
        package: "memory",
        folder: "",
        rooms: &["device_slice", "mapped_buffer", "transfer"],
        reason: "a captured copy from the host keeps its source in a mapped buffer, which is a slice",
    },
    Circle {
        package: "nccl",
        folder: "",
        rooms: &["communicator", "group"],
        reason: "operations of a communicator are collected by the group of the thread, which keeps the communicators",
    },
    Circle {
        package: "nvrtc",
        folder: "",
        rooms: &["cache", "nvrtc"],
        reason: "the cache stores what the library compiles, and the library looks programs up in it",
    },
    Circle {
        package: "nvrtc",
        folder: "",
        rooms: &["diagnostic", "error", "program"],
        reason: "an error has the diagnostics of a program, which are parsed with its sources",
    },
    Circle {
        package: "ptx",
        folder: "",
        rooms: &["exec", "isa", "syntax"],
        reason: "the definition of an instruction is the only description of it: the front end checks against it, and it names the handler",
    },
    Circle {
        package: "sys",
        folder: "",
        rooms: &["api", "function"],
        reason: "the table of functions and the functions' names come from one list",
    },
];

/// The maximum number of files that import each other in a circle.
const MAX_FILES: usize = 14;

/// The modules of each crate, by the folder below `crates`. To parse them takes seconds.
static CRATES: LazyLock<Result<BTreeMap<String, Modules>, String>> =
    LazyLock::new(|| read_crates().map_err(|error| format!("{error:?}")));

fn crates() -> TestResult<&'static BTreeMap<String, Modules>> {
    Ok(CRATES.as_ref().map_err(String::as_str)?)
}

fn read_crates() -> TestResult<BTreeMap<String, Modules>> {
    let root = env::var_os("CARGO_MANIFEST_DIR").ok_or("`CARGO_MANIFEST_DIR` is not set")?;
    let folder = Path::new(&root)
        .parent()
        .ok_or("no parent folder")?
        .join("crates");
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().ok_or("no folder name")?;
        let mut modules = Modules::default();
        read(&path.join("src"), &[], &mut modules)?;
        crates.insert(name.to_string_lossy().into_owned(), modules);
    }
    Ok(crates)
}

/// Adds the files of a folder, which belong to the module `parent`.
fn read(folder: &Path, parent: &[String], modules: &mut Modules) -> TestResult {
    let entries = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, _>>()?;
    for path in entries {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = match &*name {
            "lib" | "main" | "mod" => parent.to_vec(),
            name => [parent, &[name.to_owned()]].concat(),
        };
        if path.is_dir() {
            read(&path, &module, modules)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let file =
                syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            modules.add(module, &file);
        }
    }
    Ok(())
}

/// Rooms beside each other import in one direction.
#[test]
fn rooms_import_in_one_direction() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let mut present = BTreeSet::new();
    for (package, modules) in crates()? {
        for (folder, rooms) in modules.rooms() {
            for circle in circles(&rooms) {
                present.insert((package.clone(), folder.clone(), circle));
            }
        }
    }
    let listed: BTreeSet<_> = CIRCLES
        .iter()
        .map(|circle| {
            let rooms: Vec<String> = circle.rooms.iter().map(|room| (*room).to_owned()).collect();
            (circle.package.to_owned(), circle.folder.to_owned(), rooms)
        })
        .collect();
    let new: Vec<_> = present.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&present).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "rooms that import each other in a circle: move what they share into a room below them: {new:#?}\n\
         circles that are gone or smaller: remove them from `CIRCLES`: {gone:#?}"
    );
    Ok(())
}

/// No large group of files imports each other in a circle.
#[test]
fn circles_of_files_are_small() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let crates = crates()?;
    assert!(
        crates["driver"].files().len() > 100,
        "the files of the driver are read"
    );
    for (package, modules) in crates {
        let largest = circles(&modules.files()).into_iter().max_by_key(Vec::len);
        let largest = largest.unwrap_or_default();
        assert!(
            largest.len() <= MAX_FILES,
            "{package}: {} files import each other in a circle, {MAX_FILES} are allowed: {largest:#?}",
            largest.len()
        );
    }
    Ok(())
}

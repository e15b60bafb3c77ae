"""Builds Warp's native library from the sources in its package, for the CUDA runtime over the driver API: the library in the package contains
NVIDIA's runtime, which starts on NVIDIA's driver only. Usage: build_warp.py FOLDER_OF_THE_RUNTIME FOLDER_TO_BUILD_IN"""

import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

import nvidia

# Included by others (apic.cu), or without the headers of other projects that the package leaves out (NanoVDB, cuBQL).
WITHOUT = {"apic.cu", "bvh_cubql.cpp", "bvh_cubql.cu", "volume.cpp", "volume_builder.cpp", "volume_builder.cu"}
DEFINES = ["WP_BUILD_DLL", "WP_ENABLE_CUDA=1", "WP_ENABLE_MATHDX=0", "WP_ENABLE_CUDA_COMPATIBILITY=1", "WP_ENABLE_DEBUG=0", "NDEBUG"]
HIDDEN = ["-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]

runtime, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
toolkit = pathlib.Path(nvidia.__path__[0]) / "cu13"
package = toolkit.parents[1] / "warp"
native = package / "native"


def run(*command):
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def compiled(source):
    object_file = folder / f"{source.name}.o"
    options = ["-std=c++17", "-O1", f"-I{native}", *(f"-D{define}" for define in DEFINES)]
    if source.suffix == ".cu":
        target = ["-gencode", "arch=compute_90,code=compute_90", "--extended-lambda", "-diag-suppress=221"]
        run(toolkit / "bin/nvcc", *options, *target, f"--compiler-options={','.join(HIDDEN)}", "-c", source, "-o", object_file)
    else:
        includes = [f"-I{toolkit / 'include'}", f"-I{toolkit / 'include/cccl'}"]
        run("g++", *options, *HIDDEN, *includes, "-fno-rtti", "-c", source, "-o", object_file)
    return object_file


def lacking(objects):
    """Returns the functions that Warp asks for by name, or calls, and that are not built."""
    names = lambda option: set(re.findall(r"\b(wp_\w+|_ZN2wp\w+)$", run("nm", option, *objects), re.MULTILINE))
    sources = "".join(path.read_text() for path in (package / "_src").rglob("*.py"))
    return sorted((set(re.findall(r"core\.(wp_[a-z0-9_]+)", sources)) | names("-u")) - names("--defined-only"))


def stubs(names):
    """Returns an object file in which each of the functions ends the process with its name."""
    source = folder / "lacking.c"
    function = '__attribute__((visibility("default"))) void {0}(void) {{ fputs("{0} is not built\\n", stderr); abort(); }}\n'
    source.write_text("#include <stdio.h>\n#include <stdlib.h>\n" + "".join(map(function.format, names)))
    run("gcc", "-fPIC", "-c", source, "-o", folder / "lacking.o")
    return folder / "lacking.o"


folder.mkdir(parents=True, exist_ok=True)
sources = [path for path in sorted(native.iterdir()) if path.suffix in (".cpp", ".cu") and path.name not in WITHOUT]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    objects = list(pool.map(compiled, sources))
library, lib = folder / "warp.so", toolkit / "lib"
libraries = [runtime / "libcudart.so.13", lib / "libnvrtc.so.13", f"-L{lib}", "-lnvptxcompiler_static", "-lpthread", "-ldl", "-lrt"]
run("g++", "-shared", "-o", library, *objects, stubs(lacking(objects)), *libraries, "-Wl,-z,lazy", "-Wl,--exclude-libs,ALL")
shutil.copy(library, package / "bin/warp.so")

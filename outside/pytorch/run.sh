#!/usr/bin/env bash
# Builds allocator.cpp against the PyTorch that `python3` has, into the folder named (a temporary one unless given), and runs it:
# as PyTorch is set up by default, and with its segments growing in place.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
into=${1:-$(mktemp -d)}
mapfile -t torch < <(python3 - <<'P'
import os, torch
from torch.utils import cpp_extension
print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print(os.path.join(os.path.dirname(torch.__file__), "lib"))
print(*cpp_extension.include_paths(device_type="cuda"), sep="\n")
P
)
echo "${torch[0]}"
includes=("${torch[@]:3}")
g++ -std=c++20 -O2 -w "${includes[@]/#/-I}" "-D_GLIBCXX_USE_CXX11_ABI=${torch[1]}" "$here/allocator.cpp" -o "$into/allocator" \
    "-L${torch[2]}" "-Wl,-rpath,${torch[2]}" -Wl,--no-as-needed -ltorch -ltorch_cpu -ltorch_cuda -lc10 -lc10_cuda -l:libcudart.so.13 \
    $(python3 -c 'import glob, os, sys
folders = sorted({os.path.dirname(f) for p in sys.path for f in glob.glob(p + "/nvidia/*/lib/lib*.so*")})
print(*(f"-L{f} -Wl,-rpath,{f}" for f in folders))')
for settings in "" expandable_segments:True; do
    echo "PYTORCH_ALLOC_CONF=$settings"
    PYTORCH_ALLOC_CONF=$settings timeout 120 "$into/allocator"
done

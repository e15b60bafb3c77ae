"""Copies the headers of a wheel into a folder: PACKAGE RELEASE SHA256 FOLDER.

The libraries' wheels have hundreds of megabytes, of which pip's reader of wheel metadata fetches the parts that are read. The index
gives the checksum of the wheel, which must be the pinned one; the caller verifies the headers.
"""

import os
import sys
import zipfile

from pip._internal.index.collector import LinkCollector
from pip._internal.index.package_finder import PackageFinder
from pip._internal.models.index import PyPI
from pip._internal.models.search_scope import SearchScope
from pip._internal.models.selection_prefs import SelectionPreferences
from pip._internal.network.lazy_wheel import LazyZipOverHTTP
from pip._internal.network.session import PipSession

PACKAGE, RELEASE, SHA256, FOLDER = sys.argv[1:]
NOT_DECLARATIONS = ("cublas.h", "cublasXt.h", "nvblas.h", "cufftw.h", "nccl_net.h", "nccl_device.h", "nccl_device_wrapper.h")

session = PipSession()
index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url)
collector = LinkCollector(session=session, search_scope=SearchScope.create([], [index], False))
finder = PackageFinder.create(link_collector=collector, selection_prefs=SelectionPreferences(allow_yanked=True))
links = [candidate.link for candidate in finder.find_all_candidates(PACKAGE) if str(candidate.version) == RELEASE]
link = next((link for link in links if link.hash == SHA256), None)
if link is None:
    sys.exit(f"the index has no wheel of {PACKAGE} {RELEASE} with sha256 {SHA256}")

os.makedirs(FOLDER, exist_ok=True)
with zipfile.ZipFile(LazyZipOverHTTP(link.url_without_fragment, session)) as wheel:
    for path in wheel.namelist():
        folder, name = os.path.split(path)
        if folder.endswith("/include") and "curand_" not in name and name.endswith(".h") and name not in NOT_DECLARATIONS:
            with open(os.path.join(FOLDER, name), "wb") as file:
                file.write(wheel.read(path))

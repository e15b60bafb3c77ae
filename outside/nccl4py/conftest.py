"""The ranks that tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ranks import Ranks  # noqa: E402

SIZE = 4


@pytest.fixture(scope="session")
def ranks():
    ranks = Ranks(SIZE)
    yield ranks
    ranks.close()


@pytest.fixture
def own_ranks():
    """Ranks that the test may end."""
    ranks = Ranks(SIZE)
    yield ranks
    ranks.close()

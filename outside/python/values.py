"""The numbers that the programs compute with: small integers, so that every result is exact in any order."""

import numpy as np

COUNT = 10_000
SIZE = 64
VECTOR = (np.arange(COUNT) % 17).astype(np.float32)
OTHER = (np.arange(COUNT) % 5).astype(np.float32)
LEFT = (np.arange(SIZE * SIZE) % 7).astype(np.float32).reshape(SIZE, SIZE)
RIGHT = (np.arange(SIZE * SIZE) % 3).astype(np.float32).reshape(SIZE, SIZE)


def check(added, total, product):
    """Ends the program with an error unless the three results are right."""
    assert np.array_equal(added, VECTOR + OTHER), added
    assert total == VECTOR.sum(), (total, VECTOR.sum())
    assert np.array_equal(product, LEFT @ RIGHT), product
    print("add, sum, multiply: right")

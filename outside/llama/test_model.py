"""Tokens that llama.cpp generates on its CUDA backend, compared with those on its CPU backend."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import model


def generate(backend, path):
    """Generates tokens in a process of its own, since a backend that is loaded is used."""
    program = Path(model.__file__)
    output = subprocess.run([sys.executable, program, backend, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("type", ["f32", "f16", "q8_0"])
def test_tokens(type, tmp_path):
    path = str(tmp_path / "model.gguf")
    model.write(path, type)
    expected = generate("cpu", path)
    actual = generate("cuda", path)
    assert actual["tokens"] == expected["tokens"]
    error = sum((a - b) ** 2 for a, b in zip(actual["logits"], expected["logits"]))
    assert error <= 5e-4 * sum(b * b for b in expected["logits"])

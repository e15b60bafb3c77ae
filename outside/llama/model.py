"""Generates tokens with a small model of random weights: `model.py BACKEND MODEL`, which prints the tokens and the last logits."""

import ctypes
import json
import random
import struct
import sys
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_int8, c_int32, c_uint64, c_void_p

import ggml

LAYERS = 2
WIDTH = 256
HEADS = 4
HIDDEN = 512
VOCABULARY = 96
ALIGNMENT = 32

UINT32, FLOAT32, STRING = 4, 6, 8


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    data = text(value) if kind == STRING else struct.pack("<I" if kind == UINT32 else "<f", value)
    return text(key) + struct.pack("<I", kind) + data


def tensor(source, shape, type):
    """Returns the bytes of a tensor with random elements, small enough that activations stay bounded."""
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    if len(shape) == 1:
        return bytes((c_float * count)(*[source.uniform(0.9, 1.1) for _ in range(count)]))
    numbers = (c_float * count)(*[source.gauss(0, shape[0] ** -0.5) for _ in range(count)])
    number = ggml.TYPES[type]
    traits = ggml.traits(number).contents
    data = ctypes.create_string_buffer(count // traits.block * traits.bytes)
    ggml.quantize(number, numbers, data, 0, shape[1], shape[0], None)
    return data.raw


def write(path, type):
    """Writes the model as a GGUF file."""
    metadata = [
        entry("general.architecture", STRING, "llama"),
        entry("llama.vocab_size", UINT32, VOCABULARY),
        entry("llama.context_length", UINT32, 256),
        entry("llama.embedding_length", UINT32, WIDTH),
        entry("llama.block_count", UINT32, LAYERS),
        entry("llama.feed_forward_length", UINT32, HIDDEN),
        entry("llama.attention.head_count", UINT32, HEADS),
        entry("llama.attention.head_count_kv", UINT32, HEADS // 2),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, WIDTH // HEADS),
        entry("tokenizer.ggml.model", STRING, "none"),
    ]
    shapes = {"token_embd": (WIDTH, VOCABULARY), "output_norm": (WIDTH,), "output": (WIDTH, VOCABULARY)}
    for layer in range(LAYERS):
        for name, shape in {
            "attn_norm": (WIDTH,),
            "attn_q": (WIDTH, WIDTH),
            "attn_k": (WIDTH, WIDTH // 2),
            "attn_v": (WIDTH, WIDTH // 2),
            "attn_output": (WIDTH, WIDTH),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (WIDTH, HIDDEN),
            "ffn_up": (WIDTH, HIDDEN),
            "ffn_down": (HIDDEN, WIDTH),
        }.items():
            shapes[f"blk.{layer}.{name}"] = shape
    source = random.Random(3)
    infos = b""
    data = b""
    for name, shape in shapes.items():
        kind = "f32" if len(shape) == 1 else type
        infos += text(f"{name}.weight") + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", length) for length in shape)
        infos += struct.pack("<IQ", ggml.TYPES[kind], len(data))
        data += tensor(source, shape, kind)
        data += bytes(-len(data) % ALIGNMENT)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(metadata)) + b"".join(metadata) + infos
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % ALIGNMENT) + data)


class Parameters(Structure):
    """The parameters of a model or a context, whose fields keep their defaults. It is at least as large as either."""

    _fields_ = [("opaque", c_uint64 * 64)]


class Batch(Structure):
    _fields_ = [
        ("count", c_int32),
        ("tokens", POINTER(c_int32)),
        ("embeddings", POINTER(c_float)),
        ("positions", POINTER(c_int32)),
        ("sequence_counts", POINTER(c_int32)),
        ("sequences", c_void_p),
        ("logits", POINTER(c_int8)),
    ]


def generate(backend, path, count):
    """Returns the most probable tokens after a prompt, and the last logits."""
    llama = ctypes.CDLL(ggml.FOLDER / "libllama.cuda.v0.5.0.so")
    ggml.load("libggml-cpu-x64.so")
    if backend == "cuda":
        ggml.load("libggml-cuda.so")
    for name, result, parameters in [
        ("llama_model_default_params", Parameters, []),
        ("llama_context_default_params", Parameters, []),
        ("llama_model_load_from_file", c_void_p, [c_char_p, Parameters]),
        ("llama_init_from_model", c_void_p, [c_void_p, Parameters]),
        ("llama_batch_get_one", Batch, [POINTER(c_int32), c_int32]),
        ("llama_decode", c_int, [c_void_p, Batch]),
        ("llama_get_logits_ith", POINTER(c_float), [c_void_p, c_int32]),
        ("llama_free", None, [c_void_p]),
        ("llama_model_free", None, [c_void_p]),
    ]:
        getattr(llama, name).restype = result
        getattr(llama, name).argtypes = parameters
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    assert model, "the model cannot be loaded"
    context = llama.llama_init_from_model(model, llama.llama_context_default_params())
    assert context, "the context cannot be created"
    generated = []
    tokens = [1, 17, 5, 60, 33]
    for _ in range(count):
        batch = (c_int32 * len(tokens))(*tokens)
        assert llama.llama_decode(context, llama.llama_batch_get_one(batch, len(tokens))) == 0
        logits = llama.llama_get_logits_ith(context, -1)[:VOCABULARY]
        tokens = [max(range(VOCABULARY), key=logits.__getitem__)]
        generated += tokens
    llama.llama_free(context)
    llama.llama_model_free(model)
    return generated, logits


if __name__ == "__main__":
    tokens, logits = generate(sys.argv[1], sys.argv[2], 8)
    print(json.dumps({"tokens": tokens, "logits": logits}))

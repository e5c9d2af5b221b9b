"""The bilingual embedder: its file, its network in three kinds of numbers, and the real one."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pipelines.errors import UnknownModelError
from pipelines.retrieval.encoder import Encoder, Precision
from pipelines.retrieval.indexes import BilingualEmbedder, default_embedder
from pipelines.retrieval.packed import PackedEncoder

WIDTH, INNER, POSITIONS = 32, 64, 16
PIECES = [
    *(("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)),
    *(("▁", -2.0), ("▁cat", -3.0), ("s", -3.0), ("猫", -3.0), ("passage", -3.0), (":", -2.0)),
]
CHANGES = {0x01: "", 0x09: " ", 0x200B: " ", 0xFF43: "c"}


def blocks(numbers: NDArray[np.int64], factor: float) -> bytes:
    """Rows of whole numbers in [-8, 7] times `factor`, as the file keeps them."""
    packed = b""
    for block in numbers.reshape(-1, 32) + 8:
        low, high = block[:16], block[16:]
        packed += struct.pack("<e", factor) + bytes((low | high << 4).astype(np.uint8))
    return packed


def tensors(seed: int = 3) -> dict[str, tuple[bool, bytes]]:
    draw = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> tuple[bool, bytes]:
        return True, blocks(draw.integers(-8, 8, (rows, columns)), 0.05)

    def vector(size: int, around: float = 0.0) -> tuple[bool, bytes]:
        return False, (around + draw.normal(0, 0.1, size)).astype("<f4").tobytes()

    found = {
        "emb.word": matrix(len(PIECES), WIDTH),
        "emb.pos": vector(POSITIONS * WIDTH),
        "emb.type": vector(2 * WIDTH),
        "emb.ln.w": vector(WIDTH, 1.0),
        "emb.ln.b": vector(WIDTH),
    }
    shapes = dict.fromkeys(("q", "k", "v", "ao"), (WIDTH, WIDTH))
    for name, (rows, columns) in {**shapes, "fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}.items():
        found[f"l0.{name}.w"], found[f"l0.{name}.b"] = matrix(rows, columns), vector(rows)
    for name in ("aln", "oln"):
        found[f"l0.{name}.w"], found[f"l0.{name}.b"] = vector(WIDTH, 1.0), vector(WIDTH)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small file of the same kind."""
    text = b"".join(piece.encode() for piece, _ in PIECES)
    edges = np.cumsum([0, *(len(piece.encode()) for piece, _ in PIECES)])
    head = b"E5S1" + struct.pack("<I", 1)
    head += struct.pack("<7ifi", WIDTH, 1, 2, INNER, len(PIECES), POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text))
    head += edges.astype("<u4").tobytes()
    head += np.array([score for _, score in PIECES], "<f4").tobytes() + text
    changes = b"".join(
        struct.pack(f"<IB{len(to)}I", point, len(to), *map(ord, to))
        for point, to in CHANGES.items()
    )
    head += struct.pack("<iI", len(CHANGES), len(changes)) + changes
    known = tensors()
    start = len(head) + 4 + sum(2 + len(name) + 21 for name in known)
    table, data = struct.pack("<i", len(known)), b""
    for name, (packed, content) in known.items():
        count = len(content) * 32 // 18 if packed else len(content) // 4
        table += struct.pack("<H", len(name)) + name.encode()
        table += struct.pack("<BIQQ", packed, count, start + len(data), len(content))
        data += content
    file = tmp_path / "small.bin"
    file.write_bytes(head + table + data)
    return file


def test_numbers_of_4_bits_are_read_as_they_were_written(path: Path):
    packed = PackedEncoder(path)
    draw = np.random.default_rng(3)
    written = draw.integers(-8, 8, (len(PIECES), WIDTH)) * np.float32(np.float16(0.05))
    assert packed.shape.width == WIDTH
    assert packed.numbers("emb.word", len(PIECES), WIDTH) == pytest.approx(written, abs=1e-6)
    ids = np.array([[5, 0], [7, 5]])
    assert packed.word_vectors(ids) == pytest.approx(written[ids], abs=1e-6)


def test_a_text_is_cut_into_the_pieces_that_are_most_probable(path: Path):
    tokenizer = PackedEncoder(path).tokenizer()
    # Full-width letters are ordinary ones, control characters are nothing, spaces are one.
    for text in ("cats", "ｃats", "c\x01ats", "\u200bcats", "  cats"):
        assert tokenizer.encode(text).tokens == ["<s>", "▁cat", "s", "</s>"], text
    assert tokenizer.encode("猫").tokens == ["<s>", "▁", "猫", "</s>"]
    assert tokenizer.encode("é").ids == [0, 4, 3, 2]


@pytest.mark.parametrize(
    ("precision", "near"), [("float32", 1e-5), ("int8", 0.03), ("bfloat16", 0.03)]
)
def test_it_computes_the_mean_of_the_last_layer(path: Path, precision: Precision, near: float):
    from transformers import BertConfig, BertModel

    packed = PackedEncoder(path)
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=INNER,
        max_position_embeddings=POSITIONS,
    )
    usual = BertModel(config, add_pooling_layer=False).eval()
    names = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
    names |= {
        one: f"attention.self.{word}"
        for one, word in zip("qkv", ("query", "key", "value"), strict=True)
    }
    names |= {"ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense"}
    state = usual.state_dict()
    ends = {"weight": "w", "bias": "b"}
    wanted = {
        f"encoder.layer.0.{long}.{end}": f"l0.{short}.{letter}"
        for short, long in names.items()
        for end, letter in ends.items()
    }
    wanted |= {
        "embeddings.word_embeddings.weight": "emb.word",
        "embeddings.position_embeddings.weight": "emb.pos",
        "embeddings.token_type_embeddings.weight": "emb.type",
        "embeddings.LayerNorm.weight": "emb.ln.w",
        "embeddings.LayerNorm.bias": "emb.ln.b",
    }
    for ours, theirs in wanted.items():
        state[ours].copy_(torch.tensor(packed.numbers(theirs, *state[ours].shape)))
    found = Encoder(path, precision).encode(["cats cats", "猫"])
    for vector, ids in zip(found, ([0, 5, 6, 5, 6, 2], [0, 4, 7, 2]), strict=True):
        with torch.inference_mode():
            mean = usual(torch.tensor([ids])).last_hidden_state[0].mean(0)
        assert vector == pytest.approx((mean / mean.norm()).numpy(), abs=near)


def test_long_texts_are_cut_and_none_are_allowed(path: Path):
    encoder = Encoder(path, "float32")
    long, longer = encoder.encode(["cats " * 20, "cats " * 30])
    assert long == pytest.approx(longer, abs=1e-6)
    assert BilingualEmbedder(path).embed([]).shape == (0, WIDTH)


def test_questions_and_passages_begin_differently(path: Path):
    embedder, encoder = BilingualEmbedder(path), Encoder(path)
    assert np.allclose(embedder.embed(["猫"]), encoder.encode(["passage: 猫"]), atol=1e-2)
    assert np.allclose(embedder.embed_queries(["猫"]), encoder.encode(["query: 猫"]), atol=1e-2)


@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_a_damaged_file_says_what_to_do(path: Path, damage: str):
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-40], "other": b"GGUF" + whole[4:], "empty": b""}[damage])
    with pytest.raises(UnknownModelError, match="could not be loaded"):
        BilingualEmbedder(path).embed(["cats"])


def test_the_real_one_finds_across_languages():
    embedder = default_embedder()
    assert isinstance(embedder, BilingualEmbedder)
    questions = ["Who designed the Eiffel Tower?", "水在多少度沸腾？", "谁写了《哈姆雷特》？"]
    sentences = [
        "Water boils at 100 degrees Celsius at sea level.",
        "埃菲尔铁塔由工程师居斯塔夫·埃菲尔的公司设计。",
        "Hamlet is a tragedy that William Shakespeare wrote.",
        "长江是亚洲最长的河流。",
    ]
    cosines = embedder.embed_queries(questions) @ embedder.embed(sentences).T
    assert cosines.argmax(axis=1).tolist() == [1, 0, 2]
    assert cosines.max(axis=1).min() > 0.2
    assert abs(cosines[:, 3]).max() < 0.3

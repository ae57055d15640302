"""Small networks of Keras layers with drawn options, as TF's converter writes them.

python benchmarks/keras_layers.py COUNT SEED FOLDER [FIRST]

From network FIRST on. Float, int8, int16 with weights of 8 bits, and dynamic range in turn. Needs
tensorflow, which no part of the project does: ``outside_networks.py`` runs it with the Python that
``KERAS_PYTHON`` names.
"""

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found]

Draw = random.Random
L, Model, Input = tf.keras.layers, tf.keras.Model, tf.keras.Input
MODES = ("int8", "float", "dynamic", "int16")


def act(draw: Draw) -> Any:
    """An activation: a layer of its own or one by name."""
    names = ("relu", "relu6", "tanh", "sigmoid", "swish", "hard_swish", "gelu", "elu", "leaky_relu")
    return L.Activation(draw.choice((*names, "relu", "relu6", "softplus", "hard_sigmoid")))


def normal(draw: Draw, x: Any) -> Any:
    """Batch normalisation with statistics as training leaves them."""
    layer = L.BatchNormalization()
    y = layer(x)
    size = x.shape[-1]
    rng = np.random.default_rng(draw.randrange(1 << 30))
    layer.set_weights([rng.uniform(a, b, size) for a, b in ((0.5, 2), (-1, 1), (-1, 1), (0.3, 2))])
    return y


def image(draw: Draw, channels: int = 3) -> Any:
    return Input((draw.choice((12, 15, 16)), draw.choice((12, 16)), channels), 1)


def head(draw: Draw, x: Any) -> Any:
    pool = draw.choice((L.GlobalAveragePooling2D(), L.GlobalMaxPooling2D(), L.Flatten()))
    return L.Dense(draw.choice((2, 5)), draw.choice((None, "softmax", "sigmoid")))(pool(x))


def plain(draw: Draw) -> Any:
    x = first = image(draw, draw.choice((1, 3)))
    for _ in range(draw.choice((1, 2))):
        padding, stride = draw.choice(("same", "valid")), draw.choice((1, 2))
        x = L.Conv2D(draw.choice((4, 7, 8)), draw.choice((3, (1, 5))), stride, padding)(x)
        x = act(draw)(normal(draw, x))
    pool = draw.choice((L.MaxPooling2D, L.AveragePooling2D))
    return Model(first, head(draw, pool(2, padding=draw.choice(("same", "valid")))(x)))


def separable(draw: Draw) -> Any:
    x = first = image(draw)
    x = L.SeparableConv2D(8, 3, padding="same", depth_multiplier=draw.choice((1, 2)))(x)
    x = L.DepthwiseConv2D(draw.choice((3, 5)), draw.choice((1, 2)), "same")(act(draw)(x))
    return Model(first, head(draw, act(draw)(normal(draw, x))))


def dilated(draw: Draw) -> Any:
    x = first = image(draw)
    for rate in (1, 2, draw.choice((3, 4))):
        x = act(draw)(L.Conv2D(6, 3, padding="same", dilation_rate=rate)(x))
    return Model(first, L.Conv2D(2, 1)(x))


def residual(draw: Draw) -> Any:
    first = image(draw)
    x = L.Conv2D(8, 3, padding="same")(first)
    for _ in range(2):
        y = act(draw)(normal(draw, L.Conv2D(8, 3, padding="same")(x)))
        y = L.Conv2D(8, 1)(y)
        merge = draw.choice((L.Add, L.Maximum, L.Average, L.Subtract, L.Multiply, L.Minimum))
        x = act(draw)(merge()([x, y]))
    return Model(first, head(draw, x))


def excited(draw: Draw) -> Any:
    first = image(draw)
    x = act(draw)(L.Conv2D(8, 3, 2, "same")(first))
    s = L.GlobalAveragePooling2D(keepdims=draw.random() < 0.5)(x)
    s = L.Dense(8, "hard_sigmoid")(L.Dense(4, "relu")(s))
    s = s if len(s.shape) == 4 else L.Reshape((1, 1, 8))(s)
    return Model(first, head(draw, L.Multiply()([x, s])))


def inception(draw: Draw) -> Any:
    first = image(draw)
    parts = [L.Conv2D(4, k, padding="same")(first) for k in (1, 3, (1, 7))]
    parts.append(L.AveragePooling2D(3, 1, "same")(first))
    return Model(first, head(draw, act(draw)(L.Concatenate()(parts))))


def unet(draw: Draw) -> Any:
    first = Input((16, 16, 3), 1)
    a = L.Conv2D(6, 3, padding="same", activation="relu")(first)
    b = L.Conv2D(8, 3, padding="same", activation="relu")(L.MaxPooling2D()(a))
    kind = draw.choice(("nearest", "bilinear", "transposed"))
    up = L.Conv2DTranspose(6, draw.choice((2, 3)), 2, "same")
    c = up(b) if kind == "transposed" else L.UpSampling2D(2, interpolation=kind)(b)
    return Model(first, L.Conv2D(2, 1, activation="sigmoid")(L.Concatenate()([a, c])))


def edges(draw: Draw) -> Any:
    first = image(draw)
    x = L.ZeroPadding2D(((1, 0), (0, 2)))(first)
    x = L.Cropping2D(((0, 1), (2, 1)))(L.Conv2D(5, 3)(x))
    x = L.PReLU(shared_axes=[1, 2])(x) if draw.random() < 0.5 else L.LeakyReLU(0.1)(x)
    x = L.Permute(draw.choice(((2, 1, 3), (3, 1, 2))))(x)
    return Model(first, L.Dense(3)(x))


def convolved(draw: Draw) -> Any:
    x = first = Input((draw.choice((20, 32)), draw.choice((1, 4))), 1)
    for rate in (1, 2):
        x = L.Conv1D(6, 3, padding=draw.choice(("same", "causal")), dilation_rate=rate)(x)
        x = act(draw)(normal(draw, x))
    x = draw.choice((L.MaxPooling1D, L.AveragePooling1D))(2)(L.SeparableConv1D(6, 3)(x))
    return Model(first, L.Dense(4)(L.GlobalAveragePooling1D()(x)))


def recurrent(draw: Draw) -> Any:
    x = first = Input((draw.choice((4, 6)), 5), 1)
    kind = draw.choice((L.LSTM, L.LSTM, L.GRU, L.SimpleRNN))
    layer = kind(6, return_sequences=draw.random() < 0.5, unroll=draw.random() < 0.5)
    x = L.Bidirectional(layer)(x) if draw.random() < 0.3 else layer(x)
    return Model(first, L.Dense(3)(x))


def attention(draw: Draw) -> Any:
    x = first = Input((8, 12), 1)
    y = L.MultiHeadAttention(draw.choice((1, 2)), 6)(x, x)
    x = L.LayerNormalization()(L.Add()([x, y]))
    y = L.Dense(12)(L.Dense(16, draw.choice(("relu", "gelu")))(x))
    return Model(first, L.Dense(3)(L.LayerNormalization()(L.Add()([x, y]))))


def words(draw: Draw) -> Any:
    first = Input((8,), 1, dtype="int32")
    x = L.Embedding(20, 6)(first)
    x = L.Conv1D(6, 3, activation="relu")(x) if draw.random() < 0.5 else L.Dense(6, "tanh")(x)
    return Model(first, L.Dense(2, "softmax")(L.GlobalMaxPooling1D()(x)))


def dense(draw: Draw) -> Any:
    x = first = Input((draw.choice((10, 33)),), 1)
    for _ in range(3):
        x = act(draw)(L.Dense(draw.choice((8, 16)))(x))
    return Model(first, [L.Dense(4, "softmax")(x), L.Dense(1)(x)])


def joined(draw: Draw) -> Any:
    one, two = Input((8, 8, 2), 1), Input((8, 8, 3), 1)
    a, b = L.Conv2D(4, 3)(one), L.Conv2D(4, 3)(two)
    x = L.Concatenate(draw.choice((1, 2, 3)))([a, b])
    y = L.Reshape((-1, 4))(x)
    y = L.Dot((1, 1))([y, y]) if draw.random() < 0.5 else L.Dense(3)(y)
    return Model([one, two], y)


def grouped(draw: Draw) -> Any:
    x = first = image(draw, 4)
    x = L.Conv2D(8, 3, groups=draw.choice((2, 4)), padding="same")(x)
    x = L.GroupNormalization(2)(x) if draw.random() < 0.4 else act(draw)(x)
    return Model(first, head(draw, x))


def steps(draw: Draw) -> Any:
    first = Input((3, 8, 8, 2), 1)
    x = L.TimeDistributed(L.Conv2D(4, 3, activation="relu"))(first)
    x = L.TimeDistributed(L.Flatten())(x)
    return Model(first, L.Dense(2)(L.Dense(6, "relu")(x)))


NETWORKS: tuple[Callable[[Draw], Any], ...] = (
    *(plain, separable, recurrent, residual, excited, unet, attention, convolved, dense),
    *(dilated, inception, edges, words, joined, grouped, steps),
)


def samples(model: Any, seed: int) -> Iterator[list[Any]]:
    """Random inputs for calibration."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        yield [
            rng.integers(0, 20, i.shape).astype(np.int32)
            if "int" in str(i.dtype)
            else rng.uniform(-1, 1, i.shape).astype(np.float32)
            for i in model.inputs
        ]


def converted(model: Any, mode: str, seed: int) -> bytes:
    """The file of a network in one of ``MODES``."""
    specs = [tf.TensorSpec(i.shape, i.dtype) for i in model.inputs]
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False, input_signature=specs if len(specs) == 1 else [specs])
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if mode != "float":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if mode in ("int8", "int16"):
            converter.representative_dataset = lambda: samples(model, seed)
            sets, kind = tf.lite.OpsSet, mode.upper()
            wide = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
            known = sets.TFLITE_BUILTINS_INT8 if mode == "int8" else wide
            converter.target_spec.supported_ops = [known, sets.TFLITE_BUILTINS]
            if seed % 3 and all("float" in str(i.dtype) for i in model.inputs):
                kind = getattr(tf, mode)
                converter.inference_input_type = converter.inference_output_type = kind
        made: bytes = converter.convert()
    return made


def main(count: int, seed: int, folder: Path, first: int = 0) -> None:
    """Write the networks ``first`` to ``count``; what the converter refuses is said."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, count):
        draw = Draw(seed * 1_000_003 + number)
        tf.keras.utils.set_random_seed(seed * 1009 + number)
        make = NETWORKS[number % len(NETWORKS)]
        mode = MODES[(number + number // len(NETWORKS)) % len(MODES)]
        path = folder / f"{number:02d}-{make.__name__}-{mode}.tflite"
        print(path.name, flush=True)
        try:
            path.write_bytes(converted(make(draw), mode, number))
        except Exception as error:
            print(f"    not converted: {type(error).__name__}: {str(error)[:160]!r}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))

"""Writes Keras transformers as int8 ``.tflite`` files, for ``transformers.py``.

    KERAS_PYTHON benchmarks/keras_transformers.py FOLDER [NAME...]

Each block is MultiHeadAttention and two dense layers with gelu or relu between them, each with a
shortcut and a LayerNormalization; the mean over tokens goes to a dense layer. The ViT has a
convolution of patches of 8x8 pixels and learned positions before the blocks. Weights and the
converter's representative data are drawn from a seed.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

BLOCKS, PATCH = 2, 8


@dataclass(frozen=True)
class Transformer:
    """Blocks on ``tokens`` vectors, or on the patches of an image of ``pixels`` by ``pixels``.

    ``inner``: the channels between the dense layers of a block. ``seed``: of weights and data.
    """

    tokens: int
    channels: int
    heads: int
    inner: int
    classes: int
    seed: int
    activation: str = "gelu"
    pixels: int = 0


NETWORKS = {
    "KWT-1-like": Transformer(98, 64, 1, 256, 12, 1),
    "KWT-3-like": Transformer(98, 192, 3, 768, 12, 2),
    "ECG": Transformer(256, 32, 2, 64, 5, 3),
    "KWT-1-like-relu": Transformer(98, 64, 1, 256, 12, 1, "relu"),
    "KWT-3-like-relu": Transformer(98, 192, 3, 768, 12, 2, "relu"),
    "ECG-relu": Transformer(256, 32, 2, 64, 5, 3, "relu"),
    "ViT-64": Transformer(64, 192, 3, 768, 10, 64, pixels=64),
    "ViT-96": Transformer(144, 192, 3, 768, 10, 96, pixels=96),
}
"""Each has two blocks."""


class Positions(tf.keras.layers.Layer):
    """Adds a learned vector to each token."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Create the vectors."""
        self.vectors = self.add_weight(shape=shape[1:], initializer="random_normal")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return the sum."""
        return x + self.vectors


def network(how: Transformer) -> tf.keras.Model:
    """Return the network."""
    layers = tf.keras.layers
    if how.pixels:
        given = tf.keras.Input((how.pixels, how.pixels, 3), batch_size=1)
        x = layers.Conv2D(how.channels, PATCH, strides=PATCH)(given)
        x = Positions()(layers.Reshape((how.tokens, how.channels))(x))
    else:
        x = given = tf.keras.Input((how.tokens, how.channels), batch_size=1)
    for _ in range(BLOCKS):
        attended = layers.MultiHeadAttention(how.heads, how.channels // how.heads)(x, x)
        x = layers.LayerNormalization(epsilon=1e-5)(x + attended)
        y = layers.Dense(how.channels)(layers.Dense(how.inner, activation=how.activation)(x))
        x = layers.LayerNormalization(epsilon=1e-5)(x + y)
    x = layers.Dense(how.classes)(layers.GlobalAveragePooling1D()(x))
    return tf.keras.Model(given, x)


def converted(model: tf.keras.Model, seed: int) -> bytes:
    """Return the model in int8."""
    rng = np.random.default_rng(seed)
    shape = model.inputs[0].shape
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: (
        [rng.normal(size=shape).astype(np.float32)] for _ in range(20)
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name, how in NETWORKS.items():
        if not names or name in names:
            tf.keras.utils.set_random_seed(how.seed)
            made = converted(network(how), how.seed)
            (Path(folder) / f"{name}.tflite").write_bytes(made)

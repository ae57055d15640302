"""Writes Keras transformers as int8 ``.tflite`` files, for ``transformers.py``.

    KERAS_PYTHON benchmarks/keras_transformers.py FOLDER [NAME...]

Each block is MultiHeadAttention and two dense layers with gelu between them, each with a shortcut
and a LayerNormalization; the mean over tokens goes to a dense layer. Weights and the converter's
representative data are drawn from a seed.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

NETWORKS = {
    "KWT-1-like": (98, 64, 1, 256, 12),
    "KWT-3-like": (98, 192, 3, 768, 12),
    "ECG": (256, 32, 2, 64, 5),
}
"""Tokens, channels, heads, channels between the dense layers, classes. Each has two blocks."""
BLOCKS = 2


def network(tokens: int, channels: int, heads: int, inner: int, classes: int) -> tf.keras.Model:
    """Return the network on ``tokens`` vectors of ``channels`` numbers."""
    layers = tf.keras.layers
    x = given = tf.keras.Input((tokens, channels), batch_size=1)
    for _ in range(BLOCKS):
        attended = layers.MultiHeadAttention(heads, channels // heads)(x, x)
        x = layers.LayerNormalization(epsilon=1e-5)(x + attended)
        y = layers.Dense(channels)(layers.Dense(inner, activation="gelu")(x))
        x = layers.LayerNormalization(epsilon=1e-5)(x + y)
    x = layers.Dense(classes)(layers.GlobalAveragePooling1D()(x))
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
    for seed, name in enumerate(NETWORKS, start=1):
        if not names or name in names:
            tf.keras.utils.set_random_seed(seed)
            made = converted(network(*NETWORKS[name]), seed)
            (Path(folder) / f"{name}.tflite").write_bytes(made)

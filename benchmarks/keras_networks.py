"""Networks that papers compare on, with random weights, as Keras and TF's converter write them.

python benchmarks/keras_networks.py NAME FILE.tflite

In 8-bit integers, calibrated on random images; inputs and outputs are integers. Needs tensorflow,
which no part of the project does: ``host.py`` runs it with the interpreter that ``KERAS_PYTHON``
names.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found]

Network = Callable[..., Any]
SMALL, LARGE = ((96, 96, 3), 10), ((224, 224, 3), 1000)
"""Shapes of images, and classes."""


def networks() -> dict[str, tuple[Network, tuple[tuple[int, ...], int]]]:
    """Each network by name: what makes it, its images and classes."""
    known = tf.keras.applications
    plain = {"include_preprocessing": False}
    return {
        "mobilenet_v1_96": (partial(known.MobileNet, alpha=0.25), SMALL),
        "mobilenet_v2_96": (partial(known.MobileNetV2, alpha=0.35), SMALL),
        "mobilenet_v3_small_96": (partial(known.MobileNetV3Small, **plain), SMALL),
        "mobilenet_v2_224": (known.MobileNetV2, LARGE),
        "mobilenet_v3_large_224": (partial(known.MobileNetV3Large, **plain), LARGE),
        "efficientnet_b0_224": (known.EfficientNetB0, LARGE),
    }


def images(shape: tuple[int, ...], count: int = 4) -> Iterator[list[Any]]:
    """Random images for calibration."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield [rng.uniform(-1, 1, (1, *shape)).astype(np.float32)]


def converted(name: str) -> bytes:
    """The file of a network in 8-bit integers."""
    tf.keras.utils.set_random_seed(1)
    make, (shape, classes) = networks()[name]
    model = make(input_shape=shape, weights=None, classes=classes)
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = partial(images, shape)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
        made: bytes = converter.convert()
    return made


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(converted(sys.argv[1]))

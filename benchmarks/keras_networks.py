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


def convolved(x: Any, channels: int, stride: int = 1) -> Any:
    """Return a 3x3 convolution with ReLU6."""
    keras = tf.keras.layers
    x = keras.Conv2D(channels, 3, strides=stride, padding="same", use_bias=True)(x)
    return keras.ReLU(6.0)(x)


def unet(input_shape: tuple[int, ...], weights: None, classes: int, width: int = 16) -> Any:
    """Return a U-Net of four levels (Ronneberger et al. 2015) with as many maps as classes."""
    keras = tf.keras.layers
    x = given = tf.keras.Input(input_shape, batch_size=1)
    kept = []
    for level in range(4):
        kept.append(convolved(convolved(x, width << level), width << level))
        x = keras.MaxPooling2D()(kept[-1])
    x = convolved(convolved(x, width << 4), width << 4)
    for level in reversed(range(4)):
        x = keras.Conv2DTranspose(width << level, 2, strides=2)(x)
        x = keras.Concatenate()([kept[level], x])
        x = convolved(convolved(x, width << level), width << level)
    return tf.keras.Model(given, keras.Conv2D(classes, 1)(x))


def yolo(input_shape: tuple[int, ...], weights: None, classes: int) -> Any:
    """Return the layers of YOLOv3-tiny (Redmon and Farhadi 2018) at half its width, and its maps.

    Three boxes of 4 sides, an object and classes in each place, at two scales.
    """
    keras = tf.keras.layers
    x = given = tf.keras.Input(input_shape, batch_size=1)
    for channels in (8, 16, 32, 64):
        x = keras.MaxPooling2D()(convolved(x, channels))
    kept = x = convolved(x, 128)
    x = convolved(keras.MaxPooling2D()(x), 256)
    x = convolved(x, 512)
    x = near = convolved(x, 128)
    large = keras.Conv2D(3 * (5 + classes), 1)(convolved(near, 256))
    x = keras.UpSampling2D()(convolved(x, 64))
    small = keras.Conv2D(3 * (5 + classes), 1)(convolved(keras.Concatenate()([x, kept]), 128))
    return tf.keras.Model(given, [large, small])


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
        "nasnet_mobile_224": (known.NASNetMobile, LARGE),
        "resnet50_224": (known.ResNet50, LARGE),
        "unet_256": (unet, ((256, 256, 3), 2)),
        "yolo_320": (yolo, ((320, 320, 3), 20)),
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

"""Ordinary networks, small, as Keras builds them and TF's converter writes them.

``NETWORKS`` has one function a network; it returns the float network, whose integer form
:func:`tests.conformance.quantise.integer_file` makes.
"""

from collections.abc import Callable

from tests.conformance.builder import Net
from tests.conformance.networks import branching, dense, mobile, sequences, vision

NETWORKS: dict[str, Callable[[], Net]] = {
    "MobileNetV2": mobile.mobilenet_v2,
    "MobileNetV3": mobile.mobilenet_v3,
    "EfficientNet": mobile.efficientnet,
    "DS-CNN": mobile.ds_cnn,
    "ShuffleNet": mobile.shufflenet,
    "ShuffleNetV2": mobile.shufflenet_v2,
    "ResNet": branching.resnet,
    "DenseNet": branching.densenet,
    "Inception": branching.inception,
    "NASNet cell": branching.nasnet,
    "SqueezeNet": branching.squeezenet,
    "Xception": branching.xception,
    "UNet": vision.unet,
    "UNet, resized": vision.unet_resized,
    "DeepLab": vision.deeplab,
    "SSD head": vision.detection,
    "YOLO head": vision.yolo,
    "ConvNeXt": vision.convnext,
    "temporal CNN": sequences.temporal,
    "WaveNet": sequences.wavenet,
    "LSTM": sequences.lstm,
    "GRU": sequences.gru,
    "attention": sequences.attention,
    "autoencoder": dense.autoencoder,
    "siamese": dense.siamese,
}
"""Every network, by the name that tables show."""

"""The quantised models of the shared data that must run exactly."""

TABLE = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "tflm/person_detect.tflite",
    "tflm/micro_speech_quantized.tflite",
    "tflm/hello_world_int8.tflite",
    "tflm/keyword_scrambled_8bit.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)
"""The quantised models of the shared data that must run exactly."""

// The native core: searches over orders and offsets behind the Python API.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_core, module) {
    module.doc() = "Native searches of tvm-serenity.";
}

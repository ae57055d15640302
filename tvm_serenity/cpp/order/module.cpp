// Python bindings of the order searches.
#include <nanobind/nanobind.h>

NB_MODULE(_order, module) { module.doc() = "Native order searches of tvm-serenity."; }

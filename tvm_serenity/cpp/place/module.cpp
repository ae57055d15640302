// Python bindings of the place searches.
#include <nanobind/nanobind.h>

NB_MODULE(_place, module) { module.doc() = "Native place searches of tvm-serenity."; }

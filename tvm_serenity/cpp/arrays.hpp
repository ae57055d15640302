// Numbers between Python and the searches, many at once.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "lists.hpp"

// What Python hands over: one dimension, contiguous.
template <class T>
using Array = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig,
                                nanobind::device::cpu>;

// What Python is given: NumPy's arrays.
template <class T>
using Made = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

template <class T>
Made<T> made(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Made<T>(kept->data(), {kept->size()}, owner);
}

template <class T, class From>
std::vector<T> copied(const Array<From>& array) {
  return {array.data(), array.data() + array.size()};
}

// Tuples of tuples, read as they are: of a million, vectors of vectors take a second.
inline Lists lists_of(const nanobind::tuple& sets) {
  const auto length = [](PyObject* tuple) {
    const Py_ssize_t found = PyTuple_Size(tuple);
    if (found < 0) throw nanobind::python_error();
    return found;
  };
  Lists lists;
  for (Py_ssize_t i = 0, count = length(sets.ptr()); i < count; ++i) {
    PyObject* set = PyTuple_GetItem(sets.ptr(), i);
    for (Py_ssize_t k = 0, size = length(set); k < size; ++k) {
      const long item = PyLong_AsLong(PyTuple_GetItem(set, k));
      if (item == -1 && PyErr_Occurred()) throw nanobind::python_error();
      if (item != static_cast<int>(item)) throw std::invalid_argument("a number is out of range");
      lists.add(static_cast<int>(item));
    }
    lists.close();
  }
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  return lists;
}

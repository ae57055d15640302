// Arrays of numbers between Python and the searches.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

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

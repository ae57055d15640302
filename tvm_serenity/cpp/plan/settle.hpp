// Placements pushed up and down again, until they take no less.
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// The placement is turned upside down, and each buffer, the lowest first, goes to the lowest gap;
// then the same once more. That takes no more than before, and what is left free comes together:
// forward and backward improvement of schedules (Valls, Ballestin and Quintanilla 2005,
// "Justification and RCPSP: a technique that pays") on offsets. Empty where the limit came first.
// Buffers must not share bytes; what is fixed stays.
std::vector<Bytes> turned_twice(const Instance& instance, std::vector<Bytes> offsets, Limit& limit);

// The same again and again, until the arena is no larger than `goal`, gets no smaller, or the limit
// comes. Returns the best placement.
std::vector<Bytes> settle(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                          Limit& limit);

}  // namespace plan

// Pushes placements up and down again until the arena does not shrink any more.
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

// Repeat this until the arena is at most `goal`, does not shrink, or the limit comes. Return the best
// placement.
std::vector<Bytes> settle(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                          Limit& limit);

}  // namespace plan

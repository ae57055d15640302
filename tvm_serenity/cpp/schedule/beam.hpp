// A beam search over block moves: good orders fast, no proof.
#pragma once

#include "schedule/limits.hpp"
#include "schedule/moves.hpp"

namespace schedule {

// An order with a peak within the budget, or an empty one; keeps `width` states of each size.
std::vector<int> beam(const Instance& instance, const Closures& closures, Rules rules,
                      Bytes budget, int width, Limits& limits);

}  // namespace schedule

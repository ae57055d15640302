// Placements of many buffers made in one pass through time, in O(n log n).
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// The best of several such placements, the first one whatever the limit says, but none where Ctrl-C
// comes before it. Buffers must not share bytes nor be fixed.
std::vector<Bytes> sweep(const Instance& instance, Limit& limit);

}  // namespace plan

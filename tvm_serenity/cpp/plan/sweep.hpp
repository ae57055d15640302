// Placements of many buffers in one pass through time, in O(n log n).
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// Return the best of several such placements. The first ignores the limit, but not Ctrl-C. Buffers
// must neither share bytes nor be fixed.
std::vector<Bytes> sweep(const Instance& instance, Limit& limit);

}  // namespace plan

// First fit along an order, for many buffers.
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// Return place_in_order's result for buffers that must not share bytes, faster on many: it compares
// only buffers that are live together. Empty if the limit came first.
std::vector<Bytes> place_among_many(const Instance& instance, const std::vector<int>& order,
                                    Limit& limit);

}  // namespace plan

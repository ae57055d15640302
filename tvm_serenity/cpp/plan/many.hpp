// First fit along an order, for many buffers.
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// The same as place_in_order where no buffers may share bytes, quicker on many: it looks at those
// that are live with a buffer alone. Empty where the limit came first.
std::vector<Bytes> place_among_many(const Instance& instance, const std::vector<int>& order,
                                    Limit& limit);

}  // namespace plan

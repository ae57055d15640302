// Some of the buffers of an instance, as an instance.
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// The buffers `chosen` alone, in the same sections. They must not share bytes with any.
Instance part_of(const Instance& instance, const std::vector<int>& chosen);

}  // namespace plan

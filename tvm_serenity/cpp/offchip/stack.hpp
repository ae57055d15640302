// All capacities in one pass, for policies that are stack algorithms (Mattson et al. 1970): the content
// of a cache of c slots is a subset of that of c + 1 slots. Dropping dead blocks preserves this: a
// dropped block leaves a hole, and the first hole takes the block that would be pushed further down.
#pragma once

#include "offchip/trace.hpp"

namespace offchip {

// Return one result for each of `slots`, which ascend from 1. Blocks take one slot each.
// Throws TooLate.
std::vector<Traffic> sweep_min(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late);
std::vector<Traffic> sweep_lru(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late);

}  // namespace offchip

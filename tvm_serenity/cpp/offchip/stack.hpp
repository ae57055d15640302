// All capacities in one pass, where the policy is a stack algorithm (Mattson et al. 1970): what a
// cache of c slots holds is contained in what one of c + 1 slots holds. Dropping dead blocks keeps
// that: a dropped block leaves a hole, and the first hole takes what would be pushed further down.
#pragma once

#include "offchip/trace.hpp"

namespace offchip {

// `slots` ascending, each at least 1; one answer for each. Blocks take one slot each.
// Throws TooLate.
std::vector<Traffic> sweep_min(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late);
std::vector<Traffic> sweep_lru(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late);

}  // namespace offchip

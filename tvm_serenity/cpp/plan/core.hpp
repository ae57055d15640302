// Placements of many buffers by way of those that decide about the arena.
#pragma once

#include <vector>

#include "plan/ejection.hpp"

namespace plan {

// Lowers the arena of the quarter of the buffers that is largest by size and root of lifetime, and
// puts the others, small and short, into the lowest gaps that are left; `found` is called with each
// placement of all, which may be no better than `offsets`. Ends at `goal`, after a turn for each of
// the quarter without a better arena of it, or at the limit. Buffers must not share bytes.
void lower_core(const Instance& instance, const std::vector<Bytes>& offsets, Bytes goal,
                std::uint64_t seed, Limit& limit, const Found& found);

}  // namespace plan

// Placements of many buffers by way of those that decide about the arena.
#pragma once

#include "plan/ejection.hpp"

namespace plan {

// Places cores, the buffers that are largest by size and root of lifetime and make up a share of
// the area of all: the smallest one first, each next one around it, and last all. Each arena is
// lowered before the next core is placed. Then all are placed anew below less; where the first core
// leaves much to waste, before the next one. That is done again from other placements of the first
// core. `found` is called with each better placement of all than `offsets`. Ends at `goal`, when
// each of the placements to start from has gained nothing, or at the limit. Buffers must not share
// bytes.
void lower_by_cores(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                    std::uint64_t seed, Limit& limit, const Found& found);

}  // namespace plan

// Large placements made better a stretch of time at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/instance.hpp"

namespace plan {

// What ends above a target below the arena is moved, with the buffers that live around it, to where
// less of them ends above; what cannot move (fixed, or sharing bytes with another) is kept clear.
// The target falls as it is reached. Ends at `goal`, after `rounds` without a better arena, or at
// the limit. Returns the best offsets.
std::vector<Bytes> repair(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                          std::uint64_t rounds, std::uint64_t seed, Limit& limit);

// The same as place_in_order where no buffers may share bytes, quicker on many: it looks at those
// that are live with a buffer alone. Empty where the limit came first.
std::vector<Bytes> place_among_many(const Instance& instance, const std::vector<int>& order,
                                    Limit& limit);

}  // namespace plan

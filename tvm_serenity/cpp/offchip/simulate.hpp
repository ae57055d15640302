// One capacity, any policy, blocks of any size, groups of accesses that are on chip together.
#pragma once

#include "offchip/trace.hpp"

namespace offchip {

enum class Policy { belady, belady_writes, lru, fifo, rr };

// Group g ends before access `group_end[g]` and leaves `reserve[g]` bytes less for blocks.
struct Groups {
  const std::int64_t* end;
  const Bytes* reserve;
  std::int64_t count;
};

// `room[b]`: bytes that block b takes on chip. Every group must fit (the caller checks). Throws
// TooLate.
Traffic simulate(const Trace& trace, const Groups& groups, const Bytes* room, Bytes capacity,
                 Policy policy, const Late& late);

}  // namespace offchip

// Algorithm 1 of the paper under four eviction policies.
//
// Fast memory holds M values: one is the connection, M - 1 are neurons. While one endpoint of a
// connection is loaded the other is pinned. A neuron is dirty after each update; evicting a dirty
// value that is used again, or an output, costs a write. A use is (position, side): 2 * position
// for the source of the connection there, 2 * position + 1 for its target.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sparse/network.hpp"

namespace sparse {

enum class Policy { min, write_aware, lru, rr };

constexpr int kNever = std::numeric_limits<int>::max();

struct Event {
  int position, neuron, kind;  // 0 read, 1 write, 2 drop without a write
};

struct Traffic {
  std::int64_t reads = 0, writes = 0;
  std::int64_t total() const { return reads + writes; }
};

struct Rule {
  Policy policy = Policy::min;
  int memory = 3;
  int delay = 0;  // write-aware: a dirty value ranks as if used this many connections earlier
};

// The next use of the same neuron after each use, kNever after its last.
std::vector<int> next_uses(const Network& net, const std::vector<int>& order);

Traffic simulate(const Network& net, const std::vector<int>& order, const Rule& rule,
                 std::vector<Event>* trace = nullptr);

}  // namespace sparse

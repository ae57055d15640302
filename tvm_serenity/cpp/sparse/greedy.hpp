// Greedy residency: which neuron to load next, so that much can be computed and soon let go.
#pragma once

#include <vector>

#include "sparse/network.hpp"

namespace sparse {

// sparse/orders/greedy.py explains each.
struct Weights {
  double partner = 1, ready = 3, power = 1, partner_power = 1, future = 0.3, fresh = 2;
  double lose_dirty = 2, lose_partial = 4, lose_idle = 1, lose_progress = 1;
  double future_power = 1, ready_power = 1;
};

struct Greed {
  int room = 2;  // neurons held at once
  Weights weights;
  double noise = 0;  // added to the scores, the same for a neuron all along
  std::uint64_t seed = 0;
};

// An order of all connections: loads the neuron of the best score, uses every connection both of
// whose ends are held, and so on. When full, the value that is cheapest to lose leaves.
std::vector<int> greedy(const Network& net, const Greed& options, const Poll& poll);

}  // namespace sparse

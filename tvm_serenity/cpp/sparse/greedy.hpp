// Greedy residency: loads the neuron next that allows most computation and early evictions.
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
  int room = 2;  // capacity in neurons
  Weights weights;
  double noise = 0;  // added to the scores; constant per neuron
  std::uint64_t seed = 0;
};

// Return an order of all connections: load the neuron of the best score, use every connection with
// both ends in memory, and repeat. When the memory is full, evict the value of least cost.
std::vector<int> greedy(const Network& net, const Greed& options, const Poll& poll);

}  // namespace sparse

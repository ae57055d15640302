// Connection Reordering (section IV of the paper): simulated annealing of the order. Block moves,
// which are not in the paper, can be mixed in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparse/simulate.hpp"

namespace sparse {

struct Annealing {
  std::int64_t iterations = 1000000;
  int window = 1;       // ws
  double cooling = 0.2; // sigma
  std::uint64_t seed = 0;
  double blocks = 0;    // share of moves that are blocks, of at most `block` connections
  int block = 1;
  std::int64_t first_iteration = 1;  // t of the first one: later is cooler
  double seconds = 1e18;
  bool incremental = true;  // off: every order is simulated from the start; same trajectory
};

struct Annealed {
  std::vector<int> order;
  std::int64_t total = 0;
  std::int64_t iterations = 0, changed = 0, accepted = 0, simulated = 0;
  std::string limit;  // "", "time" or "interrupt"
};

// Called a few times per second; returns false to stop.
using Report = std::function<bool(std::int64_t iterations, std::int64_t best)>;

Annealed anneal(const Network& net, const std::vector<int>& start, const Rule& rule,
                const Annealing& options, const Report& report);

}  // namespace sparse

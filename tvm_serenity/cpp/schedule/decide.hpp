// Is there an order with a peak within a budget? Depth-first over block moves.
#pragma once

#include "schedule/limits.hpp"
#include "schedule/moves.hpp"

namespace schedule {

struct Decision {
  Status status = Status::infeasible;
  std::vector<int> order;  // where feasible
  Bytes next = 0;          // where infeasible: no smaller budget is feasible either (R6)
  std::uint64_t states = 0;
};

Decision decide(const Instance& instance, const Closures& closures, Rules rules, Bytes budget,
                Limits& limits);

}  // namespace schedule

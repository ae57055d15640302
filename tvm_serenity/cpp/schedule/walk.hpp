// Orders of whole instances in time near linear in their size: profiles and greedy orders, the twins
// of schedule/instance.py's profile and schedule/starts.py's greedy orders.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/cut.hpp"
#include "schedule/instance.hpp"
#include "schedule/limits.hpp"

namespace schedule {

struct OrderProfile {
  std::vector<Bytes> live;  // before each step, and at the end
  std::vector<Bytes> need;  // during each step

  Bytes peak() const {
    return need.empty() ? live.front() : *std::max_element(need.begin(), need.end());
  }
};

class Walk {
 public:
  explicit Walk(Instance instance);

  OrderProfile profile(const std::vector<int>& order) const;

  // Every op right before the first one that needs it. Empty where the limit comes first.
  std::vector<int> on_demand(Limits& limits) const;

  // Least growth of the live bytes first, then the op that became ready last, or the first by
  // number. Empty where the limit comes first.
  std::vector<int> greedy(bool newest_first, Limits& limits) const;

  // What every order needs at an op at least (rule R7).
  Cut root_cut(int op, Limits& limits) const { return schedule::root_cut(in_, op, limits); }

  // The instance whose orders are these backwards (rule R8); not for in-place ops.
  Walk reversed() const;

 private:
  Instance in_;
  Lists made_, read_;  // storages by op, ascending
};

}  // namespace schedule

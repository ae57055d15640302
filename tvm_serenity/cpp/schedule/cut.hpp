// The root bound of rule R7: a minimum cut for one op.
#pragma once

#include "schedule/instance.hpp"
#include "schedule/limits.hpp"

namespace schedule {

struct Cut {
  Bytes bytes = 0;       // every order needs at least this much at the op
  std::vector<int> set;  // a least state before the op, ascending
  bool late = false;     // the limit came first: nothing is known
};

Cut root_cut(const Instance& instance, int op, Limits& limits);

}  // namespace schedule

// The root bound of rule R7: a minimum cut for one op.
#pragma once

#include "schedule/closures.hpp"

namespace schedule {

struct Cut {
  Bytes bytes = 0;       // every order needs at least this much at the op
  std::vector<int> set;  // a least state before the op, ascending
};

Cut root_cut(const Instance& instance, const Closures& closures, int op);

}  // namespace schedule

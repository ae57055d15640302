// What every order needs at one op: minimum cuts (rule R7).
#pragma once

#include <vector>

#include "schedule/flow.hpp"
#include "schedule/instance.hpp"
#include "schedule/limits.hpp"

namespace schedule {

struct Cut {
  Bytes bytes = 0;       // every order needs at least this much at the op
  std::vector<int> set;  // a least state before the op, ascending
  bool late = false;     // the limit came first: nothing is known
};

Cut root_cut(const Instance& instance, int op, Limits& limits);

// Between which sets of ops the state before an op lies, and what the op then saves: without
// anything taken over, and for each storage that it may take over.
struct Between {
  std::vector<Word> inside, outside;
  Bytes credit = 0;
};

std::vector<Between> states_before(const Instance& instance, int op);

// The live bytes of such states as a network: a least cut is a least state.
struct Network {
  static constexpr int source = 0, sink = 1;

  Flow flow{0};
  std::vector<int> node;  // by op
  Bytes fixed = 0;        // live in all of them
};

// `maker`: what this op makes counts as made; -1: nothing does.
Network network(const Instance& instance, const Between& between, int maker);

}  // namespace schedule

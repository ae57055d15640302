// The block moves of rule R1, prepared once for an instance.
#pragma once

#include <vector>

#include "schedule/instance.hpp"

namespace schedule {

// One distinct set C(t) or C(u): all that must run before t can die or u can have run.
struct Closure {
  Bytes weight = 0;          // of the storages that die when the set is complete
  int workspace_op = -1;     // u, where the set is C(u) for an op u with workspace
  std::vector<int> takers;   // ops that take over a storage of this closure if they run last
  std::vector<int> covers;   // its maximal dominators: it is no move while one is incomplete
  std::vector<int> covered;  // the closures it covers
};

struct Closures {
  int words;                  // of a set of ops
  int closure_words = 0;      // of a set of closures
  Table ancestors;            // by op, without the op
  Table sets;                 // by closure
  std::vector<Closure> list;  // ascending by (size, order of discovery); the last is the full set

  explicit Closures(const Instance& instance);
  int count() const { return int(list.size()); }

 private:
  void find_sets(const Instance& instance);
  void find_covers();
};

}  // namespace schedule

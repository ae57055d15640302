// The instance as the native searches see it (schedule/instance.py says what the fields mean).
#pragma once

#include <vector>

#include "schedule/bits.hpp"

namespace schedule {

struct Instance {
  int count = 0;
  std::vector<std::vector<int>> predecessors;
  std::vector<Bytes> sizes;
  std::vector<std::vector<int>> producers;  // empty: live from the start
  std::vector<std::vector<int>> consumers;  // empty: kept to the end
  std::vector<Bytes> workspace;
  std::vector<std::vector<int>> in_place;
  std::vector<Bytes> takeover;

  // Derived by finish():
  std::vector<std::vector<int>> successors;
  std::vector<Bytes> alloc;             // storages with one producer, by producer
  std::vector<std::vector<int>> joint;  // storages with several producers, by producer
  Bytes start_live = 0;

  void finish();
};

}  // namespace schedule

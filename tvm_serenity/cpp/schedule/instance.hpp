// The instance as the native searches see it (schedule/instance.py says what the fields mean).
#pragma once

#include <vector>

#include "lists.hpp"
#include "schedule/bits.hpp"

namespace schedule {

struct Instance {
  int count = 0;
  Lists predecessors;
  std::vector<Bytes> sizes;
  Lists producers;  // empty: live from the start
  Lists consumers;  // empty: kept to the end
  std::vector<Bytes> workspace;
  Lists in_place;
  std::vector<Bytes> takeover;

  // Derived by finish():
  Lists successors;
  std::vector<Bytes> alloc;  // storages with one producer, by producer
  Lists joint;               // storages with several producers, by producer
  Bytes start_live = 0;

  void finish();
};

}  // namespace schedule

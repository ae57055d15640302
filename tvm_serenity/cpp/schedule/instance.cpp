#include "schedule/instance.hpp"

#include <stdexcept>

namespace schedule {

static void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

void Instance::finish() {
  const std::size_t n = workspace.size(), m = sizes.size();
  count = int(n);
  require(predecessors.size() == n && in_place.size() == n && takeover.size() == n,
          "the fields by op differ in length");
  require(producers.size() == m && consumers.size() == m,
          "the fields by storage differ in length");
  for (int op = 0; op < count; ++op) {
    for (int before : predecessors[op])
      require(before >= 0 && before < op, "the ops are not numbered in a valid order");
    for (int t : in_place[op]) require(t >= 0 && t < int(m), "unknown storage");
  }
  successors = predecessors.turned(count);
  alloc.assign(n, 0);
  start_live = 0;
  Lists several;
  for (std::size_t t = 0; t < m; ++t) {
    for (int op : producers[t]) require(op >= 0 && op < count, "unknown producer");
    for (int op : consumers[t]) require(op >= 0 && op < count, "unknown consumer");
    if (producers[t].empty()) start_live += sizes[t];
    if (producers[t].size() == 1) alloc[producers[t][0]] += sizes[t];
    if (producers[t].size() > 1)
      for (int op : producers[t]) several.add(op);
    several.close();
  }
  joint = several.turned(count);
}

}  // namespace schedule

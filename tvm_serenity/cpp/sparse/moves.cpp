// The moves of annealing: windows as the paper moves them, and blocks.
#include "sparse/uses.hpp"

#include <algorithm>

namespace sparse {

bool Uses::move(int first, int last, bool left) {
  for (int i = 0; i <= last - first; ++i) {
    left ? move_left(order_[first + i]) : move_right(order_[last - i]);
  }
  return measure();
}

// To right behind the last connection before it that touches its source.
void Uses::move_left(int connection) {
  const int mine = 2 * connection + 1;
  const int found = before_[mine - 1] < 0 ? -1 : before_[mine - 1] >> 1;
  const int p = position_[connection];
  if (p == 0 || (found >= 0 && !moved(found) && position_[found] == p - 1)) return;
  put(connection, found < 0 ? 0 : position_[found] + 1, found, true);
  sink_left(mine);
}

// To right before the next connection that touches its target.
void Uses::move_right(int connection) {
  const int mine = 2 * connection;
  const int found = after_[mine + 1] < 0 ? -1 : after_[mine + 1] >> 1;
  const int p = position_[connection];
  if (p == size() - 1 || (found >= 0 && !moved(found) && position_[found] == p + 1)) return;
  put(connection, found < 0 ? size() : position_[found], found, false);
  sink_right(mine);
}

bool Uses::move_block(int first, int last, bool left, int use) {
  const int gap = left ? gap_left(first, last, use) : gap_right(first, last, use);
  if (gap >= first && gap <= last + 1) return false;
  for (int i = 0; i <= last - first; ++i) {
    const int p = left ? first + i : last - i;
    put(order_[p], gap, i == 0 ? -1 : order_[left ? p - 1 : p + 1], left);
    for (int mine : {2 * order_[p], 2 * order_[p] + 1}) left ? sink_left(mine) : sink_right(mine);
  }
  return measure();
}

// Behind the use of the neuron before the block, and behind all that the block depends on.
int Uses::gap_left(int first, int last, int use) const {
  while (use >= 0 && position_[use >> 1] >= first) use = before_[use];
  int gap = use < 0 ? 0 : position_[use >> 1] + 1;
  for (int p = first; p <= last && gap < first; ++p) {
    int at = before_[2 * order_[p]];
    while (at >= 0 && ((at & 1) == 0 || position_[at >> 1] >= first)) at = before_[at];
    if (at >= 0) gap = std::max(gap, position_[at >> 1] + 1);
  }
  return gap;
}

// Before the use of the neuron after the block, and before all that depends on the block.
int Uses::gap_right(int first, int last, int use) const {
  while (use >= 0 && position_[use >> 1] <= last) use = after_[use];
  int gap = use < 0 ? size() : position_[use >> 1];
  for (int p = first; p <= last && gap > last + 1; ++p) {
    int at = after_[2 * order_[p] + 1];
    while (at >= 0 && ((at & 1) == 1 || position_[at >> 1] <= last)) at = after_[at];
    if (at >= 0) gap = std::min(gap, position_[at >> 1]);
  }
  return gap;
}

// Put a use that moved left where it belongs among those of its neuron.
void Uses::sink_left(int use) {
  int at = before_[use];
  while (at >= 0 && label_[use >> 1] < label_[at >> 1]) at = before_[at];
  relink(use, at);
}

void Uses::sink_right(int use) {
  int at = use;
  while (after_[at] >= 0 && label_[after_[at] >> 1] < label_[use >> 1]) at = after_[at];
  relink(use, at == use ? before_[use] : at);
}

bool Uses::measure() {
  low_ = size();
  high_ = -1;
  for (int c : moved_) {
    low_ = std::min({low_, position_[c], gap(c)});
    high_ = std::max({high_, position_[c], gap(c) - 1});
  }
  return !moved_.empty();
}

}  // namespace sparse

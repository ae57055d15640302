#include "sparse/uses.hpp"

#include <algorithm>

namespace sparse {

Uses::Uses(const Network& net, const std::vector<int>& order)
    : net_(net), order_(order), tried_(order), position_(order.size()),
      before_(2 * order.size(), -1), after_(2 * order.size(), -1), head_(net.neurons, -1),
      gap_(order.size(), -1), rank_(order.size(), 0), noted_(2 * order.size(), 0) {
  std::vector<int> last(net.neurons, -1);
  for (int p = 0; p < size(); ++p) {
    position_[order[p]] = p;
    for (int use : {2 * order[p], 2 * order[p] + 1}) {
      link(use, last[neuron(use)]);
      last[neuron(use)] = use;
    }
  }
}

bool Uses::move(int first, int last, bool left) {
  for (int i = 0; i <= last - first; ++i) {
    left ? move_left(order_[first + i]) : move_right(order_[last - i]);
  }
  if (moved_.empty()) return false;
  write();
  return true;
}

// To right behind the last connection before it that touches its source.
void Uses::move_left(int connection) {
  const int mine = 2 * connection + 1;
  const int found = before_[mine - 1] < 0 ? -1 : before_[mine - 1] >> 1;
  const int p = position_[connection];
  if (p == 0 || (found >= 0 && !moved(found) && position_[found] == p - 1)) return;
  put(connection, found < 0 ? 0 : position_[found] + 1, found, true);
  int at = before_[mine];
  while (at >= 0 && precedes(connection, at >> 1)) at = before_[at];
  relink(mine, at);
}

// To right before the next connection that touches its target.
void Uses::move_right(int connection) {
  const int mine = 2 * connection;
  const int found = after_[mine + 1] < 0 ? -1 : after_[mine + 1] >> 1;
  const int p = position_[connection];
  if (p == size() - 1 || (found >= 0 && !moved(found) && position_[found] == p + 1)) return;
  put(connection, found < 0 ? size() : position_[found], found, false);
  int at = mine;
  while (after_[at] >= 0 && precedes(after_[at] >> 1, connection)) at = after_[at];
  relink(mine, at == mine ? before_[mine] : at);
}

void Uses::put(int connection, int gap, int next_to, bool behind) {
  const bool beside = next_to >= 0 && moved(next_to);
  Row& row = row_of(beside ? gap_[next_to] : gap);
  std::vector<int>& members = row.connections;
  const auto at = beside ? members.begin() + rank_[next_to] + behind
                         : behind ? members.begin() : members.end();
  const int from = static_cast<int>(at - members.begin());
  members.insert(at, connection);
  for (int i = from; i < static_cast<int>(members.size()); ++i) rank_[members[i]] = i;
  gap_[connection] = row.gap;
  moved_.push_back(connection);
  for (int use : {2 * connection, 2 * connection + 1}) {
    note(use);
    if (after_[use] >= 0) note(after_[use]);
  }
}

Uses::Row& Uses::row_of(int gap) {
  for (std::size_t i = 0; i < rows_used_; ++i) {
    if (rows_[i].gap == gap) return rows_[i];
  }
  if (rows_used_ == rows_.size()) rows_.emplace_back();
  Row& row = rows_[rows_used_++];
  row.gap = gap;
  row.connections.clear();
  return row;
}

bool Uses::precedes(int connection, int other) const {
  const int gap = gap_[connection], other_gap = gap_[other];
  if (gap >= 0 && other_gap >= 0) {
    return gap != other_gap ? gap < other_gap : rank_[connection] < rank_[other];
  }
  if (gap >= 0) return gap <= position_[other];
  if (other_gap >= 0) return position_[connection] < other_gap;
  return position_[connection] < position_[other];
}

void Uses::note(int use) {
  if (noted_[use]) return;
  noted_[use] = 1;
  changed_.push_back({use, before_[use]});
}

void Uses::relink(int use, int before) {
  if (before == before_[use]) return;
  relinked_.push_back({use, before_[use]});
  unlink(use);
  const int next = before < 0 ? head_[neuron(use)] : after_[before];
  if (next >= 0) note(next);
  link(use, before);
}

void Uses::unlink(int use) {
  const int before = before_[use], after = after_[use];
  (before < 0 ? head_[neuron(use)] : after_[before]) = after;
  if (after >= 0) before_[after] = before;
}

void Uses::link(int use, int before) {
  int& next = before < 0 ? head_[neuron(use)] : after_[before];
  before_[use] = before;
  after_[use] = next;
  if (next >= 0) before_[next] = use;
  next = use;
}

// The new order: the old one without what moved, and the rows in their gaps.
void Uses::write() {
  low_ = size();
  high_ = -1;
  for (int c : moved_) {
    low_ = std::min({low_, position_[c], gap_[c]});
    high_ = std::max({high_, position_[c], gap_[c] - 1});
  }
  std::sort(rows_.begin(), rows_.begin() + rows_used_,
            [](const Row& a, const Row& b) { return a.gap < b.gap; });
  int to = low_;
  std::size_t row = 0;
  for (int p = low_; p <= high_ + 1; ++p) {
    for (; row < rows_used_ && rows_[row].gap == p; ++row) {
      for (int c : rows_[row].connections) tried_[to++] = c;
    }
    if (p <= high_ && !moved(order_[p])) tried_[to++] = order_[p];
  }
  for (int p = low_; p <= high_; ++p) position_[tried_[p]] = p;
}

void Uses::keep() {
  std::copy(tried_.begin() + low_, tried_.begin() + high_ + 1, order_.begin() + low_);
  for (int c : moved_) gap_[c] = -1;
  for (const Changed& changed : changed_) noted_[changed.use] = 0;
  moved_.clear();
  changed_.clear();
  relinked_.clear();
  rows_used_ = 0;
}

void Uses::undo() {
  for (std::size_t i = relinked_.size(); i-- > 0;) {
    unlink(relinked_[i].use);
    link(relinked_[i].use, relinked_[i].before);
  }
  std::copy(order_.begin() + low_, order_.begin() + high_ + 1, tried_.begin() + low_);
  for (int p = low_; p <= high_; ++p) position_[order_[p]] = p;
  keep();
}

}  // namespace sparse

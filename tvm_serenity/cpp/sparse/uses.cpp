#include "sparse/uses.hpp"

#include <algorithm>

namespace sparse {

Uses::Uses(const Network& net, const std::vector<int>& order)
    : net_(net), order_(order), position_(order.size()), label_(order.size()),
      before_(2 * order.size(), -1), after_(2 * order.size(), -1), head_(net.neurons, -1),
      has_moved_(order.size(), 0), row_at_(order.size() + 1, -1), noted_(2 * order.size(), 0) {
  std::vector<int> last(net.neurons, -1);
  for (int p = 0; p < size(); ++p) {
    position_[order[p]] = p;
    label_[order[p]] = label_of(p, kUnmoved);
    for (int use : {2 * order[p], 2 * order[p] + 1}) {
      link(use, last[neuron(use)]);
      last[neuron(use)] = use;
    }
  }
}

void Uses::put(int connection, int gap_before, int next_to, bool behind) {
  const bool beside = next_to >= 0 && moved(next_to);
  Row& row = row_of(beside ? gap(next_to) : gap_before);
  std::vector<int>& members = row.connections;
  const auto from = beside ? static_cast<std::size_t>(label_[next_to] & kUnmoved) + behind
                           : behind ? 0 : members.size();
  members.insert(members.begin() + from, connection);
  for (std::size_t i = from; i < members.size(); ++i) {
    label_[members[i]] = label_of(row.gap, static_cast<Label>(i));
  }
  moved_.push_back(connection);
  has_moved_[connection] = 1;
  for (int use : {2 * connection, 2 * connection + 1}) {
    note(use);
    if (after_[use] >= 0) note(after_[use]);
  }
}

Uses::Row& Uses::row_of(int gap) {
  int& at = row_at_[gap];
  if (at < 0) {
    at = static_cast<int>(rows_used_);
    if (rows_used_ == rows_.size()) rows_.emplace_back();
    Row& row = rows_[rows_used_++];
    row.gap = gap;
    row.connections.clear();
  }
  return rows_[at];
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

// The old order without what moved, and the rows in their gaps.
const std::vector<int>& Uses::stretch() {
  stretch_.resize(high_ - low_ + 1);
  int* to = stretch_.data();
  for (int p = low_; p <= high_ + 1; ++p) {
    if (const Row* here = row(p)) {
      to = std::copy(here->connections.begin(), here->connections.end(), to);
    }
    if (p <= high_ && !moved(order_[p])) *to++ = order_[p];
  }
  return stretch_;
}

void Uses::keep() {
  stretch();
  for (int p = low_; p <= high_; ++p) {
    const int c = stretch_[p - low_];
    order_[p] = c;
    position_[c] = p;
    label_[c] = label_of(p, kUnmoved);
  }
  clear();
}

void Uses::undo() {
  for (std::size_t i = relinked_.size(); i-- > 0;) {
    unlink(relinked_[i].use);
    link(relinked_[i].use, relinked_[i].before);
  }
  for (int c : moved_) label_[c] = label_of(position_[c], kUnmoved);
  clear();
}

void Uses::clear() {
  for (int c : moved_) has_moved_[c] = 0;
  for (const Changed& changed : changed_) noted_[changed.use] = 0;
  for (std::size_t i = 0; i < rows_used_; ++i) row_at_[rows_[i].gap] = -1;
  rows_used_ = 0;
  moved_.clear();
  changed_.clear();
  relinked_.clear();
}

}  // namespace sparse

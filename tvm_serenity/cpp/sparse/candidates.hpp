// The intervals that two orders' schedules both hold in fast memory, and which one ends last.
//
// MIN evicts the interval that ends last. So of the intervals that span a point, those that it will
// evict later end after all that it keeps, and the first of them to be evicted ends last. If the old
// schedule soon evicts an interval that both hold, it is this one; else the ends are scanned.
#pragma once

#include "sparse/difference.hpp"
#include "sparse/evictions.hpp"
#include "sparse/uses.hpp"

namespace sparse {

class Candidates {
 public:
  Candidates(const Uses& uses, const Evictions& evictions, const Difference& difference);

  void clear() { seen_ = -1; }

  // Of what both have, the interval that ends last; -1 if there is nothing. What starts at position
  // `begun` of the old order or later has not begun; what ends or the old schedule gives up before
  // position `next` is gone, the old schedule has `held` intervals in all.
  int farthest(int begun, int next, int held);

  // Both have from here on what a changed interval keeps.
  void add(int use);

  // The old schedule has passed a connection that moved.
  void pass(int connection) { passed_[connection] = 1; }
  void forget(int connection) { passed_[connection] = 0; }

 private:
  int end(int use) const { return uses_.position(use >> 1); }
  int end_key(int use) const { return 2 * end(use) + (use & 1); }
  bool held_by_both(int use, int begun, int next) const {
    return !difference_.differs(use) && has_begun(use, begun) && is_kept(use, next);
  }
  bool has_begun(int use, int begun) const {
    const int start = uses_.before(use);
    return start >= 0 && (uses_.position(start >> 1) < begun || !difference_.is_plain(use));
  }
  bool is_kept(int use, int next) const {  // unless it has ended
    const int by = evictions_.given_up(use);
    if (by < 0) return true;
    return uses_.moved(by) ? is_kept_up_to_moved(use, by) : uses_.position(by) >= next;
  }
  bool is_kept_up_to_moved(int use, int by) const;
  int next_victim(int begun, int next, int count) const;
  int scan_back(int begun, int next) const;
  int scan(int begun, int next, int count) const;

  const Uses& uses_;
  const Evictions& evictions_;
  const Difference& difference_;
  std::vector<char> passed_;
  int seen_ = -1;   // what began before this position...
  int bound_ = -1;  // ...ends at this one at the latest; nothing is known if seen_ is -1
};

}  // namespace sparse

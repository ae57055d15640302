#include "sparse/candidates.hpp"

#include <algorithm>

namespace sparse {

namespace {

constexpr int kLong = 256;  // connections searched for one that gives up, where nothing is known
constexpr int kSoon = 48;   // elsewhere
constexpr int kFar = 1500;  // connections scanned at most for what began and ended since

}  // namespace

Candidates::Candidates(const Uses& uses, const Evictions& evictions, const Difference& difference)
    : uses_(uses), evictions_(evictions), difference_(difference), passed_(uses.size(), 0) {}

int Candidates::farthest(int begun, int next, int held) {
  const bool near = seen_ >= 0 && begun - seen_ + bound_ - next < kFar;
  int use = next_victim(begun, next, near ? kSoon : kLong);
  if (use < 0) {
    use = near ? scan_back(begun, next) : scan(begun, next, held - difference_.only_old());
  }
  seen_ = begun;
  bound_ = use < 0 ? begun - 1 : end(use);
  return use;
}

void Candidates::add(int use) { bound_ = std::max(bound_, end(use)); }

int Candidates::next_victim(int begun, int next, int count) const {
  const std::vector<int>& order = uses_.order();
  const int last = std::min(uses_.size(), next + count);
  for (int q = next; q < last; ++q) {
    const int* victims = evictions_.point(order[q]).victims;
    int found = -1;
    for (int i = 0; i < 2 && victims[i] >= 0; ++i) {
      const int use = victims[i];
      if (difference_.differs(use) || !has_begun(use, begun)) continue;
      if (found < 0 || end_key(use) > end_key(found)) found = use;
    }
    if (found >= 0) return found;
  }
  return -1;
}

// What began since the last query, then the ends up to the bound, the last one first.
int Candidates::scan_back(int begun, int next) const {
  const std::vector<int>& order = uses_.order();
  int found = -1, last = 2 * next - 1;
  for (int q = seen_; q < begun; ++q) {
    for (int start : {2 * order[q], 2 * order[q] + 1}) {
      const int use = uses_.after(start);
      if (use < 0 || end_key(use) <= last) continue;
      if (!difference_.is_plain(use) || !is_kept(use, next)) continue;
      found = use;
      last = end_key(use);
    }
  }
  for (int q = bound_; 2 * q + 1 > last; --q) {
    const int first = 2 * order[q];
    if (held_by_both(first + 1, begun, next)) return first + 1;
    if (2 * q > last && held_by_both(first, begun, next)) return first;
  }
  return found;
}

// The ends from here on, until all `count` are found.
int Candidates::scan(int begun, int next, int count) const {
  const std::vector<int>& order = uses_.order();
  int found = -1;
  for (int key = 2 * next; count > 0 && key < 2 * uses_.size(); ++key) {
    const int use = 2 * order[key >> 1] + (key & 1);
    if (!held_by_both(use, begun, next)) continue;
    found = use;
    --count;
  }
  return found;
}

// Where the old schedule gives up what it waits for at `by`, a connection that moved.
bool Candidates::is_kept_up_to_moved(int use, int by) const {
  const int* victims = evictions_.point(by).victims;
  return !passed_[by] && (victims[0] == use || victims[1] == use);
}

}  // namespace sparse

#include "plan/sweep.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace plan {

namespace {

constexpr int kShares[] = {256, 64, 16, 4};  // of all sections: who lives longer is placed apart
constexpr int kLooks = 8;                    // at gaps, where alignment makes one too narrow

// The gaps below what is placed, by size and by start; two that touch are one.
class Gaps {
 public:
  explicit Gaps(Bytes floor) : top_(floor) {}

  Bytes top() const { return top_; }

  // The start of a block in the narrowest gap that holds it, else at the top.
  Bytes take(Bytes size, Bytes step) {
    auto gap = by_size_.lower_bound({size, 0});
    for (int looks = 0; looks < kLooks && gap != by_size_.end(); ++looks, ++gap) {
      const Bytes start = gap->second, end = start + gap->first, at = align_up(start, step);
      if (at + size > end) continue;
      remove(start, end);
      add(start, at), add(at + size, end);
      return at;
    }
    Bytes start = top_;
    if (!by_start_.empty() && by_start_.rbegin()->second == top_) {
      start = by_start_.rbegin()->first;
      remove(start, top_);
    }
    const Bytes at = align_up(start, step);
    add(start, at);
    top_ = at + size;
    return at;
  }

  void give(Bytes start, Bytes end) {
    const auto next = by_start_.lower_bound(start);
    Bytes low = start, high = end;
    if (next != by_start_.end() && next->first == end) high = next->second;
    if (next != by_start_.begin() && std::prev(next)->second == start) low = std::prev(next)->first;
    if (high > end) remove(end, high);
    if (low < start) remove(low, start);
    add(low, high);
  }

 private:
  void add(Bytes start, Bytes end) {
    if (start >= end) return;
    by_start_[start] = end;
    by_size_.insert({end - start, start});
  }
  void remove(Bytes start, Bytes end) {
    by_start_.erase(start);
    by_size_.erase({end - start, start});
  }

  Bytes top_;
  std::map<Bytes, Bytes> by_start_;
  std::set<std::pair<Bytes, Bytes>> by_size_;
};

// Who comes in which section and who leaves, forward or backward through time.
class Passage {
 public:
  Passage(const Instance& in, bool backward) : in_(in), come_(in.sections), leave_(in.sections + 1) {
    std::vector<int> order(in.count());
    std::iota(order.begin(), order.end(), 0);
    const auto longer = [&](int i, int j) {
      return in.upper[i] - in.lower[i] > in.upper[j] - in.lower[j];
    };
    std::stable_sort(order.begin(), order.end(), longer);
    for (int i : order) {
      come_[backward ? in.sections - in.upper[i] : in.lower[i]].push_back(i);
      leave_[backward ? in.sections - in.lower[i] : in.upper[i]].push_back(i);
    }
  }

  // Places those with lifetimes of more than `least` sections and at most `most`, above `floor`;
  // returns the end of the last one.
  Bytes place(Bytes floor, int least, int most, std::vector<Bytes>& offsets) const {
    Gaps gaps(floor);
    const auto chosen = [&](int i) {
      const int life = in_.upper[i] - in_.lower[i];
      return life > least && life <= most;
    };
    for (int s = 0; s < in_.sections; ++s) {
      for (int i : leave_[s])
        if (chosen(i)) gaps.give(offsets[i], offsets[i] + in_.size[i]);
      for (int i : come_[s])
        if (chosen(i)) offsets[i] = gaps.take(in_.size[i], in_.alignment[i]);
    }
    return gaps.top();
  }

 private:
  const Instance& in_;
  std::vector<std::vector<int>> come_, leave_;
};

}  // namespace

std::vector<Bytes> sweep(const Instance& in, Limit& limit) {
  std::vector<Bytes> best, offsets(in.count());
  Bytes least = -1;
  for (const bool backward : {false, true}) {
    const Passage passage(in, backward);
    for (int k = -1; k < int(std::size(kShares)); ++k) {
      if (!best.empty() && limit.now()) return best;
      const int apart = k < 0 ? in.sections : in.sections / kShares[k];
      const Bytes below = passage.place(0, apart, in.sections, offsets);
      const Bytes top = passage.place(below, 0, apart, offsets);
      if (least < 0 || top < least) least = top, best = offsets;
    }
  }
  return best;
}

}  // namespace plan

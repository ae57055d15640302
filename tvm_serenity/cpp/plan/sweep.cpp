#include "plan/sweep.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace plan {

namespace {

constexpr int kShares[] = {256, 64, 16, 4};  // of all sections: who lives longer is placed apart
constexpr int kLooks = 8;                    // at gaps, where alignment makes one too narrow
constexpr int kPolled = 1024;                // buffers, between two looks at the clock
constexpr int kNone = -1;

// An address range: blocks and the gaps between them, each knowing its neighbours; gaps by size as
// well. Two gaps that touch are one.
class Strip {
 public:
  explicit Strip(Bytes floor) : top_(floor) {}

  Bytes top() const { return top_; }  // the highest end that any block has had
  Bytes start(int block) const { return pieces_[block].start; }

  // A block in the narrowest gap that holds it, else at the top.
  int take(Bytes size, Bytes step) {
    auto gap = gaps_.lower_bound({size, 0, 0});
    for (int looks = 0; looks < kLooks && gap != gaps_.end(); ++looks, ++gap) {
      const int piece = std::get<2>(*gap);
      const Bytes at = align_up(pieces_[piece].start, step);
      if (at + size > pieces_[piece].end) continue;
      gaps_.erase(gap);
      cut(piece, at, at + size);
      return piece;
    }
    if (last_ == kNone || !pieces_[last_].free) insert(last_, top_, top_);
    else gaps_.erase(key(last_));
    const int piece = last_;
    const Bytes at = align_up(pieces_[piece].start, step);
    top_ = pieces_[piece].end = std::max(top_, at + size);
    cut(piece, at, at + size);
    return piece;
  }

  void give(int block) {
    const int before = pieces_[block].before, after = pieces_[block].after;
    if (before != kNone && pieces_[before].free) {
      gaps_.erase(key(before));
      pieces_[block].start = pieces_[before].start;
      drop(before);
    }
    if (after != kNone && pieces_[after].free) {
      gaps_.erase(key(after));
      pieces_[block].end = pieces_[after].end;
      drop(after);
    }
    set_free(block);
  }

 private:
  struct Piece {
    Bytes start, end;
    int before, after;
    bool free;
  };
  using Key = std::tuple<Bytes, Bytes, int>;  // size, start, piece

  Key key(int gap) const {
    return {pieces_[gap].end - pieces_[gap].start, pieces_[gap].start, gap};
  }

  void set_free(int piece) {
    pieces_[piece].free = true;
    gaps_.insert(key(piece));
  }

  // What is left of a piece at both sides of a block is free.
  void cut(int piece, Bytes start, Bytes end) {
    const Bytes first = pieces_[piece].start, last = pieces_[piece].end;
    if (first < start) set_free(insert(pieces_[piece].before, first, start));
    if (end < last) set_free(insert(piece, end, last));
    pieces_[piece].start = start, pieces_[piece].end = end, pieces_[piece].free = false;
  }

  int insert(int before, Bytes start, Bytes end) {
    int piece = static_cast<int>(pieces_.size());
    if (unused_.empty()) pieces_.emplace_back();
    else piece = unused_.back(), unused_.pop_back();
    const int after = before == kNone ? first_ : pieces_[before].after;
    pieces_[piece] = {start, end, before, after, false};
    (before == kNone ? first_ : pieces_[before].after) = piece;
    (after == kNone ? last_ : pieces_[after].before) = piece;
    return piece;
  }

  void drop(int piece) {
    const int before = pieces_[piece].before, after = pieces_[piece].after;
    (before == kNone ? first_ : pieces_[before].after) = after;
    (after == kNone ? last_ : pieces_[after].before) = before;
    unused_.push_back(piece);
  }

  Bytes top_;
  int first_ = kNone, last_ = kNone;
  std::vector<Piece> pieces_;
  std::vector<int> unused_;
  std::set<Key> gaps_;
};

// `order`, sorted by a key of 0..most; equal ones stay in their order.
template <class Key>
std::vector<int> sorted(const std::vector<int>& order, int most, Key key) {
  std::vector<int> place(most + 2), found(order.size());
  for (int i : order) ++place[key(i) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  for (int i : order) found[place[key(i)]++] = i;
  return found;
}

// Buffers as they come, the longer-lived first, and as they leave: forward or backward in time.
class Passage {
 public:
  Passage(const Instance& in, const std::vector<int>& longest_first, bool backward) {
    const auto come = [&](int i) { return backward ? in.sections - in.upper[i] : in.lower[i]; };
    for (int i : sorted(longest_first, in.sections, come)) {
      const int from = come(i);
      blocks_.push_back({in.size[i], in.alignment[i], from, from + in.upper[i] - in.lower[i], i});
    }
    leaving_.resize(blocks_.size());
    std::iota(leaving_.begin(), leaving_.end(), 0);
    leaving_ = sorted(leaving_, in.sections, [&](int k) { return blocks_[k].leave; });
  }

  // Places those with lifetimes of more than `least` sections and at most `most`, above `floor`;
  // returns the end of the last one; -1 where `stop` says so first.
  template <class Stop>
  Bytes place(Bytes floor, int least, int most, std::vector<Bytes>& offsets, Stop stop) const {
    Strip strip(floor);
    std::vector<int> taken(blocks_.size(), kNone);
    auto leaving = leaving_.begin();
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const Block& block = blocks_[k];
      if (k % kPolled == 0 && stop()) return -1;
      if (block.leave - block.come <= least || block.leave - block.come > most) continue;
      for (; blocks_[*leaving].leave <= block.come; ++leaving)
        if (taken[*leaving] != kNone) strip.give(taken[*leaving]);
      taken[k] = strip.take(block.size, block.alignment);
      offsets[block.buffer] = strip.start(taken[k]);
    }
    return strip.top();
  }

 private:
  struct Block {
    Bytes size, alignment;
    int come, leave, buffer;
  };
  std::vector<Block> blocks_;
  std::vector<int> leaving_;
};

}  // namespace

std::vector<Bytes> sweep(const Instance& in, Limit& limit) {
  std::vector<Bytes> best, offsets(in.count());
  std::vector<int> order(in.count());
  std::iota(order.begin(), order.end(), 0);
  order = sorted(order, in.sections, [&](int i) { return in.sections - in.upper[i] + in.lower[i]; });
  const auto stop = [&] { return limit.now() && (!best.empty() || limit.interrupted()); };
  Bytes least = -1;
  for (const bool backward : {false, true}) {
    const Passage passage(in, order, backward);
    for (int k = -1; k < int(std::size(kShares)); ++k) {
      const int apart = k < 0 ? in.sections : in.sections / kShares[k];
      Bytes top = k < 0 ? 0 : passage.place(0, apart, in.sections, offsets, stop);
      if (top >= 0) top = passage.place(top, 0, apart, offsets, stop);
      if (top < 0) return best;
      if (least < 0 || top < least) least = top, best = offsets;
    }
  }
  return best;
}

}  // namespace plan

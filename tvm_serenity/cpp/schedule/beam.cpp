#include "schedule/beam.hpp"

#include <algorithm>

#include "schedule/widths.hpp"

namespace schedule {

namespace {

template <int N>
class Beam {
 public:
  Beam(const Instance& instance, const Closures& closures, Rules rules, Bytes budget,
       Limits& limits)
      : moves_(instance, closures, rules),
        budget_(budget),
        limits_(limits),
        levels_(instance.count + 1),
        block_(closures.words) {}

  std::vector<int> run(int width) {
    entries_.push_back({moves_.start(), -1, -1, 0});
    levels_[0].push_back(0);
    for (std::size_t size = 0; size + 1 < levels_.size(); ++size) {
      select(levels_[size], width);
      for (int entry : levels_[size])
        if (!grow(entry)) return {};
      for (int entry : levels_[size]) entries_[entry].node.active = {};
    }
    select(levels_.back(), 1);
    return levels_.back().empty() ? std::vector<int>{} : order_to(levels_.back()[0]);
  }

 private:
  struct Entry {
    Node node;
    int parent;
    int last;
    Bytes peak;
  };

  // The best `width` entries of a level, each set once: least peak, then least live bytes.
  void select(std::vector<int>& level, int width) {
    auto rank = [&](int a, int b) {
      const Entry &x = entries_[a], &y = entries_[b];
      if (x.peak != y.peak) return x.peak < y.peak;
      if (x.node.live != y.node.live) return x.node.live < y.node.live;
      return a < b;
    };
    std::sort(level.begin(), level.end(), rank);
    std::vector<int> chosen;
    for (int entry : level) {
      const Word* set = entries_[entry].node.set.data();
      const bool known = std::any_of(chosen.begin(), chosen.end(), [&](int other) {
        return equal(entries_[other].node.set.data(), set, moves_.width());
      });
      if (!known && int(chosen.size()) < width)
        chosen.push_back(entry);
      else
        entries_[entry].node = Node{};
    }
    level = std::move(chosen);
  }

  bool grow(int parent) {
    if (limits_.out_of_time(entries_.size())) return false;
    Bytes rejected = 0;
    moves_.expand(entries_[parent].node, budget_, found_, rejected);
    for (const Move& move : found_) {
      Node next;
      moves_.advance(entries_[parent].node, move, next);
      const std::size_t level = size(next.set.data(), moves_.width());
      levels_[level].push_back(int(entries_.size()));
      const Bytes peak = std::max(entries_[parent].peak, move.key);
      entries_.push_back({std::move(next), parent, move.last, peak});
    }
    return true;
  }

  std::vector<int> order_to(int entry) {
    std::vector<int> path;
    for (; entry > 0; entry = entries_[entry].parent) path.push_back(entry);
    std::reverse(path.begin(), path.end());
    std::vector<int> order;
    for (int step : path) {
      const Entry& after = entries_[step];
      const Entry& before = entries_[after.parent];
      for (std::size_t i = 0; i < block_.size(); ++i)
        block_[i] = after.node.set[i] & ~before.node.set[i];
      moves_.append(block_.data(), after.last, order);
    }
    return order;
  }

  Moves<N> moves_;
  Bytes budget_;
  Limits& limits_;
  std::vector<std::vector<int>> levels_;  // by the number of ops that have run
  std::vector<Entry> entries_;
  std::vector<Move> found_;
  std::vector<Word> block_;
};

}  // namespace

std::vector<int> beam(const Instance& instance, const Closures& closures, Rules rules,
                      Bytes budget, int width, Limits& limits) {
  return with_width(closures.words, [&](auto words) {
    return Beam<decltype(words)::value>(instance, closures, rules, budget, limits).run(width);
  });
}

}  // namespace schedule

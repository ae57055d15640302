// A set of integers in [0, size) with the least, the greatest and the next member.
//
// One bit a number and a summary bit for 64 numbers, level upon level: every operation touches at
// most one word a level, five levels for 10^9. Simulators key residents by a time in the trace.
#pragma once

#include <cstdint>
#include <vector>

namespace offchip {

class TimeSet {
 public:
  explicit TimeSet(std::int64_t size = 0) { reset(size); }

  void reset(std::int64_t size) {
    levels_.clear();
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(std::size_t(size < 1 ? 1 : size), 0);
    } while (size > 1);
  }

  bool empty() const { return levels_.back()[0] == 0; }

  void insert(std::int64_t value) {
    for (auto& words : levels_) {
      std::uint64_t& word = words[value >> 6];
      const std::uint64_t before = word;
      word |= std::uint64_t(1) << (value & 63);
      if (before != 0) return;
      value >>= 6;
    }
  }

  void erase(std::int64_t value) {
    for (auto& words : levels_) {
      std::uint64_t& word = words[value >> 6];
      word &= ~(std::uint64_t(1) << (value & 63));
      if (word != 0) return;
      value >>= 6;
    }
  }

  // The set must not be empty.
  std::int64_t max() const {
    std::int64_t at = 0;
    for (auto words = levels_.rbegin(); words != levels_.rend(); ++words)
      at = at * 64 + 63 - __builtin_clzll((*words)[at]);
    return at;
  }

  std::int64_t min() const { return lowest(0, int(levels_.size())); }

  // The least member that is not below `from`, or -1.
  std::int64_t next(std::int64_t from) const {
    for (int level = 0; level < int(levels_.size()); ++level) {
      const std::int64_t at = from >> 6;
      if (at >= std::int64_t(levels_[level].size())) return -1;
      const std::uint64_t rest = levels_[level][at] >> (from & 63);
      if (rest != 0) return lowest(from + __builtin_ctzll(rest), level);
      from = at + 1;
    }
    return -1;
  }

 private:
  std::int64_t lowest(std::int64_t at, int level) const {
    while (level > 0) {
      --level;
      at = at * 64 + __builtin_ctzll(levels_[level][at]);
    }
    return at;
  }

  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace offchip

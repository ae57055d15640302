// A set of positions that finds the next member from a position on.
#pragma once

#include <cstdint>
#include <vector>

namespace sparse {

class PositionSet {
 public:
  explicit PositionSet(int size) : size_(size), words_(size / 64 + 1, 0) {}

  bool has(int p) const { return words_[p >> 6] >> (p & 63) & 1; }
  void insert(int p) { words_[p >> 6] |= std::uint64_t{1} << (p & 63); }
  void erase(int p) { words_[p >> 6] &= ~(std::uint64_t{1} << (p & 63)); }

  // The first member not before p; the size if there is none.
  int next(int p) const {
    std::size_t at = p >> 6;
    std::uint64_t word = words_[at] >> (p & 63) << (p & 63);
    while (!word) {
      if (++at == words_.size()) return size_;
      word = words_[at];
    }
    return static_cast<int>(64 * at) + __builtin_ctzll(word);
  }

 private:
  int size_;
  std::vector<std::uint64_t> words_;
};

}  // namespace sparse

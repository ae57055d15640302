// A set of small integers that finds its largest member in one step per level.
#pragma once

#include <cstdint>
#include <vector>

namespace sparse {

class TopSet {
 public:
  explicit TopSet(std::int64_t universe = 0) {
    std::int64_t words = 0;
    do {
      universe = (universe + 63) / 64;
      begin_[depth_++] = words;
      words += universe ? universe : 1;
    } while (universe > 1);
    words_.assign(words, 0);
  }

  // No branches: whether a word was or becomes empty is hard to predict.
  void insert(std::int64_t key) {
    for (int level = 0; level < depth_; ++level, key >>= 6) {
      words_[begin_[level] + (key >> 6)] |= std::uint64_t{1} << (key & 63);
    }
  }

  void erase(std::int64_t key) {
    std::uint64_t empty = 1;
    for (int level = 0; level < depth_; ++level, key >>= 6) {
      std::uint64_t& word = words_[begin_[level] + (key >> 6)];
      word &= ~(empty << (key & 63));
      empty = word == 0;
    }
  }

  // The largest member, -1 if there is none.
  std::int64_t top() const {
    std::int64_t key = 0;
    for (int level = depth_ - 1; level >= 0; --level) {
      const std::uint64_t word = words_[begin_[level] + key];
      if (!word) return -1;
      key = (key << 6) | (63 - __builtin_clzll(word));
    }
    return key;
  }

 private:
  std::int64_t begin_[8];
  int depth_ = 0;
  std::vector<std::uint64_t> words_;  // level by level, the last one is a single word
};

}  // namespace sparse

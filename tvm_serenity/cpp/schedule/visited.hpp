// The visited set of rule R5: open addressing over one pool of equally wide sets.
#pragma once

#include <algorithm>
#include <vector>

#include "schedule/bits.hpp"

namespace schedule {

template <int N>
class Visited {
 public:
  explicit Visited(Width<N> width) : width_(width), table_(1024) {}

  bool contains(const Word* set) const { return table_[find(set)] != 0; }

  // Bytes in use once one more set is in.
  std::size_t bytes_after_insert() const {
    const std::size_t pool = pool_.size() + width_.words() > pool_.capacity()
                                 ? 3 * pool_.capacity()  // the old and the new block at once
                                 : pool_.capacity();
    const std::size_t table = 2 * (count_ + 1) > table_.size() ? 3 * table_.size() : table_.size();
    return pool * sizeof(Word) + table * sizeof(std::uint32_t);
  }

  void insert(const Word* set) {
    if (2 * (count_ + 1) > table_.size()) grow();
    const std::size_t place = find(set);
    if (table_[place]) return;
    pool_.insert(pool_.end(), set, set + width_.words());
    table_[place] = ++count_;
  }

 private:
  std::uint64_t hash(const Word* set) const {
    std::uint64_t h = 0x9e3779b97f4a7c15;
    for (int i = 0; i < width_.words(); ++i) {
      h = (h ^ set[i]) * 0xff51afd7ed558ccd;
      h ^= h >> 32;
    }
    return h;
  }

  std::size_t find(const Word* set) const {
    const std::size_t mask = table_.size() - 1;
    for (std::size_t i = hash(set) & mask;; i = (i + 1) & mask) {
      const std::uint32_t entry = table_[i];
      if (!entry || equal(pool_.data() + std::size_t(entry - 1) * width_.words(), set, width_))
        return i;
    }
  }

  void grow() {
    table_.assign(2 * table_.size(), 0);
    for (std::uint32_t entry = 1; entry <= count_; ++entry)
      table_[find(pool_.data() + std::size_t(entry - 1) * width_.words())] = entry;
  }

  Width<N> width_;
  std::vector<Word> pool_;
  std::vector<std::uint32_t> table_;  // index into the pool plus 1, or 0
  std::uint32_t count_ = 0;
};

}  // namespace schedule

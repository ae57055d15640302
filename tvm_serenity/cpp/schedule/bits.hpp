// Sets of ops (or of closures) as words; the width is a template constant for small instances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace schedule {

using Word = std::uint64_t;
using Bytes = std::int64_t;

inline int words_for(int count) { return (count + 63) / 64; }

// N words, or a number known at run time where N is 0.
template <int N>
struct Width {
  int dynamic;
  int words() const { return N ? N : dynamic; }
};

inline bool test(const Word* set, int i) { return set[i >> 6] >> (i & 63) & 1; }
inline void insert(Word* set, int i) { set[i >> 6] |= Word{1} << (i & 63); }

template <int N>
bool subset(const Word* a, const Word* b, Width<N> w) {
  for (int i = 0; i < w.words(); ++i)
    if (a[i] & ~b[i]) return false;
  return true;
}

template <int N>
bool equal(const Word* a, const Word* b, Width<N> w) {
  for (int i = 0; i < w.words(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

template <int N>
int size(const Word* a, Width<N> w) {
  int total = 0;
  for (int i = 0; i < w.words(); ++i) total += __builtin_popcountll(a[i]);
  return total;
}

// Calls visit(i) for every member in ascending order.
template <int N, class Visit>
void for_each(const Word* a, Width<N> w, Visit visit) {
  for (int i = 0; i < w.words(); ++i)
    for (Word rest = a[i]; rest; rest &= rest - 1) visit(64 * i + __builtin_ctzll(rest));
}

// Rows of equally wide sets in one block of memory.
struct Table {
  int words = 0;
  std::vector<Word> data;

  Table() = default;
  Table(int rows, int words) : words(words), data(std::size_t(rows) * words) {}
  Word* operator[](int row) { return data.data() + std::size_t(row) * words; }
  const Word* operator[](int row) const { return data.data() + std::size_t(row) * words; }
};

}  // namespace schedule

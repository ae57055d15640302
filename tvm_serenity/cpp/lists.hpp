// Lists of numbers, one after the other in one array: made and walked through at a million of them.
#pragma once

#include <cstddef>
#include <vector>

// Some of what an array holds, one after the other.
template <class T>
struct Span {
  const T *first, *last;
  const T* begin() const { return first; }
  const T* end() const { return last; }
  std::size_t size() const { return static_cast<std::size_t>(last - first); }
  bool empty() const { return first == last; }
  const T& operator[](std::size_t i) const { return first[i]; }
};

class Lists {
 public:
  using Range = Span<int>;

  std::size_t size() const { return ends_.size() - 1; }
  Range operator[](std::size_t list) const {
    return {items_.data() + ends_[list], items_.data() + ends_[list + 1]};
  }

  // One more number in the list that is being made; one more list.
  void add(int item) { items_.push_back(item); }
  void close() { ends_.push_back(items_.size()); }

  // For each number below `count` the lists that hold it, ascending.
  Lists turned(int count) const {
    Lists result;
    result.ends_.assign(count + 1, 0);
    result.items_.resize(items_.size());
    for (int item : items_) ++result.ends_[item + 1];
    for (int item = 0; item < count; ++item) result.ends_[item + 1] += result.ends_[item];
    std::vector<std::size_t> next(result.ends_.begin(), result.ends_.end() - 1);
    for (std::size_t list = 0; list < size(); ++list)
      for (int item : (*this)[list]) result.items_[next[item]++] = static_cast<int>(list);
    return result;
  }

 private:
  std::vector<std::size_t> ends_{0};
  std::vector<int> items_;
};

// What is placed, in blocks of time, each sorted by offset: what is live in a stretch of sections
// is read off a few lists, without sorting.
#pragma once

#include <cstdint>
#include <vector>

#include "lists.hpp"
#include "plan/instance.hpp"

namespace plan {

class Shelves {
 public:
  struct Held {
    Bytes start, end;
    int buffer, lower, upper;
    bool operator<(const Held& other) const {
      return start != other.start ? start < other.start : buffer < other.buffer;
    }
  };

  explicit Shelves(const Instance& in);

  // Holds what has an offset, and nothing else.
  void fill(const std::vector<Bytes>& offsets);
  void add(int i, Bytes start);
  void remove(int i, Bytes start);

  // The lowest offset at which buffer i meets nothing that is held.
  Bytes lowest_gap(int i);

  using Range = Span<Held>;

  // What is held and live in a section from `first` to before `last`, sorted by start, until the
  // next call.
  Range live(int first, int last);

  std::uint64_t read() const { return read_; }  // of what is held, how often any was looked at

 private:
  // Blocks of one length, at first the mean lifetime: who begins before each and reaches into it,
  // and who begins in it.
  struct Tier {
    int length;
    std::vector<std::vector<Held>> begun, starting;
  };
  Held held(int i, Bytes start) const;
  template <class Visit>
  void each(int i, Visit visit);
  void gather(int first, int last);
  void merge();

  const Instance& in_;
  std::vector<Tier> tiers_;
  std::vector<Range> lists_;  // in which all is that is live in some sections
  std::vector<Held> found_, merged_;
  std::vector<std::size_t> runs_, left_;  // where sorted runs of found_ begin
  std::uint64_t read_ = 0;
};

}  // namespace plan

// Many buffers below a capacity: one that has no room takes the place of others.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/calendar.hpp"
#include "plan/instance.hpp"

namespace plan {

// The ejection search of Nagata and Braysy (2009, "A powerful route minimization heuristic for the
// vehicle routing problem with time windows") on offsets: a buffer that waits goes to the lowest
// gap below the capacity, or, where there is none, to where what it meets is worth least; that
// waits then in its stead. A buffer's worth is the root of its area, times how often it had no
// room. What is fixed, or may share bytes with another one, stays where it is.
class Ejection {
 public:
  Ejection(const Instance& instance, std::uint64_t seed);

  // Whether what waits was placed below `capacity`, the last one first, in `offsets`, where it is
  // at -1. Ends after `patience` turns in which no fewer wait than ever before, or at the limit;
  // `offsets` are then of no use.
  bool place(std::vector<Bytes>& offsets, std::vector<int> waiting, Bytes capacity,
             std::uint64_t patience, Limit& limit);

  bool movable(int i) const { return movable_[i]; }
  std::uint64_t turns() const { return turns_; }

 private:
  struct Held {
    Bytes start, end;
    int buffer;
  };

  void put(int i, std::vector<Bytes>& offsets, Bytes capacity);
  void look(int i, const std::vector<Bytes>& offsets);
  Bytes lowest_gap(int i) const;
  Bytes cheapest(int i, Bytes last);
  void evict(int i, Bytes at, std::vector<Bytes>& offsets);
  std::int64_t worth(int i) const { return area_[i] * refused_[i]; }
  int below(int n) { return int(mix(state_ += 0x9e3779b97f4a7c15ull) % std::uint64_t(n)); }

  const Instance& in_;
  Calendar calendar_;
  std::vector<char> movable_;
  std::vector<std::int64_t> area_, refused_;
  std::vector<Held> held_, by_end_;
  std::vector<int> waiting_;
  std::uint64_t state_, turns_ = 0, looked_ = 0;
};

using Found = std::function<void(const std::vector<Bytes>&)>;

// Lowers the arena of a placement: what ends above a target below it waits, and the target falls as
// it is reached. Ends at `goal`, after `turns` without a better arena, or at the limit; `found` is
// called with each better placement. Returns the best one.
std::vector<Bytes> lower(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                         std::uint64_t turns, std::uint64_t seed, Limit& limit, const Found& found);

}  // namespace plan

// Many buffers below a capacity: one that has no room takes the place of others.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plan/instance.hpp"
#include "plan/shelves.hpp"

namespace plan {

// The ejection search of Nagata and Braysy (2009, "A powerful route minimization heuristic for the
// vehicle routing problem with time windows") on offsets: a buffer that waits goes to the lowest
// gap below the capacity, or, where there is none, to where what it meets is worth least; that
// waits then in its stead. A buffer's worth is the root of its area, times how often it had no
// room. What is fixed, or may share bytes with another one, stays where it is.
class Ejection {
 public:
  Ejection(const Instance& instance, std::uint64_t seed);

  // Takes `offsets`; what ends above `capacity` waits.
  void start(std::vector<Bytes> offsets, Bytes capacity);

  // Whether what waits was placed below `capacity`, the last one first. Ends after `patience` turns
  // in which no fewer wait than ever before, or at the limit; it may go on, with a capacity that is
  // not less.
  bool place(Bytes capacity, std::uint64_t patience, Limit& limit);

  const std::vector<Bytes>& offsets() const { return offsets_; }  // -1 for what waits
  bool movable(int i) const { return movable_[i]; }
  std::uint64_t turns() const { return turns_; }

 private:
  struct Worth {
    std::int64_t area, refused;  // its root, 0 where it stays; how often it found no room
  };

  void put(int i, Bytes capacity);
  Bytes lowest_gap(int i) const;
  Bytes cheapest(int i, Bytes last);
  void evict(int i, Bytes at);
  std::int64_t worth(int i) const { return worth_[i].area * worth_[i].refused; }
  int below(int n) { return int(mix(state_ += 0x9e3779b97f4a7c15ull) % std::uint64_t(n)); }

  const Instance& in_;
  Shelves shelves_;
  std::vector<char> movable_;
  std::vector<Worth> worth_;
  const std::vector<Shelves::Held>* held_ = nullptr;  // what meets the buffer to place
  std::vector<std::pair<Bytes, std::int64_t>> ends_;  // of what is met, and its worth
  std::vector<Bytes> offsets_;
  std::vector<int> waiting_;
  std::uint64_t state_, turns_ = 0, looked_ = 0;
};

using Found = std::function<void(const std::vector<Bytes>&)>;

// Lowers the arena of a placement: what ends above a target half way to the goal waits; where it
// finds no room, the target rises half of the way back, again and again. Ends at `goal`, after
// `turns` without a better arena, or at the limit; `found` is called with each better placement.
// Returns the best one.
std::vector<Bytes> lower(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                         std::uint64_t turns, std::uint64_t seed, Limit& limit, const Found& found);

}  // namespace plan

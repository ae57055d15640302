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

  // Takes no offsets but those of what stays: all else waits, to be placed in that order.
  void start_over(const std::vector<int>& order);

  // Whether what waits was placed below `capacity`, the last one first. Ends after `patience` turns
  // in which no fewer wait than ever before, or at the limit; it may go on, with a capacity that is
  // not less.
  bool place(Bytes capacity, std::uint64_t patience, Limit& limit);

  // What is placed is turned twice, so that what is free comes together.
  void compact(Limit& limit);

  const std::vector<Bytes>& offsets() const { return offsets_; }  // -1 for what waits
  bool movable(int i) const { return movable_[i]; }
  std::uint64_t turns() const { return turns_; }
  std::uint64_t looks() const { return shelves_.read(); }

 private:
  void put(int i, Bytes capacity);
  Bytes cheapest(int i, Bytes last);
  void find_spots(int i, Bytes last);
  void weigh_spots(int i);
  Bytes slid_down(int i, Bytes at) const;
  void evict(int i, Bytes at);
  int below(int n) { return int(mix(state_ += 0x9e3779b97f4a7c15ull) % std::uint64_t(n)); }

  const Instance& in_;
  Shelves shelves_;
  std::vector<char> movable_;
  std::vector<std::int64_t> area_, worth_;  // its root, 0 where a buffer stays; its worth
  Shelves::Range held_{nullptr, nullptr};  // what meets the buffer to place
  // Spots, ascending: the highest offsets at which a buffer ends no higher than another one begins.
  // Of each, by how much what it meets is worth more than at the spot below, and how many more of
  // it stay; and the first spot of each cell of offsets.
  std::vector<Bytes> spots_;
  std::vector<std::int64_t> more_;
  std::vector<int> staying_, cells_;
  std::vector<Bytes> offsets_;
  std::vector<int> waiting_;
  std::uint64_t state_, turns_ = 0, looked_ = 0;
};

using Found = std::function<void(const std::vector<Bytes>&)>;

// Turns without a better arena, and looks at buffers in them; either ends a search.
struct Idle {
  std::uint64_t turns, looks = ~std::uint64_t{0};
};

// Lowers the arena of a placement: what ends above a target half way to the goal waits; where it
// finds no room, the target rises half of the way back, again and again. `settled`: placements are
// turned over when they are found and where there is no room; no buffers may share bytes then. Ends
// at `goal`, when it was `idle`, or at the limit; `found` is called with each better placement.
// Returns the best one.
std::vector<Bytes> lower(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                         const Idle& idle, bool settled, std::uint64_t seed, Limit& limit,
                         const Found& found);

// Places all anew below a capacity, in that order as far as there is room; what is placed is turned
// over where no fewer wait. Empty after many turns, or at the limit. No buffers may share bytes.
std::vector<Bytes> place_anew(const Instance& instance, const std::vector<int>& order,
                              Bytes capacity, std::uint64_t seed, Limit& limit);

}  // namespace plan

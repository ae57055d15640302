// First fit along an order, and a local search over orders.
#pragma once

#include <vector>

#include "plan/instance.hpp"

namespace plan {

// Offsets of first fit with gap filling along `order`; fixed buffers come first.
// Empty where the limit came first.
std::vector<Bytes> place_in_order(const Instance& instance, const std::vector<int>& order,
                                  Limit* limit = nullptr);

// First fit in order of time, as a run-time allocator would: looks at live buffers alone, so it is
// quick on a million of them. Past the limit no gaps are looked for, and what is left is stacked.
std::vector<Bytes> place_in_time(const Instance& instance, Limit& limit);

// The classic orders, by size, lifetime, area, pressure and start, and blends of the first four
// (size^a * lifetime^b * pressure^c), which are better on large instances; each made when asked for.
class StaticOrders {
 public:
  explicit StaticOrders(const Instance& instance);

  int count() const;
  std::vector<int> make(int which) const;

 private:
  const Instance& in_;
  std::vector<double> life_, size_, pressure_;
  bool paired_;  // some buffers may reach others from below: one more order
};

// Moves buffers that make the peak, or lie below such a one, to the front of the order while the
// arena does not grow. Ends at `goal`, after `rounds` without gain, or at the limit. Returns the
// best offsets.
std::vector<Bytes> improve(const Instance& instance, std::vector<int> order, Bytes goal,
                           int rounds, std::uint64_t seed, Limit& limit);

}  // namespace plan

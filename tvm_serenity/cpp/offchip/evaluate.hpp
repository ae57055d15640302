// Belady traffic of an order, and of orders that differ from it in a window of steps.
#pragma once

#include <limits>

#include "offchip/network.hpp"
#include "offchip/time_set.hpp"

namespace offchip {

// Holds a base order with the state of the cache before each of its steps. A candidate that
// permutes the ops of steps lo..hi is simulated from the last step before which no eviction can
// have changed, and up to the first step after hi with the state that the base has there.
//
// Soundness: with lo..hi permuted, the times of all accesses outside of the window stay, so which
// of two blocks is next used later changes only where both next uses are in the window. MIN evicts
// the block of the last next use; if that is not in the window, the eviction stays. After hi,
// next uses are the base's again, so from an equal state on everything is equal.
class Evaluator {
 public:
  Evaluator(const Network& network, std::int64_t slots);

  Bytes rebase(const std::vector<int>& order);

  // The traffic of `order`, or any number above `limit` where it exceeds that.
  Bytes candidate(const std::vector<int>& order, int lo, int hi,
                  Bytes limit = std::numeric_limits<Bytes>::max());

  // The least bytes of blocks of `slot_bytes` that are read while `prefix` runs, whatever follows:
  // MIN, cut off there. Shorter blocks are left out: MIN is the least number of reads, which is
  // the least number of bytes only among equal blocks.
  Bytes prefix_reads(const std::vector<int>& prefix, Bytes slot_bytes);

  std::int64_t simulated() const { return simulated_; }  // accesses so far

 private:
  struct Checkpoint {
    std::vector<std::uint8_t> state;
    Bytes traffic = 0;
    std::int64_t used = 0;
    std::vector<int> victim_steps;  // next uses of what the step evicts, as steps
  };

  void place(const std::vector<int>& order, int from, int to);
  void restore(int step);
  void run_step(int step, bool prefix);
  int next_user(int storage, int step, int* operand) const;

  const Network& network_;
  const std::int64_t slots_;
  std::vector<int> order_, base_order_, step_of_;
  std::vector<std::int64_t> time_;  // before each step
  std::vector<Checkpoint> base_;
  Bytes base_traffic_ = 0;

  TimeSet residents_;  // by the time of the next use
  std::vector<std::int32_t> owner_;
  std::vector<std::uint8_t> state_;
  std::vector<int> next_step_;
  std::vector<int> victim_steps_;
  Bytes traffic_ = 0, reads_ = 0, shortest_ = 0;
  std::int64_t used_ = 0, simulated_ = 0;
};

}  // namespace offchip

// Orders for the least Belady traffic: local search from given orders, and branch and bound.
#pragma once

#include <functional>

#include "offchip/evaluate.hpp"

namespace offchip {

// Simulated annealing over moves of one op or a few consecutive ones. The schedule is counted in
// simulated accesses, not in seconds: same input, same output.
class LocalSearch {
 public:
  LocalSearch(const Network& network, std::int64_t slots, const std::vector<int>& start,
              std::uint64_t seed, std::int64_t budget);

  // Goes on for about `accesses` more, until `late`; whether the budget is spent or nothing moves.
  // `warmth`, from 1 to 0: tolerates at most so much, where the time ends before the budget.
  bool run(std::int64_t accesses, const Late& late, double warmth);
  const std::vector<int>& best() const { return best_; }
  Bytes best_bytes() const { return best_bytes_; }
  std::int64_t simulated() const { return evaluator_.simulated(); }
  std::int64_t candidates() const { return candidates_; }

 private:
  bool propose(std::vector<int>& order, int& lo, int& hi);
  std::uint64_t random(std::uint64_t below);
  Bytes tolerated();

  const Network& network_;
  Evaluator evaluator_;
  std::vector<int> current_, best_, step_of_;
  Bytes current_bytes_, best_bytes_;
  std::uint64_t random_state_;
  const std::int64_t budget_;
  double warmth_ = 1.0;
  std::int64_t candidates_ = 0;
};

// Depth first over all topological orders that can still beat `incumbent`. Prunes a prefix where
// reads so far at the least (MIN cut off at the prefix's end), reads and writes that its end state
// or single ops force, and compulsory traffic together reach the incumbent.
class BranchAndBound {
 public:
  BranchAndBound(const Network& network, std::int64_t slots, Bytes slot_bytes,
                 std::vector<int> incumbent, Bytes incumbent_bytes, Bytes floor);

  // Whether all was searched within `accesses` simulated ones (or the incumbent met the floor),
  // before `late`.
  bool run(std::int64_t accesses, const Late& late);
  const std::vector<int>& best() const { return best_; }
  Bytes best_bytes() const { return best_bytes_; }
  std::int64_t nodes() const { return nodes_; }

 private:
  bool extend(const Late& late);
  Bytes bound(Bytes& forced_writes);
  bool closed() const { return best_bytes_ <= floor_; }

  const Network& network_;
  Evaluator evaluator_;
  const Bytes slot_bytes_, room_;
  const Bytes floor_;
  std::vector<Bytes> storage_bytes_, short_home_, op_reads_;
  Bytes writes_of_ops_ = 0, compulsory_writes_ = 0;
  std::vector<int> prefix_, waiting_, users_left_, best_;
  std::vector<std::uint8_t> touched_;
  std::vector<Bytes> forced_;  // writes forced at a boundary of the prefix, largest so far
  Bytes best_bytes_;
  std::int64_t nodes_ = 0, budget_ = 0;
  bool late_ = false;
};

// A lower bound on the traffic of every order beyond the compulsory one: the best partition of the
// ops into windows, where each window counts what its storages force: by single ops (operands
// against the room), or by a least cut (what is live before some op in every order). Windows that
// are not looked at before `late` count nothing.
Bytes forced_traffic(const Network& network, Bytes room, const Late& late);

}  // namespace offchip

#include "offchip/evaluate.hpp"

namespace offchip {
namespace {
enum : std::uint8_t { kResident = 1, kDirty = 2 };
constexpr int kNever = std::numeric_limits<int>::max();
}  // namespace

Evaluator::Evaluator(const Network& network, std::int64_t slots)
    : network_(network),
      slots_(slots),
      step_of_(network.ops(), 0),
      time_(network.ops() + 1, 0),
      base_(network.ops() + 1),
      residents_(2 * network.accesses() + 1),
      owner_(2 * network.accesses() + 1, -1),
      state_(network.blocks(), 0),
      next_step_(network.blocks(), kNever) {}

void Evaluator::place(const std::vector<int>& order, int from, int to) {
  for (int step = from; step < to; ++step) {
    const int op = order[step];
    step_of_[op] = step;
    time_[step + 1] = time_[step] + network_.op_begin[op + 1] - network_.op_begin[op];
  }
}

// The step of the storage's next user, kNever if there is none; prefixes leave later users out.
int Evaluator::next_user(int storage, int step, int* operand) const {
  int best = kNever;
  for (int candidate : network_.operands[storage]) {
    const int at = step_of_[network_.user[candidate]];
    if (at > step && at < best) {
      best = at;
      *operand = candidate;
    }
  }
  return best;
}

void Evaluator::restore(int step) {
  while (!residents_.empty()) residents_.erase(residents_.max());
  const Checkpoint& at = base_[step];
  state_ = at.state;
  traffic_ = at.traffic;
  used_ = at.used;
  for (int s = 0; s < network_.storages(); ++s) {
    int operand = 0, user = -1;
    for (int b = network_.storage_begin[s]; b < network_.storage_begin[s + 1]; ++b) {
      if (!(state_[b] & kResident)) continue;
      if (user < 0) user = next_user(s, step - 1, &operand);
      const int index = b - network_.storage_begin[s];
      const std::int64_t key = time_[user] + network_.first_access(operand, index);
      residents_.insert(key);
      owner_[key] = b;
      next_step_[b] = user;
    }
  }
}

void Evaluator::run_step(int step, bool prefix) {
  const int op = order_[step];
  const int first = network_.operand_begin[op];
  const std::size_t operands = network_.operand_begin[op + 1] - first;
  int next[256], operand[256];
  std::vector<int> more;  // operators with more operands are rare
  int *next_of = next, *operand_of = operand;
  if (operands > 256) {
    more.resize(2 * operands);
    next_of = more.data();
    operand_of = more.data() + operands;
  }
  for (std::size_t k = 0; k < operands; ++k)
    next_of[k] = next_user(network_.storage_of[first + k], step, &operand_of[k]);
  const std::int64_t begin = network_.op_begin[op], end = network_.op_begin[op + 1];
  victim_steps_.clear();
  for (std::int64_t a = begin; a < end; ++a) {
    const int b = network_.block[a];
    if (network_.size[b] < shortest_) continue;
    const std::int64_t now = time_[step] + a - begin;
    if (state_[b] & kResident) {
      residents_.erase(now);
    } else {
      if (needs_content(network_.kind[a])) {
        traffic_ += network_.size[b];
        reads_ += network_.size[b];
      }
      if (used_ == slots_) {
        const std::int64_t key = residents_.max();
        const int victim = owner_[key];
        residents_.erase(key);
        if (state_[victim] & kDirty) traffic_ += network_.size[victim];
        state_[victim] = 0;
        if (victim_steps_.empty() || victim_steps_.back() != next_step_[victim])
          victim_steps_.push_back(next_step_[victim]);
      } else {
        ++used_;
      }
      state_[b] = kResident;
    }
    if (dirties(network_.kind[a])) state_[b] |= kDirty;
    const int k = network_.operand_of[a] - first;
    std::int64_t key;
    if (network_.again[a] >= 0) {
      key = time_[step] + network_.again[a];
      next_step_[b] = step;
    } else if (next_of[k] != kNever && !(prefix && next_of[k] >= int(order_.size()))) {
      const int user = next_of[k];
      const int index = b - network_.storage_begin[network_.storage_of[first + k]];
      key = time_[user] + network_.first_access(operand_of[k], index);
      next_step_[b] = user;
    } else if (next_of[k] != kNever) {
      key = network_.accesses() + now;  // used after the prefix: any of these goes first
    } else {
      if (network_.kept[b] && (state_[b] & kDirty)) traffic_ += network_.size[b];
      state_[b] = 0;
      --used_;
      continue;
    }
    residents_.insert(key);
    owner_[key] = b;
  }
  simulated_ += end - begin;
}

Bytes Evaluator::rebase(const std::vector<int>& order) {
  int first = 0, last = int(order.size()) - 1;
  if (base_order_.size() == order.size() && !base_[0].state.empty()) {
    while (first <= last && base_order_[first] == order[first]) ++first;
    while (last >= first && base_order_[last] == order[last]) --last;
    if (first > last) return base_traffic_;
    int start = 0;
    for (; start < first; ++start) {
      bool changed = false;
      for (int step : base_[start].victim_steps) changed |= first <= step && step <= last;
      if (changed) break;
    }
    first = start;
  }
  base_order_ = order_ = order;
  place(order_, 0, int(order_.size()));
  if (base_[0].state.empty()) base_[0].state.assign(network_.blocks(), 0);
  restore(first);
  for (int step = first; step < int(order_.size()); ++step) {
    Checkpoint& at = base_[step];
    at.state = state_;
    at.traffic = traffic_;
    at.used = used_;
    run_step(step, false);
    at.victim_steps = victim_steps_;
  }
  return base_traffic_ = traffic_;
}

Bytes Evaluator::candidate(const std::vector<int>& order, int lo, int hi, Bytes limit) {
  order_ = order;
  place(order_, lo, hi + 1);
  int start = 0;
  for (; start < lo; ++start) {
    bool changed = false;
    for (int step : base_[start].victim_steps) changed |= lo <= step && step <= hi;
    if (changed) break;
  }
  restore(start);
  Bytes result = -1;
  for (int step = start; step < int(order_.size()) && result < 0; ++step) {
    if (step > hi && used_ == base_[step].used && state_ == base_[step].state)
      result = traffic_ + base_traffic_ - base_[step].traffic;
    else if (traffic_ > limit)
      result = traffic_;
    else
      run_step(step, false);
  }
  if (result < 0) result = traffic_;
  order_ = base_order_;
  place(order_, lo, hi + 1);
  return result;
}

Bytes Evaluator::prefix_reads(const std::vector<int>& prefix, Bytes slot_bytes) {
  shortest_ = slot_bytes;
  base_[0].state.clear();  // the base is gone
  order_ = prefix;
  std::fill(step_of_.begin(), step_of_.end(), int(prefix.size()));
  place(order_, 0, int(order_.size()));
  while (!residents_.empty()) residents_.erase(residents_.max());
  std::fill(state_.begin(), state_.end(), 0);
  traffic_ = reads_ = 0;
  used_ = 0;
  for (int step = 0; step < int(order_.size()); ++step) run_step(step, true);
  shortest_ = 0;
  return reads_;
}

}  // namespace offchip

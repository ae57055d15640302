#include <cmath>

#include "offchip/search.hpp"

namespace offchip {
namespace {
constexpr int kLongestSegment = 12;
constexpr double kStartTolerance = 0.01;  // of the traffic, falling to 0 as the budget is spent
}  // namespace

LocalSearch::LocalSearch(const Network& network, std::int64_t slots, const std::vector<int>& start,
                         std::uint64_t seed, std::int64_t budget)
    : network_(network),
      evaluator_(network, slots),
      current_(start),
      best_(start),
      step_of_(start.size()),
      random_state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du),
      budget_(budget) {
  current_bytes_ = best_bytes_ = evaluator_.rebase(current_);
}

std::uint64_t LocalSearch::random(std::uint64_t below) {  // xorshift64*
  random_state_ ^= random_state_ >> 12;
  random_state_ ^= random_state_ << 25;
  random_state_ ^= random_state_ >> 27;
  return ((random_state_ * 0x2545f4914f6cdd1du) >> 33) % below;
}

// Moves a segment of consecutive ops to another place that the precedence allows.
bool LocalSearch::propose(std::vector<int>& order, int& lo, int& hi) {
  const int count = int(order.size());
  int length = 1;
  if (random(2)) length = 2 + int(random(kLongestSegment - 1));
  if (length >= count) return false;
  const int at = int(random(count - length + 1));
  for (int step = 0; step < count; ++step) step_of_[order[step]] = step;
  int first = 0, last = count - 1;  // where the segment may lie
  for (int i = at; i < at + length; ++i) {
    for (int p : network_.predecessors[order[i]])
      if (step_of_[p] < at) first = std::max(first, step_of_[p] + 1);
    for (int s : network_.successors[order[i]])
      if (step_of_[s] >= at + length) last = std::min(last, step_of_[s] - 1);
  }
  const int places = last - length + 1 - first;  // besides the present one
  if (places <= 0) return false;
  int to = first + int(random(places));
  if (to >= at) ++to;
  const auto begin = order.begin();
  if (to < at) std::rotate(begin + to, begin + at, begin + at + length);
  else std::rotate(begin + at, begin + at + length, begin + to + length);
  lo = std::min(at, to);
  hi = std::max(at, to) + length - 1;
  return true;
}

Bytes LocalSearch::tolerated() {
  const double left = std::min(warmth_, 1.0 - double(evaluator_.simulated()) / double(budget_));
  const double scale = kStartTolerance * double(best_bytes_) * std::max(0.0, left);
  const double draw = (double(random(1u << 30)) + 1.0) / double(1u << 30);
  return current_bytes_ + Bytes(-scale * std::log(draw));
}

bool LocalSearch::run(std::int64_t accesses, const Late& late, double warmth) {
  warmth_ = warmth;
  const std::int64_t until = std::min(budget_, evaluator_.simulated() + accesses);
  std::vector<int> order;
  int failures = 0;
  for (std::uint32_t tries = 0; evaluator_.simulated() < until; ++tries) {
    if ((tries & 15) == 0 && late()) return false;
    int lo = 0, hi = 0;
    order = current_;
    if (!propose(order, lo, hi)) {
      if (++failures > 1000 * int(order.size() + 1)) return true;
      continue;
    }
    failures = 0;
    ++candidates_;
    const Bytes limit = tolerated();
    if (evaluator_.candidate(order, lo, hi, limit) > limit) continue;
    current_ = order;
    current_bytes_ = evaluator_.rebase(current_);
    if (current_bytes_ < best_bytes_) {
      best_bytes_ = current_bytes_;
      best_ = current_;
    }
  }
  return evaluator_.simulated() >= budget_;
}

}  // namespace offchip

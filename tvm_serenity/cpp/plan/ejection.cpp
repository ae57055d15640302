#include "plan/ejection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plan {

namespace {

constexpr Bytes kNever = std::numeric_limits<Bytes>::max();
constexpr double kWorth = 64;               // of a buffer whose area's root is the mean one
constexpr std::uint64_t kLooks = 200'000;   // at buffers, between two looks at the clock
constexpr int kNearest = 512, kFarthest = 8;  // parts of the way to the goal that a target takes
constexpr std::uint64_t kPatience = 2000;   // turns without fewer waiting, at first

Bytes align_down(Bytes offset, Bytes alignment) { return offset - offset % alignment; }

}  // namespace

Ejection::Ejection(const Instance& in, std::uint64_t seed)
    : in_(in), calendar_(in), refused_(in.count(), 1), state_(seed) {
  std::vector<double> root(in.count());
  double mean = 0;
  for (int i = 0; i < in.count(); ++i) {
    root[i] = std::sqrt(double(in.size[i]) * (in.upper[i] - in.lower[i]));
    mean += root[i] / in.count();
    movable_.push_back(in.fixed[i] < 0 && in.partners[i].empty() && !in.paired[i]);
  }
  for (double r : root) area_.push_back(1 + std::int64_t(kWorth * r / mean));
}

bool Ejection::place(std::vector<Bytes>& offsets, std::vector<int> waiting, Bytes capacity,
                     std::uint64_t patience, Limit& limit) {
  waiting_ = std::move(waiting);
  std::fill(refused_.begin(), refused_.end(), 1);
  std::size_t fewest = waiting_.size();
  for (std::uint64_t idle = 0; !waiting_.empty(); ++idle, ++turns_) {
    if (waiting_.size() < fewest) fewest = waiting_.size(), idle = 0;
    if (idle > patience || limit.tick()) return false;
    if (looked_ > kLooks && limit.now()) return false;
    if (looked_ > kLooks) looked_ = 0;
    const int i = waiting_.back();
    waiting_.pop_back();
    put(i, offsets, capacity);
  }
  return true;
}

void Ejection::put(int i, std::vector<Bytes>& offsets, Bytes capacity) {
  look(i, offsets);
  const Bytes last = capacity - in_.size[i];
  Bytes at = lowest_gap(i);
  if (at > last) {
    ++refused_[i];
    at = cheapest(i, last);
    if (at < 0) {  // only what stays is in the way: others first
      waiting_.push_back(i);
      std::swap(waiting_.back(), waiting_[below(int(waiting_.size()))]);
      return;
    }
    evict(i, at, offsets);
  }
  offsets[i] = at;
}

// What is placed and live with a buffer, by start.
void Ejection::look(int i, const std::vector<Bytes>& offsets) {
  held_.clear();
  calendar_.live(in_.lower[i], in_.upper[i], [&](int j) {
    if (j != i && offsets[j] >= 0) held_.push_back({offsets[j], offsets[j] + in_.size[j], j});
  });
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return a.start != b.start ? a.start < b.start : a.buffer < b.buffer;
  });
  looked_ += held_.size() + 1;
}

Bytes Ejection::lowest_gap(int i) const {
  Bytes at = 0;
  for (const Held& held : held_) {
    if (held.end <= at) continue;
    if (at + in_.size[i] <= held.start) return at;
    at = align_up(held.end, in_.alignment[i]);
  }
  return at;
}

// The offset up to `last` where what is met is worth least, any of equal ones; -1 where everywhere
// something that stays is met. Looked at are those right above and below what is held.
Bytes Ejection::cheapest(int i, Bytes last) {
  by_end_ = held_;
  std::sort(by_end_.begin(), by_end_.end(), [](const Held& a, const Held& b) {
    return a.end != b.end ? a.end < b.end : a.buffer < b.buffer;
  });
  const Bytes size = in_.size[i], step = in_.alignment[i];
  const std::size_t n = held_.size();
  last = align_down(last, step);
  std::size_t above = 0, under = 0, in = 0, out = 0;  // next candidates; what came, what went
  std::int64_t met = 0, least = std::numeric_limits<std::int64_t>::max();
  int staying = 0, equal = 0;
  const auto count = [&](int j, int sign) {
    if (movable_[j]) met += sign * worth(j);
    else staying += sign;
  };
  Bytes best = -1;
  for (Bytes at = 0, next; at <= last; at = next) {
    while (in < n && held_[in].start < at + size) count(held_[in++].buffer, 1);
    while (out < n && by_end_[out].end <= at) count(by_end_[out++].buffer, -1);
    if (staying == 0 && met < least) least = met, best = at, equal = 1;
    else if (staying == 0 && met == least && below(++equal) == 0) best = at;
    while (above < n && align_up(by_end_[above].end, step) <= at) ++above;
    while (under < n && (held_[under].start < size ||
                         align_down(held_[under].start - size, step) <= at)) ++under;
    next = at < last ? last : kNever;
    if (above < n) next = std::min(next, align_up(by_end_[above].end, step));
    if (under < n) next = std::min(next, align_down(held_[under].start - size, step));
  }
  return best;
}

// Who is met by a buffer at `at` waits, the one that is worth most first.
void Ejection::evict(int i, Bytes at, std::vector<Bytes>& offsets) {
  const std::size_t before = waiting_.size();
  for (const Held& held : held_) {
    if (held.start >= at + in_.size[i] || held.end <= at) continue;
    offsets[held.buffer] = -1;
    waiting_.push_back(held.buffer);
  }
  std::sort(waiting_.begin() + before, waiting_.end(), [&](int j, int k) {
    return area_[j] != area_[k] ? area_[j] < area_[k] : j < k;
  });
}

std::vector<Bytes> lower(const Instance& in, std::vector<Bytes> best, Bytes goal,
                         std::uint64_t turns, std::uint64_t seed, Limit& limit,
                         const Found& found) {
  Ejection ejection(in, seed);
  Bytes arena = arena_of(in, best);
  for (int i = 0; i < in.count(); ++i)
    if (!ejection.movable(i)) goal = std::max(goal, best[i] + in.size[i]);
  std::uint64_t gained = 0, patience = kPatience;
  int share = kFarthest;
  std::vector<int> waiting;
  while (arena > goal && ejection.turns() - gained < turns && !limit.now()) {
    const Bytes target = std::max(goal, arena - std::max<Bytes>(1, (arena - goal) / share));
    std::vector<Bytes> offsets = best;
    waiting.clear();
    for (int i = 0; i < in.count(); ++i)
      if (offsets[i] + in.size[i] > target) offsets[i] = -1, waiting.push_back(i);
    if (ejection.place(offsets, waiting, target, patience, limit)) {
      best = std::move(offsets), arena = arena_of(in, best);
      gained = ejection.turns();
      found(best);
    } else if (share < kNearest) {  // too much at once: a target closer to what is reached
      share *= 2;
    } else {
      share = kFarthest, patience *= 2;
    }
  }
  return best;
}

}  // namespace plan

#include "plan/ejection.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace plan {

namespace {

constexpr Bytes kNever = std::numeric_limits<Bytes>::max();
constexpr double kWorth = 64;               // of a buffer whose area's root is the mean one
constexpr std::uint64_t kLooks = 200'000;   // at buffers, between two looks at the clock
constexpr int kNearest = 512, kFarthest = 2;  // parts of the way to the goal that a target takes
constexpr int kImpatience = 4;  // buffers for each turn in which no fewer wait, before more room

}  // namespace

Ejection::Ejection(const Instance& in, std::uint64_t seed)
    : in_(in), shelves_(in), state_(seed) {
  std::vector<double> root(in.count());
  double mean = 0;
  for (int i = 0; i < in.count(); ++i) {
    root[i] = std::sqrt(double(in.size[i]) * (in.upper[i] - in.lower[i]));
    mean += root[i] / in.count();
    movable_.push_back(in.fixed[i] < 0 && in.partners[i].empty() && !in.paired[i]);
  }
  for (int i = 0; i < in.count(); ++i)
    worth_.push_back({movable_[i] ? 1 + std::int64_t(kWorth * root[i] / mean) : 0, 1});
}

void Ejection::start(std::vector<Bytes> offsets, Bytes capacity) {
  offsets_ = std::move(offsets);
  waiting_.clear();
  for (int i = 0; i < in_.count(); ++i)
    if (movable_[i] && offsets_[i] + in_.size[i] > capacity)
      offsets_[i] = -1, waiting_.push_back(i);
  shelves_.fill(offsets_);
  for (Worth& one : worth_) one.refused = 1;
}

bool Ejection::place(Bytes capacity, std::uint64_t patience, Limit& limit) {
  std::size_t fewest = waiting_.size();
  for (std::uint64_t idle = 0; !waiting_.empty(); ++idle, ++turns_) {
    if (waiting_.size() < fewest) fewest = waiting_.size(), idle = 0;
    if (idle > patience || limit.tick()) return false;
    if (looked_ > kLooks && limit.now()) return false;
    if (looked_ > kLooks) looked_ = 0;
    const int i = waiting_.back();
    waiting_.pop_back();
    put(i, capacity);
  }
  return true;
}

void Ejection::put(int i, Bytes capacity) {
  held_ = &shelves_.live(in_.lower[i], in_.upper[i]);
  looked_ += held_->size() + 1;
  const Bytes last = capacity - in_.size[i];
  Bytes at = lowest_gap(i);
  if (at > last) {
    ++worth_[i].refused;
    at = cheapest(i, last);
    if (at < 0) {  // only what stays is in the way: others first
      waiting_.push_back(i);
      std::swap(waiting_.back(), waiting_[below(int(waiting_.size()))]);
      return;
    }
    evict(i, at);
  }
  offsets_[i] = at;
  shelves_.add(i, at);
}

Bytes Ejection::lowest_gap(int i) const {
  Bytes at = 0;
  for (const Shelves::Held& held : *held_) {
    if (held.end <= at) continue;
    if (at + in_.size[i] <= held.start) return at;
    at = align_up(held.end, in_.alignment[i]);
  }
  return at;
}

// The offset up to `last` where what is met is worth least, any of equal ones; -1 where everywhere
// something that stays is met. Best are 0 or an end of what is held: from elsewhere one may go
// down, meeting no more, until something that is not met lies right below.
Bytes Ejection::cheapest(int i, Bytes last) {
  const auto& held = *held_;
  const Bytes size = in_.size[i], step = in_.alignment[i];
  const auto later = std::greater<std::pair<Bytes, std::int64_t>>();
  std::int64_t met = 0, least = std::numeric_limits<std::int64_t>::max();
  int staying = 0, equal = 0;
  const auto count = [&](std::int64_t worth, int sign) {
    if (worth > 0) met += sign * worth;
    else staying += sign;
  };
  Bytes best = -1;
  ends_.clear();
  std::size_t in = 0;
  for (Bytes at = 0, next; at <= last; at = next) {
    for (; in < held.size() && held[in].start < at + size; ++in) {
      if (held[in].end <= at) continue;
      ends_.emplace_back(held[in].end, worth(held[in].buffer));
      count(ends_.back().second, 1);
      std::push_heap(ends_.begin(), ends_.end(), later);
    }
    while (!ends_.empty() && ends_.front().first <= at) {
      count(ends_.front().second, -1);
      std::pop_heap(ends_.begin(), ends_.end(), later);
      ends_.pop_back();
    }
    if (staying == 0 && met < least) least = met, best = at, equal = 1;
    else if (staying == 0 && met == least && below(++equal) == 0) best = at;
    next = ends_.empty() ? kNever : align_up(ends_.front().first, step);
    if (in < held.size()) next = std::min(next, align_up(held[in].start - size + 1, step));
  }
  return best;
}

// Who is met by a buffer at `at` waits, the one that is worth most first.
void Ejection::evict(int i, Bytes at) {
  const std::size_t before = waiting_.size();
  for (const Shelves::Held& held : *held_) {
    if (held.start >= at + in_.size[i] || held.end <= at) continue;
    offsets_[held.buffer] = -1;
    shelves_.remove(held.buffer, held.start);
    waiting_.push_back(held.buffer);
  }
  std::sort(waiting_.begin() + before, waiting_.end(), [&](int j, int k) {
    return worth_[j].area != worth_[k].area ? worth_[j].area < worth_[k].area : j < k;
  });
}

std::vector<Bytes> lower(const Instance& in, std::vector<Bytes> best, Bytes goal,
                         std::uint64_t turns, std::uint64_t seed, Limit& limit,
                         const Found& found) {
  Ejection ejection(in, seed);
  Bytes arena = arena_of(in, best);
  for (int i = 0; i < in.count(); ++i)
    if (!ejection.movable(i)) goal = std::max(goal, best[i] + in.size[i]);
  std::uint64_t gained = 0, patience = in.count() / kImpatience;
  int share = kFarthest;
  bool fresh = true;
  while (arena > goal && ejection.turns() - gained < turns && !limit.now()) {
    const Bytes target = arena - std::max<Bytes>(1, (arena - goal) / share);
    if (fresh) ejection.start(best, target);
    fresh = ejection.place(target, patience, limit);
    if (fresh) {
      best = ejection.offsets(), arena = arena_of(in, best);
      gained = ejection.turns();
      share = std::max(kFarthest, share / 2);
      found(best);
    } else if (share < kNearest && arena - goal > share) {  // more room, for what waits now
      share *= 2;
    } else {
      share = kFarthest, patience *= 2, fresh = true;
    }
  }
  return best;
}

}  // namespace plan

#include "plan/ejection.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "plan/part.hpp"
#include "plan/settle.hpp"

namespace plan {

namespace {

constexpr double kWorth = 64;               // of a buffer whose area's root is the mean one
constexpr std::uint64_t kLooks = 200'000;   // at buffers, between two looks at the clock
constexpr int kNearest = 512, kFarthest = 2;  // parts of the way to the goal that a target takes
constexpr int kImpatience = 8;  // buffers for each turn in which no fewer wait, before a turning
constexpr int kAgain = 3;       // turnings in a row, before there is more room
constexpr int kAnewTurns = 6;   // for each buffer, where all is placed anew
constexpr int kFine = 2;        // cells for each spot

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
    area_.push_back(movable_[i] ? 1 + std::int64_t(kWorth * root[i] / mean) : 0);
}

void Ejection::start(std::vector<Bytes> offsets, Bytes capacity) {
  offsets_ = std::move(offsets);
  waiting_.clear();
  for (int i = 0; i < in_.count(); ++i)
    if (movable_[i] && offsets_[i] + in_.size[i] > capacity)
      offsets_[i] = -1, waiting_.push_back(i);
  shelves_.fill(offsets_);
  worth_ = area_;
}

void Ejection::start_over(const std::vector<int>& order) {
  offsets_ = in_.fixed;
  waiting_.clear();
  std::copy_if(order.rbegin(), order.rend(), std::back_inserter(waiting_),
               [&](int i) { return movable_[i]; });
  shelves_.fill(offsets_);
  worth_ = area_;
}

void Ejection::compact(Limit& limit) {
  std::vector<int> chosen;
  std::vector<Bytes> placed;
  for (int i = 0; i < in_.count(); ++i)
    if (offsets_[i] >= 0) chosen.push_back(i), placed.push_back(offsets_[i]);
  placed = turned_twice(part_of(in_, chosen), std::move(placed), limit);
  for (std::size_t k = 0; k < placed.size(); ++k) offsets_[chosen[k]] = placed[k];
  shelves_.fill(offsets_);
}

bool Ejection::place(Bytes capacity, std::uint64_t patience, Limit& limit) {
  std::size_t fewest = waiting_.size();
  for (std::uint64_t idle = 0; !waiting_.empty(); ++idle, ++turns_) {
    if (waiting_.size() < fewest) fewest = waiting_.size(), idle = 0;
    if (idle > patience || limit.tick()) return false;
    if (shelves_.read() > looked_ + kLooks) {
      looked_ = shelves_.read();
      if (limit.now()) return false;
    }
    const int i = waiting_.back();
    waiting_.pop_back();
    put(i, capacity);
  }
  return true;
}

void Ejection::put(int i, Bytes capacity) {
  const Bytes last = capacity - in_.size[i];
  Bytes at = shelves_.lowest_gap(i);
  if (at > last) {
    held_ = shelves_.live(in_.lower[i], in_.upper[i]);
    worth_[i] += area_[i];
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

// The offset up to `last` where what is met is worth least, any of equal ones; -1 where everywhere
// something that stays is met. From anywhere one may go up, meeting no more, until something that
// is not met begins right above: only such spots are compared. From there one may go down again.
Bytes Ejection::cheapest(int i, Bytes last) {
  find_spots(i, last);
  weigh_spots(i);
  std::int64_t met = 0, least = std::numeric_limits<std::int64_t>::max();
  int staying = 0, equal = 0;
  Bytes best = -1;
  for (std::size_t k = 0; k < spots_.size(); ++k) {
    met += more_[k], staying += staying_[k];
    if (staying > 0 || met > least) continue;
    if (met < least) least = met, equal = 0;
    if (below(++equal) == 0) best = spots_[k];
  }
  return best < 0 ? best : slid_down(i, best);
}

void Ejection::find_spots(int i, Bytes last) {
  const Bytes size = in_.size[i], step = in_.alignment[i];
  spots_.clear();
  for (const Shelves::Held& held : held_) {
    if (held.start < size) continue;
    const Bytes at = step == 1 ? held.start - size : (held.start - size) / step * step;
    if (at >= last) break;
    if (spots_.empty() || at > spots_.back()) spots_.push_back(at);
  }
  spots_.push_back(last / step * step);
}

// What is met from a spot on, and from which one on no longer.
void Ejection::weigh_spots(int i) {
  int shift = 0;
  while (spots_.back() >> shift > Bytes(kFine * spots_.size())) ++shift;
  cells_.resize((spots_.back() >> shift) + 1);
  std::size_t cell = 0;
  for (std::size_t k = 0; k < spots_.size(); ++k)
    for (; cell <= std::size_t(spots_[k] >> shift); ++cell) cells_[cell] = int(k);
  more_.assign(spots_.size(), 0), staying_.assign(spots_.size(), 0);
  std::size_t in = 0;
  for (const Shelves::Held& held : held_) {
    while (in < spots_.size() && spots_[in] + in_.size[i] <= held.start) ++in;
    if (in == spots_.size()) break;
    const std::int64_t one = worth_[held.buffer];
    more_[in] += one;
    if (one == 0) ++staying_[in];
    if (held.end > spots_.back()) continue;
    std::size_t out = cells_[held.end >> shift];
    while (spots_[out] < held.end) ++out;
    more_[out] -= one;
    if (one == 0) --staying_[out];
  }
}

// The lowest offset above all that ends up to `at`.
Bytes Ejection::slid_down(int i, Bytes at) const {
  Bytes lowest = 0;
  for (const Shelves::Held& held : held_) {
    if (held.start >= at) break;
    if (held.end <= at) lowest = std::max(lowest, held.end);
  }
  return align_up(lowest, in_.alignment[i]);
}

// Who is met by a buffer at `at` waits, the one that is worth most first.
void Ejection::evict(int i, Bytes at) {
  const std::size_t before = waiting_.size();
  for (const Shelves::Held& held : held_) {
    if (held.start >= at + in_.size[i] || held.end <= at) continue;
    offsets_[held.buffer] = -1;
    shelves_.remove(held.buffer, held.start);
    waiting_.push_back(held.buffer);
  }
  std::sort(waiting_.begin() + before, waiting_.end(), [&](int j, int k) {
    return area_[j] != area_[k] ? area_[j] < area_[k] : j < k;
  });
}

std::vector<Bytes> lower(const Instance& in, std::vector<Bytes> best, Bytes goal,
                         const Idle& idle, bool settled, std::uint64_t seed, Limit& limit,
                         const Found& found) {
  Ejection ejection(in, seed);
  Bytes arena = arena_of(in, best);
  for (int i = 0; i < in.count(); ++i)
    if (!ejection.movable(i)) goal = std::max(goal, best[i] + in.size[i]);
  std::uint64_t gained = 0, seen = 0, patience = in.count() / kImpatience;
  int share = kFarthest;
  bool fresh = true;
  const auto idles = [&] {
    return ejection.turns() - gained >= idle.turns || ejection.looks() - seen >= idle.looks;
  };
  while (arena > goal && !idles() && !limit.now()) {
    const Bytes target = arena - std::max<Bytes>(1, (arena - goal) / share);
    if (fresh) ejection.start(best, target);
    fresh = ejection.place(target, patience, limit);
    const bool at_once = fresh;
    for (int again = 0; settled && again < kAgain && !fresh && !limit.now(); ++again) {
      ejection.compact(limit);
      fresh = ejection.place(target, patience, limit);
    }
    if (fresh) {
      best = ejection.offsets();
      if (settled) best = settle(in, std::move(best), goal, limit);
      arena = arena_of(in, best);
      gained = ejection.turns(), seen = ejection.looks();
      if (at_once) share = std::max(kFarthest, share / 2);
      found(best);
    } else if (share < kNearest && arena - goal > share) {  // more room, for what waits now
      share *= 2;
    } else {
      share = kFarthest, patience *= 2, fresh = true;
    }
  }
  return best;
}

std::vector<Bytes> place_anew(const Instance& in, const std::vector<int>& order, Bytes capacity,
                              std::uint64_t seed, Limit& limit) {
  Ejection ejection(in, seed);
  ejection.start_over(order);
  const std::uint64_t most = std::uint64_t(kAnewTurns) * in.count();
  while (!ejection.place(capacity, in.count() / kImpatience, limit)) {
    if (limit.now() || ejection.turns() >= most) return {};
    ejection.compact(limit);
  }
  return ejection.offsets();
}

}  // namespace plan

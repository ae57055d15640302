#include "plan/repair.hpp"

#include <algorithm>
#include <cmath>

namespace plan {

namespace {

constexpr int kAround[] = {12, 25, 50, 100, 200, 400};  // buffers that are placed again at most
constexpr int kTries = 6;                               // orders in which they are
constexpr double kReaches[] = {0, 0.05, 0.1, 0.25, 0.5, 1};  // of the lifetime, to both sides
constexpr double kWidest = 64;  // so many times as far, where nothing nearer helps

// Which buffers are live in a stretch of sections, in time near linear in their number.
class Calendar {
 public:
  explicit Calendar(const Instance& in) : in_(in) {
    std::int64_t total = 0;
    for (int i = 0; i < in.count(); ++i) total += in.upper[i] - in.lower[i];
    days_ = std::max<int>(1, int(total / std::max(1, in.count())));
    const int blocks = in.sections / days_ + 1;
    begun_.resize(blocks), starting_.resize(blocks);
    for (int i = 0; i < in.count(); ++i) {
      starting_[in.lower[i] / days_].push_back(i);
      for (int b = in.lower[i] / days_ + 1; b <= (in.upper[i] - 1) / days_; ++b)
        begun_[b].push_back(i);
    }
  }

  void live(int first, int last, std::vector<int>& found) const {
    found.clear();
    for (int i : begun_[first / days_])
      if (in_.upper[i] > first) found.push_back(i);
    for (int b = first / days_; b <= (last - 1) / days_; ++b)
      for (int i : starting_[b])
        if (in_.lower[i] < last && in_.upper[i] > first) found.push_back(i);
  }

 private:
  const Instance& in_;
  int days_;
  std::vector<std::vector<int>> begun_, starting_;
};

struct Held {
  Bytes start, end;
  int lower, upper;
};

bool by_start(const Held& a, const Held& b) { return a.start < b.start; }

// Where a buffer fits among what is held, sorted by start: the lowest gap, or the narrowest one
// below what is held last.
Bytes fit(const Instance& in, int i, const std::vector<Held>& shelf, bool tight) {
  const Bytes size = in.size[i], step = in.alignment[i];
  const int lower = in.lower[i], upper = in.upper[i];
  Bytes at = 0, best = -1, room = 0;
  for (const Held& held : shelf) {
    if (held.end <= at || held.lower >= upper || held.upper <= lower) continue;
    if (at + size <= held.start) {
      if (!tight) return at;
      if (best < 0 || held.start - at < room) best = at, room = held.start - at;
    }
    at = align_up(held.end, step);
  }
  return best >= 0 ? best : at;
}

class Repair {
 public:
  Repair(const Instance& in, std::vector<Bytes> offsets, std::uint64_t seed)
      : in_(in), calendar_(in), now_(std::move(offsets)), state_(seed) {
    chosen_.resize(in.count());
    for (int i = 0; i < in.count(); ++i)
      movable_.push_back(in.fixed[i] < 0 && in.partners[i].empty() && !in.paired[i]);
  }

  std::vector<Bytes> run(Bytes goal, std::uint64_t rounds, Limit& limit) {
    best_ = now_;
    Bytes least = arena_of(in_, best_);
    std::uint64_t idle = 0, stuck = 0;
    for (aim(goal, least, 8); least > goal && idle < rounds && !limit.now(); ++idle) {
      if (above_.empty()) {
        least = arena_of(in_, now_), best_ = now_;
        idle = stuck = 0;
        wide_ = 1;
        aim(goal, least, 8);
        continue;
      }
      const int pick = above_[below(int(above_.size()))];
      if (end_of(pick) <= target_) {
        drop(pick);
        continue;
      }
      if (improve_around(pick)) stuck = 0;
      if (++stuck < 400 + 20 * above_.size()) continue;
      stuck = 0;  // too much at once: a target closer to what is reached
      wide_ = wide_ < kWidest ? 2 * wide_ : 1;
      now_ = best_;
      aim(goal, least, share_ = share_ < 512 ? 2 * share_ : 8);
    }
    return best_;
  }

 private:
  Bytes end_of(int i) const { return now_[i] + in_.size[i]; }
  int below(int n) { return int(mix(state_ += 0x9e3779b97f4a7c15ull) % std::uint64_t(n)); }
  double unit() { return below(1 << 20) / double(1 << 20); }

  void aim(Bytes goal, Bytes least, int share) {
    share_ = share;
    target_ = std::max(goal, least - std::max<Bytes>(1, (least - goal) / share));
    above_.clear();
    place_.assign(in_.count(), -1);
    for (int i = 0; i < in_.count(); ++i) note(i);
  }

  void note(int i) {
    if (end_of(i) > target_ && place_[i] < 0) {
      place_[i] = int(above_.size());
      above_.push_back(i);
    }
  }

  void drop(int i) {
    const int at = place_[i], last = above_.back();
    above_[at] = last, place_[last] = at;
    above_.pop_back(), place_[i] = -1;
  }

  // What ends above the target counts by its area there: one of a short life is soon placed.
  double excess(int i, Bytes end) const {
    return end > target_ ? double(end - target_) * (in_.upper[i] - in_.lower[i]) : 0;
  }

  // Places again what lives within a stretch around a buffer; whether less ends above the target.
  // In a wide stretch only what is live near the buffer: mostly those of long lives, in its way.
  bool improve_around(int pick) {
    const double life = in_.upper[pick] - in_.lower[pick];
    const double far = life * wide_ * kReaches[below(6)];
    const int reach = int(std::min<double>(in_.sections, far)) + below(3);
    const int first = std::max(0, in_.lower[pick] - reach);
    const int last = std::min(in_.sections, in_.upper[pick] + reach);
    const int near = wide_ > 1 ? int(life * kReaches[below(6)]) + below(3) : reach;
    const int from = in_.lower[pick] - near, to = in_.upper[pick] + near;
    calendar_.live(first, last, around_);
    moving_.clear(), held_.clear();
    for (int i : around_)
      if (in_.lower[i] >= first && in_.upper[i] <= last && in_.lower[i] < to &&
          in_.upper[i] > from && movable_[i] && i != pick)
        moving_.push_back(i);
    choose(std::size_t(kAround[below(6)]));
    moving_.push_back(pick);
    for (int i : moving_) chosen_[i] = 1;
    for (int i : around_)
      if (!chosen_[i]) held_.push_back({now_[i], end_of(i), in_.lower[i], in_.upper[i]});
    for (int i : moving_) chosen_[i] = 0;
    std::sort(held_.begin(), held_.end(), by_start);
    double before = 0;
    for (int i : moving_) before += excess(i, end_of(i));
    bool better = false;
    for (int t = 0; t < kTries; ++t) {
      const double after = place_again(pick, before);
      if (after > before) continue;
      better = better || after < before;
      before = after;
      for (std::size_t k = 0; k < moving_.size(); ++k) now_[moving_[k]] = found_[k];
      for (int i : moving_) note(i);
      if (after == 0) break;
    }
    return better;
  }

  // Keeps so many of what may move: the highest ones, or any.
  void choose(std::size_t count) {
    if (moving_.size() <= count) return;
    if (below(2)) {
      const auto higher = [&](int i, int j) { return now_[i] > now_[j]; };
      std::nth_element(moving_.begin(), moving_.begin() + count, moving_.end(), higher);
    } else {
      for (std::size_t k = 0; k < count; ++k)
        std::swap(moving_[k], moving_[k + below(int(moving_.size() - k))]);
    }
    moving_.resize(count);
  }

  // Another placement of what moves, into found_; its excess, or more than `most`.
  double place_again(int pick, double most) {
    const int kind = below(4);
    const double by_size = unit() * 1.5, by_life = unit() * 1.5, noise = unit() * unit() * 2;
    keys_.clear();
    for (std::size_t k = 0; k < moving_.size(); ++k) {
      const int i = moving_[k];
      double key = kind == 0 ? -double(now_[i]) / double(target_) * 8
                             : by_size * std::log(double(in_.size[i])) +
                                   by_life * std::log(double(in_.upper[i] - in_.lower[i]));
      key += noise * unit();
      if (i == pick && kind != 1) key = 1e18;
      keys_.push_back({-key, int(k)});
    }
    std::sort(keys_.begin(), keys_.end());
    found_.resize(moving_.size());
    shelf_ = held_;
    const bool tight = below(3) == 0;
    double total = 0;
    for (const auto& [key, k] : keys_) {
      const int i = moving_[k];
      const Bytes at = fit(in_, i, shelf_, tight);
      found_[k] = at;
      total += excess(i, at + in_.size[i]);
      if (total > most) return total;
      const Held one{at, at + in_.size[i], in_.lower[i], in_.upper[i]};
      shelf_.insert(std::upper_bound(shelf_.begin(), shelf_.end(), one, by_start), one);
    }
    return total;
  }

  const Instance& in_;
  Calendar calendar_;
  std::vector<Bytes> now_, best_, found_;
  std::uint64_t state_;
  std::vector<char> movable_, chosen_;
  Bytes target_ = 0;
  int share_ = 8;
  double wide_ = 1;
  std::vector<int> above_, place_, around_, moving_;
  std::vector<Held> held_, shelf_;
  std::vector<std::pair<double, int>> keys_;
};

}  // namespace

std::vector<Bytes> place_among_many(const Instance& instance, const std::vector<int>& order,
                                    Limit& limit) {
  std::vector<Bytes> offsets(instance.fixed);
  const Calendar calendar(instance);
  std::vector<int> around;
  std::vector<Held> held;
  for (int i : order) {
    if (offsets[i] >= 0) continue;
    if (limit.tick()) return {};
    calendar.live(instance.lower[i], instance.upper[i], around);
    held.clear();
    for (int j : around)
      if (offsets[j] >= 0)
        held.push_back({offsets[j], offsets[j] + instance.size[j], instance.lower[j],
                        instance.upper[j]});
    std::sort(held.begin(), held.end(), by_start);
    offsets[i] = fit(instance, i, held, false);
  }
  return offsets;
}

std::vector<Bytes> repair(const Instance& instance, std::vector<Bytes> offsets, Bytes goal,
                          std::uint64_t rounds, std::uint64_t seed, Limit& limit) {
  return Repair(instance, std::move(offsets), seed).run(goal, rounds, limit);
}

}  // namespace plan

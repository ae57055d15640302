#include "plan/core.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/greedy.hpp"
#include "plan/many.hpp"
#include "plan/part.hpp"
#include "plan/settle.hpp"
#include "plan/sweep.hpp"

namespace plan {

namespace {

constexpr double kShares[] = {0.9, 0.98, 0.995};  // of the area of all that the cores make up
constexpr int kLargest = 2;  // parts of all buffers, one of which is the most a later core has
constexpr std::uint64_t kCoreTurns = 2;  // for each buffer of a core, without a better arena
constexpr std::uint64_t kFewestTurns = 40'000;  // of what is around a core, without a better arena
constexpr int kAllTurns = 2;  // buffers for each turn of all, without a better arena
constexpr std::uint64_t kAllLooks = 400'000'000;  // at buffers in these turns
constexpr int kMuch = 200;  // parts of the goal, one of which is much to waste
constexpr int kModest = 220;  // the same of what may be left where all is placed anew
constexpr int kEnough = 4;  // parts of what a core leaves of the goal, one of which may be wasted

std::vector<int> in_turn(const Instance& in) {
  std::vector<int> order(in.count());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// All buffers, fixed ones first, then by size and root of lifetime.
std::vector<int> by_weight(const Instance& in) {
  std::vector<int> order = in_turn(in);
  std::vector<double> weight;
  for (int i = 0; i < in.count(); ++i)
    weight.push_back(in.fixed[i] >= 0 ? HUGE_VAL
                                      : in.size[i] * std::sqrt(in.upper[i] - in.lower[i]));
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return weight[i] > weight[j]; });
  return order;
}

// The buffers at the front, up to a share of the area of all; at least those that are fixed.
Instance front_of(const Instance& all, double share) {
  std::vector<double> area;
  for (int i = 0; i < all.count(); ++i)
    area.push_back(double(all.size[i]) * (all.upper[i] - all.lower[i]));
  double left = share * std::accumulate(area.begin(), area.end(), 0.0);
  std::vector<int> chosen;
  for (int i = 0; i < all.count() && (left > 0 || all.fixed[i] >= 0); ++i)
    left -= area[i], chosen.push_back(i);
  return part_of(all, chosen);
}

// Those at the front are placed; the others go to the lowest gaps, in turn. Empty where the limit
// came first, as all placements are here.
std::vector<Bytes> filled(Instance in, const std::vector<Bytes>& placed, Limit& limit) {
  std::copy(placed.begin(), placed.end(), in.fixed.begin());
  return place_among_many(in, in_turn(in), limit);
}

Bytes most_live(const Instance& in) {
  const std::vector<Bytes> live = live_bytes(in);
  return *std::max_element(live.begin(), live.end());
}

// The buffers with the heaviest first.
class Cores {
 public:
  Cores(const Instance& all, std::vector<Bytes> offsets, Bytes goal, Limit& limit,
        const Found& found)
      : all_(all), best_(std::move(offsets)), goal_(goal), limit_(limit), found_(found) {
    for (double share : kShares) {
      if (limit.now()) break;
      Instance core = front_of(all, share);
      if (!cores_.empty() && core.count() > all.count() / kLargest) break;
      cores_.push_back(std::move(core));
    }
  }

  void run(std::uint64_t seed) {
    if (cores_.empty()) return;
    offer(settle(all_, best_, goal_, limit_));
    const StaticOrders orders(cores_.front());
    const int starts = 1 + orders.count();
    const Found offered = [&](const auto& whole) { offer(whole); }, unheard = [](const auto&) {};
    for (int round = 0, idle = 0; idle < starts && !ended(); ++round, ++idle) {
      const Bytes before = arena_of(all_, best_);
      const std::uint64_t state = mix(seed + mix(round));
      std::vector<Bytes> placed = first(orders, round % starts, round % 2 == 1 || round == 0);
      for (const Instance& core : cores_) {
        const bool innermost = &core == &cores_.front();
        if (!innermost) placed = settled(core, filled(core, placed, limit_));
        if (!innermost && round == 0) placed = lesser(core, placed);
        if (placed.empty()) return;
        const Found fill = [&](const auto& around) { offer(filled(all_, around, limit_)); };
        const std::uint64_t turns =
            std::max(innermost ? 0 : kFewestTurns, kCoreTurns * core.count());
        const Bytes least = most_live(core), left = std::max<Bytes>(0, goal_ - least);
        placed = lower(core, std::move(placed), least + left / (kEnough * (round + 1)), {turns},
                       true, state, limit_, innermost ? unheard : fill);
        fill(placed);
        if (innermost && wasted() > goal_ / kMuch) place_all_anew(state, 1);
        if (ended()) return;
      }
      const std::uint64_t turns = std::max<std::uint64_t>(kFewestTurns, all_.count() / kAllTurns);
      lower(all_, best_, goal_, {turns, kAllLooks}, true, state, limit_, offered);
      place_all_anew(state, int(std::size(anew_)));
      if (arena_of(all_, best_) < before) idle = -1;
    }
  }

 private:
  Bytes wasted() const { return arena_of(all_, best_) - goal_; }
  bool ended() { return limit_.now() || wasted() <= 0; }

  void offer(const std::vector<Bytes>& whole) {
    if (whole.empty() || arena_of(all_, whole) >= arena_of(all_, best_)) return;
    best_ = whole;
    found_(best_);
  }

  // Places all below a capacity half way to the goal, again and again: from the heaviest or the
  // largest on, in one of these orders or both. Where much is wasted, no nearer than what is modest.
  void place_all_anew(std::uint64_t state, int orders) {
    if (anew_[0].empty()) {
      anew_[0] = anew_[1] = in_turn(all_);
      std::stable_sort(anew_[1].begin(), anew_[1].end(),
                       [&](int i, int j) { return all_.size[i] > all_.size[j]; });
    }
    for (int tries = 0; tries < orders && !ended(); ++tries) {
      const Bytes now = wasted(), modest = goal_ / kModest;
      const Bytes left = now > goal_ / kMuch ? std::max(now / 2, modest) : now / 2;
      state = mix(state);
      const std::vector<Bytes> placed =
          place_anew(all_, anew_[tries], goal_ + left, state, limit_);
      if (placed.empty()) continue;
      offer(settle(all_, placed, goal_, limit_));
      if (wasted() >= now) continue;
      if (tries > 0) anew_[0].swap(anew_[1]);
      tries = -1;
    }
  }

  // A placement of the first core, one of several; or that of the best of all if it is lower.
  std::vector<Bytes> first(const StaticOrders& orders, int which, bool compared) {
    const Instance& core = cores_.front();
    std::vector<Bytes> placed;
    if (core.fixed[0] >= 0 && which == 0) placed = filled(core, {}, limit_);
    else if (which == 0) placed = sweep(core, limit_);
    else placed = place_among_many(core, orders.make(which - 1), limit_);
    placed = settled(core, std::move(placed));
    return compared ? lesser(core, std::move(placed)) : placed;
  }

  std::vector<Bytes> settled(const Instance& core, std::vector<Bytes> placed) {
    if (placed.empty()) return placed;
    return settle(core, std::move(placed), most_live(core), limit_);
  }

  std::vector<Bytes> lesser(const Instance& core, std::vector<Bytes> placed) {
    if (placed.empty()) return placed;
    std::vector<Bytes> other(best_.begin(), best_.begin() + core.count());
    other = settled(core, std::move(other));
    return arena_of(core, other) < arena_of(core, placed) ? other : placed;
  }

  const Instance& all_;
  std::vector<Instance> cores_;
  std::vector<int> anew_[2];  // orders in which all are placed, the one that did so last first
  std::vector<Bytes> best_;
  Bytes goal_;
  Limit& limit_;
  Found found_;
};

}  // namespace

void lower_by_cores(const Instance& in, std::vector<Bytes> offsets, Bytes goal, std::uint64_t seed,
                    Limit& limit, const Found& found) {
  const std::vector<int> order = by_weight(in);
  std::vector<Bytes> sorted;
  for (int i : order) sorted.push_back(offsets[i]);
  const Found given = [&](const std::vector<Bytes>& placed) {
    for (int k = 0; k < in.count(); ++k) offsets[order[k]] = placed[k];
    found(offsets);
  };
  Cores(part_of(in, order), std::move(sorted), goal, limit, given).run(seed);
}

}  // namespace plan

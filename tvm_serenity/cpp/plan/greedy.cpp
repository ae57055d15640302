#include "plan/greedy.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plan {

namespace {

// The buffers placed so far, by offset.
class Shelf {
 public:
  explicit Shelf(const Instance& instance) : in_(instance) {}

  void add(int i, Bytes offset) {
    const auto above = [](Bytes value, const auto& entry) { return value < entry.first; };
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), offset, above), {offset, i});
  }

  std::size_t size() const { return placed_.size(); }

  // Forgets what ends before section `now`, but for fixed buffers.
  void leave(int now) {
    const auto gone = [&](const auto& e) {
      return in_.upper[e.second] <= now && in_.fixed[e.second] < 0;
    };
    placed_.erase(std::remove_if(placed_.begin(), placed_.end(), gone), placed_.end());
  }

  // A partner's start where that is clear of all others, else the lowest gap.
  Bytes fit(int i) const {
    for (const Partner& partner : in_.partners[i]) {
      if (partner.anywhere) continue;
      for (const auto& [start, j] : placed_)
        if (j == partner.other && start % in_.alignment[i] == 0 && lowest(i, start, j) == start)
          return start;
    }
    return lowest(i, 0, -1);
  }

 private:
  bool blocks(int i, int j, int sharing) const {
    if (j == sharing || !in_.meets(i, j)) return false;
    for (const Partner& partner : in_.partners[i])
      if (partner.other == j && partner.anywhere) return false;
    return true;
  }

  Bytes lowest(int i, Bytes from, int sharing) const {
    const Bytes size = in_.size[i];
    Bytes at = align_up(from, in_.alignment[i]);
    if (in_.paired[i]) return lowest_of_pairs(i, at, sharing);
    for (const auto& [start, j] : placed_) {
      if (start + in_.size[j] <= at || !blocks(i, j, sharing)) continue;
      if (at + size <= start) break;
      at = align_up(start + in_.size[j], in_.alignment[i]);
    }
    return at;
  }

  // The same where buffer i may reach another one from below, or be reached.
  Bytes lowest_of_pairs(int i, Bytes at, int sharing) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [start, j] : placed_) {
        const Bytes end = start + in_.rise(j, i);
        if (end <= at || at + in_.rise(i, j) <= start || !blocks(i, j, sharing)) continue;
        at = align_up(end, in_.alignment[i]);
        moved = true;
      }
    }
    return at;
  }

  const Instance& in_;
  std::vector<std::pair<Bytes, int>> placed_;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  int below(int n) { return static_cast<int>(mix(state_ += 0x9e3779b97f4a7c15ull) % n); }

 private:
  std::uint64_t state_;
};

}  // namespace

Bytes arena_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  Bytes arena = 0;
  for (int i = 0; i < instance.count(); ++i)
    arena = std::max(arena, offsets[i] + instance.size[i]);
  return arena;
}

std::vector<Bytes> live_bytes(const Instance& in) {
  std::vector<Bytes> live(in.sections + 1);
  for (int i = 0; i < in.count(); ++i)
    live[in.lower[i]] += in.size[i], live[in.upper[i]] -= in.size[i];
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

std::vector<Bytes> place_in_order(const Instance& instance, const std::vector<int>& order,
                                  Limit* limit) {
  std::vector<Bytes> offsets(instance.fixed);
  Shelf shelf(instance);
  for (int i = 0; i < instance.count(); ++i)
    if (instance.fixed[i] >= 0) shelf.add(i, instance.fixed[i]);
  for (int i : order) {
    if (instance.fixed[i] >= 0) continue;
    if (limit != nullptr && limit->tick()) return {};
    offsets[i] = shelf.fit(i);
    shelf.add(i, offsets[i]);
  }
  return offsets;
}

std::vector<Bytes> place_in_time(const Instance& instance, Limit& limit) {
  std::vector<int> order(instance.count());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return instance.lower[i] < instance.lower[j]; });
  std::vector<Bytes> offsets(instance.fixed);
  Shelf shelf(instance);
  for (int i : order)
    if (instance.fixed[i] >= 0) shelf.add(i, instance.fixed[i]);
  int now = 0;
  Bytes top = 0;  // the end of all that is placed
  for (int i : order)
    if (instance.fixed[i] >= 0) top = std::max(top, instance.fixed[i] + instance.size[i]);
  constexpr std::size_t kAlways = 300'000'000;  // looks at buffers: some 0.3 s
  std::size_t looked = 0;
  for (int i : order) {
    if (instance.fixed[i] >= 0) continue;
    if ((looked += shelf.size()) > kAlways && limit.tick()) {
      offsets[i] = align_up(top, instance.alignment[i]);
    } else {
      if (instance.lower[i] > now) shelf.leave(now = instance.lower[i]);
      offsets[i] = shelf.fit(i);
      shelf.add(i, offsets[i]);
    }
    top = std::max(top, offsets[i] + instance.size[i]);
  }
  return offsets;
}

namespace {

// The largest of `values` in each stretch from lower to upper, by those of stretches of 2^k.
std::vector<double> largest_within(const Instance& in, const std::vector<double>& values) {
  std::vector<std::vector<double>> largest{values};
  for (std::size_t reach = 1; 2 * reach <= values.size(); reach *= 2) {
    const std::vector<double>& last = largest.back();
    std::vector<double> next(last.size() - reach);
    for (std::size_t s = 0; s < next.size(); ++s) next[s] = std::max(last[s], last[s + reach]);
    largest.push_back(std::move(next));
  }
  std::vector<double> found(in.count());
  for (int i = 0; i < in.count(); ++i) {
    int k = 0;
    while ((2 << k) <= in.upper[i] - in.lower[i]) ++k;
    found[i] = std::max(largest[k][in.lower[i]], largest[k][in.upper[i] - (1 << k)]);
  }
  return found;
}

// size^a * lifetime^b * pressure^c
constexpr double kBlends[][3] = {{1, 1, 4}, {1, 1, 8}, {0.5, 1, 8}, {0.25, 0.5, 8}, {0.5, 1, 16}};
constexpr int kPlain = 5;

}  // namespace

StaticOrders::StaticOrders(const Instance& in)
    : in_(in), life_(in.count()), size_(in.size.begin(), in.size.end()) {
  for (int i = 0; i < in.count(); ++i) life_[i] = in.upper[i] - in.lower[i];
  const std::vector<Bytes> live = live_bytes(in);
  pressure_ = largest_within(in, {live.begin(), live.end()});
  paired_ = std::find(in.paired.begin(), in.paired.end(), 1) != in.paired.end();
}

int StaticOrders::count() const { return kPlain + paired_ + int(std::size(kBlends)); }

std::vector<int> StaticOrders::make(int which) const {
  const int n = in_.count();
  std::vector<double> first(n);
  const std::vector<double>* second = &size_;
  std::vector<double> upwards;
  if (which >= kPlain + paired_) {
    const auto& [a, b, c] = kBlends[which - kPlain - paired_];
    for (int i = 0; i < n; ++i)
      first[i] = a * std::log(size_[i]) + b * std::log(life_[i]) + c * std::log(pressure_[i]);
  } else if (which == 0) {
    first = size_, second = &life_;
  } else if (which == 1) {
    first = life_;
  } else if (which == 2) {
    for (int i = 0; i < n; ++i) first[i] = size_[i] * life_[i];
  } else if (which == 3) {
    first = pressure_;
  } else if (which == 4) {
    for (int i = 0; i < n; ++i) first[i] = -in_.lower[i];
  } else {
    first.assign(in_.upper.begin(), in_.upper.end());
    upwards.assign(in_.lower.begin(), in_.lower.end()), second = &upwards;
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return first[i] != first[j] ? first[i] > first[j] : (*second)[i] > (*second)[j];
  });
  return order;
}

std::vector<Bytes> improve(const Instance& in, std::vector<int> order, Bytes goal, int rounds,
                           std::uint64_t seed, Limit& limit) {
  Dice dice(seed);
  std::vector<Bytes> best = place_in_order(in, order, &limit), now = best;
  if (best.empty()) return best;
  Bytes least = arena_of(in, best);
  for (int idle = 0; idle < rounds && least > goal && !limit.now(); ++idle) {
    std::vector<int> top, moved = order;
    for (int i = 0; i < in.count(); ++i)
      if (now[i] + in.size[i] == least) top.push_back(i);
    int pick = top[dice.below(static_cast<int>(top.size()))];
    for (int down = dice.below(4); down > 0; --down) {  // what lies right below it
      for (int j = 0; j < in.count(); ++j) {
        if (now[j] + in.size[j] != now[pick] || !in.meets(pick, j)) continue;
        pick = j;
        break;
      }
    }
    const auto at = std::find(moved.begin(), moved.end(), pick);
    const int place = static_cast<int>(at - moved.begin());
    std::rotate(moved.begin() + dice.below(place + 1), at, at + 1);
    const std::vector<Bytes> offsets = place_in_order(in, moved, &limit);
    if (offsets.empty()) break;
    const Bytes arena = arena_of(in, offsets);
    if (arena > least) continue;
    if (arena < least) idle = 0, best = offsets;
    least = arena, order = std::move(moved), now = offsets;
  }
  return best;
}

}  // namespace plan

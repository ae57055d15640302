#include "plan/portfolio.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "plan/core.hpp"
#include "plan/ejection.hpp"
#include "plan/greedy.hpp"
#include "plan/many.hpp"
#include "plan/sweep.hpp"

namespace plan {

namespace {

constexpr std::uint64_t kFirstEffort = 1 << 20;
constexpr std::uint64_t kStirredEffort = 1 << 20;
constexpr std::uint64_t kRestartEffort = 1 << 22;
constexpr std::size_t kMaxConflicts = 30'000'000;  // memory of the exact search: 8 bytes each
constexpr std::uint64_t kTurns = 300'000;  // of the ejection search without a better arena
constexpr int kLocalRounds = 64, kLongRounds = 5000;  // without gain

// The largest unit that all canonical offsets are multiples of: offsets are sums of sizes, from 0
// or a fixed offset, rounded up to alignments that divide the unit or that it divides.
Bytes unit_of(const Instance& in) {
  Bytes unit = 0;
  for (int i = 0; i < in.count(); ++i) unit = std::gcd(std::gcd(unit, in.size[i]), std::max<Bytes>(in.fixed[i], 0));
  for (const auto& found : in.below)
    for (const Above& above : found) unit = std::gcd(unit, above.rise);
  for (bool changed = true; changed;) {
    changed = false;
    for (Bytes a : in.alignment) {
      if (unit % a == 0 || a % unit == 0) continue;
      unit = std::gcd(unit, a), changed = true;
    }
  }
  return std::max<Bytes>(unit, 1);
}

Instance scaled(Instance in, Bytes unit) {
  for (int i = 0; i < in.count(); ++i) {
    in.size[i] /= unit;
    in.alignment[i] = std::max<Bytes>(in.alignment[i] / unit, 1);
    if (in.fixed[i] >= 0) in.fixed[i] /= unit;
    for (Above& above : in.below[i]) above.rise /= unit;
  }
  return in;
}

std::size_t meetings(const Instance& in) {
  std::vector<std::size_t> starts(in.sections + 1), ends(in.sections + 1);
  for (int i = 0; i < in.count(); ++i) ++starts[in.lower[i]], ++ends[in.upper[i]];
  std::size_t live = 0, pairs = 0;
  for (int s = 0; s < in.sections; ++s) {
    live -= ends[s];
    pairs += starts[s] * live + starts[s] * (starts[s] - 1) / 2;
    live += starts[s];
  }
  return pairs;
}

bool shares(const Instance& in) {
  for (int i = 0; i < in.count(); ++i)
    if (!in.partners[i].empty() || in.paired[i]) return true;
  return false;
}

bool any_fixed(const Instance& in) {
  return std::any_of(in.fixed.begin(), in.fixed.end(), [](Bytes at) { return at >= 0; });
}

bool fits_exact(const Instance& in) {
  return meetings(in) <= kMaxConflicts;
}

// Static orders that complement each other: no one of them is good on every instance.
const std::vector<Strategy> kStrategies = {
    {Focus::kLowest, Priority::kLifetime, 0}, {Focus::kFullest, Priority::kLifetime, 0},
    {Focus::kLowest, Priority::kWide, 0},     {Focus::kLowest, Priority::kSize, 0},
    {Focus::kLowest, Priority::kArea, 0},     {Focus::kFullest, Priority::kPressure, 0},
    {Focus::kLowest, Priority::kPressure, 0}, {Focus::kTightest, Priority::kStart, 0},
};

// For instances where one descent takes a second.
const std::vector<Strategy> kFewStrategies = {{Focus::kLowest, Priority::kWide, 0},
                                              {Focus::kLowest, Priority::kArea, 0}};

Strategy stirred_strategy(std::uint64_t seed, std::uint64_t draw) {
  return {draw % 3 == 2 ? Focus::kFullest : Focus::kLowest,
          static_cast<Priority>(draw % kPriorities), mix(seed * 1000003 + draw) | 1};
}

// Strategies in turn, each with the same effort, then short runs with stirred
// priorities; the strategy that succeeded last comes first. `wanted` is asked between strategies.
class Turns {
 public:
  Turns(const Instance& in, std::uint64_t seed)
      : turns_(in.count() > kMaxDepth ? kFewStrategies : kStrategies), seed_(seed) {}

  template <class Wanted>
  Verdict run(Exact& exact, Bytes capacity, std::uint64_t effort, int stirred, Limit& limit,
              const Wanted& wanted, Bytes ceiling = 0) {
    for (std::size_t k = 0; k < turns_.size(); ++k) {
      const Verdict verdict = exact.run(capacity, turns_[k], effort, ceiling);
      if (verdict == Verdict::kPlaced)
        std::rotate(turns_.begin(), turns_.begin() + k, turns_.begin() + k + 1);
      if (verdict != Verdict::kStopped || limit.now() || !wanted()) return verdict;
    }
    if (!turned_) std::rotate(turns_.begin(), turns_.end() - 1, turns_.end());
    turned_ = true;  // the tightest section first, once the quick descents have failed
    for (int k = 0; k < stirred; ++k, ++draws_) {
      const Verdict verdict = exact.run(capacity, stirred_strategy(seed_, draws_), kStirredEffort);
      if (verdict != Verdict::kStopped || limit.now()) return verdict;
    }
    return Verdict::kStopped;
  }

 private:
  std::vector<Strategy> turns_;
  std::uint64_t seed_, draws_ = 0;
  bool turned_ = false;
};

std::uint64_t effort_in(int round) { return kFirstEffort << std::min(3 * round, 36); }
int stirred_in(int round) { return 16 << std::min(round, 16); }

class Solver {
 public:
  Solver(const Instance& in, const Request& request, Limit& limit, const Report& report)
      : in_(in), request_(request), limit_(limit), report_(report) {
    answer_.bound = request.bound;
    std::vector<int> rise(in.sections + 1);
    for (int i = 0; i < in.count(); ++i) ++rise[in.lower[i]], --rise[in.upper[i]];
    std::partial_sum(rise.begin(), rise.end(), rise.begin());
    for (std::uint64_t live : rise) descent_ += 4 * live * live;
  }

  Answer run() {
    std::vector<int> order = greedy();
    if (!done() && large() && !limit_.now()) eject();
    const bool exact = request_.exact && fits_exact(in_);
    if (!done() && !order.empty() && (!exact || !large()))
      local(order, exact ? kLocalRounds : kLongRounds);
    if (!done() && exact && !limit_.now()) search();
    answer_.stopped = !done() && limit_.now();
    return answer_;
  }

 private:
  bool large() const { return in_.count() > kMaxDepth; }  // a descent takes long: modest goals

  // An arena of that size ends the search: proved least, or said to be enough.
  Bytes goal() const { return std::max(answer_.bound, request_.enough); }

  bool done() const {
    return goal() >= answer_.arena ||
           (request_.capacity >= 0 && answer_.bound > request_.capacity);
  }

  // No more than the capacity that was asked for.
  Bytes asked(Bytes arena) const {
    return request_.capacity >= 0 ? std::min(arena, request_.capacity) : arena;
  }

  void offer(const std::vector<Bytes>& offsets, const char* found_by) {
    if (offsets.empty()) return;
    const Bytes arena = arena_of(in_, offsets);
    if (!answer_.offsets.empty() && arena >= answer_.arena) return;
    answer_.offsets = offsets, answer_.arena = arena, answer_.found_by = found_by;
    report_(answer_);
  }

  std::vector<int> greedy() {
    std::vector<int> best;
    const bool sparse = large() && !shares(in_);
    offer(sparse && !any_fixed(in_) ? sweep(in_, limit_) : place_in_time(in_, limit_), "greedy");
    if (large() && limit_.now()) return best;  // sorting them takes a while
    const StaticOrders orders(in_);
    const int tried = sparse ? 1 : orders.count();  // one more takes seconds, and gains nothing
    for (int which = 0; which < tried; ++which) {
      if (done() && !best.empty()) break;
      if (which > 0 && limit_.now()) break;
      std::vector<int> order = orders.make(which);
      const Bytes before = answer_.arena;
      offer(sparse ? place_among_many(in_, order, limit_) : place_in_order(in_, order, &limit_),
            "greedy");
      if (best.empty() || answer_.arena < before) best = std::move(order);
    }
    return best;
  }

  void eject() {
    const Found found = [&](const std::vector<Bytes>& offsets) { offer(offsets, "ejection"); };
    if (shares(in_))
      lower(in_, answer_.offsets, goal(), {kTurns}, false, request_.seed, limit_, found);
    else
      lower_by_cores(in_, answer_.offsets, goal(), request_.seed, limit_, found);
  }

  void local(const std::vector<int>& order, int rounds) {
    offer(improve(in_, order, goal(), rounds, request_.seed, limit_), "local search");
  }

  // Rounds of growing effort: the lower bound itself, the capacity asked for, then bisection.
  void search() {
    exact_ = std::make_unique<Exact>(in_, request_.rules, limit_);
    for (int round = 0; !done() && !limit_.now(); ++round) {
      answer_.rounds = round + 1;
      const std::uint64_t effort = effort_in(round);
      if (round > 0 || !large())
        attempt(goal(), effort, stirred_in(round));
      if (request_.capacity >= 0 && answer_.arena > request_.capacity)
        attempt(request_.capacity, effort, stirred_in(round));
      Bytes low = goal();
      for (int step = 0; step < 4 + round && low < answer_.arena && !done(); ++step) {
        const Bytes range = answer_.arena - low;
        const Bytes middle = low + range / 2;
        attempt(middle, effort / 4, stirred_in(round) / 4);
        if (answer_.arena > middle) low = middle + 1;
        if (limit_.now()) break;
      }
    }
  }

  void attempt(Bytes capacity, std::uint64_t effort, int stirred) {
    const auto wanted = [&] { return !done() && capacity < answer_.arena; };
    if (!wanted()) return;
    if (large()) stirred = 0;
    const auto restarted = [&] { return restart(), wanted(); };
    take(capacity, turns_.run(*exact_, capacity, effort + descent_, stirred, limit_, restarted,
                              answer_.arena - 1));
    restart();
  }

  void take(Bytes capacity, Verdict verdict) {
    answer_.nodes = exact_->nodes();
    if (verdict == Verdict::kPlaced) offer(exact_->offsets(), "exact search");
    if (verdict == Verdict::kImpossible && capacity >= answer_.bound) {
      answer_.bound = capacity + 1;
      report_(answer_);
    }
  }

  // Runs with stirred priorities, each within a capacity drawn between the bound and what would be
  // better than the best arena, nearer to that. Whether one places all is luck, and shows soon or
  // never: after two rounds they get as much effort as all else.
  void restart() {
    if (answer_.rounds < 3 || large()) return;
    while (restarts_effort_ < exact_->effort() / 2 && !done() && !limit_.now()) {
      const std::uint64_t before = exact_->effort(), draw = restarts_++;
      const std::uint64_t state = mix(request_.seed ^ mix(draw));
      const double below = static_cast<double>(state >> 11) * 0x1p-53;
      const Bytes better = std::max(goal(), asked(answer_.arena - 1));
      const Bytes capacity =
          better - static_cast<Bytes>(static_cast<double>(better - goal()) * below * below);
      take(capacity,
           exact_->run(capacity, stirred_strategy(state, draw), kRestartEffort + descent_));
      restarts_effort_ += exact_->effort() - before;
    }
  }

  const Instance& in_;
  const Request& request_;
  Limit& limit_;
  const Report& report_;
  Answer answer_;
  std::uint64_t descent_ = 0;  // effort in which one descent without steps back ends
  std::uint64_t restarts_ = 0, restarts_effort_ = 0;
  Turns turns_{in_, request_.seed};
  std::unique_ptr<Exact> exact_;
};

}  // namespace

Answer solve(const Instance& instance, const Request& request, Limit& limit, const Report& report) {
  const Bytes unit = unit_of(instance);
  const Instance small = scaled(instance, unit);
  Request inner = request;
  inner.bound = (request.bound + unit - 1) / unit;
  if (request.capacity >= 0) inner.capacity = request.capacity / unit;
  inner.enough = request.enough / unit;
  auto in_bytes = [unit](Answer answer) {
    for (Bytes& offset : answer.offsets) offset *= unit;
    answer.arena *= unit, answer.bound *= unit;
    return answer;
  };
  const Report outer = [&](const Answer& answer) { report(in_bytes(answer)); };
  return in_bytes(Solver(small, inner, limit, outer).run());
}

Verdict decide(const Instance& instance, Bytes capacity, const Rules& rules, std::uint64_t seed,
               Limit& limit, std::vector<Bytes>* offsets) {
  if (!fits_exact(instance)) return Verdict::kStopped;
  const Bytes unit = unit_of(instance);
  const Instance small = scaled(instance, unit);
  Exact exact(small, rules, limit);
  Turns turns(small, seed);
  Verdict verdict = Verdict::kStopped;
  for (int round = 0; verdict == Verdict::kStopped && !limit.now(); ++round)
    verdict = turns.run(exact, capacity / unit, effort_in(round), stirred_in(round), limit,
                        [] { return true; });
  if (verdict == Verdict::kPlaced) {
    *offsets = exact.offsets();
    for (Bytes& offset : *offsets) offset *= unit;
  }
  return verdict;
}

}  // namespace plan

#include "sparse/anneal.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "sparse/belady.hpp"
#include "sparse/replay.hpp"
#include "sparse/uses.hpp"

namespace sparse {

namespace {

// The order by position, as sources and targets too: moves scan these.
struct Line {
  std::vector<int> order, source, target;

  Line(const Network& net, const std::vector<int>& given)
      : order(given), source(given.size()), target(given.size()) {
    for (std::size_t p = 0; p < given.size(); ++p) {
      source[p] = net.source[given[p]];
      target[p] = net.target[given[p]];
    }
  }

  int size() const { return static_cast<int>(order.size()); }

  bool touches(int p, int count, int neuron) const {
    int found = 0;
    for (int i = p; i < p + count; ++i) found |= (source[i] == neuron) | (target[i] == neuron);
    return found != 0;
  }

  // Where the connection at p comes to stand: right after the last connection before it that has
  // its source as an endpoint, or at the very beginning.
  int left_of(int p) const {
    const int neuron = source[p];
    int q = p;
    while (q >= 16 && !touches(q - 16, 16, neuron)) q -= 16;
    while (q > 0 && source[q - 1] != neuron && target[q - 1] != neuron) --q;
    return q;
  }

  // Right before the next connection that has its target as an endpoint, or at the very end.
  int right_of(int p) const {
    const int neuron = target[p];
    int q = p;
    while (q + 16 < size() && !touches(q + 1, 16, neuron)) q += 16;
    while (q + 1 < size() && source[q + 1] != neuron && target[q + 1] != neuron) ++q;
    return q;
  }

  void move(int from, int to) {
    for (std::vector<int>* line : {&order, &source, &target}) {
      const auto begin = line->begin();
      if (to < from) std::rotate(begin + to, begin + from, begin + from + 1);
      if (to > from) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    }
  }

  void put(int low, const Line& other, int high) {
    for (auto member : {&Line::order, &Line::source, &Line::target}) {
      std::copy((other.*member).begin() + low, (other.*member).begin() + high + 1,
                (this->*member).begin() + low);
    }
  }
};

struct Stretch {
  int low, high;
};

Stretch move_window(Line& line, int first, int last, bool left) {
  Stretch moved{line.size(), -1};
  for (int i = 0; i <= last - first; ++i) {
    const int p = left ? first + i : last - i;
    const int q = left ? line.left_of(p) : line.right_of(p);
    if (p == q) continue;
    line.move(p, q);
    moved.low = std::min({moved.low, p, q});
    moved.high = std::max({moved.high, p, q});
  }
  return moved;
}

// An order that moves; a move is kept or taken back.
class Walk {
 public:
  virtual ~Walk() = default;
  virtual bool move(int first, int last, bool left) = 0;  // false: nothing moved
  virtual std::int64_t cost() = 0;                         // after a move
  virtual void settle(bool accepted) = 0;
  virtual const std::vector<int>& order() const = 0;  // before the move
  virtual std::int64_t simulated() const { return 0; }
};

// Every order from the start, or, with a Replay, the stretch that a move permutes.
class Plain : public Walk {
 public:
  Plain(const Network& net, const std::vector<int>& order, const Rule& rule, bool incremental)
      : net_(net), rule_(rule), line_(net, order), before_(line_) {
    if (incremental) replay_ = std::make_unique<Replay>(net, order, rule);
  }

  bool move(int first, int last, bool left) override {
    moved_ = move_window(line_, first, last, left);
    return moved_.high >= 0;
  }

  std::int64_t cost() override {
    if (!replay_) return simulate(net_, line_.order, rule_).total();
    const auto begin = line_.order.begin();
    stretch_.assign(begin + moved_.low, begin + moved_.high + 1);
    return replay_->change(moved_.low, stretch_);
  }

  void settle(bool accepted) override {
    if (!accepted && replay_) replay_->undo();
    Line &from = accepted ? line_ : before_, &to = accepted ? before_ : line_;
    to.put(moved_.low, from, moved_.high);
  }

  const std::vector<int>& order() const override { return before_.order; }
  std::int64_t simulated() const override { return replay_ ? replay_->simulated() : 0; }

 private:
  const Network& net_;
  Rule rule_;
  Line line_, before_;
  Stretch moved_{0, -1};
  std::unique_ptr<Replay> replay_;
  std::vector<int> stretch_;
};

// MIN, incrementally.
class Light : public Walk {
 public:
  Light(const Network& net, const std::vector<int>& order, int memory)
      : uses_(net, order), belady_(net, memory, uses_) {}

  bool move(int first, int last, bool left) override { return uses_.move(first, last, left); }
  std::int64_t cost() override { return belady_.change(); }
  void settle(bool accepted) override {
    accepted ? belady_.keep() : belady_.undo();
    accepted ? uses_.keep() : uses_.undo();
  }
  const std::vector<int>& order() const override { return uses_.order(); }
  std::int64_t simulated() const override { return belady_.simulated(); }

 private:
  Uses uses_;
  Belady belady_;
};

std::unique_ptr<Walk> walk_of(const Network& net, const std::vector<int>& order, const Rule& rule,
                              bool incremental) {
  if (incremental && rule.policy == Policy::min) {
    return std::make_unique<Light>(net, order, rule.memory);
  }
  incremental = incremental && rule.policy == Policy::write_aware;
  return std::make_unique<Plain>(net, order, rule, incremental);
}

// Stops at the time limit or when the report says so; looks at the clock once in a while.
class Watch {
 public:
  Watch(double seconds, const Report& report) : seconds_(seconds), report_(report) {}

  const char* look(std::int64_t iterations, std::int64_t best) {
    using Clock = std::chrono::steady_clock;
    if (++calls_ & 15) return "";
    const auto now = Clock::now();
    if (report_ && now - last_ > std::chrono::milliseconds(100)) {
      last_ = now;
      if (!report_(iterations, best)) return "interrupt";
    }
    return std::chrono::duration<double>(now - start_).count() > seconds_ ? "time" : "";
  }

 private:
  double seconds_;
  const Report& report_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
  unsigned calls_ = 0;
};

}  // namespace

Annealed anneal(const Network& net, const std::vector<int>& start, const Rule& rule,
                const Annealing& options, const Report& report) {
  Random random(options.seed);
  const std::unique_ptr<Walk> walk = walk_of(net, start, rule, options.incremental);
  std::int64_t current = simulate(net, start, rule).total();
  Annealed best{start, current, 0, 0, 0, 0, ""};
  bool saved = true;  // best.order is the best order, or the current one is
  Watch watch(options.seconds, report);
  while (best.iterations < options.iterations) {
    best.limit = watch.look(best.iterations, best.total);
    if (!best.limit.empty()) break;
    const std::int64_t t = options.first_iteration + best.iterations++;
    const int first = random.below(net.connections());
    const int last = std::min(first + random.below(options.window), net.connections() - 1);
    if (!walk->move(first, last, random.next() & 1)) continue;
    ++best.changed;
    const std::int64_t total = walk->cost();
    const double worse = static_cast<double>(total - current);
    const bool accepted =
        worse <= 0 || random.unit() < std::exp2(-worse * std::pow(static_cast<double>(t),
                                                                  options.cooling));
    if (accepted && total >= best.total && !saved) {
      best.order = walk->order();
      saved = true;
    }
    walk->settle(accepted);
    if (!accepted) continue;
    ++best.accepted;
    current = total;
    if (total < best.total) {
      best.total = total;
      saved = false;
    }
  }
  if (!saved) best.order = walk->order();
  best.simulated = walk->simulated();
  return best;
}

}  // namespace sparse

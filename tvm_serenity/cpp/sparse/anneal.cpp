#include "sparse/anneal.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "sparse/replay.hpp"

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

// The cost of the current order, incrementally or from the start.
class Cost {
 public:
  Cost(const Network& net, const std::vector<int>& order, const Rule& rule, bool incremental)
      : net_(net), rule_(rule), total_(simulate(net, order, rule).total()) {
    if (incremental && (rule.policy == Policy::min || rule.policy == Policy::write_aware)) {
      replay_ = std::make_unique<Replay>(net, order, rule);
    }
  }

  std::int64_t total() const { return total_; }

  std::int64_t of(const Line& line, Stretch moved) {
    if (!replay_) return simulate(net_, line.order, rule_).total();
    stretch_.assign(line.order.begin() + moved.low, line.order.begin() + moved.high + 1);
    return replay_->change(moved.low, stretch_);
  }

  void settle(bool accepted, std::int64_t total) {
    if (accepted) total_ = total;
    if (!accepted && replay_) replay_->undo();
  }

  std::int64_t simulated() const { return replay_ ? replay_->simulated() : 0; }

 private:
  const Network& net_;
  Rule rule_;
  std::int64_t total_;
  std::unique_ptr<Replay> replay_;
  std::vector<int> stretch_;
};

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
  Line line(net, start), before = line;
  Cost cost(net, start, rule, options.incremental);
  Annealed best{start, cost.total(), 0, 0, 0, 0, ""};
  bool saved = true;  // best.order is the best order, or the current one is
  Watch watch(options.seconds, report);
  while (best.iterations < options.iterations) {
    best.limit = watch.look(best.iterations, best.total);
    if (!best.limit.empty()) break;
    const std::int64_t t = options.first_iteration + best.iterations++;
    const int first = random.below(line.size());
    const int last = std::min(first + random.below(options.window), line.size() - 1);
    const Stretch moved = move_window(line, first, last, random.next() & 1);
    if (moved.high < 0) continue;
    ++best.changed;
    const std::int64_t total = cost.of(line, moved);
    const double worse = static_cast<double>(total - cost.total());
    const bool accepted =
        worse <= 0 || random.unit() < std::exp2(-worse * std::pow(static_cast<double>(t),
                                                                  options.cooling));
    if (accepted && total >= best.total && !saved) {
      best.order = before.order;
      saved = true;
    }
    cost.settle(accepted, total);
    best.accepted += accepted;
    if (accepted) {
      before.put(moved.low, line, moved.high);
      if (total < best.total) {
        best.total = total;
        saved = false;
      }
    } else {
      line.put(moved.low, before, moved.high);
    }
  }
  if (!saved) best.order = before.order;
  best.simulated = cost.simulated();
  return best;
}

}  // namespace sparse

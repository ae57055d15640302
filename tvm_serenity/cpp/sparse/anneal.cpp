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

// What a tried move costs; the move is then kept or taken back.
class Judge {
 public:
  virtual ~Judge() = default;
  virtual std::int64_t total() = 0;
  virtual void keep() {}
  virtual void undo() {}  // before that of the uses
  virtual std::int64_t simulated() const { return 0; }
};

// Every order from the start.
class Whole : public Judge {
 public:
  Whole(const Network& net, const Rule& rule, Uses& uses)
      : net_(net), rule_(rule), uses_(uses), tried_(uses.order()) {}

  std::int64_t total() override {
    const std::vector<int>& stretch = uses_.stretch();
    std::copy(stretch.begin(), stretch.end(), tried_.begin() + uses_.low());
    return simulate(net_, tried_, rule_).total();
  }
  void undo() override {
    const auto begin = uses_.order().begin();
    std::copy(begin + uses_.low(), begin + uses_.high() + 1, tried_.begin() + uses_.low());
  }

 private:
  const Network& net_;
  Rule rule_;
  Uses& uses_;
  std::vector<int> tried_;
};

// Write-aware MIN: what a move permutes and what follows from that.
class Stretch : public Judge {
 public:
  Stretch(const Network& net, const Rule& rule, Uses& uses)
      : uses_(uses), replay_(net, uses.order(), rule) {}

  std::int64_t total() override { return replay_.change(uses_.low(), uses_.stretch()); }
  void undo() override { replay_.undo(); }
  std::int64_t simulated() const override { return replay_.simulated(); }

 private:
  Uses& uses_;
  Replay replay_;
};

// MIN: what differs.
class Differing : public Judge {
 public:
  Differing(const Network& net, const Rule& rule, Uses& uses) : belady_(net, rule.memory, uses) {}

  std::int64_t total() override { return belady_.change(); }
  void keep() override { belady_.keep(); }
  void undo() override { belady_.undo(); }
  std::int64_t simulated() const override { return belady_.simulated(); }

 private:
  Belady belady_;
};

std::unique_ptr<Judge> judge_of(const Network& net, const Rule& rule, bool incremental,
                                Uses& uses) {
  if (incremental && rule.policy == Policy::min) {
    return std::make_unique<Differing>(net, rule, uses);
  }
  if (incremental && rule.policy == Policy::write_aware) {
    return std::make_unique<Stretch>(net, rule, uses);
  }
  return std::make_unique<Whole>(net, rule, uses);
}

// A window of the paper's or, for a share of the moves, a block; false: nothing moved.
bool move(Uses& uses, const Annealing& options, Random& random) {
  const bool block = options.blocks > 0 && random.unit() < options.blocks;
  const int first = random.below(uses.size());
  const int most = block ? options.block : options.window;
  const int last = std::min(first + random.below(most), uses.size() - 1);
  if (!block) return uses.move(first, last, random.next() & 1);
  const int connection = uses.order()[first + random.below(last - first + 1)];
  const std::uint64_t how = random.next();
  return uses.move_block(first, last, how & 1, 2 * connection + (how >> 1 & 1));
}

// Stops at the time limit or when the report says so: a move of a large network takes a while.
class Watch {
 public:
  Watch(double seconds, const Report& report) : seconds_(seconds), report_(report) {}

  const char* look(std::int64_t iterations, std::int64_t best) {
    using Clock = std::chrono::steady_clock;
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
};

}  // namespace

Annealed anneal(const Network& net, const std::vector<int>& start, const Rule& rule,
                const Annealing& options, const Report& report) {
  Watch watch(options.seconds, report);
  Random random(options.seed);
  Uses uses(net, start);
  const std::unique_ptr<Judge> judge = judge_of(net, rule, options.incremental, uses);
  std::int64_t current = simulate(net, start, rule).total();
  Annealed best{start, current, 0, 0, 0, 0, ""};
  bool saved = true;  // best.order is the best order, or the current one is
  while (best.iterations < options.iterations) {
    best.limit = watch.look(best.iterations, best.total);
    if (!best.limit.empty()) break;
    const std::int64_t t = options.first_iteration + best.iterations++;
    if (!move(uses, options, random)) continue;
    ++best.changed;
    const std::int64_t total = judge->total();
    const double worse = static_cast<double>(total - current);
    const bool accepted =
        worse <= 0 || random.unit() < std::exp2(-worse * std::pow(static_cast<double>(t),
                                                                  options.cooling));
    if (!accepted) {
      judge->undo();
      uses.undo();
      continue;
    }
    if (total >= best.total && !saved) {
      best.order = uses.order();
      saved = true;
    }
    judge->keep();
    uses.keep();
    ++best.accepted;
    current = total;
    if (total < best.total) {
      best.total = total;
      saved = false;
    }
  }
  if (!saved) best.order = uses.order();
  best.simulated = judge->simulated();
  return best;
}

}  // namespace sparse

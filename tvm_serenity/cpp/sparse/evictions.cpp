#include "sparse/evictions.hpp"

#include "sparse/top_set.hpp"

namespace sparse {

Evictions::Evictions(const Network& net, int memory, const Uses& uses)
    : net_(net), uses_(uses), room_(memory - 3), points_(net.connections()),
      given_up_(2 * net.connections(), -1), late_(net.neurons, 0),
      total_(net.connections() + net.neurons) {
  for (int v = 0; v < net.neurons; ++v) total_ += net.fan_in[v] > 0 && net.is_output(v);
  simulate();
  keep();
}

void Evictions::simulate() {
  const std::vector<int>& order = uses_.order();
  const auto key = [&](int use) { return 2 * uses_.position(use >> 1) + (use & 1); };
  TopSet kept(2 * static_cast<std::int64_t>(order.size()));
  int held = 0;
  for (const int c : order) {
    Point point;
    for (int use : {2 * c, 2 * c + 1}) {
      if (uses_.before(use) < 0 || given_up_[use] >= 0) continue;
      kept.erase(key(use));
      --held;
    }
    for (int i = 0; held > room_; ++i, --held) {
      const int last = static_cast<int>(kept.top());
      kept.erase(last);
      point.victims[i] = 2 * order[last >> 1] + (last & 1);
      set(point.victims[i], c);
    }
    point.slack = room_ - held;
    point.starts = starts_of(c);
    held += point.starts;
    for (int use : {2 * c, 2 * c + 1}) {
      if (uses_.after(use) >= 0) kept.insert(key(uses_.after(use)));
    }
    points_[c] = point;
  }
}

// Every use after a neuron's first one that was given up is a read; a partial sum given up is a
// write, too, and so is the first time a complete value is, unless it is written anyway.
void Evictions::set(int use, int given_up) {
  const int was = given_up_[use];
  if (was == given_up) return;
  was_.push_back({use, was});
  given_up_[use] = given_up;
  if ((was >= 0) == (given_up >= 0)) return;
  const int sign = given_up >= 0 ? 1 : -1;
  total_ += sign * (1 + (use & 1));
  const int v = uses_.neuron(use);
  if (use & 1 || net_.fan_in[v] == 0 || net_.is_output(v)) return;
  const int before = late_[v];
  late_[v] += sign;
  total_ += (late_[v] > 0) - (before > 0);
}

void Evictions::keep() {
  kept_total_ = total_;
  was_.clear();
  was_points_.clear();
}

void Evictions::undo() {
  for (std::size_t i = was_.size(); i-- > 0;) {
    const Was was = was_[i];
    set(was.use, was.given_up);
  }
  for (std::size_t i = was_points_.size(); i-- > 0;) {
    points_[was_points_[i].connection] = was_points_[i].point;
  }
  total_ = kept_total_;
  was_.clear();
  was_points_.clear();
}

}  // namespace sparse

#include "sparse/greedy.hpp"

#include <algorithm>
#include <cmath>

namespace sparse {

namespace {

// Connections not used yet, by one end; members swap with the last when they leave.
class Rest {
 public:
  Rest(int neurons, const std::vector<int>& end)
      : rows_(neurons, end), count_(neurons), at_(end.size()) {
    for (int v = 0; v < neurons; ++v) count_[v] = rows_.first[v + 1] - rows_.first[v];
    for (std::size_t i = 0; i < rows_.connection.size(); ++i) {
      at_[rows_.connection[i]] = static_cast<int>(i);
    }
  }

  int count(int v) const { return count_[v]; }
  const int* begin(int v) const { return rows_.begin(v); }
  const int* end(int v) const { return rows_.begin(v) + count_[v]; }

  void erase(int v, int connection) {
    const int last = rows_.first[v] + --count_[v];
    const int other = rows_.connection[last], slot = at_[connection];
    std::swap(rows_.connection[slot], rows_.connection[last]);
    at_[other] = slot;
    at_[connection] = last;
  }

 private:
  Rows rows_;
  std::vector<int> count_, at_;
};

// 1 / count ** power, for all counts.
std::vector<double> falling(int most, double power) {
  std::vector<double> found(most + 1, 0.0);
  for (int count = 1; count <= most; ++count) found[count] = std::pow(count, -power);
  return found;
}

class Search {
 public:
  Search(const Network& net, const Greed& options)
      : net_(net), weights_(options.weights), room_(options.room), in_(net.neurons, net.target),
        out_(net.neurons, net.source), complete_(net.neurons), held_(net.neurons, 0),
        dirty_(net.neurons, 0), active_(net.neurons, 0), usable_(net.neurons, 0),
        ready_(net.neurons, 0), via_(net.neurons, -1), score_(net.neurons, 0.0), base_(net.neurons),
        future_(net.neurons, 0.0), noise_(net.neurons) {
    const int most = std::max(*std::max_element(net.fan_in.begin(), net.fan_in.end()),
                              *std::max_element(net.fan_out.begin(), net.fan_out.end()));
    urgency_ = falling(most, weights_.power);
    partner_ = falling(most, weights_.partner_power);
    for (double& value : partner_) value *= weights_.partner;
    Random random(options.seed);
    for (int v = 0; v < net.neurons; ++v) {
      complete_[v] = net.fan_in[v] == 0;
      noise_[v] = options.noise * random.unit();
    }
    for (int c = 0; c < net.connections(); ++c) ready_[net.target[c]] += complete_[net.source[c]];
    for (int v = 0; v < net.neurons; ++v) look_forward(v);
    order_.reserve(net.connections());
  }

  std::vector<int> run(const Poll& poll) {
    for (int step = 0; static_cast<int>(order_.size()) < net_.connections(); ++step) {
      if ((step & 255) == 0) poll();
      const int next = choose();
      if (full()) drop(cheapest(usable_[next] ? via_[next] : -1));
      held_[next] = 1;
      list_.push_back(next);
      active_[next] = 0;
      use(next);
    }
    return std::move(order_);
  }

 private:
  // What depends on how many sources of v are complete.
  void look_forward(int v) {
    if (complete_[v]) {
      base_[v] = noise_[v];
      return;
    }
    const double part = static_cast<double>(ready_[v]) / net_.fan_in[v];
    base_[v] = noise_[v] + weights_.ready * (std::pow(part, weights_.ready_power) - 1);
    future_[v] = part < 1 ? weights_.future * std::pow(part, weights_.future_power) : 1;
  }

  int choose() {
    for (int v : touched_) {
      score_[v] = 0;
      usable_[v] = 0;
    }
    touched_.clear();
    for (int r : list_) complete_[r] ? score_targets(r) : score_sources(r);
    int best = -1;
    double most = 0;
    auto look = [&](int v, double score) {
      if (best >= 0 && (score < most || (score == most && v > best))) return;
      best = v;
      most = score;
    };
    if (full()) {  // what leaves must make way for progress
      for (int v : touched_) {
        if (usable_[v]) look(v, score_[v] + base_[v]);
      }
    }
    if (best >= 0) return best;
    for (int v = 0; v < net_.neurons; ++v) {
      if (held_[v] || (complete_[v] ? out_.count(v) : in_.count(v)) == 0) continue;
      if (full() && !complete_[v]) continue;  // only a complete one lets the next step progress
      look(v, score_[v] + base_[v] - (complete_[v] && score_[v] == 0 ? 1e9 : 0));
    }
    return best;
  }

  bool full() const { return static_cast<int>(list_.size()) == room_; }

  void add(int v, double score, int partner) {
    if (score_[v] == 0) touched_.push_back(v);
    score_[v] += score;
    if (partner < 0) return;
    usable_[v] = 1;
    via_[v] = partner;
  }

  void score_targets(int r) {
    const double urgency = (dirty_[r] ? weights_.fresh : 1) * urgency_[out_.count(r)];
    for (const int* c = out_.begin(r); c != out_.end(r); ++c) {
      const int t = net_.target[*c];
      if (!held_[t]) add(t, urgency + partner_[in_.count(t)], r);
    }
  }

  void score_sources(int r) {
    const double urgency = urgency_[in_.count(r)];
    for (const int* c = in_.begin(r); c != in_.end(r); ++c) {
      const int s = net_.source[*c];
      if (held_[s]) continue;
      if (complete_[s]) {
        add(s, urgency + partner_[out_.count(s)], r);
      } else {
        add(s, urgency * future_[s], -1);
      }
    }
  }

  int cheapest(int pinned) const {
    int found = -1;
    double least = 0;
    for (int v : list_) {
      if (v == pinned) continue;
      double cost = active_[v] ? 0 : 10;
      if (complete_[v]) {
        cost += (dirty_[v] ? weights_.lose_dirty : 1) + weights_.lose_idle / (out_.count(v) + 1);
      } else {
        cost += weights_.lose_partial -
                weights_.lose_progress * in_.count(v) / net_.fan_in[v];
      }
      if (found < 0 || cost < least || (cost == least && v < found)) {
        found = v;
        least = cost;
      }
    }
    return found;
  }

  void drop(int v) {
    held_[v] = dirty_[v] = 0;
    list_.erase(std::find(list_.begin(), list_.end(), v));
  }

  // Use every connection of `first`, and of what that completes, both of whose ends are held.
  void use(int first) {
    work_.assign(1, first);
    while (!work_.empty()) {
      const int v = work_.back();
      work_.pop_back();
      if (!held_[v]) continue;
      if (!complete_[v]) {
        usable_now(in_, v, net_.source, true);
        for (int c : now_) apply(c);
        if (in_.count(v) == 0) finish(v);
      }
      if (!complete_[v]) continue;
      usable_now(out_, v, net_.target, false);
      for (int c : now_) {
        apply(c);
        if (in_.count(net_.target[c]) == 0) {
          finish(net_.target[c]);
          work_.push_back(net_.target[c]);
        }
      }
      if (held_[v] && out_.count(v) == 0) drop(v);
    }
  }

  void usable_now(const Rest& rest, int v, const std::vector<int>& end, bool complete) {
    now_.clear();
    for (const int* c = rest.begin(v); c != rest.end(v); ++c) {
      if (held_[end[*c]] && static_cast<bool>(complete_[end[*c]]) == complete) now_.push_back(*c);
    }
  }

  void apply(int c) {
    const int s = net_.source[c], t = net_.target[c];
    order_.push_back(c);
    out_.erase(s, c);
    in_.erase(t, c);
    dirty_[t] = active_[s] = active_[t] = 1;
    if (out_.count(s) == 0) drop(s);
  }

  void finish(int v) {
    complete_[v] = 1;
    look_forward(v);
    for (const int* c = out_.begin(v); c != out_.end(v); ++c) {
      ++ready_[net_.target[*c]];
      look_forward(net_.target[*c]);
    }
  }

  const Network& net_;
  Weights weights_;
  int room_;
  Rest in_, out_;
  std::vector<char> complete_, held_, dirty_, active_, usable_;
  std::vector<int> ready_, via_, list_, work_, now_, touched_, order_;
  std::vector<double> score_, base_, future_, noise_, urgency_, partner_;
};

}  // namespace

std::vector<int> greedy(const Network& net, const Greed& options, const Poll& poll) {
  return Search(net, options).run(poll);
}

}  // namespace sparse

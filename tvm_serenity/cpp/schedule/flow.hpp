// Maximum flow (Dinic's algorithm, no recursion) for small networks that are built often.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "schedule/bits.hpp"
#include "schedule/limits.hpp"

namespace schedule {

class Flow {
 public:
  // After run(): the sides of all least cuts.
  struct Sides {
    int source, sink;
    std::vector<char> reached, reaching;  // by node: from the source, and the sink from it
  };

  static constexpr Bytes unbounded = std::numeric_limits<Bytes>::max();

  explicit Flow(int nodes) : first_(nodes, -1) {}

  void arc(int from, int to, Bytes capacity) {
    add(from, to, capacity);
    add(to, from, 0);
  }

  Bytes run(int source, int sink) {
    Limits unlimited;
    return run(source, sink, unlimited);
  }

  // -1 where the limit comes first, unbounded where every cut is; no more than `enough`.
  Bytes run(int source, int sink, Limits& limits, Bytes enough = unbounded) {
    Bytes total = 0;
    while (total < enough && levels(source, sink)) {
      if (limits.late(0)) return -1;
      next_ = first_;
      while (Bytes pushed = augment(source, sink)) {
        if (pushed == unbounded) return enough;
        total += pushed;
        if (limits.out_of_time(0)) return -1;
      }
    }
    return std::min(total, enough);
  }

  // What an arc of unbounded capacity would add to the flow, from a node that is reached to one
  // from which the sink is. Nothing else leads from one side to the other, so it is the lesser of
  // what flows in either. The network stays as it was.
  Bytes gain(int from, int to, const Sides& sides, Limits& limits) {
    pushed_.clear();
    within_ = &sides.reaching;
    Bytes more = to == sides.sink ? unbounded : run(to, sides.sink, limits);
    within_ = &sides.reached;
    if (from != sides.source && more > 0) more = run(sides.source, from, limits, more);
    within_ = nullptr;
    for (auto [a, bytes] : pushed_) push(a, -bytes);
    return more;
  }

  // After run(): whether the node is on the source's side of the least cut.
  bool reached(int node) const { return level_[node] >= 0; }

  Sides sides(int source, int sink) {
    Sides found{source, sink, {}, std::vector<char>(first_.size())};
    for (int level : level_) found.reached.push_back(level >= 0);
    queue_.assign(1, sink);
    found.reaching[sink] = 1;
    for (std::size_t i = 0; i < queue_.size(); ++i)
      for (int a = first_[queue_[i]]; a >= 0; a = arcs_[a].next)
        if (arcs_[a ^ 1].capacity > 0 && !found.reaching[arcs_[a].to]) {
          found.reaching[arcs_[a].to] = 1;
          queue_.push_back(arcs_[a].to);
        }
    return found;
  }

 private:
  struct Arc {
    int to, next;
    Bytes capacity;
  };

  void add(int from, int to, Bytes capacity) {
    arcs_.push_back({to, first_[from], capacity});
    first_[from] = int(arcs_.size()) - 1;
  }

  bool levels(int source, int sink) {
    level_.assign(first_.size(), -1);
    queue_.assign(1, source);
    level_[source] = 0;
    for (std::size_t i = 0; i < queue_.size() && level_[sink] < 0; ++i)
      for (int a = first_[queue_[i]]; a >= 0; a = arcs_[a].next)
        if (arcs_[a].capacity > 0 && level_[arcs_[a].to] < 0 &&
            (!within_ || (*within_)[arcs_[a].to])) {
          level_[arcs_[a].to] = level_[queue_[i]] + 1;
          queue_.push_back(arcs_[a].to);
        }
    return level_[sink] >= 0;
  }

  // One path in the level graph; 0 if there is none left.
  Bytes augment(int source, int sink) {
    path_.clear();
    int node = source;
    while (node != sink) {
      int& a = next_[node];
      while (a >= 0 && !(arcs_[a].capacity > 0 && level_[arcs_[a].to] == level_[node] + 1))
        a = arcs_[a].next;
      if (a >= 0) {
        path_.push_back(a);
        node = arcs_[a].to;
      } else {
        if (node == source) return 0;
        node = arcs_[path_.back() ^ 1].to;
        next_[node] = arcs_[next_[node]].next;
        path_.pop_back();
      }
    }
    Bytes pushed = unbounded;
    for (int a : path_) pushed = std::min(pushed, arcs_[a].capacity);
    if (pushed == unbounded) return pushed;  // no cut is finite
    for (int a : path_) {
      push(a, pushed);
      if (within_) pushed_.emplace_back(a, pushed);
    }
    return pushed;
  }

  void push(int a, Bytes bytes) {
    if (arcs_[a].capacity != unbounded) arcs_[a].capacity -= bytes;
    if (arcs_[a ^ 1].capacity != unbounded) arcs_[a ^ 1].capacity += bytes;
  }

  std::vector<int> first_, next_, level_, queue_, path_;
  std::vector<Arc> arcs_;
  std::vector<std::pair<int, Bytes>> pushed_;  // what gain() takes back
  const std::vector<char>* within_ = nullptr;  // where gain() looks
};

}  // namespace schedule

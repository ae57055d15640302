#include "schedule/walk.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <tuple>

namespace schedule {

namespace {

Lists mirrored(const Lists& sets, int last) {
  Lists result;
  for (std::size_t t = 0; t < sets.size(); ++t) {
    const Lists::Range ops = sets[t];
    for (std::size_t k = ops.size(); k-- > 0;) result.add(last - ops[k]);
    result.close();
  }
  return result;
}

// One greedy order in the making.
class Greedy {
 public:
  Greedy(const Instance& in, const Lists& made, const Lists& read, bool newest_first)
      : in_(in), made_(made), read_(read), newest_first_(newest_first), done_(in.count),
        growth_(in.count) {
    for (std::size_t t = 0; t < in.sizes.size(); ++t) {
      waiting_.push_back(int(in.consumers[t].size()));
      exists_.push_back(in.producers[t].empty());
    }
    for (int op = 0; op < in.count; ++op) {
      blocked_.push_back(int(in.predecessors[op].size()));
      for (int t : made[op]) growth_[op] += in.sizes[t];
      for (int t : read[op])
        if (waiting_[t] == 1) growth_[op] -= in.sizes[t];
    }
    for (int op = 0; op < in.count; ++op)
      if (blocked_[op] == 0) push(op);
  }

  std::vector<int> run(Limits& limits) {
    std::vector<int> order;
    order.reserve(in_.count);
    while (!ready_.empty()) {
      const auto [value, stamp, op] = ready_.top();
      ready_.pop();
      if (done_[op] || value != growth_[op]) continue;
      if (limits.out_of_time(order.size())) return {};
      done_[op] = true;
      order.push_back(op);
      take(op);
    }
    return order;
  }

 private:
  void push(int op) {
    ++stamp_;
    ready_.emplace(growth_[op], newest_first_ ? -stamp_ : std::int64_t(op), op);
  }

  void lighter(int op, Bytes bytes) {
    growth_[op] -= bytes;
    if (blocked_[op] == 0) push(op);
  }

  void take(int op) {
    for (int t : made_[op]) {
      if (exists_[t]) continue;
      exists_[t] = true;
      for (int other : in_.producers[t])
        if (other != op && !done_[other]) lighter(other, in_.sizes[t]);
    }
    for (int t : read_[op])
      if (--waiting_[t] == 1)
        for (int other : in_.consumers[t])
          if (!done_[other]) {
            lighter(other, in_.sizes[t]);
            break;
          }
    for (int other : in_.successors[op])
      if (--blocked_[other] == 0) push(other);
  }

  using Entry = std::tuple<Bytes, std::int64_t, int>;
  const Instance& in_;
  const Lists &made_, &read_;
  bool newest_first_;
  std::vector<char> done_, exists_;
  std::vector<Bytes> growth_;
  std::vector<int> waiting_, blocked_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
  std::int64_t stamp_ = 0;
};

}  // namespace

Walk::Walk(Instance instance) : in_(std::move(instance)) {
  in_.finish();
  made_ = in_.producers.turned(in_.count);
  read_ = in_.consumers.turned(in_.count);
}

OrderProfile Walk::profile(const std::vector<int>& order) const {
  std::vector<int> waiting;
  std::vector<char> exists;
  for (std::size_t t = 0; t < in_.sizes.size(); ++t) {
    waiting.push_back(int(in_.consumers[t].size()));
    exists.push_back(in_.producers[t].empty());
  }
  OrderProfile result;
  result.need.reserve(order.size());
  result.live.reserve(order.size() + 1);
  result.live.push_back(in_.start_live);
  for (int op : order) {
    if (op < 0 || op >= in_.count) throw std::invalid_argument("unknown op in an order");
    Bytes now = result.live.back(), credit = 0;
    for (int t : made_[op])
      if (!exists[t]) exists[t] = true, now += in_.sizes[t];
    for (int t : in_.in_place[op])
      if (waiting[t] == 1) credit = in_.takeover[op];
    result.need.push_back(now + in_.workspace[op] - credit);
    for (int t : read_[op])
      if (--waiting[t] == 0) now -= in_.sizes[t];
    result.live.push_back(now);
  }
  return result;
}

std::vector<int> Walk::on_demand(Limits& limits) const {
  std::vector<char> needed(in_.count), done(in_.count);
  for (int op = 0; op < in_.count; ++op)
    for (int before : in_.predecessors[op]) needed[before] = 1;
  struct Waiting {
    int op;
    std::size_t next;  // of its predecessors, the first that was not looked at
  };
  std::vector<int> order;
  std::vector<Waiting> stack;
  for (int end = 0; end < in_.count; ++end) {
    if (needed[end]) continue;
    stack.push_back({end, 0});
    while (!stack.empty()) {
      Waiting& top = stack.back();
      const auto before = in_.predecessors[top.op];
      while (top.next < before.size() && done[before[top.next]]) ++top.next;
      if (top.next < before.size()) {
        stack.push_back({before[top.next++], 0});
        continue;
      }
      done[top.op] = 1;
      order.push_back(top.op);
      stack.pop_back();
      if (limits.out_of_time(order.size())) return {};
    }
  }
  return order;
}

std::vector<int> Walk::greedy(bool newest_first, Limits& limits) const {
  return Greedy(in_, made_, read_, newest_first).run(limits);
}

Walk Walk::reversed() const {
  const int last = in_.count - 1;
  Instance back;
  for (int op = last; op >= 0; --op) {
    const Lists::Range after = in_.successors[op];
    for (std::size_t k = after.size(); k-- > 0;) back.predecessors.add(last - after[k]);
    back.predecessors.close();
  }
  back.sizes = in_.sizes;
  back.producers = mirrored(in_.consumers, last);
  back.consumers = mirrored(in_.producers, last);
  back.workspace.assign(in_.workspace.rbegin(), in_.workspace.rend());
  back.in_place = in_.in_place;
  back.takeover = in_.takeover;
  return Walk(std::move(back));
}

}  // namespace schedule

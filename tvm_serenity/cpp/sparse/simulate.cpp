#include "sparse/simulate.hpp"

#include "sparse/top_set.hpp"

namespace sparse {

namespace {

struct Log {
  std::vector<Event>* events;
  Traffic traffic;

  void read(int position, int neuron) {
    ++traffic.reads;
    if (events) events->push_back({position, neuron, 0});
  }
  void leave(int position, int neuron, bool write) {
    traffic.writes += write;
    if (events) events->push_back({position, neuron, write ? 1 : 2});
  }
};

std::vector<int> neurons_by_use(const Network& net, const std::vector<int>& order) {
  std::vector<int> found(2 * order.size());
  for (std::size_t p = 0; p < order.size(); ++p) {
    found[2 * p] = net.source[order[p]];
    found[2 * p + 1] = net.target[order[p]];
  }
  return found;
}

// Belady's MIN: the value used farthest in the future leaves; a dead value leaves at once, which
// costs the same as later. Uses are distinct, so there are no ties.
template <bool aware>
Traffic farthest(const Network& net, const std::vector<int>& order, const Rule& rule, Log log) {
  const int count = net.connections(), room = rule.memory - 1;
  const std::vector<int> next = next_uses(net, order);
  const std::vector<int> neuron_of = neurons_by_use(net, order);
  TopSet clean(2 * static_cast<std::int64_t>(count)), dirty_uses(aware ? 2ll * count : 0);
  std::vector<char> in(net.neurons, 0), dirty(net.neurons, 0);
  int held = 0;

  auto set_of = [&](int neuron) -> TopSet& {
    return aware && dirty[neuron] ? dirty_uses : clean;
  };
  auto evict = [&](int position) {
    std::int64_t use = clean.top();
    if (aware) {
      const std::int64_t other = dirty_uses.top();
      if (other >= 0 && (use < 0 || other - 2 * rule.delay > use)) use = other;
    }
    const int victim = neuron_of[use];
    set_of(victim).erase(use);
    log.leave(position, victim, dirty[victim]);
    in[victim] = dirty[victim] = 0;
    --held;
  };
  auto load = [&](int position, int neuron) {
    if (held == room) evict(position);
    log.read(position, neuron);
    in[neuron] = 1;
    ++held;
  };
  auto keep = [&](int position, int neuron, int use) {
    if (use <= 2 * position + 3) return;  // pinned by the next connection before anything leaves
    if (use != kNever) return set_of(neuron).insert(use);
    log.leave(position, neuron, dirty[neuron] && net.is_output(neuron));
    in[neuron] = dirty[neuron] = 0;
    --held;
  };

  for (int p = 0; p < count; ++p) {
    const int s = neuron_of[2 * p], t = neuron_of[2 * p + 1];
    set_of(s).erase(2 * p);  // both are pinned until they are used; not a member if not in
    set_of(t).erase(2 * p + 1);
    if (!in[s]) load(p, s);
    if (!in[t]) load(p, t);
    dirty[t] = 1;
    keep(p, s, next[2 * p]);
    keep(p, t, next[2 * p + 1]);
  }
  return log.traffic;
}

// LRU and RR do not know what is dead: a dead value keeps its slot, though it leaves for free.
Traffic blind(const Network& net, const std::vector<int>& order, const Rule& rule, Log log) {
  const int count = net.connections(), room = rule.memory - 1;
  const std::vector<int> next = next_uses(net, order);
  std::vector<char> dirty(net.neurons, 0);
  std::vector<int> slot(net.neurons, -1), held, coming(net.neurons, kNever);
  // LRU: a list of the slots by recency, `room` is its head; RR: a pointer.
  std::vector<int> before(room + 1, room), after(room + 1, room);
  int pointer = 0;

  auto touch = [&](int s) {
    after[before[s]] = after[s];
    before[after[s]] = before[s];
    before[s] = before[room];
    after[s] = room;
    after[before[s]] = s;
    before[room] = s;
  };
  auto victim = [&](int pinned) {
    if (rule.policy == Policy::lru) {
      return after[room] == pinned ? after[pinned] : after[room];
    }
    if (pointer == pinned) pointer = (pointer + 1) % room;
    const int chosen = pointer;
    pointer = (pointer + 1) % room;
    return chosen;
  };
  auto load = [&](int position, int neuron, int other) {
    int s = static_cast<int>(held.size());
    if (s < room) {
      held.push_back(neuron);
      before[s] = after[s] = s;
    } else {
      s = victim(slot[other]);
      const int old = held[s];
      log.leave(position, old, dirty[old] && (coming[old] != kNever || net.is_output(old)));
      slot[old] = -1;
      dirty[old] = 0;
      held[s] = neuron;
    }
    slot[neuron] = s;
    log.read(position, neuron);
  };

  for (int p = 0; p < count; ++p) {
    const int s = net.source[order[p]], t = net.target[order[p]];
    if (slot[s] < 0) load(p, s, t);
    touch(slot[s]);
    if (slot[t] < 0) load(p, t, s);
    touch(slot[t]);
    dirty[t] = 1;
    coming[s] = next[2 * p];
    coming[t] = next[2 * p + 1];
  }
  for (int neuron : held) log.leave(count, neuron, dirty[neuron] && net.is_output(neuron));
  return log.traffic;
}

}  // namespace

std::vector<int> next_uses(const Network& net, const std::vector<int>& order) {
  std::vector<int> next(2 * order.size()), coming(net.neurons, kNever);
  for (int p = static_cast<int>(order.size()) - 1; p >= 0; --p) {
    const int s = net.source[order[p]], t = net.target[order[p]];
    next[2 * p] = coming[s];
    next[2 * p + 1] = coming[t];
    coming[s] = 2 * p;
    coming[t] = 2 * p + 1;
  }
  return next;
}

Traffic simulate(const Network& net, const std::vector<int>& order, const Rule& rule,
                 std::vector<Event>* trace) {
  const Log log{trace, {net.connections(), 0}};  // every connection is read once
  if (rule.policy == Policy::min) return farthest<false>(net, order, rule, log);
  if (rule.policy == Policy::write_aware) return farthest<true>(net, order, rule, log);
  return blind(net, order, rule, log);
}

}  // namespace sparse

#include "schedule/cut.hpp"

#include <algorithm>

namespace schedule {

namespace {

// All that an op is joined to, without itself, are added to a set that is closed already.
void reach(const Lists& joined, int op, std::vector<Word>& found) {
  std::vector<int> queue{op};
  while (!queue.empty()) {
    const int last = queue.back();
    queue.pop_back();
    for (int other : joined[last])
      if (!test(found.data(), other)) insert(found.data(), other), queue.push_back(other);
  }
}

Cut least_live(const Instance& instance, const Between& between, Limits& limits) {
  Network net = network(instance, between, -1);
  const Bytes crossing = net.flow.run(Network::source, Network::sink, limits);
  if (crossing < 0) return {0, {}, true};
  Cut cut;
  cut.bytes = net.fixed + crossing;
  for (int op = 0; op < instance.count; ++op)
    if (net.flow.reached(net.node[op])) cut.set.push_back(op);
  return cut;
}

}  // namespace

std::vector<Between> states_before(const Instance& instance, int op) {
  Between plain;
  plain.inside.resize(words_for(instance.count));
  plain.outside.resize(words_for(instance.count));
  reach(instance.predecessors, op, plain.inside);
  reach(instance.successors, op, plain.outside);
  insert(plain.outside.data(), op);
  std::vector<Between> found{plain};
  for (int t : instance.in_place[op]) {
    const auto& consumers = instance.consumers[t];
    if (instance.takeover[op] == 0 || consumers.empty()) continue;
    Between with = plain;
    with.credit = instance.takeover[op];
    bool possible = true;
    for (int other : consumers) {
      if (other == op) continue;
      possible &= !test(plain.outside.data(), other);
      reach(instance.predecessors, other, with.inside);
      insert(with.inside.data(), other);
    }
    if (possible) found.push_back(std::move(with));
  }
  return found;
}

// A storage is an arc that the cut must pay for if a producer is on the source's side and a
// consumer is not; several producers or consumers are joined in a node of their own.
Network network(const Instance& instance, const Between& between, int maker) {
  const int source = Network::source, sink = Network::sink;
  auto in = [&](int op) { return test(between.inside.data(), op); };
  auto out = [&](int op) { return test(between.outside.data(), op); };
  auto there = [&](int op) { return op == maker || in(op); };
  Network net;
  int nodes = 2;
  net.node.resize(instance.count);
  for (int op = 0; op < instance.count; ++op)
    net.node[op] = in(op) ? source : out(op) ? sink : nodes++;

  struct Pending {
    int storage, from, to;
  };
  std::vector<Pending> pending;
  for (int t = 0; t < int(instance.sizes.size()); ++t) {
    const auto& producers = instance.producers[t];
    const auto& consumers = instance.consumers[t];
    if (instance.sizes[t] == 0) continue;
    const bool made = producers.empty() || std::any_of(producers.begin(), producers.end(), there);
    const bool stays = consumers.empty() || std::any_of(consumers.begin(), consumers.end(), out);
    if (made && stays) {
      net.fixed += instance.sizes[t];
      continue;
    }
    if (!made && std::all_of(producers.begin(), producers.end(), out)) continue;
    if (!stays && std::all_of(consumers.begin(), consumers.end(), in)) continue;
    const int from = made ? source : producers.size() == 1 ? net.node[producers[0]] : nodes++;
    const int to = stays ? sink : consumers.size() == 1 ? net.node[consumers[0]] : nodes++;
    pending.push_back({t, from, to});
  }
  net.flow = Flow(nodes);
  for (int op = 0; op < instance.count; ++op)
    if (net.node[op] > sink)
      for (int before : instance.predecessors[op])
        if (net.node[before] > sink)
          net.flow.arc(net.node[op], net.node[before], Flow::unbounded);
  for (auto [t, from, to] : pending) {
    const auto& producers = instance.producers[t];
    const auto& consumers = instance.consumers[t];
    if (from != source && producers.size() > 1)
      for (int op : producers)
        if (net.node[op] > sink) net.flow.arc(net.node[op], from, Flow::unbounded);
    if (to != sink && consumers.size() > 1)
      for (int op : consumers)
        if (net.node[op] > sink) net.flow.arc(to, net.node[op], Flow::unbounded);
    net.flow.arc(from, to, instance.sizes[t]);
  }
  return net;
}

Cut root_cut(const Instance& instance, int op, Limits& limits) {
  const std::vector<Between> choices = states_before(instance, op);
  // A storage of several producers is the op's to allocate only if no other can have run before.
  const Word* outside = choices.front().outside.data();
  Bytes need = instance.alloc[op] + instance.workspace[op];
  for (int t : instance.joint[op])
    if (std::all_of(instance.producers[t].begin(), instance.producers[t].end(),
                    [&](int other) { return test(outside, other); }))
      need += instance.sizes[t];

  Cut best;
  for (const Between& choice : choices) {
    Cut cut = least_live(instance, choice, limits);
    if (cut.late) return cut;
    cut.bytes += need - choice.credit;
    if (&choice == &choices.front() || cut.bytes < best.bytes) best = std::move(cut);
  }
  return best;
}

}  // namespace schedule

#include "schedule/cut.hpp"

#include <algorithm>

#include "schedule/flow.hpp"

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

// The least live bytes over all downsets that hold `inside` and nothing of `outside`. A storage
// is a node that the cut must pay for if a producer is on the source's side and a consumer is
// not; constants are paid at once.
Cut least_live(const Instance& instance, const std::vector<Word>& inside,
               const std::vector<Word>& outside, Limits& limits) {
  auto in = [&](int op) { return test(inside.data(), op); };
  auto out = [&](int op) { return test(outside.data(), op); };
  const int source = 0, sink = 1;
  int nodes = 2;
  std::vector<int> node(instance.count, -1);
  for (int op = 0; op < instance.count; ++op)
    if (!in(op) && !out(op)) node[op] = nodes++;

  Cut cut;
  struct Pending {
    int storage;
    bool made, stays;  // on both sides of every cut
  };
  std::vector<Pending> pending;
  for (int t = 0; t < int(instance.sizes.size()); ++t) {
    const auto& producers = instance.producers[t];
    const auto& consumers = instance.consumers[t];
    if (instance.sizes[t] == 0) continue;
    const bool made = producers.empty() || std::any_of(producers.begin(), producers.end(), in);
    const bool stays = consumers.empty() || std::any_of(consumers.begin(), consumers.end(), out);
    if (made && stays) {
      cut.bytes += instance.sizes[t];
      continue;
    }
    if (!made && std::all_of(producers.begin(), producers.end(), out)) continue;
    if (!stays && std::all_of(consumers.begin(), consumers.end(), in)) continue;
    pending.push_back({t, made, stays});
  }
  const int first_storage = nodes;
  nodes += 2 * int(pending.size());
  Flow flow(nodes);
  for (int op = 0; op < instance.count; ++op)
    if (node[op] >= 0)
      for (int before : instance.predecessors[op])
        if (node[before] >= 0) flow.arc(node[op], node[before], Flow::unbounded);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto [t, made, stays] = pending[i];
    int from = made ? source : first_storage + 2 * int(i);
    int to = stays ? sink : first_storage + 2 * int(i) + 1;
    const auto& producers = instance.producers[t];
    if (!made && producers.size() == 1)
      from = node[producers[0]];
    else if (!made)
      for (int op : producers)
        if (node[op] >= 0) flow.arc(node[op], from, Flow::unbounded);
    if (!stays)
      for (int op : instance.consumers[t])
        if (node[op] >= 0) flow.arc(to, node[op], Flow::unbounded);
    flow.arc(from, to, instance.sizes[t]);
  }
  const Bytes crossing = flow.run(source, sink, limits);
  if (crossing < 0) return {0, {}, true};
  cut.bytes += crossing;
  for (int op = 0; op < instance.count; ++op)
    if (in(op) || (node[op] >= 0 && flow.reached(node[op]))) cut.set.push_back(op);
  return cut;
}

}  // namespace

Cut root_cut(const Instance& instance, int op, Limits& limits) {
  std::vector<Word> inside(words_for(instance.count)), outside(words_for(instance.count));
  reach(instance.predecessors, op, inside);
  reach(instance.successors, op, outside);
  insert(outside.data(), op);

  // A storage of several producers is the op's to allocate only if no other can have run before.
  Bytes need = instance.alloc[op] + instance.workspace[op];
  for (int t : instance.joint[op])
    if (std::all_of(instance.producers[t].begin(), instance.producers[t].end(),
                    [&](int other) { return test(outside.data(), other); }))
      need += instance.sizes[t];

  Cut best = least_live(instance, inside, outside, limits);
  if (best.late) return best;
  best.bytes += need;
  for (int t : instance.in_place[op]) {
    const auto& consumers = instance.consumers[t];
    if (instance.takeover[op] == 0 || consumers.empty()) continue;
    std::vector<Word> with = inside;
    bool possible = true;
    for (int other : consumers) {
      if (other == op) continue;
      possible &= !test(outside.data(), other);
      reach(instance.predecessors, other, with);
      insert(with.data(), other);
    }
    if (!possible) continue;
    Cut cut = least_live(instance, with, outside, limits);
    if (cut.late) return cut;
    cut.bytes += need - instance.takeover[op];
    if (cut.bytes < best.bytes) best = std::move(cut);
  }
  return best;
}

}  // namespace schedule

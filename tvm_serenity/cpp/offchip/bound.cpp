// Lower bounds on what every order moves beyond the compulsory traffic.
#include "offchip/search.hpp"
#include "order/flow.hpp"

namespace offchip {
namespace {

constexpr int kCutOps = 600;  // least cuts are computed in stretches of at most so many ops

std::vector<std::vector<std::uint64_t>> ancestors_of(const Network& network) {
  const int words = (network.ops() + 63) / 64;
  std::vector<std::vector<std::uint64_t>> sets(network.ops(), std::vector<std::uint64_t>(words));
  for (int u = 0; u < network.ops(); ++u)  // ops are numbered in a valid order
    for (int p : network.predecessors[u]) {
      for (int w = 0; w < words; ++w) sets[u][w] |= sets[p][w];
      sets[u][p >> 6] |= std::uint64_t(1) << (p & 63);
    }
  return sets;
}

bool has(const std::vector<std::uint64_t>& set, int op) { return set[op >> 6] >> (op & 63) & 1; }

// Storages that are made in first..last - 1 and not read after `last`: each is in one stretch.
struct Local {
  int storage, maker;
  std::vector<int> readers;
  Bytes bytes;
};

std::vector<Local> local_storages(const Network& network, int first, int last) {
  std::vector<Local> found;
  for (int s = 0; s < network.storages(); ++s) {
    const int b = network.storage_begin[s];
    if (network.users[s].size() < 2 || b == network.storage_begin[s + 1]) continue;
    if (network.home[b] || network.kept[b]) continue;
    Local local{s, network.users[s][0].first, {}, network.storage_bytes(s)};
    bool inside = local.maker >= first && local.maker < last;
    for (std::size_t i = 1; i < network.users[s].size(); ++i) {
      local.readers.push_back(network.users[s][i].first);
      inside &= local.readers.back() <= last;
    }
    if (inside) found.push_back(std::move(local));
  }
  return found;
}

// Reads during an op are at least its operands less the room; so are writes after making them.
Bytes single_ops(const Network& network, const std::vector<Local>& storages, Bytes room) {
  std::vector<Bytes> read(network.ops(), 0), made(network.ops(), 0);
  for (const Local& s : storages) {
    made[s.maker] += s.bytes;
    for (int u : s.readers) read[u] += s.bytes;
  }
  Bytes sum = 0;
  for (int u = 0; u < network.ops(); ++u)
    sum += std::max<Bytes>(0, read[u] - room) + std::max<Bytes>(0, made[u] - room);
  return sum;
}

// The least bytes of `storages` that are live just before op u, over all states it can run from:
// a least cut between what must have run (u's ancestors) and what must not (u, its descendants).
Bytes least_live(const Network& network, const std::vector<std::vector<std::uint64_t>>& before,
                 const std::vector<Local>& storages, int first, int last, int u) {
  const int end = std::min(last + 1, network.ops()), ops = end - first, source = 0, sink = 1;
  order::Flow flow(2 + ops + int(storages.size()));
  for (int v = first; v < end; ++v) {  // on the source's side: has run
    if (has(before[u], v)) flow.arc(source, 2 + v - first, order::Flow::unbounded);
    if (v == u || has(before[v], u)) flow.arc(2 + v - first, sink, order::Flow::unbounded);
    for (int p : network.predecessors[v])
      if (p >= first) flow.arc(2 + v - first, 2 + p - first, order::Flow::unbounded);
  }
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const int node = 2 + ops + int(i);  // has run where all readers have
    flow.arc(2 + storages[i].maker - first, node, storages[i].bytes);
    for (int r : storages[i].readers)
      flow.arc(node, 2 + r - first, order::Flow::unbounded);
  }
  return flow.run(source, sink);
}

}  // namespace

Bytes forced_traffic(const Network& network, Bytes room) {
  const auto before = ancestors_of(network);
  std::vector<int> cuts{0};  // ops that all others wait for or that wait for all others
  std::vector<int> after(network.ops(), 0);
  for (int u = 0; u < network.ops(); ++u)
    for (int v = 0; v < u; ++v) after[v] += has(before[u], v);
  for (int u = 1; u < network.ops(); ++u) {
    int count = 0;
    for (std::uint64_t word : before[u]) count += __builtin_popcountll(word);
    if (count + after[u] == network.ops() - 1) cuts.push_back(u);
  }
  cuts.push_back(network.ops());
  Bytes sum = 0;
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    const int first = cuts[c], last = cuts[c + 1];
    const auto storages = local_storages(network, first, last);
    Bytes best = single_ops(network, storages, room);
    Bytes all = 0;
    for (const Local& s : storages) all += s.bytes;
    if (last - first <= kCutOps && 2 * (all - room) > best)
      for (int u = first + 1; u <= std::min(last, network.ops() - 1); ++u)
        best = std::max(best, 2 * (least_live(network, before, storages, first, last, u) - room));
    sum += std::max<Bytes>(0, best);
  }
  return sum;
}

}  // namespace offchip

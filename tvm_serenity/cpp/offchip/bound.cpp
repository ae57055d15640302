// Lower bounds on what every order moves beyond the compulsory traffic.
#include "offchip/search.hpp"
#include "schedule/flow.hpp"

namespace offchip {
namespace {

constexpr int kWindows = 32;  // about so many breakpoints between windows
constexpr int kCutOps = 800;  // no least cuts in windows with more ops

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

// Storages that are made in first..last - 1: each is in one window of a partition of the ops, so
// the transfers that windows force can be added up, whatever else happens at the same time.
struct Local {
  int maker;
  std::vector<int> readers;
  Bytes bytes;
};

std::vector<Local> local_storages(const Network& network, int first, int last) {
  std::vector<Local> found;
  for (int s = 0; s < network.storages(); ++s) {
    const int b = network.storage_begin[s];
    if (network.users[s].size() < 2 || b == network.storage_begin[s + 1]) continue;
    if (network.home[b] || network.kept[b]) continue;
    Local local{network.users[s][0].first, {}, network.storage_bytes(s)};
    for (std::size_t i = 1; i < network.users[s].size(); ++i)
      local.readers.push_back(network.users[s][i].first);
    if (local.maker >= first && local.maker < last) found.push_back(std::move(local));
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
                 const std::vector<Local>& storages, int first, int end, int u) {
  const int ops = end - first, source = 0, sink = 1;
  schedule::Flow flow(2 + ops + int(storages.size()));
  for (int v = first; v < end; ++v) {  // on the source's side: has run
    if (has(before[u], v)) flow.arc(source, 2 + v - first, schedule::Flow::unbounded);
    if (v == u || has(before[v], u)) flow.arc(2 + v - first, sink, schedule::Flow::unbounded);
    for (int p : network.predecessors[v])
      if (p >= first) flow.arc(2 + v - first, 2 + p - first, schedule::Flow::unbounded);
  }
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const int node = 2 + ops + int(i);  // has run where all readers have
    flow.arc(2 + storages[i].maker - first, node, storages[i].bytes);
    for (int r : storages[i].readers)  // leaving readers out makes less live
      if (r < end) flow.arc(node, 2 + r - first, schedule::Flow::unbounded);
  }
  return flow.run(source, sink);
}

// The most that a window's storages force, by single ops or by one least cut.
Bytes window(const Network& network, const std::vector<std::vector<std::uint64_t>>& before,
             int first, int last, Bytes room) {
  const auto storages = local_storages(network, first, last);
  Bytes best = single_ops(network, storages, room), all = 0;
  for (const Local& s : storages) all += s.bytes;
  const int end = std::min(network.ops(), last + (last - first) + 8);
  if (end - first > kCutOps || 2 * (all - room) <= best) return best;
  // What is live before u in the given order is one of the states: no cut is larger.
  std::vector<std::pair<Bytes, int>> candidates;
  for (int u = first + 1; u < end; ++u) {
    Bytes live = 0;
    for (const Local& s : storages)
      if (s.maker < u && std::any_of(s.readers.begin(), s.readers.end(),
                                     [&](int r) { return r >= u && r < end; }))
        live += s.bytes;
    candidates.emplace_back(live, u);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  for (auto [live, u] : candidates) {
    if (2 * (live - room) <= best) break;
    best = std::max(best, 2 * (least_live(network, before, storages, first, end, u) - room));
  }
  return best;
}

}  // namespace

Bytes forced_traffic(const Network& network, Bytes room) {
  const auto before = ancestors_of(network);
  const int step = std::max(1, (network.ops() + kWindows - 1) / kWindows);
  std::vector<int> breaks;
  for (int u = 0; u < network.ops(); u += step) breaks.push_back(u);
  breaks.push_back(network.ops());
  std::vector<Bytes> best(breaks.size(), 0);  // over the partitions of the ops before
  for (std::size_t j = 1; j < breaks.size(); ++j)
    for (std::size_t i = 0; i < j; ++i)
      best[j] = std::max(best[j], best[i] + window(network, before, breaks[i], breaks[j], room));
  return best.back();
}

}  // namespace offchip

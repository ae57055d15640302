// Lower bounds on what every order moves beyond the compulsory traffic.
#include "offchip/search.hpp"
#include "schedule/flow.hpp"

namespace offchip {
namespace {

constexpr int kWindows = 32;  // about so many breakpoints between windows
constexpr int kCutOps = 800;  // no least cuts in windows with more ops

// For the ops first..end - 1 which of them must run before: paths between two of them stay there,
// as ops are numbered in a valid order.
class Ancestors {
 public:
  Ancestors(const Network& network, int first, int end)
      : first_(first), words_((end - first + 63) / 64), sets_(std::size_t(end - first) * words_) {
    for (int u = first; u < end; ++u)
      for (int p : network.predecessors[u]) {
        if (p < first) continue;
        for (int w = 0; w < words_; ++w) of(u)[w] |= of(p)[w];
        of(u)[(p - first) >> 6] |= std::uint64_t(1) << ((p - first) & 63);
      }
  }
  bool has(int u, int before) {
    return of(u)[(before - first_) >> 6] >> ((before - first_) & 63) & 1;
  }

 private:
  std::uint64_t* of(int u) { return sets_.data() + std::size_t(u - first_) * words_; }

  const int first_, words_;
  std::vector<std::uint64_t> sets_;
};

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
    if (network.operands[s].size() < 2 || b == network.storage_begin[s + 1]) continue;
    if (network.home[b] || network.kept[b]) continue;
    const int maker = network.user[network.operands[s][0]];
    if (maker < first || maker >= last) continue;
    Local local{maker, {}, network.storage_bytes(s)};
    for (std::size_t i = 1; i < network.operands[s].size(); ++i)
      local.readers.push_back(network.user[network.operands[s][i]]);
    found.push_back(std::move(local));
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
Bytes least_live(const Network& network, Ancestors& before, const std::vector<Local>& storages,
                 int first, int end, int u) {
  const int ops = end - first, source = 0, sink = 1;
  schedule::Flow flow(2 + ops + int(storages.size()));
  for (int v = first; v < end; ++v) {  // on the source's side: has run
    if (before.has(u, v)) flow.arc(source, 2 + v - first, schedule::Flow::unbounded);
    if (v == u || before.has(v, u)) flow.arc(2 + v - first, sink, schedule::Flow::unbounded);
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
Bytes window(const Network& network, int first, int last, Bytes room, const Late& late) {
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
  Ancestors before(network, first, end);
  for (auto [live, u] : candidates) {
    if (2 * (live - room) <= best || late()) break;
    best = std::max(best, 2 * (least_live(network, before, storages, first, end, u) - room));
  }
  return best;
}

}  // namespace

Bytes forced_traffic(const Network& network, Bytes room, const Late& late) {
  const int step = std::max(1, (network.ops() + kWindows - 1) / kWindows);
  std::vector<int> breaks;
  for (int u = 0; u < network.ops(); u += step) breaks.push_back(u);
  breaks.push_back(network.ops());
  std::vector<Bytes> best(breaks.size(), 0);  // over the partitions of the ops before
  for (std::size_t j = 1; j < breaks.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const Bytes inside = late() ? 0 : window(network, breaks[i], breaks[j], room, late);
      best[j] = std::max(best[j], best[i] + inside);
    }
  return best.back();
}

}  // namespace offchip

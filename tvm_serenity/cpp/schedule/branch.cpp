#include "schedule/branch.hpp"

#include <algorithm>

namespace schedule {

namespace {

// A node is bounded at so many ops, the highest at the root; at more where they give no pair.
constexpr std::size_t watched_ops = 32, most_watched = 128;
constexpr std::size_t first_ops = 6;     // at so many of its highest all candidates are tried,
constexpr std::size_t then_ops = 12;     // at so many the best of these
constexpr std::size_t most_pairs = 2000, tried_pairs = 64, best_pairs = 4;

}  // namespace

const Branching::Watch::Choice& Branching::Watch::least() const {
  return *std::min_element(choices.begin(), choices.end(),
                           [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
}

// Where the second is in a state, the first is: both are nodes of the network, and the state is
// one before the watched op.
std::pair<int, int> Branching::Watch::arc(const Choice& choice, Pair pair) const {
  const auto [first, second] = pair;
  return {second == op ? Network::source : choice.net.node[second], choice.net.node[first]};
}

// The cuts with these pairs too, without the choices that they rule out (never the one that takes
// nothing over); false where time is over.
bool Branching::Watch::settle(const std::vector<Pair>& pairs, Limits& limits) {
  std::vector<Choice> possible;
  for (Choice& choice : choices) {
    for (Pair pair : pairs) {
      const auto [from, to] = arc(choice, pair);
      choice.net.flow.arc(from, to, Flow::unbounded);
    }
    const Bytes more = choice.net.flow.run(Network::source, Network::sink, limits);
    if (more < 0) return false;
    if (more == Flow::unbounded) continue;
    choice.bytes += more;
    choice.sides = choice.net.flow.sides(Network::source, Network::sink);
    possible.push_back(std::move(choice));
  }
  choices = std::move(possible);
  return true;
}

// What every order needs at the op with one pair more.
Bytes Branching::Watch::with(Pair pair, Limits& limits, bool& late) {
  Bytes least = INT64_MAX;
  for (Choice& choice : choices) {
    const auto [from, to] = arc(choice, pair);
    Bytes bytes = choice.bytes;
    if (bytes < least && choice.sides.reached[from] && choice.sides.reaching[to]) {
      const Bytes more = choice.net.flow.gain(from, to, choice.sides, limits);
      late |= more < 0;
      bytes = more == Flow::unbounded ? INT64_MAX : bytes + more;
    }
    least = std::min(least, bytes);
  }
  return least;
}

void Branching::run(Limits& limits) {
  if (!started_ && !(started_ = start(limits))) return;
  while (!open_.empty()) {
    const Open node = open_.top();
    bound_ = std::max(bound_, node.bound);
    if (nodes_ >= limits.states || limits.late(nodes_) || !split(node, limits)) return;
  }
  bound_ = enough_;
}

// The root's cuts at all ops; false where time is over.
bool Branching::start(Limits& limits) {
  std::vector<std::pair<Bytes, int>> cuts;
  for (int op = 0; op < in_.count; ++op) {
    const Cut cut = root_cut(in_, op, limits);
    if (cut.late) return false;
    cuts.emplace_back(-cut.bytes, op);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.resize(std::min(cuts.size(), most_watched));
  ranked_.clear();
  for (const auto& cut : cuts) ranked_.push_back(cut.second);
  if (!watch_more(limits)) return false;
  Need root = cuts.empty() ? Need{0, 0} : Need{-cuts.front().first, cuts.front().second};
  for (const Watch& watch : watched_)
    if (watch.bytes() > root.bytes) root = {watch.bytes(), watch.op};
  bound_ = std::min(root.bytes, enough_);
  add(root, {});
  return true;
}

// Watch the next ops too; false where time is over.
bool Branching::watch_more(Limits& limits) {
  const std::size_t before = watched_.size();
  for (std::size_t i = before; i < std::min(ranked_.size(), before + watched_ops); ++i) {
    Watch watch;
    watch.op = ranked_[i];
    for (const Between& between : states_before(in_, watch.op)) {
      Watch::Choice choice;
      choice.net = network(in_, between, watch.op);
      choice.bytes = choice.net.fixed + in_.workspace[watch.op] - between.credit;
      watch.choices.push_back(std::move(choice));
    }
    if (!watch.settle({}, limits)) {
      watched_.resize(before);
      return false;
    }
    watched_.push_back(std::move(watch));
  }
  return true;
}

void Branching::add(Need need, std::vector<Pair> pairs) {
  if (need.bytes < enough_) open_.push({need.bytes, std::move(pairs), tree_.size()});
  tree_.push_back({need});
}

std::vector<std::vector<int>> Branching::branches() const {
  std::vector<std::vector<int>> found;
  std::vector<std::size_t> rest(tree_.empty() ? 0 : 1, 0);
  while (!rest.empty()) {
    const Node& node = tree_[rest.back()];
    rest.pop_back();
    if (node.ways == 0 || node.need.bytes >= bound_) {
      found.push_back({node.need.op});
    } else {
      found.push_back({node.pair.first, node.pair.second});
      rest.push_back(node.ways + 1);
      rest.push_back(node.ways);
    }
  }
  return found;
}

// Replace the node on top by its two ways; false, with nothing changed, where time is over or no
// pair is left.
bool Branching::split(const Open& open, Limits& limits) {
  std::vector<Watch> watched;
  const std::vector<Pair> pairs = watch(open.pairs, watched, limits);
  if (pairs.empty()) return false;
  Ways ways{watched, tree_[open.node].need, enough_, limits};
  const Pair pair = ways.best(pairs);
  const Need first = ways.with(pair, watched.size()).need;
  const Need second = ways.with(turned(pair), watched.size()).need;
  if (ways.late) return false;
  std::vector<Pair> before = open.pairs;
  tree_[open.node].pair = pair;
  tree_[open.node].ways = tree_.size();
  open_.pop();
  ++nodes_;
  before.push_back(pair);
  add(first, before);
  before.back() = turned(pair);
  add(second, before);
  return true;
}

// The cuts at the watched ops with these pairs, highest first, and pairs to branch over. More ops
// are watched as long as there is none; none where time is over, too.
std::vector<Branching::Pair> Branching::watch(const std::vector<Pair>& pairs,
                                              std::vector<Watch>& watched, Limits& limits) {
  std::vector<Pair> found;
  while (found.empty() && watched.size() < ranked_.size()) {
    if (watched.size() == watched_.size() && !watch_more(limits)) return {};
    for (std::size_t i = watched.size(); i < watched_.size(); ++i) {
      watched.push_back(watched_[i]);
      if (!watched.back().settle(pairs, limits)) return {};
    }
    std::stable_sort(watched.begin(), watched.end(),
                     [](const Watch& a, const Watch& b) { return a.bytes() > b.bytes(); });
    found = candidates(watched, pairs);
  }
  return found;
}

// What every order needs with one pair more, at so many of the highest ops at least.
Branching::Ways::Way Branching::Ways::with(Pair pair, std::size_t ops) {
  Way way{need, 0};
  for (std::size_t i = 0; i < std::min(ops, watched.size()) && way.need.bytes < enough; ++i) {
    if (late) break;
    const Bytes bytes = std::min(watched[i].with(pair, limits, late), enough);
    way.raised += std::max(Bytes(0), bytes - watched[i].bytes());
    if (bytes > way.need.bytes) way.need = {bytes, watched[i].op};
  }
  if (way.need.bytes >= enough) way.raised = enough;
  return way;
}

// Higher is better; of a pair that one way leaves below `least` no more than that is known.
Branching::Ways::Score Branching::Ways::score(Pair pair, std::size_t ops, Bytes least) {
  const Way a = with(pair, ops);
  if (a.need.bytes < least) return {a.need.bytes, 0, 0, pair};
  const Way b = with(turned(pair), ops);
  return {std::min(a.need.bytes, b.need.bytes), a.need.bytes + b.need.bytes,
          std::min(a.raised, b.raised), pair};
}

// The best of some of the pairs, by more and more ops.
Branching::Pair Branching::Ways::best(const std::vector<Pair>& pairs) {
  std::vector<Score> scores;
  const std::size_t tried = std::min(pairs.size(), tried_pairs);
  for (std::size_t i = 0; i < tried && !late; ++i) {
    const Bytes least = scores.size() < best_pairs ? 0 : std::get<0>(scores.back());
    scores.push_back(score(pairs[i * pairs.size() / tried], first_ops, least));
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.resize(std::min(scores.size(), best_pairs));
  }
  for (Score& found : scores) found = score(std::get<Pair>(found), then_ops, 0);
  return std::get<Pair>(*std::max_element(scores.begin(), scores.end()));
}

// Pairs of which both ways raise a cut: each op is in the least state before one watched op, or
// that op, and after all least states before the other.
std::vector<Branching::Pair> Branching::candidates(const std::vector<Watch>& watched,
                                                   const std::vector<Pair>& pairs) const {
  const Table before = ancestors(pairs);
  std::vector<Pair> found;
  for (std::size_t far = 1; far < watched.size() && found.size() < most_pairs; ++far)
    for (std::size_t near = 0; near < far && found.size() < most_pairs; ++near) {
      const auto &x = watched[near].least(), &y = watched[far].least();
      std::vector<int> of_x, of_y;
      for (int op = 0; op < in_.count; ++op) {
        if ((x.inside(op) || op == watched[near].op) && y.outside(op)) of_x.push_back(op);
        if ((y.inside(op) || op == watched[far].op) && x.outside(op)) of_y.push_back(op);
      }
      for (int a : of_x)
        for (int b : of_y)
          if (!test(before[a], b) && !test(before[b], a)) found.push_back(std::minmax(a, b));
    }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// Of each op all that run before it, with these pairs too.
Table Branching::ancestors(const std::vector<Pair>& pairs) const {
  const int words = words_for(in_.count);
  Table before(in_.count, words);
  auto take = [&](int op, int other) {
    for (int i = 0; i < words; ++i) before[op][i] |= before[other][i];
    insert(before[op], other);
  };
  for (int op = 0; op < in_.count; ++op)
    for (int other : in_.predecessors[op]) take(op, other);
  for (auto [first, second] : pairs) {
    take(second, first);
    for (int op = 0; op < in_.count; ++op)
      if (test(before[op], second)) take(op, second);
  }
  return before;
}

}  // namespace schedule

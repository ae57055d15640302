#include "schedule/moves.hpp"

#include <algorithm>

namespace schedule {

template <int N>
Moves<N>::Moves(const Instance& instance, const Closures& closures, Rules rules)
    : instance_(instance),
      closures_(closures),
      rules_(rules),
      width_{closures.words},
      plain_(std::all_of(closures.list.begin(), closures.list.end(),
                         [](const Closure& c) { return c.workspace_op < 0 && c.takers.empty(); })),
      closure_mark_(closures.count()),
      storage_mark_(instance.sizes.size()),
      block_(closures.words),
      after_(closures.words) {}

template <int N>
Node Moves<N>::start() const {
  Node node;
  node.set.assign(closures_.words, 0);
  node.complete.assign(closures_.closure_words, 0);
  for (int id = 0; id < closures_.count(); ++id)
    if (closures_.list[id].covers.empty()) node.active.push_back(id);
  node.live = instance_.start_live;
  return node;
}

template <int N>
void Moves<N>::expand(const Node& node, Bytes budget, std::vector<Move>& moves, Bytes& rejected) {
  moves.clear();
  if (rules_.blocks)
    expand_blocks(node, budget, moves, rejected);
  else
    expand_single(node, budget, moves, rejected);
}

template <int N>
void Moves<N>::expand_blocks(const Node& node, Bytes budget, std::vector<Move>& moves,
                             Bytes& rejected) {
  gather(node);
  for (Word candidate : candidates_) {
    const bool fresh = add_group(node, candidate);
    // A later candidate can only change a group by its workspace or takers.
    if (plain_ && fresh && consider_group(node, group_count_ - 1, budget, moves, rejected)) return;
  }
  if (plain_) return;
  for (int i = 0; i < group_count_; ++i)
    if (consider_group(node, i, budget, moves, rejected)) return;
}

template <int N>
bool Moves<N>::consider_group(const Node& node, int i, Bytes budget, std::vector<Move>& moves,
                              Bytes& rejected) {
  const Group& group = groups_[i];
  Move move{0, 0, group.id, group.workspace_op, false};
  Bytes extra = 0;  // of the last op: its workspace less its credit
  if (group.workspace_op >= 0) {
    const int op = group.workspace_op;
    extra = instance_.workspace[op];
    if (std::find(group.takers.begin(), group.takers.end(), op) != group.takers.end())
      extra -= instance_.takeover[op];
  } else {
    for (int op : group.takers) {
      const Bytes with = instance_.workspace[op] - instance_.takeover[op];
      if (move.last >= 0 && with >= extra) continue;
      extra = with;
      move.last = op;
    }
  }
  const Word* block = group_blocks_.data() + std::size_t(i) * width_.words();
  return consider(node, block, move, extra, group.minimal, budget, moves, rejected);
}

template <int N>
void Moves<N>::expand_single(const Node& node, Bytes budget, std::vector<Move>& moves,
                             Bytes& rejected) {
  for (int op = 0; op < instance_.count; ++op) {
    if (test(node.set.data(), op)) continue;
    if (!subset(closures_.ancestors[op], node.set.data(), width_)) continue;
    std::fill(block_.begin(), block_.end(), 0);
    insert(block_.data(), op);
    Bytes extra = instance_.workspace[op];
    for (int t : instance_.in_place[op])
      if (dies_at(node, t, op)) {
        extra -= instance_.takeover[op];
        break;
      }
    if (consider(node, block_.data(), {0, 0, op, op, false}, extra, true, budget, moves, rejected))
      return;
  }
}

template <int N>
bool Moves<N>::consider(const Node& node, const Word* block, Move move, Bytes extra, bool minimal,
                        Bytes budget, std::vector<Move>& moves, Bytes& rejected) {
  const Bytes allocation = allocated(node, block);
  move.key = node.live + allocation + extra;
  if (move.key > budget) {
    rejected = std::min(rejected, move.key);
    return false;
  }
  for (int i = 0; i < width_.words(); ++i) after_[i] = node.set[i] | block[i];
  move.live = node.live + allocation - complete(node, after_.data());
  // Only inside a minimal block nothing is freed before its end, as R2's proof needs.
  move.commits = rules_.commit && minimal && move.live <= node.live;
  move.commits |= rules_.commit &&
                  equal(after_.data(), closures_.sets[closures_.count() - 1], width_);
  if (move.commits) moves.clear();
  moves.push_back(move);
  return move.commits;
}

// The candidate blocks, small ones first.
template <int N>
void Moves<N>::gather(const Node& node) {
  const int words = width_.words();
  candidates_.clear();
  blocks_.resize(node.active.size() * words);
  group_blocks_.resize(blocks_.size());
  group_count_ = 0;
  Word slot = 0;
  for (int id : node.active) {
    Word* block = blocks_.data() + slot * words;
    const Word* closure = closures_.sets[id];
    for (int i = 0; i < words; ++i) block[i] = closure[i] & ~node.set[i];
    candidates_.push_back(Word(size(block, width_)) << 42 | Word(id) << 21 | slot++);
  }
  std::sort(candidates_.begin(), candidates_.end());
}

// Makes a candidate a group unless a smaller or equal one makes it superfluous.
template <int N>
bool Moves<N>::add_group(const Node& node, Word candidate) {
  const int words = width_.words();
  const Word low = (Word{1} << 21) - 1;
  const int size = int(candidate >> 42), id = int(candidate >> 21 & low);
  const Word* block = blocks_.data() + (candidate & low) * words;
  const Closure& closure = closures_.list[id];
  takers_.clear();
  for (int op : closure.takers)
    if (!test(node.set.data(), op)) takers_.push_back(op);
  bool minimal = true;
  for (int i = 0; i < group_count_; ++i) {
    const Word* smaller = group_blocks_.data() + std::size_t(i) * words;
    if (!subset(smaller, block, width_)) continue;
    Group& group = groups_[i];
    if (group.size == size) {
      if (closure.workspace_op >= 0) group.workspace_op = closure.workspace_op;
      for (int op : takers_)
        if (std::find(group.takers.begin(), group.takers.end(), op) == group.takers.end())
          group.takers.push_back(op);
      std::sort(group.takers.begin(), group.takers.end());
      return false;
    }
    minimal = false;
    auto superfluous = [&](int op) {
      return !test(smaller, op) ||
             std::find(group.takers.begin(), group.takers.end(), op) != group.takers.end();
    };
    takers_.erase(std::remove_if(takers_.begin(), takers_.end(), superfluous), takers_.end());
    if (takers_.empty()) return false;
  }
  if (group_count_ == int(groups_.size())) groups_.emplace_back();
  Group& group = groups_[group_count_];
  group.id = id;
  group.size = size;
  group.workspace_op = minimal ? closure.workspace_op : -1;
  group.minimal = minimal;
  group.takers.assign(takers_.begin(), takers_.end());
  std::copy(block, block + words, group_blocks_.data() + std::size_t(group_count_) * words);
  ++group_count_;
  return true;
}

template <int N>
Bytes Moves<N>::allocated(const Node& node, const Word* block) {
  Bytes total = 0;
  ++stamp_;
  for_each(block, width_, [&](int op) {
    total += instance_.alloc[op];
    for (int t : instance_.joint[op]) {
      if (storage_mark_[t] == stamp_) continue;
      storage_mark_[t] = stamp_;
      const auto& producers = instance_.producers[t];
      if (std::none_of(producers.begin(), producers.end(),
                       [&](int p) { return test(node.set.data(), p); }))
        total += instance_.sizes[t];
    }
  });
  return total;
}

// Bytes of the storages that die between a node and a later set; their closures in completed_.
template <int N>
Bytes Moves<N>::complete(const Node& node, const Word* after) {
  Bytes total = 0;
  ++stamp_;
  completed_.clear();
  auto visit = [&](int id) {
    if (closure_mark_[id] == stamp_ || !subset(closures_.sets[id], after, width_)) return;
    closure_mark_[id] = stamp_;
    completed_.push_back(id);
    total += closures_.list[id].weight;
  };
  for (int id : node.active) visit(id);
  for (std::size_t i = 0; i < completed_.size(); ++i)
    for (int id : closures_.list[completed_[i]].covered) visit(id);
  return total;
}

template <int N>
bool Moves<N>::dies_at(const Node& node, int storage, int op) const {
  const auto& consumers = instance_.consumers[storage];
  if (consumers.empty()) return false;
  return std::all_of(consumers.begin(), consumers.end(),
                     [&](int c) { return c == op || test(node.set.data(), c); });
}

template <int N>
void Moves<N>::block_of(const Node& node, const Move& move, Word* block) const {
  const int words = width_.words();
  if (!rules_.blocks) {
    std::fill(block, block + words, 0);
    insert(block, move.id);
    return;
  }
  for (int i = 0; i < words; ++i) block[i] = closures_.sets[move.id][i] & ~node.set[i];
}

template <int N>
void Moves<N>::advance(const Node& node, const Move& move, Node& next) {
  block_of(node, move, block_.data());
  next.set.resize(width_.words());
  for (int i = 0; i < width_.words(); ++i) next.set[i] = node.set[i] | block_[i];
  next.live = move.live;
  complete(node, next.set.data());
  next.complete = node.complete;
  for (int id : completed_) insert(next.complete.data(), id);
  next.active.clear();
  for (int id : node.active)
    if (closure_mark_[id] != stamp_) next.active.push_back(id);
  const std::uint64_t done = stamp_;
  ++stamp_;
  for (int finished : completed_)
    for (int id : closures_.list[finished].covered) {
      if (closure_mark_[id] == done || closure_mark_[id] == stamp_) continue;
      if (test(next.complete.data(), id)) continue;
      const auto& covers = closures_.list[id].covers;
      if (!std::all_of(covers.begin(), covers.end(),
                       [&](int c) { return test(next.complete.data(), c); }))
        continue;
      closure_mark_[id] = stamp_;
      next.active.push_back(id);
    }
}

template <int N>
void Moves<N>::append(const Word* block, int last, std::vector<int>& order) const {
  for_each(block, width_, [&](int op) {
    if (op != last) order.push_back(op);
  });
  if (last >= 0) order.push_back(last);
}

template class Moves<0>;
template class Moves<1>;
template class Moves<2>;
template class Moves<3>;
template class Moves<4>;

}  // namespace schedule
